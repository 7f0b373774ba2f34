"""The steps before a classifier as a graph of ONNX, which is compared with them."""

from itertools import count
from traceback import walk_tb

import numpy as np
import pandas as pd

from .input_rows import as_pandas
from .onnx_converters import converters
from .predict import flat_draws

_MOST_ROWS = 100  # that are compared
_APART = 1e-3  # of the score: steps of float32 are nearer
_WAY_OUT = (
    "Put a step in its place that skl2onnx converts, or export the classifier alone, to_onnx(model[-1]), and do the "
    "steps in Python before."
)


def convert(skl2onnx, steps, X, opset):
    """X : rows that tell the types of the inputs, or None of float64."""
    nodes, shapes = converters(skl2onnx)
    try:
        made = skl2onnx.convert_sklearn(
            steps,
            initial_types=_types(X, steps.n_features_in_),
            target_opset=opset,
            custom_conversion_functions=nodes,
            custom_shape_calculators=shapes,
        )
    except Exception as error:  # of many kinds, AssertionError too
        raise _not_converted(steps, X, error) from error
    for entry in made.opset_import:
        if entry.domain == "":  # where the operations are older
            entry.version = opset
    if hasattr(X, "columns"):
        _name_inputs(made.graph, list(map(str, X.columns)))
    return made


def _name_inputs(graph, names):
    """Give the inputs these names, in place of those of skl2onnx; what has such a name gets another."""
    new = {of.name: name for of, name in zip(graph.input, names, strict=True)}
    others = [of.name for of in graph.initializer] + [name for node in graph.node for name in node.output]
    taken = {*names, *others}
    for name in {*names}.intersection(others):
        new[name] = next(free for k in count() if (free := f"{name}_{k}") not in taken)
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    for of in (*graph.input, *graph.initializer, *graph.output):
        of.name = new.get(of.name, of.name)
    del graph.value_info[:]


def check(onnx, made, steps, classifier, X):
    """Raises an error if a runtime does not take what was made, or computes other rows than the steps; without ONNX
    Runtime if types and shapes do not agree. X : or None."""
    wanted = None if X is None else steps.transform(X[:_MOST_ROWS])
    try:
        import onnxruntime
    except ImportError:
        onnxruntime = None
    try:
        if onnxruntime is None:
            return onnx.checker.check_model(made, full_check=True)
        session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        rows = None if X is None else session.run(None, _inputs(onnx, made, _plain(X[:_MOST_ROWS])))[0]
    except Exception as error:
        raise ValueError(
            f"No runtime takes the steps before the classifier as skl2onnx makes them: {_first_line(error)} Some take "
            "float32 where they do not take float64: give all columns of a step so. Otherwise: "
            f"{_WAY_OUT[0].lower()}{_WAY_OUT[1:]}"
        ) from error
    if X is None:
        return
    wanted = np.asarray(wanted.toarray() if hasattr(wanted, "toarray") else wanted, dtype=np.float64)
    if rows.shape == wanted.shape:
        same = (rows == wanted) | (np.isnan(rows) & np.isnan(wanted))
        coef, _ = flat_draws(classifier)
        apart = np.abs(np.where(same, 0, rows - wanted) @ coef.T).max()
    else:
        apart = np.inf
    if not apart <= _APART:  # nan too
        raise ValueError(
            f"skl2onnx converts the steps before the classifier wrongly, {steps!r:.200}: for the first {len(wanted)} "
            f"rows of X the score differs by {apart:.2g}. {_WAY_OUT}"
        )


def _types(X, n_columns):
    """The inputs with their types, as skl2onnx takes them. X : see ``convert``."""
    from skl2onnx.algebra.type_helper import guess_initial_types
    from skl2onnx.common.data_types import DoubleTensorType

    if X is None:
        return [("X", DoubleTensorType([None, n_columns]))]
    if not hasattr(X := _plain(X), "columns"):
        return guess_initial_types(X)
    inputs = []
    for name in X.columns:
        try:
            inputs += guess_initial_types(X[[name]])
        except Exception as error:
            raise TypeError(f"skl2onnx knows no type of {X[name].dtype}, that of column {name!r} of X") from error
    return inputs


def _plain(X):
    """A table as a pandas frame of types that ONNX has: numbers or booleans with <NA> as float64 with nan, and text and
    categories of text as objects."""
    if not hasattr(X, "columns"):
        return X
    X, plain = as_pandas(X), {}
    for name, kind in X.dtypes.items():
        of_levels = kind.categories.dtype if isinstance(kind, pd.CategoricalDtype) else kind
        number = getattr(of_levels, "numpy_dtype", None)
        if number is not None and number.kind in "biuf":
            plain[name] = np.float64
        elif of_levels.kind == "O":
            plain[name] = object
    return X.astype(plain)


def _inputs(onnx, made, X):
    """The rows as the inputs of the graph take them."""
    kinds = [onnx.helper.tensor_dtype_to_np_dtype(of.type.tensor_type.elem_type) for of in made.graph.input]
    whole = not hasattr(X, "columns")
    blocks = [X] if whole else [X.iloc[:, [j]].to_numpy() for j in range(X.shape[1])]
    blocks = [block.astype(str) if kind.kind == "O" else block for block, kind in zip(blocks, kinds, strict=True)]
    return {of.name: block.astype(kind) for of, block, kind in zip(made.graph.input, blocks, kinds, strict=True)}


def _first_line(error):
    """What another library says, without its advice for its own developers."""
    return str(error).split("\n")[0].split(" You may raise an is")[0].rstrip(". ") + "."


def _not_converted(steps, X, error):
    """An error that names the step, as skl2onnx held it when it failed, and what to do."""
    held = [frame.f_locals.get("operator") for frame, _ in walk_tb(error.__traceback__)]
    at_work = [entry.raw_operator for entry in held if getattr(entry, "raw_operator", None) is not None]
    way_out = (
        "Give X as an array, or a table with only the columns that the steps use, of int64, float, bool or strings. "
        f"{_WAY_OUT}"
    )
    if at_work:
        way_out = _WAY_OUT
    elif X is None and hasattr(steps, "feature_names_in_"):
        way_out = "They were fitted on a frame: give some of its rows, to_onnx(model, X[:100])."
    which = f"step {at_work[-1]!r:.200}" if at_work else "steps before the classifier"
    return ValueError(f"to_onnx cannot convert the {which}: {_first_line(error)} {way_out}")
