"""Claims about terms: by every rule, in credible sets, of Pipelines; and of levels where no terms are asked for."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, inspection, terms
from skhorseshoe.diagnostics import ess_bulk
from skhorseshoe.sets import credible_sets

RULES = ("interval", "fsr", "dss", "shrinkage")
SHORT = HorseshoeProbitClassifier(n_iter=300, burn_in=150, random_state=0, n_jobs=1)
LEVELS = {
    "four": (1500, [0.7, -0.7, 0.7, -0.7]),
    "many rows": (12_000, [0.7, -0.7, 0.7, -0.7]),
    "two": (1500, [0.7, -0.7]),
    "six": (1500, [0.7, -0.7, 0.7, -0.7, 0.7, -0.7]),
}


def table(seed, n, effects, n_noise=4):
    rng = np.random.default_rng(seed)
    level, noise = rng.integers(0, len(effects), n), rng.standard_normal((n, n_noise))
    X = pd.DataFrame(noise, columns=[f"noise{j}" for j in range(n_noise)])
    X = pd.concat([pd.get_dummies(pd.Series(level.astype(str)), prefix="ward", dtype=float), X], axis=1)
    return X.assign(a=(a := rng.standard_normal(n))), (
        0.5 * a + np.array(effects)[level] + rng.standard_normal(n) > 0
    ).astype(int)


@pytest.fixture(scope="module", params=LEVELS)
def decisive(request, seed):
    X, y = table(seed, *LEVELS[request.param])
    return X, y, clone(SHORT).fit(X, y)


def selected(model, X, y, **given):
    selector = HorseshoeSelector(model, prefit=True, **given).fit(X, y)
    return selector, selector.get_feature_names_out().tolist()


@pytest.mark.parametrize("asked", [None, "auto"])
@pytest.mark.parametrize("rule", ["interval", "fsr"])
def test_a_decisive_category_is_found(decisive, rule, asked):
    X, y, model = decisive
    _, kept = selected(model, X, y, rule=rule, terms=asked)
    assert {"a", *(name for name in X if name.startswith("ward"))} <= {*kept}
    assert len(kept) <= X.shape[1] - 3


def test_it_is_a_credible_set_under_its_name(decisive):
    X, _, model = decisive
    sets, members = credible_sets(model, X)
    assert {"a", "ward"} <= {*sets.index}
    assert {*members.loc["ward"].index} == {name for name in X if name.startswith("ward")}


def centred(model, X, names):
    """Draws of what one standard deviation of each level does beside the mean of the other levels' rows."""
    own = X[names].to_numpy()
    draws = model.coef_draws_[..., [X.columns.get_loc(name) for name in names]].astype(float)
    share = own.mean(axis=0)
    others = np.array(
        [(draws @ np.where(np.arange(len(share)) == j, 0, share)) / (1 - share[j]) for j in range(len(share))]
    )
    return (draws - np.moveaxis(others, 0, -1)) * own.std(axis=0)


def test_without_terms_levels_are_judged_beside_the_others(decisive):
    X, y, model = decisive
    names = [name for name in X if name.startswith("ward")]
    effects = centred(model, X, names)
    selector, _ = selected(model, X, y, rule="fsr", effect=0.3)
    right = np.maximum((effects > 0.3).mean(axis=(0, 1)), (effects < -0.3).mean(axis=(0, 1)))
    by_hand = np.maximum(1 - right, 1 / np.minimum(ess_bulk(effects), effects[..., 0].size))
    # Draws that a shift of all levels alone has changed have effects that differ by rounding, and ranks by chance.
    assert np.allclose(selector.error_[X.columns.isin(names)], by_hand, rtol=2e-3, atol=1e-9)
    low, high = np.quantile(effects, [0.05, 0.95], axis=(0, 1))
    selector, kept = selected(model, X, y, rule="interval")
    assert [name in kept for name in names] == ((low > 0) | (high < 0)).tolist()


