"""Whoever follows the recipe of the one warning, once, has a fit without a warning."""

import ast
import re
import warnings

import numpy as np
import pytest
from laws import repeated
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from skhorseshoe import HorseshoeProbitClassifier


def one_class(load, which, prepare=lambda X: X):
    X, y = load(return_X_y=True)
    return prepare(X), y == which


def digits():
    X, y = load_digits(return_X_y=True)
    rows = np.isin(y, (3, 8))
    return X[rows], y[rows] == 8


def spam(rng):
    """Counts of 57 words, most of them 0."""
    X = np.log1p(rng.gamma(0.3, 2.0, (4600, 57)) * (rng.random((4600, 57)) < 0.3))
    return X, scale(X)[:, :20] @ (1.5 * rng.standard_normal(20)) + rng.standard_normal(4600) > 0


def genes(rng):
    """80 rows of groups of 20 columns with correlations of 0.7."""
    X = np.sqrt(0.7) * np.repeat(rng.standard_normal((80, repeated(25, 150))), 20, axis=1)
    X += np.sqrt(0.3) * rng.standard_normal(X.shape)
    return X, 2 * X[:, 5] - 2 * X[:, 405] + rng.standard_normal(80) > 0


slow = pytest.mark.slow
DATA = {
    "wine": lambda rng: one_class(load_wine, 0),
    "wine, scaled": lambda rng: one_class(load_wine, 0, scale),
    "setosa": lambda rng: one_class(load_iris, 0),
    "versicolor": lambda rng: one_class(load_iris, 1),
    "virginica": lambda rng: one_class(load_iris, 2),
    "breast cancer": lambda rng: one_class(load_breast_cancer, 1),
    "breast cancer, scaled": lambda rng: one_class(load_breast_cancer, 1, scale),
    "digits": lambda rng: digits(),
    "spam": spam,
    "genes": genes,
}
QUICK = "wine", "setosa"


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else slow) for name in DATA])
def test_one_round_leads_to_a_fit_without_a_warning(name, seed):
    X, y = DATA[name](np.random.default_rng(seed))
    model = HorseshoeProbitClassifier(random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert len(caught) <= 1
    for warning in caught:
        recipe = re.search(r"Fit again with (.+): about (a second|\d+ (s|minutes|hours))\.$", str(warning.message))
        call = ast.parse(f"f({recipe[1]})", mode="eval").body
        model.set_params(**{word.arg: ast.literal_eval(word.value) for word in call.keywords})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)


def test_a_recipe_names_what_cannot_stay(weak_problem, tmp_path):
    """Chains of another model begin anew, and in another folder."""
    X, y = weak_problem[0], weak_problem[0][:, 0] > 0
    for how, words in ({"warm_start": True}, "warm_start=False"), ({"checkpoint": tmp_path}, "checkpoint='<another"):
        with pytest.warns(ConvergenceWarning, match="slab_scale=2, n_iter=4000") as caught:
            HorseshoeProbitClassifier(n_iter=50, random_state=0, **how).fit(X, y)
        assert words in str(caught[0].message)
