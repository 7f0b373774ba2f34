"""Classifiers of ordered classes whose rows belong together: what they answer for known and new groups, and to whom
they hand it. ``tests/mcmc/test_ordered_groups_law.py`` has their law."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, ndtr

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, export, inspection, plotting, sets, terms

LEVELS = ["none", "mild", "strong"]
RNG = np.random.default_rng(3)
N, N_GROUPS = 300, 30
X = pd.DataFrame(RNG.standard_normal((N, 3)), columns=list("abc"))
PATIENT, DOCTOR = np.repeat(np.arange(N_GROUPS), N // N_GROUPS), RNG.integers(0, 6, N)
Z = X["a"] - 0.5 * X["b"] + RNG.standard_normal(N_GROUPS)[PATIENT] + RNG.standard_normal(N)
Y = pd.Series(pd.cut(Z, [-np.inf, -0.8, 1.0, np.inf], labels=LEVELS))
FAST = {"n_iter": 200, "burn_in": 120, "random_state": 0, "ordered": True}
pytestmark = pytest.mark.filterwarnings("ignore:groups.*has 6 different labels")


@pytest.fixture(scope="module")
def model():
    return HorseshoeProbitClassifier(**FAST).fit(X, Y, groups=PATIENT)


def parts(model):
    """Linear predictors without effects (n, m), all cut points (K - 1, m) with the intercept in them, and s (m,)."""
    eta = X.to_numpy() @ model.coef_draws_.reshape(-1, 3).T
    return eta, model.cut_points_draws_.reshape(-1, 2).T, model.group_scale_draws_.ravel()


def in_order(model, proba):
    return proba[..., [model.classes_.tolist().index(level) for level in LEVELS]]


def classes_at(eta, cuts):
    """Probabilities of the classes from lowest to highest; (..., 3)."""
    above = [np.ones_like(eta), *(ndtr(eta - cut) for cut in cuts), np.zeros_like(eta)]
    return np.stack([above[k] - above[k + 1] for k in range(3)], axis=-1)


def test_probabilities_of_known_groups_have_their_effects_and_of_new_ones_the_average(model):
    eta, cuts, s = parts(model)
    u = model.group_effect_draws_.reshape(-1, N_GROUPS)[:, PATIENT].T.astype(float)
    known = in_order(model, model.predict_proba(X, groups=PATIENT, new_groups=False))
    np.testing.assert_allclose(known, classes_at(eta + u, cuts).mean(axis=1), atol=1e-9)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    by_node = [w * classes_at(eta + s * node, cuts).mean(axis=1) for node, w in zip(nodes, weights, strict=True)]
    new = in_order(model, model.predict_proba(X))
    np.testing.assert_allclose(new, sum(by_node) / weights.sum(), atol=1e-6)
    np.testing.assert_allclose(new.sum(axis=1), 1, atol=1e-12)
    half = np.where(np.arange(N) % 2, PATIENT, 1000 + PATIENT)
    mixed = in_order(model, model.predict_proba(X, groups=half, new_groups=False))
    np.testing.assert_allclose(mixed, np.where(np.arange(N)[:, None] % 2, known, new), atol=1e-12)
    samples = in_order(model, model.predict_proba_samples(X, groups=half, new_groups=False))
    np.testing.assert_allclose(samples.mean(axis=1), mixed, atol=1e-9)
    ends = in_order(model, np.moveaxis(model.predict_interval(X, 0.8), 1, 2))
    root = np.sqrt(1 + s**2)
    np.testing.assert_allclose(ends[:, 1], np.quantile(classes_at(eta / root, cuts / root), 0.9, axis=1), atol=1e-9)


def test_draws_whose_effects_are_given_up_take_their_cut_points_along(monkeypatch):
    monkeypatch.setattr("skhorseshoe._mcmc.group_draws.ROOM_BYTES", 4 * 4 * N_GROUPS * 60)
    model = HorseshoeProbitClassifier(**FAST).fit(X, Y, groups=PATIENT)
    stride = model._group_stride
    assert stride == 4
    eta, cuts, _ = (np.reshape(part, (*part.shape[:-1], 4, 200))[..., stride - 1 :: stride] for part in parts(model))
    u = np.moveaxis(model.group_effect_draws_[..., PATIENT], 2, 0)
    wanted = classes_at(eta + u, cuts).mean(axis=(1, 2))
    got = in_order(model, model.predict_proba(X, groups=PATIENT, new_groups=False))
    np.testing.assert_allclose(got, wanted, atol=1e-9)


def test_the_model_of_at_least_a_class_sums_its_probabilities_and_takes_effects(model):
    strong = inspection.at_least(model, "strong")
    for how in ({}, {"groups": PATIENT, "new_groups": False}):
        both = strong.predict_proba(X, **how)[:, 1], in_order(model, model.predict_proba(X, **how))[:, 2]
        np.testing.assert_allclose(*both, rtol=1e-7)
    shifted = [strong.predict_proba(X.assign(a=X["a"] + by))[:, 1].mean() for by in (0, 1)]
    effects = inspection.marginal_effects(strong, X)
    assert effects.loc["a", "mean"] == pytest.approx(shifted[1] - shifted[0])
    assert "averaged over groups" in " ".join(effects.attrs["header"].split())
    assert strong.predict_interval(X[:2], of_one=True).shape == (2, 2)
    with pytest.raises(ValueError, match=r"of_one=True is of two classes, .*at_least\(model, 'strong'\)"):
        model.predict_interval(X[:2], of_one=True)
    assert len(inspection.contributions(strong, X[:1]))
    check = inspection.predictive_check(strong, X, Y == "strong", by="a", groups=PATIENT, new_groups=True)
    assert check["outside"].mean() < 0.5
    plotting.PosteriorCalibrationDisplay.from_estimator(strong, X, Y == "strong", groups=PATIENT, new_groups=True)


def test_groups_are_left_out_with_their_effects_integrated_out(model):
    found = inspection.loo(model, X, Y, groups=PATIENT, max_draws=200)
    eta, cuts, s = parts(model)
    some = np.concatenate([np.arange(50) * 4 + 2 + 200 * chain for chain in range(4)])
    at, place = (eta[:, some], cuts[:, some], s[some]), Y.cat.codes.to_numpy()
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    logs = []
    for node in nodes:
        p = classes_at(at[0] + at[2] * node, at[1])[np.arange(N), :, place]
        logs.append(np.log(np.maximum(p, 1e-300)).reshape(N_GROUPS, -1, len(some)).sum(axis=1))
    of_groups = logsumexp(logs, axis=0, b=(weights / weights.sum())[:, None, None])
    given_all = logsumexp(of_groups, axis=1) - np.log(len(some))
    assert found.elpd_loo + found.p_loo == pytest.approx(given_all.sum(), abs=0.02)
    assert found.left_out == "groups"
    with pytest.raises(ValueError, match="fitted with groups"):
        inspection.loo(model, X, Y)


def test_tables_have_cut_points_and_the_scale_and_the_rest_of_the_library_takes_it(model):
    frame = model.summary()
    assert frame.index[-4:].tolist() == ["(global scale)", "(cut none|mild)", "(cut mild|strong)", "(group scale)"]
    assert frame["rhat"].max() < 1.1
    effects = model.group_effects()
    assert "positive effects favour higher classes" in " ".join(effects.attrs["header"].split())
    assert len(effects) == N_GROUPS
    assert model.to_arviz().posterior["cut_points"].shape == (4, 200, 2)
    assert len(terms.summary(model, X))
    assert len(sets.credible_sets(model, X).sets) >= 1
    assert inspection.sensitivity(model, X, Y, groups=PATIENT)["likelihood"].notna().all()
    for rule in ("shrinkage", "interval", "fsr", "dss"):
        kept = HorseshoeSelector(model, prefit=True, rule=rule).fit(X, Y)
        assert kept.get_support()[0]
    with pytest.raises(ValueError, match="no model that was fitted with groups"):
        export.to_onnx(model)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "n_columns",
    [pytest.param(3, id="dense"), pytest.param(400, id="more columns than rows", marks=pytest.mark.slow)],
)
def test_going_on_gives_the_draws_of_one_run(tmp_path, n_columns):
    columns = np.random.default_rng(0).standard_normal((N, n_columns))
    how = {**FAST, "burn_in": 60, "max_draws": 16}
    whole = HorseshoeProbitClassifier(**{**how, "n_iter": 40}).fit(columns, Y, groups=PATIENT)
    parts = HorseshoeProbitClassifier(**{**how, "n_iter": 20}, warm_start=True)
    parts.fit(columns, Y, groups=PATIENT).fit(columns, Y, groups=PATIENT)
    checkpoint = {"checkpoint": tmp_path / "run", "checkpoint_interval": 0}

    def stop(*_):
        raise TimeoutError

    with pytest.raises(TimeoutError):
        HorseshoeProbitClassifier(**{**how, "n_iter": 40}, **checkpoint, max_time=1e-9).fit(columns, Y, groups=PATIENT)
    resumed = HorseshoeProbitClassifier(**{**how, "n_iter": 40}, **checkpoint).fit(columns, Y, groups=PATIENT)
    for name in ("coef_draws_", "cut_points_draws_", "group_scale_draws_", "group_effect_draws_"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))


def test_several_factors_have_effects_of_their_own():
    z = Z + np.linspace(-1, 1, 6)[DOCTOR]
    y = np.digitize(z, [-0.8, 1.0])
    both = pd.DataFrame({"patient": PATIENT, "doctor": DOCTOR})
    model = HorseshoeProbitClassifier(**FAST).fit(X, y, groups=both)
    eta, cuts = X.to_numpy() @ model.coef_draws_.reshape(-1, 3).T, model.cut_points_draws_.reshape(-1, 2).T
    u = model.group_effect_draws_["doctor"].reshape(-1, 6)[:, DOCTOR].T
    root = np.sqrt(1 + model.group_scale_draws_["patient"].ravel() ** 2)
    got = model.predict_proba(X, groups={"doctor": DOCTOR}, new_groups=False)
    np.testing.assert_allclose(got, classes_at((eta + u) / root, cuts / root).mean(axis=1), atol=1e-6)
    assert model.summary().index[-2:].tolist() == ["(patient scale)", "(doctor scale)"]
    assert model.summary()["rhat"].max() < 1.15
    means = model.group_effects("doctor")["mean"]
    assert np.corrcoef(means, np.linspace(-1, 1, 6))[0, 1] > 0.8


def test_two_classes_in_order_are_the_binary_fit():
    two, binary = (
        HorseshoeProbitClassifier(**{**FAST, "n_iter": 20, "burn_in": 30, "ordered": ordered}).fit(
            X, Z > 0, groups=PATIENT
        )
        for ordered in (True, False)
    )
    for name in ("coef_draws_", "group_scale_draws_", "group_effect_draws_"):
        np.testing.assert_array_equal(getattr(two, name), getattr(binary, name))


@pytest.mark.slow
def test_weights_count_rows_and_offsets_are_added():
    weight = np.random.default_rng(1).integers(1, 3, N)
    rows, how = np.repeat(np.arange(N), weight), {**FAST, "n_iter": 3000}
    weighted = HorseshoeProbitClassifier(**how).fit(X, Y, groups=PATIENT, sample_weight=weight)
    repeated = HorseshoeProbitClassifier(**how).fit(X.iloc[rows], Y.iloc[rows], groups=PATIENT[rows])
    np.testing.assert_allclose(weighted.cut_points_, repeated.cut_points_, atol=0.04)
    np.testing.assert_allclose(weighted.group_scale_draws_.mean(), repeated.group_scale_draws_.mean(), atol=0.04)
    offset = HorseshoeProbitClassifier(**FAST).fit(X, Y, groups=PATIENT, offset=np.full(N, 0.5))
    plain = HorseshoeProbitClassifier(**FAST).fit(X, Y, groups=PATIENT)
    np.testing.assert_allclose(offset.cut_points_, plain.cut_points_ + 0.5, atol=0.1)


def test_one_outcome_for_each_group_and_fixed_numbers_are_told(said):
    short = HorseshoeProbitClassifier(**{**FAST, "n_iter": 20, "burn_in": 20})
    (found,) = said(short, X, (np.arange(N_GROUPS) % 3)[PATIENT], "y is the same", groups=PATIENT)
    assert "in all rows of each of the 30 groups" in found
    (found,) = said(short, X, np.tile(np.arange(10), N_GROUPS) // 4, "matched sets", groups=PATIENT)
    assert "Each of the 30 groups has the same share of all classes" in found
