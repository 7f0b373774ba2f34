"""The input columns of which each column behind the steps of a Pipeline is made."""

from collections import Counter
from contextlib import suppress
from itertools import chain
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

    inputs: tuple[int, ...]  # places of the input columns of which it is made, ascending; () if the steps do not tell
    reach: frozenset[int]  # places of all input columns on which it can depend

    @property
    def is_alone(self):
        """Whether the column is known to depend on nothing else in a row."""
        return bool(self.inputs) and len(self.inputs) == len(self.reach)


def column_origins(model, steps, inputs):
    """An ``Origin`` for each column of a classifier, and the names of the input columns, to which its places refer.

    steps : those before the classifier, or None. inputs : the names in a table, in any order; None if there is no
    table. A ValueError if the steps do not tell.
    """
    if steps is None:
        return _alone(range(model.n_features_in_)), names_of(model)
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
    return _through(steps, names)[0]


def _through(steps, names):
    """The same, and the names of the columns."""
    columns = _alone(range(len(names)))
    for step in steps:
        outputs, names = _origins_in_step(step, [str(name) for name in names])
        columns = _composed(outputs, columns)
    return columns, names


def _composed(outputs, columns):
    """The ``Origin``s of the outputs of a step whose inputs are columns with these ``Origin``s."""
    united = {}  # a set for all columns of the same reach: thousands of them may share one of thousands of inputs
    for reach in {one.reach for one in outputs}:
        first, *others = {columns[j].reach for j in reach} or {frozenset()}
        united[reach] = first.union(*others) if others else first
    inputs = [[columns[j].inputs for j in one.inputs] for one in outputs]
    inputs = [tuple(sorted({*chain(*of)})) if all(of) else () for of in inputs]
    return [Origin(own, united[one.reach]) for own, one in zip(inputs, outputs, strict=True)]


def _origins_in_step(step, names):
    """An ``Origin`` among the inputs of a step for each column behind it, and the names of the columns."""
    step = unfrozen(step)
    passes_all = isinstance(step, preprocessing.FunctionTransformer) and step.func is None
    if step is None or step == "passthrough" or passes_all:
        return _alone(range(len(names))), names
    if isinstance(step, Pipeline):
        return _through([inner for _, inner in step.steps], names)
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
    return _origins_in_unknown(step, names, out_names), out_names


def _origins_in_unknown(step, names, out_names):
    """The ``Origin``s of the columns of a step of which only names are known.

    A column is an input if it has all of its name, and the name occurs once. The beginning of a name tells nothing:
    age_sex may be a level of age, or its product with sex.
    """
    everything = frozenset(range(len(names)))
    if len(names) == 1 and not type(step).__module__.startswith("sklearn.feature_extraction"):  # a word is no text
        return _alone([0], len(out_names))
    if out_names == names:
        return _one_to_one(step, names)
    times, times_before = Counter(out_names), Counter(names)
    places = {name: (j,) for j, name in enumerate(names) if times_before[name] == 1 == times[name]}
    return [Origin(places.get(name, ()), everything) for name in out_names]


def _one_to_one(step, names):
    """Columns at the places of the inputs."""
    is_alone = type(step).__module__.startswith("sklearn.preprocessing") and not isinstance(step, _MIXING)
    return _alone(range(len(names))) if is_alone else _mixed(range(len(names)), len(names))


def _alone(places, times=1):
    """Columns made of these inputs alone, each input so many times in a row."""
    return [Origin((int(j),), frozenset([int(j)])) for j in np.repeat(places, times)]


def _mixed(places, n_inputs):
    """Columns made of these inputs, which depend on all others too."""
    everything = frozenset(range(n_inputs))
    return [Origin((int(j),), everything) for j in places]


def _imputed(step, names):
    is_alone, simple = isinstance(step, SimpleImputer), getattr(step, "initial_imputer_", step)
    empty = ~step._valid_mask if isinstance(step, KNNImputer) else pd.isna(simple.statistics_)
    filled = [j for j in range(len(names)) if step.keep_empty_features or not empty[j]]
    missing = step.indicator_.features_ if step.add_indicator else []
    return (_alone(filled) if is_alone else _mixed(filled, len(names))) + _alone(missing)


def _by_columns(step, names):
    place_of, found = _places_in_fit(step, names), {}
    for name, transformer, _ in step.transformers_:
        if transformer == "drop" or not len(inputs := step._transformer_to_input_indices[name]):
            continue  # a table may lack what is dropped
        places = [place_of(j) for j in inputs]
        columns, _ = _origins_in_step(transformer, [names[j] for j in places])
        found |= enumerate(_composed(columns, _alone(places)), step.output_indices_[name].start)
    return [found[k] for k in range(len(found))]


def _places_in_fit(step, names):
    """A function of the number of a column in the fit of a ColumnTransformer that returns its place among names.

    The step finds columns by name, since a table may have them in another order or with others between them; where it
    knows no names, or none of these, by place.
    """
    fitted, times = list(getattr(step, "feature_names_in_", [])), Counter(names)
    place_by_name = {name: j for j, name in enumerate(names)}
    if fitted == names[: len(fitted)] or times.keys().isdisjoint(fitted):
        return lambda j: j

    def place_of(j):
        if times[name := fitted[j]] != 1:
            raise ValueError(
                f"{times[name]} columns are called {name!r}, which ColumnTransformer takes by name, and they are in "
                "another order than in the fit: give the columns of the fit, in their order."
            )
        return place_by_name[name]

    return place_of


_MIXING = preprocessing.Normalizer, preprocessing.KernelCenterer, preprocessing.FunctionTransformer
_IMPUTERS: tuple[type, ...] = SimpleImputer, KNNImputer
with suppress(ImportError):
    from sklearn.impute._iterative import IterativeImputer  # experimental

    _IMPUTERS += (IterativeImputer,)
# Functions of a step and the names of its inputs, in the order in which types are tried.
_PLACES = {
    ColumnTransformer: _by_columns,
    FeatureUnion: lambda s, names: [
        column for _, step in s.transformer_list if step != "drop" for column in _origins_in_step(step, names)[0]
    ],
    SelectorMixin: lambda s, names: _alone(s.get_support(indices=True)),
    preprocessing.OneHotEncoder: lambda s, names: _alone(range(len(names)), s._n_features_outs),
    preprocessing.KBinsDiscretizer: lambda s, names: (
        _one_to_one(s, names) if s.encode == "ordinal" else _alone(range(len(names)), s._encoder._n_features_outs)
    ),
    preprocessing.SplineTransformer: lambda s, names: _alone(range(len(names)), s.n_features_out_ // len(names)),
    preprocessing.PolynomialFeatures: lambda s, names: [
        Origin(inputs := tuple(np.flatnonzero(powers).tolist()), frozenset(inputs)) for powers in s.powers_
    ],
    preprocessing.TargetEncoder: lambda s, names: _alone(range(len(names)), len(s.encodings_) // len(names)),
    _IMPUTERS: _imputed,
    MissingIndicator: lambda s, names: _alone(s.features_),
    OneToOneFeatureMixin: _one_to_one,
}
