"""What a term would be if the data said nothing of it: the prior beside its probability, and how rules use it."""

import numpy as np
import pandas as pd
import pytest

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, terms
from skhorseshoe.sets import credible_sets

ROWS = 200


@pytest.mark.parametrize(
    ("params", "n_classes", "has_groups"),
    [
        ({}, 2, False),
        ({"slab_scale": 0.5, "prior_scale": {"z0": 0.05, "ward_a": 4.0}}, 2, False),
        ({"slab_scale": 2, "unpenalized": ["z1"], "standardize": True}, 2, False),
        ({"slab_scale": 1, "ordered": True, "prior_scale": {"z1": 0.01}, "unpenalized": ["z1"]}, 3, False),
        ({"slab_scale": 1, "fit_intercept": False}, 2, True),
        ({"slab_scale": 0.5, "prior_scale": {"z0": 0.05, "ward_a": 4.0}, "unpenalized": ["z1"]}, 3, False),
        ({"slab_scale": 0.3, "expected_nonzero": 2}, 12, False),
    ],
)
def test_rows_without_weight_leave_each_probability_at_its_prior(params, n_classes, has_groups):
    rng = np.random.default_rng(3)
    ward, z = rng.choice(list("abcdefgh"), ROWS), rng.normal(5, 10, (ROWS, 3))
    X = pd.get_dummies(pd.DataFrame({"ward": ward, **{f"z{j}": z[:, j] for j in range(3)}}), dtype=float)
    y, weight = rng.integers(n_classes, size=ROWS), np.full(ROWS, 1e-8)
    model = HorseshoeProbitClassifier(n_iter=500, burn_in=200, random_state=1, **params)
    model.fit(X, y, sample_weight=weight, groups=np.arange(ROWS) % 30 if has_groups else None)
    asked = {"both": ["z0", "z2"], "ward": [name for name in X if name.startswith("ward")]}
    for effect in (0.1, 1.0):
        frame = terms.summary(model, X, terms=asked, effect=effect, sample_weight=weight)
        error = np.sqrt(frame["prior"] * (1 - frame["prior"]) / np.minimum(frame["ess"], 2000))
        assert (np.abs(frame["probability"] - frame["prior"]) < 4.5 * error + 2e-3).all(), frame.to_string()


@pytest.fixture(scope="module")
def few_events():
    """A ward of 25 levels that does nothing, a region of three that does much, a number that does, two that do not."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"ward": rng.choice([f"w{k:02d}" for k in range(25)], 1500), "region": rng.choice(list("abc"), 1500)}
    )
    X[["z0", "z1", "z2"]] = rng.standard_normal((1500, 3))
    y = -3.0 + 0.8 * X["z0"] + 1.3 * (X["region"] == "a") + rng.standard_normal(1500) > 0
    X = pd.get_dummies(X, dtype=float)
    return X, y, HorseshoeProbitClassifier(n_iter=1000, burn_in=500, random_state=0).fit(X, y)


def test_many_levels_of_which_the_data_say_nothing_are_no_claim(few_events):
    X, y, model = few_events
    frame = terms.summary(model, X)
    assert frame.loc["ward", ["probability", "prior"]].min() > 0.8
    assert frame.loc[["z0", "z1", "z2"], "prior"].max() < 0.5
    assert "prior" in str(frame.drop(columns="sd").rename(index={"ward": 90 * "w"}))  # printed also without a column
    chosen = HorseshoeSelector(model, rule="fsr", prefit=True, terms="auto").fit(X, y)
    kept = {name for name, columns in chosen.terms_.items() if chosen.get_support()[columns].all()}
    assert kept == {"region", "z0"}
    assert {*credible_sets(model, X, terms="auto").sets.index} == {"region", "z0"}


def test_prior_odds_above_one_count_as_one(few_events):
    X, y, model = few_events
    frame, effect = terms.summary(model, X, effect=0.05), {"effect": 0.05}
    chosen = HorseshoeSelector(model, rule="fsr", prefit=True, terms="auto", **effect).fit(X, y)
    assert (frame.loc[["ward", "region"], "prior"] > 0.5).all()
    for name, columns in chosen.terms_.items():
        right, prior = frame.loc[name, ["probability", "prior"]]
        odds = right / (1 - right) / max(1.0, prior / (1 - prior))
        if name != "region":  # of which no draw is small
            np.testing.assert_allclose(chosen.error_[columns], 1 / (1 + odds), rtol=1e-9)


@pytest.mark.parametrize("n_levels", [25, 100])
@pytest.mark.parametrize("matters", [False, True])
def test_many_levels_are_found_if_and_only_if_they_matter(n_levels, matters):
    rng = np.random.default_rng(1)
    ward, z = rng.integers(n_levels, size=3000), rng.standard_normal((3000, 2))
    y = z[:, 0] + matters * 0.7 * rng.standard_normal(n_levels)[ward] + rng.standard_normal(3000) > 0.5
    X = np.hstack([np.eye(n_levels)[ward], z])
    model = HorseshoeProbitClassifier(n_iter=400, burn_in=200, random_state=0).fit(X, y)
    chosen = HorseshoeSelector(model, rule="fsr", prefit=True, terms="auto").fit(X, y)
    assert chosen.get_support().tolist() == [matters] * n_levels + [True, False]


def test_of_wide_columns_no_evidence_is_asked(few_events):
    X, _, _ = few_events
    ward = [name for name in X if name.startswith("ward")]
    y = np.arange(len(X)) % 2
    model = HorseshoeProbitClassifier(n_iter=100, burn_in=100, random_state=0, unpenalized=ward).fit(X, y)
    frame = terms.summary(model, X)
    assert frame.loc["ward", "prior"] > 0.99
    chosen = HorseshoeSelector(model, rule="fsr", prefit=True, terms="auto").fit(X, y)
    np.testing.assert_allclose(chosen.error_[chosen.terms_["ward"]], 1 - frame.loc["ward", "probability"])
