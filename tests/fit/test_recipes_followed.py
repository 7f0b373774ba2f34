"""Whoever follows the recipe of the one warning, once, has a fit without a warning."""

import warnings

import numpy as np
import pytest
from follow_recipes import DATA as OF_BENCHMARK
from follow_recipes import fit, follow, genes
from laws import repeated

from skhorseshoe import HorseshoeProbitClassifier

DATA = {**OF_BENCHMARK, "genes": lambda rng: genes(rng, repeated(6, 150))}  # groups of 20 columns


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "setosa")) for name in DATA])
def test_one_round_leads_to_a_fit_without_a_warning(name, seed):
    X, y = DATA[name](np.random.default_rng(seed))
    model = HorseshoeProbitClassifier(random_state=seed)
    _, said = fit(model, X, y)
    assert len(said) <= 1
    assert all(follow(model, message) for message in said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
