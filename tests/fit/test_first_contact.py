"""Whoever follows the recipe of the one warning, once, has a fit without a warning."""

import warnings

import numpy as np
import pytest
from first_contact import DATA as OF_BENCHMARK
from first_contact import fit, follow, genes
from laws import repeated
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier

slow = pytest.mark.slow
QUICK = ("setosa",)
DATA = {**OF_BENCHMARK, "genes": lambda rng: genes(rng, repeated(6, 150))}  # groups of 20 columns


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else slow) for name in DATA])
def test_one_round_leads_to_a_fit_without_a_warning(name, seed):
    X, y = DATA[name](np.random.default_rng(seed))
    model = HorseshoeProbitClassifier(random_state=seed)
    _, said = fit(model, X, y)
    assert len(said) <= 1
    assert all(follow(model, message) for message in said)
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