@pytest.fixture(scope="module")
def mixed(seed):
    """A category that matters, one that does not, a spline that does, and columns of noise."""
    rng, n = np.random.default_rng(seed), 1000
    X = pd.DataFrame({"ward": rng.choice(list("abcd"), n), "site": rng.choice(list("xyz"), n)})
    X["age"], X["noise"], X["dose"] = rng.uniform(-2, 2, n), rng.standard_normal(n), rng.standard_normal(n)
    score = X["ward"].map({"a": 0.9, "b": -0.9, "c": 0.9, "d": -0.9}) + X["age"] ** 2 - 1.3 + 0.7 * X["dose"]
    return X, (score + rng.standard_normal(n) > 0).astype(int)


def encoder():
    return make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["ward", "site"]),
        (SplineTransformer(n_knots=4, include_bias=False), ["age"]),
        remainder="passthrough",
        sparse_threshold=0,
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")


@pytest.fixture(scope="module")
def model(mixed):
    return make_pipeline(encoder(), clone(SHORT)).fit(*mixed)


def prefixes(names):
    return {name.split("_")[0] for name in names}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_keeps_or_drops_the_terms_of_a_pipeline(model, mixed, rule):
    selector = inspection.select(model, *mixed, rule=rule, terms="auto")
    kept, all_names = selector.get_support(), np.array(selector.feature_names_in_)
    assert {name: len(own) for name, own in selector.terms_.items()} == {
        "ward": 4,
        "site": 3,
        "age": 5,
        "noise": 1,
        "dose": 1,
    }
    for own in selector.terms_.values():
        assert kept[own].all() or not kept[own].any()
    assert {"ward", "age", "dose"} <= prefixes(all_names[kept])
    if rule != "shrinkage":
        assert "noise" not in prefixes(all_names[kept]) or "site" not in prefixes(all_names[kept])


def effects_of(model, mixed, own):
    Z = np.asarray(model[:-1].transform(mixed[0]))[:, own]
    return np.einsum("cmk,nk->cmn", model[-1].coef_draws_[..., own].astype(float), Z - Z.mean(axis=0))


def test_fsr_judges_the_size_of_a_term(model, mixed):
    for effect in (0.0, 0.1, 0.5):
        selector = inspection.select(model, *mixed, rule="fsr", effect=effect, terms="auto")
        prior = terms.summary(model, mixed[0], effect=effect)["prior"]
        for name, own in selector.terms_.items():
            sizes = effects_of(model, mixed, own).std(axis=-1)
            if len(own) > 1:
                by_hand = max((sizes <= effect).mean(), 1 / min(ess_bulk(sizes), sizes.size))
                ratio = selector.error_[own] / by_hand
                assert (ratio > 1 - 1e-4).all()  # more where that was likely before the data
                assert (effect > 0 and prior[name] > 0.5) or np.allclose(ratio, 1, rtol=1e-4)


def test_intervals_are_of_principal_components_each_at_a_higher_level(model, mixed):
    for level in (0.9, 0.99):
        selector = inspection.select(model, *mixed, rule="interval", level=level, terms="auto")
        for own in (one for one in selector.terms_.values() if len(one) > 1):
            Z = np.asarray(model[:-1].transform(mixed[0]))[:, own]
            values, vectors = np.linalg.eigh(np.cov(Z.T, ddof=0))
            vectors = vectors[:, values > 1e-9 * values.max()]
            tail = (1 - level) / vectors.shape[1] / 2
            low, high = np.quantile(
                model[-1].coef_draws_[..., own].astype(float) @ vectors, [tail, 1 - tail], axis=(0, 1)
            )
            assert selector.get_support()[own].all() == bool(((low > 0) | (high < 0)).any())


