"""A fitted model for a server that has neither Python nor this library."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from ._backends.constants import ERFCX
from ._model import PROBIT
from ._model.multinomial_probit import MultinomialProbit
from ._posterior.classes import has_sizes, is_ordered, own_draws
from ._posterior.grouped_prediction import is_grouped, refuse_offset
from ._posterior.onnx_steps import check, convert
from ._posterior.pipeline import unwrap
from ._posterior.predict import flat_draws, n_draws_of
from ._utils.names import names_of
from ._version import __version__

if TYPE_CHECKING:
    from ._types import Model, RowsLike

__all__ = ["to_onnx"]

_OUTPUTS = "label", "probabilities"
_OPSET, _IR = 17, 8  # of 2022: the newest that have been read everywhere for years
_MOST_BYTES = 2**31 - 2**20  # of a file of ONNX, but for a megabyte
_FAR = 37.3  # from where on the tail of the normal distribution is constant, as in the core
_KINDS = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}  # of labels
_NEEDED = "to_onnx needs {}: pip install onnx skl2onnx. It is in the extra skhorseshoe[onnx]."


def to_onnx(model: Model, X: RowsLike = None, *, n_draws: int | None = None) -> Any:
    """The probabilities and the class of a row as an ONNX model, in float64.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted. Steps before the classifier are converted by skl2onnx, in float64. onnxruntime, if installed, runs
        them on rows of X: a difference is an error.
    X : array or table, default=None
        One row or more, as ``model.predict_proba`` takes them, where columns differ in type: each column of a frame
        becomes an input of its own, of its name and type; those of pandas' nullable types become float64. None is one
        input ``X`` of float64 with all columns.
    n_draws : int or None, default=None
        Maximum number of draws to use, evenly spaced, equally many from each chain, as ``max_draws`` of
        ``predict_proba_samples``; at least ``n_chains``. The file has ``8 * n_draws * n_features`` bytes, and time is
        proportional to ``n_draws`` too. None uses all.

    Returns
    -------
    graph : onnx.ModelProto
        ``graph.SerializeToString()`` is the file. Its outputs are ``label`` and ``probabilities``, (n,) and
        (n, n_classes) in the order of ``classes_``: the average over these draws, within 1e-10 but for what the steps
        round; of several classes without an order within 1e-9. It does not raise errors: a row with a missing value,
        or with a level that an encoder refuses, has probabilities nan.

    Raises
    ------
    ImportError
        If onnx, or for steps before the classifier skl2onnx, is not installed.
    ValueError
        If the model was fitted with groups or an offset, or is that of one class of more, its labels are neither
        numbers, booleans nor strings, n_draws is not a number of draws, the file would be larger than ONNX allows,
        2 GiB, X has a column with the name of an output, or a step cannot be converted; the error names it.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe import HorseshoeProbitClassifier, export
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> clf = HorseshoeProbitClassifier(n_iter=300, random_state=0).fit(X, X[:, 0] > 0.1)
    >>> graph = export.to_onnx(clf, n_draws=400)
    >>> [output.name for output in graph.graph.output]
    ['label', 'probabilities']
    """
    steps, classifier = unwrap(model)
    try:
        import onnx
    except ImportError as error:
        raise ImportError(_NEEDED.format("onnx")) from error
    if is_grouped(classifier):
        raise ValueError(
            "to_onnx takes no model that was fitted with groups, whose rows have effects that depend on their group. "
            "Serve predict_proba of the saved model in Python; or fit without groups, on one row of each."
        )
    refuse_offset(classifier, "to_onnx")
    if hasattr(classifier, "_predictors"):
        raise ValueError("to_onnx takes the model of all classes, one of whose probabilities is that of this class.")
    n_chains = len(classifier.coef_draws_)
    if n_draws is not None and (not isinstance(n_draws, Integral) or n_draws < n_chains):
        raise ValueError(f"n_draws must be None or a whole number from {n_chains} on, one a chain; got {n_draws!r}.")
    before, rows, kind = None, "X", onnx.TensorProto.DOUBLE
    if steps is not None:
        before = _steps(steps, X)
        before.ir_version = _IR
        check(onnx, before, steps, classifier, X)
        rows, kind = "rows_behind_the_steps", before.graph.output[0].type.tensor_type.elem_type
    graph = _Graph(onnx)
    outputs = _answers(graph, classifier, graph("Cast", rows, to=onnx.TensorProto.DOUBLE), n_draws)
    inputs = [onnx.helper.make_tensor_value_info(rows, kind, [None, classifier.n_features_in_])]
    body = onnx.helper.make_graph(graph.nodes, "skhorseshoe", inputs, outputs, graph.constants)
    versions = [onnx.helper.make_opsetid("", _OPSET)] if before is None else before.opset_import
    made = onnx.helper.make_model(
        body, opset_imports=versions, ir_version=_IR, producer_name="skhorseshoe", producer_version=__version__
    )
    if before is not None:
        made = onnx.compose.merge_models(before, made, io_map=[(before.graph.output[0].name, rows)])
    onnx.helper.set_model_props(made, {"columns": "\n".join(map(str, names_of(classifier)))})
    return made


def _steps(steps, X):
    """The steps before the classifier as an ONNX model. X : rows that tell the types of the inputs, or None."""
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError(_NEEDED.format("skl2onnx, for the steps before the classifier")) from error
    if taken := [name for name in _OUTPUTS if name in getattr(X, "columns", ())]:
        raise ValueError(
            f"X has a column {taken[0]!r}, and so is an output of the graph called: leave it out of X, or if the model "
            "needs it, fit with another name."
        )
    return convert(skl2onnx, steps, X, _OPSET)


class _Graph:
    """Calling it adds an operation on names of values, or on constants, and returns the name of its result."""

    def __init__(self, onnx, prefix=""):
        self.onnx, self.prefix, self.nodes, self.constants = onnx, prefix, [], []

    def __call__(self, operation, *inputs, name=None, **attributes):
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        name = name or f"skhorseshoe_{self.prefix}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, names, [name], **attributes))
        return name

    def _constant(self, values):
        name = f"skhorseshoe_{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name


def _answers(graph, model, rows, n_draws):
    """Adds the outputs to a graph, and describes them."""
    onnx, (coef, intercept) = graph.onnx, flat_draws(model, n_draws)
    held = n_draws_of(model, intercept)
    if 8 * coef.size > _MOST_BYTES:
        of_draw = coef.size // held
        raise ValueError(
            f"The {held} draws of {of_draw} coefficients take more than a file of ONNX may have, 2 GiB: give "
            f"n_draws={_MOST_BYTES // (8 * of_draw)} or less."
        )
    if model._of_two_classes is not PROBIT:
        raise ValueError(f"to_onnx knows the probit likelihood, and this model has {model._of_two_classes.name!r}.")
    products = graph("MatMul", rows, np.ascontiguousarray(coef.T, np.float64))
    if has_sizes(model):
        values = _of_utilities(graph, graph("Add", products, intercept), held, len(model.classes_))
    else:
        own = own_draws(model, n_draws).T if is_ordered(model) else np.empty((0, len(coef)))
        values = _of_cuts(graph, model, products, np.vstack([np.zeros(len(coef)), own]) - intercept)
    labels, ordered = model.classes_.tolist(), getattr(model, "ordered_classes_", model.classes_).tolist()
    places = np.array([ordered.index(label) for label in labels])
    probabilities = graph("Gather", values, places, axis=1, name=_OUTPUTS[1])
    labels = graph(
        "Gather", _labels(model.classes_), graph("ArgMax", probabilities, axis=1, keepdims=0), name=_OUTPUTS[0]
    )
    label_kind = onnx.helper.np_dtype_to_tensor_dtype(_labels(model.classes_).dtype)
    label = onnx.helper.make_tensor_value_info(labels, label_kind, [None])
    shape = [None, len(places)]
    return label, onnx.helper.make_tensor_value_info(probabilities, onnx.TensorProto.DOUBLE, shape)


def _of_utilities(graph, utilities, n_draws, n_classes):
    """Averages over draws of the probabilities that a utility is the largest; (n, K) of (n, m K).

    Integrals over the largest utility t, of phi(t - eta_k) prod_l Phi(t - eta_l), l other than k, by the trapezoidal
    rule: a ``Scan`` takes a node at a time, so that memory is that of the draws.
    """
    onnx, nodes = graph.onnx, MultinomialProbit(n_classes).nodes
    eta = graph("Reshape", utilities, np.array([0, n_draws, n_classes]))
    below_largest = graph("Sub", graph("ReduceMax", eta, axes=[2]), eta)
    none = graph("Mul", graph("ReduceMean", eta, axes=[1], keepdims=0), 0.0)
    body = _Graph(onnx, "of_node_")
    t = body("Add", below_largest, "node")
    tail, density = _tail(body, t)
    below = body("Where", body("Greater", t, 0.0), body("Sub", 1.0, tail), tail)
    logs = body("ReduceSum", body("Log", below), np.array([2]))  # since runtimes have no product of float64
    all_below = body("Exp", logs)
    average = body("ReduceMean", body("Mul", body("Div", density, below), all_below), axes=[1], keepdims=0)
    body("Add", "sum", average, name="further_sum")
    real, shape = onnx.TensorProto.DOUBLE, [None, n_classes]
    inputs = [onnx.helper.make_tensor_value_info(*of) for of in (("sum", real, shape), ("node", real, []))]
    outputs = [onnx.helper.make_tensor_value_info("further_sum", real, shape)]
    step = onnx.helper.make_graph(body.nodes, "node_of_integral", inputs, outputs, body.constants)
    total = graph("Scan", none, nodes, body=step, num_scan_inputs=1)
    return graph("Div", total, graph("ReduceSum", total, np.array([1])))


def _of_cuts(graph, model, products, cuts):
    """Averages over draws of the probabilities of ordered classes, or of two, (n, K), of products (n, m) and cuts (K -
    1, m)."""
    by_draw = graph("Reshape", products, np.array([0, 1, cuts.shape[1]]))
    below, above = _averages(graph, model, graph("Sub", by_draw, cuts))
    none = graph("Mul", graph("ReduceMean", below, axes=[1]), 0.0)
    every = graph("Add", none, 1.0)
    from_class = graph("Concat", every, above, axis=1)  # P(y >= k)
    of_above = graph("Sub", from_class, graph("Concat", above, none, axis=1))
    of_below = graph("Sub", graph("Concat", below, every, axis=1), graph("Concat", none, below, axis=1))
    # A difference of the smaller tails keeps its digits.
    return graph("Where", graph("Less", from_class, 0.5), of_above, of_below)


def _averages(graph, model, t):
    """Averages over draws of Phi(-t) and Phi(t); (n, K - 1) of (n, K - 1, m)."""
    tail, _ = _tail(graph, t)
    other, is_above = graph("Sub", 1.0, tail), graph("Greater", t, 0.0)
    sides = graph("Where", is_above, tail, other), graph("Where", is_above, other, tail)
    if hasattr(model, "_odds_factor"):
        odds = graph("Mul", sides[1], model._odds_factor)
        total = graph("Add", sides[0], odds)
        sides = graph("Div", sides[0], total), graph("Div", odds, total)
    return [graph("ReduceMean", side, axes=[2], keepdims=0) for side in sides]


def _tail(graph, t):
    """Phi(-|t|), and exp(-t^2 / 2), of t up to ``_FAR``."""
    size = graph("Min", graph("Abs", t), _FAR)
    x = graph("Mul", size, np.sqrt(0.5))
    u = graph("Div", graph("Sub", x, 3.75), graph("Add", x, 3.75))
    value = graph("Mul", u, ERFCX[0])
    for coefficient in ERFCX[1:-1]:
        value = graph("Mul", graph("Add", value, coefficient), u)
    scaled = graph("Div", graph("Add", value, ERFCX[-1]), graph("Add", graph("Mul", x, 4.0), 2.0))
    density = graph("Exp", graph("Mul", graph("Mul", size, size), -0.5))
    return graph("Mul", scaled, density), density


def _labels(classes):
    """The labels in a type that ONNX has."""
    if classes.dtype.kind in _KINDS:
        return classes.astype(_KINDS[classes.dtype.kind])
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    raise ValueError(f"The labels {classes.tolist()!r:.80} are no type of ONNX: fit with numbers, booleans or strings.")
