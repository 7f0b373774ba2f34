"""What columns behind the steps of a Pipeline are made of: never less than what really changes them."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from skhorseshoe._posterior.origins import origins

NUMBERS, TEXTS = ["age", "crp", "dose"], ["ward", "sex"]


@pytest.fixture(scope="module")
def table(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"ward": rng.choice(list("abcd"), 120), "age": rng.normal(60, 10, 120)})
    X["sex"], X["crp"], X["dose"] = rng.choice(["f", "m"], 120), rng.gamma(2, 1, 120), rng.normal(5, 1, 120)
    X.loc[rng.random(120) < 0.1, "crp"] = np.nan
    return X, rng.integers(0, 2, 120)


def with_log(frame):
    return frame.assign(age_log=np.log(frame["age"].clip(1)))


def columns(*parts, **params):
    named = [(f"part{k}", *part) for k, part in enumerate(parts)]
    return ColumnTransformer(named, sparse_threshold=0, **params)


filled = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
LOG = FunctionTransformer(with_log, feature_names_out=lambda _, names: [*names, "age_log"])
BINS = KBinsDiscretizer(3, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
STEPS = {
    "one hot": [columns((OneHotEncoder(), TEXTS), (filled, NUMBERS))],
    "one hot, less one": [columns((OneHotEncoder(drop="first", min_frequency=35), TEXTS)), VarianceThreshold()],
    "ordinal and what remains": [columns((OrdinalEncoder(), ["sex"]), ("drop", ["ward"]), remainder="passthrough")],
    "targets": [columns((TargetEncoder(cv=2), TEXTS), ("passthrough", ["dose"]))],
    "splines": [columns((SplineTransformer(n_knots=4, include_bias=False), ["age", "dose"])), StandardScaler()],
    "bins": [columns((make_pipeline(SimpleImputer(), BINS), NUMBERS))],
    "interactions": [columns((make_pipeline(SimpleImputer(), PolynomialFeatures(2)), NUMBERS))],
    "imputed from others": [columns((IterativeImputer(add_indicator=True, max_iter=2), NUMBERS))],
    "imputed from neighbours": [columns((KNNImputer(add_indicator=True), NUMBERS))],
    "only what is missing": [columns((MissingIndicator(), NUMBERS))],
    "components": [columns((make_pipeline(SimpleImputer(), PCA(2)), NUMBERS), (OneHotEncoder(), ["sex"]))],
    "named": [columns((LOG, ["age"]))],
    "two ways": [columns((FeatureUnion([("one", MinMaxScaler()), ("two", Normalizer())]), ["age", "dose"]))],
    "places": [columns((OneHotEncoder(), [0, 2]), (StandardScaler(), slice(1, 2))), SelectKBest(k=4)],
}  # fmt: skip


def transformed(pipeline, X):
    Z = pipeline.transform(X)
    return Z.toarray() if issparse(Z) else np.asarray(Z, float)


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_an_input_changes_no_column_that_is_not_made_of_it(steps, table, seed):
    X, y = table
    pipeline, rng = make_pipeline(*steps).fit(X, y), np.random.default_rng(seed)
    before = transformed(pipeline, X)
    found = origins([step for _, step in pipeline.steps], list(X))
    assert len(found) == before.shape[1]
    for j, name in enumerate(X):
        changed = X.assign(**{name: rng.permutation(X[name])})
        moved = ~np.isclose(before, transformed(pipeline, changed), rtol=1e-9, atol=1e-9, equal_nan=True).all(axis=0)
        assert all(j in found[k].reach for k in np.flatnonzero(moved))
        made = [k for k, origin in enumerate(found) if origin.inputs == (j,) and origin.is_alone]
        assert not made or moved[made].any()


def test_what_is_made_of_several_inputs_names_all(table):
    X, y = table
    pipeline = make_pipeline(*STEPS["interactions"]).fit(X, y)
    found = {tuple(X.columns[list(one.inputs)]) for one in origins([step for _, step in pipeline.steps], list(X))}
    assert found == {(), ("age",), ("crp",), ("dose",), ("age", "crp"), ("age", "dose"), ("crp", "dose")}


EQUAL = pd.DataFrame({"ward": ["a_1", "b"] * 2, "ward_a": ["1", "1", "2", "2"]})  # both have a column ward_a_1
BEHIND_EQUAL = {
    "slices": ColumnTransformer([("p", "passthrough", slice(0, 2)), ("q", MaxAbsScaler(), slice(2, 4))]),
    "another order": ColumnTransformer([("q", MaxAbsScaler(), [3, 0]), ("p", "passthrough", [1, 2])]),
    "nested": ColumnTransformer([("p", ColumnTransformer([("q", "passthrough", [1, 0])]), [2, 0])]),
    "union": FeatureUnion([("p", "passthrough"), ("q", MaxAbsScaler())]),
    "function": FunctionTransformer(lambda Z: 2 * Z, feature_names_out="one-to-one"),
    "more": FunctionTransformer(lambda Z: np.c_[Z, Z[:, 0]], feature_names_out=lambda _, names: [*names, "more"]),
    "selected": VarianceThreshold(),
}


@pytest.mark.parametrize("behind", BEHIND_EQUAL.values(), ids=BEHIND_EQUAL)
def test_columns_of_equal_names_are_followed_by_place(behind):
    pipeline = make_pipeline(OneHotEncoder(sparse_output=False), behind).fit(EQUAL)
    found, before = origins([step for _, step in pipeline.steps], list(EQUAL)), transformed(pipeline, EQUAL)
    for j, name in enumerate(EQUAL):
        moved = transformed(pipeline, EQUAL.assign(**{name: EQUAL[name].to_numpy()[::-1]})) != before
        made_of = [k for k, origin in enumerate(found) if j in origin.inputs]
        assert {*made_of} <= {*np.flatnonzero(moved.any(axis=0))}
        assert all(j in found[k].reach for k in np.flatnonzero(moved.any(axis=0)))
    assert sum(bool(origin.inputs) for origin in found) >= 2


def test_a_name_that_a_table_has_twice_is_refused_where_it_tells_the_place():
    steps = [
        ColumnTransformer([("scaled", StandardScaler(), ["dose", "age"])]).fit(
            pd.DataFrame(np.eye(3), columns=["age", "dose", "name"])
        )
    ]
    assert [one.inputs for one in origins(steps, ["id", "dose", "age"])] == [(1,), (2,)]  # and need not be there
    with pytest.raises(ValueError, match=r"2 columns are called 'dose', .* in another order than in the fit"):
        origins(steps, ["dose", "age", "dose"])


class WithProduct(TransformerMixin, BaseEstimator):
    """A step of somebody else, of which only the names of its columns are known."""

    def fit(self, X, y=None):
        self.names_ = [*X.columns]
        return self

    def transform(self, X):
        return X.assign(age_dose=X["age"] * X["dose"], age_2=X["age"] ** 2)

    def get_feature_names_out(self, input_features=None):
        return np.array([*self.names_, "age_dose", "age_2"], object)


PRODUCT = FunctionTransformer(WithProduct().transform, feature_names_out=lambda _, names: [*names, "age_dose", "age_2"])


@pytest.mark.parametrize("step", [PRODUCT, WithProduct()], ids=["function", "step"])
@pytest.mark.parametrize("prefixed", [False, True])
def test_the_beginning_of_a_name_is_no_origin(step, prefixed, table):
    X = table[0][["age", "dose"]]
    steps = [columns((step, ["age", "dose"])), StandardScaler()] if prefixed else [step]
    found = origins([step for _, step in make_pipeline(*steps).fit(X).steps], list(X))
    assert [one.inputs for one in found] == [(0,), (1,), (), ()]
    assert not any(one.is_alone for one in found)


@pytest.mark.parametrize("step", [LOG, PCA(1)], ids=["function", "components"])
def test_a_step_that_is_given_one_column_makes_all_of_it(step, table):
    found = origins([columns((step, ["age"])).fit(table[0])], list(table[0]))
    assert {(one.inputs, one.is_alone) for one in found} == {((1,), True)}


def test_words_are_no_columns_of_their_text():
    texts = pd.DataFrame({"note": ["to be", "or not"], "text": ["a fall", "a fever"]})
    found = origins([ColumnTransformer([("words", CountVectorizer(), "text")]).fit(texts)], list(texts))
    assert {(one.inputs, one.reach) for one in found} == {((), frozenset([1]))}


def test_a_frozen_step_is_looked_into(table):
    X, y = table
    steps = [FrozenEstimator(STEPS["one hot"][0].fit(X, y)), StandardScaler()]
    assert [one.inputs for one in origins(steps, list(X))] == [(0,)] * 4 + [(2,)] * 2 + [(1,), (3,), (4,), (3,)]


def test_a_step_without_names_is_refused(table):
    class Plain:
        def transform(self, X):
            return X

    with pytest.raises(ValueError, match="Plain has no get_feature_names_out, so its columns cannot be told apart"):
        origins([Plain()], ["a"])
