"""What columns behind the steps of a Pipeline are made of: never less than what really changes them."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
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
        assert all(j in found[k].inputs for k in np.flatnonzero(moved) if found[k].is_alone)
        made = [k for k, origin in enumerate(found) if origin == ((j,), True)]
        assert not made or moved[made].any()


def test_what_is_made_of_several_inputs_names_all(table):
    X, y = table
    pipeline = make_pipeline(*STEPS["interactions"]).fit(X, y)
    found = {tuple(X.columns[list(one.inputs)]) for one in origins([step for _, step in pipeline.steps], list(X))}
    assert found == {(), ("age",), ("crp",), ("dose",), ("age", "crp"), ("age", "dose"), ("crp", "dose")}


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
