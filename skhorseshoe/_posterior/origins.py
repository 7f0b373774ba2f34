"""Which input columns each column behind the steps of a Pipeline is made of."""

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

from .pipeline import flat_steps, unfrozen


class Origin(NamedTuple):
    """What a column is made of."""

    inputs: tuple[int, ...]  # places of input columns, ascending; () where that is not known
    is_alone: bool  # whether it is known to depend on nothing else in a row


def walked(before, inputs):
    """An ``Origin`` for each column behind the steps ``before`` a classifier, and the names of the input columns, among
    which its places are. inputs : these names as a table has them, in whatever order; None where none tells them."""
    steps = flat_steps(before)
    if inputs is None:
        default = [f"x{j}" for j in range(getattr(steps[0], "n_features_in_", 0))]
        inputs = getattr(steps[0], "feature_names_in_", default)
    return origins(steps, inputs), list(inputs)


def origins(steps, names):
    """An ``Origin`` for each column behind steps, of input columns with these names."""
    columns = [Origin((j,), True) for j in range(len(names))]
    for step in steps:
        own, names = _of_step(step, [str(name) for name in names])
        columns = [_of_several([columns[j] for j in inputs], is_alone) for inputs, is_alone in own]
    return columns


def _of_several(parts, is_alone):
    inputs = {j for part in parts for j in part.inputs}
    is_known = bool(parts) and all(part.inputs for part in parts)
    return Origin(tuple(sorted(inputs)) if is_known else (), is_alone and is_known and all(p.is_alone for p in parts))


def _of_step(step, names):
    """What the columns behind one step are made of, as pairs of the places of its inputs and whether these are all; and
    their names."""
    step, everything = unfrozen(step), [((j,), True) for j in range(len(names))]
    passes_all = isinstance(step, preprocessing.FunctionTransformer) and step.func is None
    if step is None or step == "passthrough" or passes_all:
        return everything, names
    if isinstance(step, Pipeline):
        columns, own = origins([one for _, one in step.steps], names), names
        with suppress(AttributeError, ValueError):
            own = list(step.get_feature_names_out(names))
        return [(column.inputs, column.is_alone) for column in columns], own if len(own) == len(columns) else names
    own = None
    with suppress(AttributeError, ValueError, TypeError):  # of a step that has no names to give
        own = list(step.get_feature_names_out(np.asarray(names, object)))
    for kind, places in _PLACES.items():
        if isinstance(step, kind):
            found = places(step, names)
            return found, own if own is not None and len(own) == len(found) else [f"x{j}" for j in range(len(found))]
    if own is None:
        cure = ' Give it feature_names_out="one-to-one".' if isinstance(step, preprocessing.FunctionTransformer) else ""
        raise ValueError(
            f"{type(step).__name__} has no get_feature_names_out, so its columns cannot be told apart.{cure}"
        )
    return [(_by_name(name, names), False) for name in own], own


def _by_name(name, inputs):
    """The input column that a name begins with, or ()."""
    found = [j for j, one in enumerate(inputs) if name == one or name.startswith((f"{one}_", f"{one}="))]
    return (max(found, key=lambda j: len(inputs[j])),) if found else ()


def _each(step, names):
    is_alone = type(step).__module__.startswith("sklearn.preprocessing") and not isinstance(step, _MIXING)
    return [((j,), is_alone) for j in range(len(names))]


def _repeated(counts):
    return [((j,), True) for j, n in enumerate(counts) for _ in range(n)]


def _one_hot(step, names):
    return _repeated(step._n_features_outs)


def _bins(step, names):
    return _each(step, names) if step.encode == "ordinal" else _one_hot(step._encoder, names)


def _splines(step, names):
    return _repeated([step.n_features_out_ // len(names)] * len(names))


def _powers(step, names):
    return [(tuple(np.flatnonzero(powers).tolist()), True) for powers in step.powers_]


def _targets(step, names):
    return _repeated([len(step.encodings_) // len(names)] * len(names))


def _imputed(step, names):
    is_alone, simple = isinstance(step, SimpleImputer), getattr(step, "initial_imputer_", step)
    empty = ~step._valid_mask if isinstance(step, KNNImputer) else pd.isna(simple.statistics_)
    kept = [j for j in range(len(names)) if step.keep_empty_features or not empty[j]]
    missing = step.indicator_.features_.tolist() if step.add_indicator else []
    return [((j,), is_alone) for j in kept] + [((j,), True) for j in missing]


def _indicated(step, names):
    return [((int(j),), True) for j in step.features_]


def _selected(step, names):
    return [((int(j),), True) for j in step.get_support(indices=True)]


def _by_columns(step, names):
    found, here = {}, {name: j for j, name in enumerate(names)}  # a table may have the columns in another order
    fitted = getattr(step, "feature_names_in_", names)
    for part, transformer, _ in step.transformers_:
        places = [here.get(fitted[j], j) for j in step._transformer_to_input_indices[part]]
        if transformer == "drop" or not len(places):
            continue
        own, _ = _of_step(transformer, [names[j] for j in places])
        for k, (inputs, is_alone) in enumerate(own, step.output_indices_[part].start):
            found[k] = tuple(sorted(int(places[j]) for j in inputs)), is_alone
    return [found[k] for k in range(len(found))]


def _united(step, names):
    return [one for _, part in step.transformer_list if part != "drop" for one in _of_step(part, names)[0]]


_MIXING = preprocessing.Normalizer, preprocessing.KernelCenterer, preprocessing.FunctionTransformer
_IMPUTERS: tuple[type, ...] = SimpleImputer, KNNImputer
with suppress(ImportError):
    from sklearn.impute._iterative import IterativeImputer  # which is experimental

    _IMPUTERS += (IterativeImputer,)
# What is tried first comes first.
_PLACES = {
    ColumnTransformer: _by_columns,
    FeatureUnion: _united,
    SelectorMixin: _selected,
    preprocessing.OneHotEncoder: _one_hot,
    preprocessing.KBinsDiscretizer: _bins,
    preprocessing.SplineTransformer: _splines,
    preprocessing.PolynomialFeatures: _powers,
    preprocessing.TargetEncoder: _targets,
    _IMPUTERS: _imputed,
    MissingIndicator: _indicated,
    OneToOneFeatureMixin: _each,
}
