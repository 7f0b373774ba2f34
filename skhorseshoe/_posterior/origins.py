"""The input columns of which each column behind the steps of a Pipeline is made."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import preprocessing
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

from .._utils.names import names_of
from .pipeline import flat_steps, unfrozen


class Origin(NamedTuple):
    """The input columns of a column."""

    inputs: tuple[int, ...]  # places of input columns, ascending; () if unknown
    is_alone: bool  # whether the column is known to depend on nothing else in a row


def column_origins(model, steps, inputs):
    """An ``Origin`` for each column of a classifier, and the names of the input columns, to which its places refer.

    steps : those before the classifier, or None. inputs : the names in a table, in any order; None if there is no
    table. A ValueError if the steps do not tell.
    """
    if steps is None:
        return [Origin((j,), True) for j in range(model.n_features_in_)], names_of(model)
    steps = flat_steps(steps)
    if inputs is None:
        default = [f"x{j}" for j in range(getattr(steps[0], "n_features_in_", 0))]
        inputs = getattr(steps[0], "feature_names_in_", default)
    columns = origins(steps, inputs)
    if len(columns) != model.n_features_in_:
        raise ValueError(
            f"The steps before the classifier make {len(columns)} columns as far as their names tell, and the "
            f"classifier has {model.n_features_in_}: give terms as a dict of names and columns of the classifier."
        )
    return columns, list(inputs)


def origins(steps, names):
    """An ``Origin`` for each column behind steps, of input columns with these names."""
    columns = [Origin((j,), True) for j in range(len(names))]
    for step in steps:
        outputs, names = _of_step(step, [str(name) for name in names])
        columns = [_of_several([columns[j] for j in inputs], is_alone) for inputs, is_alone in outputs]
    return columns


def _of_several(origins, is_alone):
    inputs = {j for origin in origins for j in origin.inputs}
    is_known = bool(origins) and all(o.inputs for o in origins)
    return Origin(tuple(sorted(inputs)) if is_known else (), is_alone and is_known and all(o.is_alone for o in origins))


def _of_step(step, names):
    """For each column behind one step the places of the step's inputs of which it is made and whether it depends on
    nothing else; and the names of the columns."""
    step, everything = unfrozen(step), [((j,), True) for j in range(len(names))]
    passes_all = isinstance(step, preprocessing.FunctionTransformer) and step.func is None
    if step is None or step == "passthrough" or passes_all:
        return everything, names
    if isinstance(step, Pipeline):
        columns, out_names = origins([inner for _, inner in step.steps], names), names
        with suppress(AttributeError, ValueError):
            out_names = list(step.get_feature_names_out(names))
        return [tuple(column) for column in columns], out_names if len(out_names) == len(columns) else names
    out_names = None
    with suppress(AttributeError, ValueError, TypeError):  # the step has no names to give
        out_names = list(step.get_feature_names_out(np.asarray(names, object)))
    for kind, places in _PLACES.items():
        if isinstance(step, kind):
            outputs = places(step, names)
            is_named = out_names is not None and len(out_names) == len(outputs)
            return outputs, out_names if is_named else [f"x{j}" for j in range(len(outputs))]
    if out_names is None:
        cure = ' Give it feature_names_out="one-to-one", or a function that returns their names if they are others.'
        more = cure if isinstance(step, preprocessing.FunctionTransformer) else ""
        raise ValueError(
            f"{type(step).__name__} has no get_feature_names_out, so its columns cannot be told apart.{more}"
        )
    return [(_named_by(name, names), False) for name in out_names], out_names


def _named_by(name, inputs):
    """The input column with whose name a name begins, or ()."""
    candidates = [j for j, s in enumerate(inputs) if name == s or name.startswith((f"{s}_", f"{s}="))]
    return (max(candidates, key=lambda j: len(inputs[j])),) if candidates else ()


def _one_to_one(step, names):
    is_alone = type(step).__module__.startswith("sklearn.preprocessing") and not isinstance(step, _MIXING)
    return [((j,), is_alone) for j in range(len(names))]


def _alone(places, times=1):
    """Columns made of these inputs alone, each input so many times in a row."""
    return [((int(j),), True) for j in np.repeat(places, times)]


def _imputed(step, names):
    is_alone, simple = isinstance(step, SimpleImputer), getattr(step, "initial_imputer_", step)
    empty = ~step._valid_mask if isinstance(step, KNNImputer) else pd.isna(simple.statistics_)
    filled = [j for j in range(len(names)) if step.keep_empty_features or not empty[j]]
    missing = step.indicator_.features_ if step.add_indicator else []
    return [((j,), is_alone) for j in filled] + _alone(missing)


def _by_columns(step, names):
    inputs_of, place_of = {}, {name: j for j, name in enumerate(names)}  # a table may have the columns in another order
    fitted = getattr(step, "feature_names_in_", names)
    for name, transformer, _ in step.transformers_:
        places = [place_of.get(fitted[j], j) for j in step._transformer_to_input_indices[name]]
        if transformer == "drop" or not len(places):
            continue
        columns, _ = _of_step(transformer, [names[j] for j in places])
        for k, (inputs, is_alone) in enumerate(columns, step.output_indices_[name].start):
            inputs_of[k] = tuple(sorted(int(places[j]) for j in inputs)), is_alone
    return [inputs_of[k] for k in range(len(inputs_of))]


_MIXING = preprocessing.Normalizer, preprocessing.KernelCenterer, preprocessing.FunctionTransformer
_IMPUTERS: tuple[type, ...] = SimpleImputer, KNNImputer
with suppress(ImportError):
    from sklearn.impute._iterative import IterativeImputer  # experimental

    _IMPUTERS += (IterativeImputer,)
# Functions of a step and the names of its inputs, in the order in which types are tried.
_PLACES = {
    ColumnTransformer: _by_columns,
    FeatureUnion: lambda s, names: [
        column for _, step in s.transformer_list if step != "drop" for column in _of_step(step, names)[0]
    ],
    SelectorMixin: lambda s, names: _alone(s.get_support(indices=True)),
    preprocessing.OneHotEncoder: lambda s, names: _alone(range(len(names)), s._n_features_outs),
    preprocessing.KBinsDiscretizer: lambda s, names: (
        _one_to_one(s, names) if s.encode == "ordinal" else _alone(range(len(names)), s._encoder._n_features_outs)
    ),
    preprocessing.SplineTransformer: lambda s, names: _alone(range(len(names)), s.n_features_out_ // len(names)),
    preprocessing.PolynomialFeatures: lambda s, names: [
        (tuple(np.flatnonzero(powers).tolist()), True) for powers in s.powers_
    ],
    preprocessing.TargetEncoder: lambda s, names: _alone(range(len(names)), len(s.encodings_) // len(names)),
    _IMPUTERS: _imputed,
    MissingIndicator: lambda s, names: _alone(s.features_),
    OneToOneFeatureMixin: _one_to_one,
}