def test_dss_finds_the_terms_on_its_path_one_by_one(model, mixed):
    selector = inspection.select(model, *mixed, rule="dss", terms="auto")
    supports, distances = selector.path_["supports"], selector.path_["distances"]
    for own in selector.terms_.values():
        assert (supports[:, own].all(axis=1) == supports[:, own].any(axis=1)).all()
    assert not supports[0].any()
    assert (np.diff(supports.astype(int), axis=0) >= 0).all()
    assert (np.diff(distances) <= 1e-9).all()
    best = {name: distances[np.flatnonzero(supports[:, own].any(axis=1))[0]] for name, own in selector.terms_.items()}
    assert max(best[name] for name in ("noise", "site")) <= min(best[name] for name in ("ward", "age", "dose"))


def test_folds_choose_the_number_of_columns_of_whole_terms(mixed):
    X, y = encoder().fit_transform(mixed[0]), mixed[1]
    several = {"ward": list(X)[:4], "site": list(X)[4:7], "age": list(X)[7:12]}
    short = clone(SHORT).set_params(n_iter=60, burn_in=60)
    selector = HorseshoeSelector(short, cv=3, terms=several).fit(X, y)
    kept = prefixes(selector.get_feature_names_out())
    assert {"ward", "age", "dose"} <= kept
    assert selector.suggested_size_ == sum(len(selector.terms_[name]) for name in kept)


@pytest.mark.parametrize("rule", RULES)
def test_the_least_number_of_columns_is_rounded_up_to_terms(model, mixed, rule):
    n = inspection.select(model, *mixed, rule=rule, terms="auto").get_support().sum()
    more = inspection.select(model, *mixed, rule=rule, terms="auto", min_features=int(n) + 1)
    assert more.get_support().sum() > n or n == more.n_features_in_
    for own in more.terms_.values():
        assert more.get_support()[own].all() or not more.get_support()[own].any()


def test_terms_with_a_column_that_is_not_shrunk_are_kept(mixed):
    steps = encoder().fit(mixed[0])
    clf = clone(SHORT).set_params(unpenalized=["noise"]).fit(steps.transform(mixed[0]), mixed[1])
    for rule in RULES:
        together = {"both": ["noise", "site_x"]}
        _, kept = selected(clf, steps.transform(mixed[0]), mixed[1], rule=rule, terms=together)
        assert {"noise", "site_x"} <= {*kept}


def test_sets_of_a_pipeline_are_its_terms(model, mixed):
    found = credible_sets(model, mixed[0])
    assert {"ward", "age", "dose"} <= {*found.sets.index}
    row = found.sets.loc["age"]
    sizes = effects_of(model, mixed, [7, 8, 9, 10, 11]).std(axis=-1)
    assert abs(row["mean"] - sizes.mean()) < 1e-6
    assert row["n_columns"] == 5


def test_a_selector_with_terms_is_one_of_scikit_learns(mixed):
    X, y = encoder().fit_transform(mixed[0]), mixed[1]
    selector = HorseshoeSelector(clone(SHORT), rule="fsr", terms="auto")
    assert clone(selector).terms == "auto"
    assert make_pipeline(selector, clone(SHORT)).fit(X, y).score(X, y) > 0.7
    with pytest.raises(ValueError, match="terms"):
        HorseshoeSelector(clone(SHORT), terms="all").fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["interval", "fsr", "sets"])
def test_a_category_of_noise_is_seldom_claimed(rule):
    """In 40 data sets, at most q = 0.1 of them and three standard errors."""
    claimed = 0
    for k in range(40):
        rng = np.random.default_rng(k)
        X, y = table(1000 + k, 600, np.zeros(rng.integers(2, 7)), n_noise=1)
        model = clone(SHORT).fit(X, y)
        if rule == "sets":
            claimed += "ward" in credible_sets(model, X).sets.index
        else:
            claimed += any(name.startswith("ward") for name in selected(model, X, y, rule=rule, terms="auto")[1])
    assert claimed <= 4 + 3 * np.sqrt(40 * 0.1 * 0.9)
