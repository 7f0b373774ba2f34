"""What tests of terms share: patients of four wards, and models of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

from skhorseshoe import HorseshoeProbitClassifier


@pytest.fixture(scope="session")
def clinic(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"ward": rng.choice(list("abcd"), 400, p=[0.4, 0.3, 0.2, 0.1]), "age": rng.normal(60, 10, 400)})
    X["sex"], X["crp"] = rng.choice(["f", "m"], 400), rng.gamma(2, 1, 400)
    X.loc[rng.random(400) < 0.1, "crp"] = np.nan
    score = X["ward"].map(dict(zip("abcd", [0.8, -0.8, 0.8, -0.8], strict=True))) + 0.05 * (X["age"] - 60)
    return X, np.where(score + rng.standard_normal(400) > 0, "dead", "alive")


@pytest.fixture(scope="session")
def clinic_pipeline():
    """A function that makes a Pipeline for such rows, not fitted."""

    def made(drop=None):
        steps = make_column_transformer(
            (OneHotEncoder(drop=drop), ["ward", "sex"]),
            (make_pipeline(SplineTransformer(n_knots=3), StandardScaler()), ["age"]),
            (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["crp"]),
            sparse_threshold=0,
        )
        return make_pipeline(steps, HorseshoeProbitClassifier(n_iter=50, burn_in=50, random_state=0))

    return made


@pytest.fixture(scope="session")
def of_clinic(clinic, clinic_pipeline):
    return clinic_pipeline().fit(*clinic)


@pytest.fixture(scope="session")
def dummies(clinic):
    """The same category as columns of a table, with a classifier alone."""
    X = pd.get_dummies(clinic[0][["ward", "age"]], dtype=float)
    return X, HorseshoeProbitClassifier(n_iter=50, burn_in=50, random_state=0).fit(X, clinic[1])
