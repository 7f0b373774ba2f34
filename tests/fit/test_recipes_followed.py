"""Whoever follows the recipe of the one warning, once, has a fit without a warning."""

import warnings

import numpy as np
import pytest
from _data import DATA, in_blocks
from follow_recipes import NAMES, follow, said
from laws import repeated

from skhorseshoe import HorseshoeProbitClassifier


def genes(seed):
    """Fewer columns than in the benchmark, whose fits take a minute."""
    rng = np.random.default_rng(seed)
    X = in_blocks(rng, 80, repeated(120, 3000))
    return X, 2 * X[:, 5] - 2 * X[:, 105] + rng.standard_normal(80) > 0


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "setosa")) for name in NAMES])
def test_one_round_leads_to_a_fit_without_a_warning(name, seed):
    X, y = genes(seed) if name == "genes" else DATA[name].make()
    model = HorseshoeProbitClassifier(random_state=seed)
    _, messages = said(model, X, y)
    assert len(messages) <= 1
    for message in messages:
        follow(model, message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
