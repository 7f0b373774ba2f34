"""Sensitivity to powers of prior and likelihood, against quadrature and ArviZ; what the prior says before data."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from scipy.special import exp1, log_ndtr
from scipy.stats import norm

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting
from skhorseshoe._model.before_data import before_data
from skhorseshoe._posterior import predict, sensitivity
from skhorseshoe._posterior.grouped_prediction import GivenRows
from skhorseshoe._posterior.loo import smoothed_weights
from skhorseshoe.plotting import _prior

X = np.array([1.2, -0.4, 0.9, -1.5, 0.3, -0.8, 0.5, 2.0, -1.1, 0.2])[:, None]
Y = np.array([1, 0, 1, 0, 0, 1, 1, 1, 0, 1])
TAU_0, SLAB = 0.7, 1.5


def exact(name, delta=0.05):
    """Shifts of beta and log tau, on a grid of both; one column, no intercept."""
    size, tau = np.exp(np.linspace(-25, 2.5, 700)), np.exp(np.linspace(-12, 14, 800))
    beta = np.append(-size, size)[:, None]  # on log scales, since the density has a pole at 0
    b = (beta / tau) ** 2 / 2 + 1e-300
    near = np.minimum(b, 600)
    given = np.log(np.where(b < 600, np.exp(near) * exp1(near), 1 / (b + 1))) - np.log(tau)  # log p(beta | tau)
    logs = {
        "prior": -np.log1p((tau / TAU_0) ** 2) - (beta / SLAB) ** 2 / 2,
        "likelihood": log_ndtr(np.where(Y, 1, -1) * (beta * X[:, 0])).sum(axis=1)[:, None],
    }
    means = []
    for power in (1 / (1 + delta), 1.0, 1 + delta):
        powers = dict.fromkeys(logs, 1.0) | {name: power}
        density = given + sum(powers[part] * log for part, log in logs.items()) + np.log(abs(beta) * tau)
        weight = np.exp(density - density.max())
        weight /= weight.sum()
        means.append([(weight * v).sum() for v in (beta, np.log(tau))])
        if power == 1:
            sd = [np.sqrt((weight * (v - m) ** 2).sum()) for v, m in zip((beta, np.log(tau)), means[1], strict=True)]
    return (np.array(means[2]) - means[0]) / (2 * np.log2(1 + delta)) / sd


@pytest.fixture(scope="module")
def small(seed):
    settings = {"slab_scale": SLAB, "global_scale": TAU_0, "fit_intercept": False}
    return HorseshoeProbitClassifier(n_iter=10_000, burn_in=300, random_state=seed, **settings).fit(X, Y)


@pytest.mark.parametrize("name", ["prior", "likelihood"])
def test_shifts_are_those_by_quadrature(small, name):
    frame, want = inspection.sensitivity(small, X, Y, delta=0.05), exact(name)
    found, error = (frame[f"{name}_{what}"].to_numpy() for what in ("shift", "error"))
    assert (abs(found - want) < 4.5 * error + 0.01).all()
    assert abs(want[0]) > 10 * error[0]  # so that another density, or its inverse, would be seen
    by_01 = inspection.sensitivity(small, X, Y)  # per doubling, whatever delta is
    np.testing.assert_allclose(by_01[f"{name}_shift"], found, atol=0.02)


def test_a_diagnosis_says_what_moves_an_answer(small):
    """Ten rows and a slab: the data want a larger coefficient, the prior a smaller one."""
    both, alone = inspection.sensitivity(small, X, Y), inspection.sensitivity(small)
    assert (both["diagnosis"]["x0"], alone["diagnosis"]["x0"]) == ("prior and data disagree", "moved by the prior")
    assert both.attrs["pareto_k"].keys() == {"prior", "likelihood"}
    assert " 2 of 2 quantities" in f" {both.attrs['header']}"


def test_a_distance_is_that_of_shifted_normal_laws(small):
    """0.05 for a doubling is a shift of about 0.3 standard deviations (Kallioinen et al. 2024)."""
    values = norm.ppf((np.arange(4000) + 0.5) / 4000)
    weight = norm.pdf(values, 0.3) / norm.pdf(values)
    assert sensitivity._distance(values, weight / weight.sum()) == pytest.approx(0.05, abs=0.02)
    assert sensitivity._distance(values, np.full(4000, 1 / 4000)) == pytest.approx(0, abs=1e-6)


def test_distances_and_weights_are_those_of_arviz(small):
    """Of the likelihood, whose density both have."""
    arviz = pytest.importorskip("arviz", minversion="0.18")
    if not hasattr(arviz, "psens"):
        pytest.skip("psens is of ArviZ 0.x")
    data, frame = small.to_arviz(X, Y), inspection.sensitivity(small, X, Y)
    theirs = arviz.psens(data, component="likelihood", var_names=["coef", "global_scale"])
    assert frame["likelihood"]["x0"] == pytest.approx(float(theirs["coef"].values[0]), rel=0.05)


def test_weights_of_a_heavy_tail_are_smoothed_and_told(seed):
    """The tail of exp(E / 0.8), E standard exponential, has the shape 1 / 0.8 = 1.25."""
    ratio = np.random.default_rng(seed).exponential(size=4000) / 0.8
    weight, k = smoothed_weights(ratio, 190)
    assert 0.9 < k < 1.6
    assert weight.sum() == pytest.approx(1)
    assert weight.max() <= np.exp(ratio.max() - ratio.max()) / np.exp(ratio - ratio.max()).sum() * 2
    assert np.array_equal(np.argsort(weight)[:3000], np.argsort(ratio)[:3000])
    assert smoothed_weights(1e-3 * ratio / ratio.max(), 190)[1] == 0.0


def test_a_weight_that_is_not_to_be_trusted_is_warned_of(small, monkeypatch):
    monkeypatch.setattr(sensitivity, "log_prior_of_draws", lambda model: 1e3 * model.coef_draws_[..., 0] ** 4)
    with pytest.warns(UserWarning, match=r"Pareto k .* prior .* not to be trusted"):
        inspection.sensitivity(small)


@pytest.mark.filterwarnings("ignore:groups has")
def test_groups_cut_points_and_free_columns_have_their_rows(weak_problem, seed):
    """The likelihood with groups is that given their effects: of rows by hand."""
    x, y = weak_problem
    groups, frame = np.arange(len(y)) % 9, pd.DataFrame(x, columns=["age", "dose", "pulse"])
    model = HorseshoeProbitClassifier(n_iter=60, burn_in=40, unpenalized=["dose"], random_state=seed)
    model.fit(frame, y, groups=groups)
    found = inspection.sensitivity(model, frame, y, groups=groups)
    assert found.index.tolist() == ["age", "dose", "pulse", "(intercept)", "(global scale)", "(group scale)"]
    order = np.random.default_rng(seed).permutation(len(y))
    rows = predict.rows_of_fit(model, frame.iloc[order], y[order], None, None, groups[order])
    total = predict.total_log_likelihood(model, *rows).reshape(4, -1)
    eta = model.coef_draws_ @ x.T + model.intercept_draws_[..., None] + model.group_effect_draws_[..., groups]
    np.testing.assert_allclose(total, log_ndtr(np.where(y, 1, -1) * eta).sum(axis=-1), rtol=1e-5)
    s, at_mean = model.group_scale_draws_, model.intercept_draws_ + model.coef_draws_ @ x.mean(axis=0)
    want = -np.log1p(s**2) - np.log1p(model.global_scale_draws_**2)
    want -= (at_mean / 100) ** 2 / 2 + (model.coef_draws_[..., 1] * x[:, 1].std() / 100) ** 2 / 2
    log = sensitivity.log_prior_of_draws(model)
    np.testing.assert_allclose(log - log.mean(), want - want.mean(), atol=1e-6)

    three = np.digitize(x[:, 0] + x[:, 1], [-0.5, 0.5])
    ordered = HorseshoeProbitClassifier(ordered=True, n_iter=60, burn_in=40, random_state=seed).fit(frame, three)
    assert "(cut 1|2)" in inspection.sensitivity(ordered, frame, three).index
    with pytest.raises(ValueError, match="ask the one that was fitted"):
        inspection.sensitivity(inspection.at_least(ordered, 2))


def test_the_likelihood_has_the_same_bits_with_any_number_of_threads(small, monkeypatch):
    """Threads end in any order, and a sum that all of them add to at once may lose what one has added."""
    monkeypatch.setattr(predict, "_ROWS_SUMMED", 1000)
    x = np.random.default_rng(0).standard_normal((3500, 1))
    model, y = copy(small), x[:, 0] > 0
    model.coef_draws_, model.intercept_draws_ = small.coef_draws_[:, :250], small.intercept_draws_[:, :250]
    totals = []
    for n_jobs in (1, 2, 5, 5):
        model.n_jobs = n_jobs
        totals.append(predict.total_log_likelihood(model, GivenRows(x), y, None))
    assert all(np.array_equal(total, totals[0]) for total in totals)
    eta = model.coef_draws_.reshape(-1, 1) @ x.T
    np.testing.assert_allclose(totals[0], log_ndtr(np.where(y, 1, -1) * eta).sum(axis=1), rtol=1e-5)


def test_cut_points_without_an_intercept_are_about_zero(weak_problem, seed):
    """The first is 0, and the prior of the second N(0, 100^2), wherever the columns are."""
    x, _ = weak_problem
    x = 0.01 * x + 1.0
    three = np.digitize(x[:, 0] + x[:, 1], [2.0, 2.005])
    model = HorseshoeProbitClassifier(ordered=True, fit_intercept=False, n_iter=60, burn_in=40, random_state=seed)
    model.fit(x, three)
    assert "(cut 1|2)" in inspection.sensitivity(model).index
    want = -np.log1p(model.global_scale_draws_**2) - (model.cut_points_draws_[..., 1] / 100) ** 2 / 2
    log = sensitivity.log_prior_of_draws(model)
    np.testing.assert_allclose(log - log.mean(), want - want.mean(), atol=1e-6)
    above = inspection.at_least(model, 2).summary()
    assert above["mean"]["(intercept)"] == pytest.approx(-model.cut_points_[1])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"X": X}, "X and y are needed together"),
        ({"sample_weight": Y}, "X and y are needed together"),
        ({"delta": 0}, "delta must be above 0 and at most 1; got 0"),
        ({"X": X, "y": 1 - Y}, "The rows must be those that the model was fitted on"),
        ({"X": X, "y": Y, "groups": Y}, "if, and only if, the model was fitted with groups"),
    ],
)
def test_what_cannot_be_is_refused(small, given, says):
    with pytest.raises(ValueError, match=says):
        inspection.sensitivity(small, **given)


def test_few_draws_are_refused(weak_problem, short_fit):
    with pytest.raises(ValueError, match="100 draws or more, not 40"):
        inspection.sensitivity(short_fit(*weak_problem, n_iter=10))


@pytest.mark.parametrize("n", [2, 256, 257, 1000])
def test_the_prior_is_asked_of_256_rows_evenly_spaced(n, weak_problem, short_fit, monkeypatch):
    taken, rows = [], np.tile(np.arange(n)[:, None], 3)
    monkeypatch.setattr(_prior, "before_data", lambda *given: taken.append(given[2][:, 0]) or before_data(*given))
    plotting.PriorDisplay.from_estimator(short_fit(*weak_problem, n_iter=10), rows)
    gaps = np.diff(taken[0])
    assert len(gaps) == min(n, 256) - 1
    assert gaps.sum() == n - 1
    assert np.ptp(gaps) <= 1


def test_the_display_counts_rows_and_columns(weak_problem, short_fit):
    """Of the posterior by hand; the prior is that of ``prior_``, up to the rows that are taken."""
    x, y = weak_problem
    model = short_fit(x, y, n_iter=100, standardize=True, unpenalized=[2], slab_scale="per_contrast")
    display = plotting.PriorDisplay.from_estimator(model, x)
    eta = (model.coef_draws_[..., :2] @ (x[:, :2] - x[:, :2].mean(axis=0)).T).reshape(-1, len(y))
    assert display.share_certain[1] == pytest.approx((abs(eta) > 2.3263478740408408).mean())
    counts = (abs(model.coef_draws_[..., :2]) * x[:, :2].std(axis=0) > 0.1).sum(axis=-1)
    assert display.n_relevant[1] == np.median(counts)
    assert display.share_certain[0] == pytest.approx(model.prior_["share_certain"], abs=1e-12)
    assert display.posterior.sum() == pytest.approx(1)
