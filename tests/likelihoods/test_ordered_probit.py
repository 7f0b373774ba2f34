"""The ordered probit likelihood: densities and derivatives, passes over rows of every kind, posteriors of fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from laws import ALONE, in_full, repeated, sparse_cpu
from scipy.special import log_ndtr, logsumexp
from whole_runs import check_uniform, ended, of_prior, ranks

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends import device
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.cut_points import RowsWithCutPoints
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import PRIOR_COORDINATES
from skhorseshoe._model.ordered_probit import OrderedProbit
from skhorseshoe.diagnostics import mcse_mean

# Frequencies of MASS's "housing" (Venables & Ripley 2002), satisfaction fastest, then influence, type and contact.
HOUSING = (
    21, 21, 28, 34, 22, 36, 10, 11, 36, 61, 23, 17, 43, 35, 40, 26, 18, 54, 13, 9, 10, 8, 8, 12, 6, 7, 9, 18, 6, 7, 15,
    13, 13, 7, 5, 11, 14, 19, 37, 17, 23, 40, 3, 5, 23, 78, 46, 43, 48, 45, 86, 15, 25, 62, 20, 23, 20, 10, 22, 24, 7,
    10, 21, 57, 23, 13, 31, 21, 13, 5, 6, 13,
)  # fmt: skip
# MASS's polr(Sat ~ Infl + Type + Cont, weights = Freq, method = "probit"): coefficients and cut points.
POLR = (0.3464228, 0.7829146, -0.3475372, -0.2178874, -0.6641735, 0.2223862), (-0.2998279, 0.4267208)


def log_probability(low, high):
    """log(Phi(high) - Phi(low)), by quadrature where both are finite."""
    low, high = (-high, -low) if low > 0 else (low, high)
    if not np.isfinite(low):
        return log_ndtr(high)
    if not np.isfinite(high):
        return log_ndtr(-low)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    least = max(low, min(high, 0.0) - 14.0)  # what lies beyond is nothing beside the rest
    most = min(high, 14.0)
    x = (least + most) / 2 + (most - least) / 2 * nodes
    return logsumexp(-(x**2) / 2, b=weights) + np.log((most - least) / 2) - np.log(2 * np.pi) / 2


@pytest.mark.parametrize(
    "cuts", [(0.5, 1.0, 2.0), (1e-8, 1.1e-7, 3e-6), (1e-3, 1e-2, 40.0), (3.0, 3.0001, 3.02), (1e-40, 1.0, 1e3)], ids=str
)
def test_a_row_has_the_probability_of_quadrature_and_derivatives_that_follow(cuts):
    law, own, one = OrderedProbit(5), np.array([cuts]), np.ones((1, 1))
    ends = np.array([-np.inf, 0.0, *cuts, np.inf])
    widths = np.array([np.inf, *np.diff(cuts, prepend=0.0), np.inf])
    for eta in (-50.0, -8.0, -3.0, -0.5, 0.0, 0.3, 1.0, 4.0, 9.0, 45.0):
        for k in range(5):
            where = np.array([k], np.uint8), np.empty(0), np.array([[eta]]), np.array([0, 1]), ALONE, None, law
            (loglik,), ((slope,),), (by_own,) = cpu.score(one, *where, own)
            low, high = ends[k : k + 2] - eta
            middle, width = (low + high) / 2, widths[k]
            is_narrow = width * max(1, abs(middle)) < 1e-3  # the difference of both ends has lost digits
            if is_narrow:
                right = -(middle**2) / 2 - np.log(2 * np.pi) / 2 + np.log(width) + (middle**2 - 1) * width**2 / 24
            else:
                right = log_probability(low, high)
            assert loglik == pytest.approx(right, rel=1e-11, abs=1e-11)
            told = law.log_density_of_class(np.array([eta]), np.array([k]), own)
            assert told[0] == pytest.approx(right, rel=1e-10, abs=1e-10)
            at_low, at_high = (np.exp(-(end**2) / 2 - right) / np.sqrt(2 * np.pi) for end in (low, high))
            close = {"rel": 1e-6, "abs": 1e-6}
            if not is_narrow:
                assert slope == pytest.approx(at_low - at_high, **close)
            wanted = np.zeros(3)
            if k > 1:
                wanted[k - 2] -= at_low
            if 0 < k < 4:
                wanted[k - 1] += at_high
            np.testing.assert_allclose(by_own, wanted, rtol=1e-6, atol=1e-6)


def test_probabilities_sum_to_one_and_small_ones_keep_their_digits(seed):
    law, rng = OrderedProbit(6), np.random.default_rng(seed)
    eta = rng.standard_normal((50, 1)) * 8
    own = np.cumsum(np.exp(rng.standard_normal((7, 4))), axis=1)
    p = law.probabilities(eta, own)
    np.testing.assert_allclose(p.sum(axis=-1), 1, atol=1e-14)
    places = np.broadcast_to(np.arange(6), p.shape)
    logs = np.stack([law.log_density_of_class(eta, places[..., k], own) for k in range(6)], axis=-1)
    np.testing.assert_allclose(p, np.exp(logs), rtol=1e-9, atol=0)
    assert p.min() < 1e-60


@pytest.fixture(params=["float64", "float32", "sparse", "on disk", "weights", "offset"])
def rows(request, tmp_path, seed):
    """``RowsWithCutPoints`` of four classes, with X in full, and y."""
    rng, kind, n = np.random.default_rng(seed), request.param, 200
    X, y = rng.standard_normal((n, 3)) + np.array([0, 1, -2]), rng.integers(0, 4, n).astype(np.uint8)
    X *= rng.random(X.shape) < 0.5 if kind == "sparse" else 1.0
    X = X.astype(np.float32) if kind in ("float32", "on disk") else X
    if kind == "on disk":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    how = {"weight": rng.exponential(size=n)} if kind == "weights" else {}
    how |= {"offset": rng.standard_normal(n)} if kind == "offset" else {}
    ops = sparse_cpu if kind == "sparse" else cpu
    made = Rows(sp.csr_array(X) if kind == "sparse" else X, y, True, ops, ALONE, **how, likelihood=OrderedProbit(4))
    return RowsWithCutPoints(made, FixedPrior(made.columns, None, 1.5)), in_full(np.asarray(X, float), True), y


def log_density(rows, full, y, beta):
    """The log-likelihood, and the log-prior of the cut points but the first, in logarithms of gaps."""
    coef, inner, law = rows.columns.of_X(beta[:, :4]), rows.rows, rows.likelihood
    eta = full @ coef.T + (0.0 if inner.offset is None else inner.offset[:, None])
    own, weight = np.cumsum(np.exp(beta[:, 4:]), axis=1), inner.weight if len(inner.weight) else np.ones(len(y))
    logs = law.log_density_of_class(eta, np.broadcast_to(y[:, None].astype(int), eta.shape), own)
    means = np.append(np.average(full[:, :3], axis=0, weights=weight), 1.0)
    at_mean = own - (coef @ means)[:, None]
    return weight @ logs - (at_mean**2).sum(axis=1) / (2 * 1.5**2) + beta[:, 4:].sum(axis=1)


def test_rows_give_log_density_gradient_lines_and_information(rows):
    rows, full, y = rows
    rng = np.random.default_rng(1)
    beta = 0.5 * rng.standard_normal((3, 6))
    single = rows.rows.dtype == np.float32
    close = {"rtol": 1e-4, "atol": 1e-3} if single else {"rtol": 1e-10, "atol": 1e-9}
    loglik, score = rows.score(beta)
    np.testing.assert_allclose(loglik, log_density(rows, full, y, beta), **close)
    for j in range(6):
        step = 1e-5 * (np.arange(6) == j)
        slope = (log_density(rows, full, y, beta + step) - log_density(rows, full, y, beta - step)) / 2e-5
        np.testing.assert_allclose(score[:, j], slope, rtol=1e-4, atol=2e-3 if single else 1e-4)
    direction, steps = np.hstack([rng.standard_normal((3, 4)), np.zeros((3, 2))]), np.array([[0.5, -1.0]] * 3)
    got = rows.holding(beta[:, 4:]).line(beta[:, :4].copy(), direction[:, :4].copy(), steps)
    moved = [log_density(rows, full, y, beta + step * direction) - beta[:, 4:].sum(axis=1) for step in steps[0]]
    np.testing.assert_allclose(got, np.stack(moved, axis=1), **close)

    # The information is the mean of minus the Hessian over labels: here it is summed over all classes of each row.
    h, full_H, at = 1e-4, np.zeros((6, 6)), beta[:1]
    eta = full @ rows.columns.of_X(at[:, :4])[0] + (0.0 if rows.rows.offset is None else rows.rows.offset)
    p = rows.likelihood.probabilities(eta, np.cumsum(np.exp(at[0, 4:])))
    weight = rows.rows.weight if len(rows.rows.weight) else np.ones(len(y))
    for k in range(4):
        slopes = np.empty((len(y), 6))
        for j in range(6):
            ends = [at + sign * h * (np.arange(6) == j) for sign in (1, -1)]
            logs = [_row_logs(rows, full, k, end) for end in ends]
            slopes[:, j] = (logs[0] - logs[1]) / (2 * h)
        full_H += (slopes.T * (p[:, k] * weight)) @ slopes
    H = rows.information(at)
    H[4:, 4:] -= 1e-2 * np.eye(2)
    np.testing.assert_allclose(H, full_H, rtol=1e-3, atol=0.05 if single else 1e-3)


def _row_logs(rows, full, k, beta):
    eta = full @ rows.columns.of_X(beta[:, :4])[0] + (0.0 if rows.rows.offset is None else rows.rows.offset)
    return rows.likelihood.log_density_of_class(eta, np.full(eta.shape, k), np.cumsum(np.exp(beta[0, 4:])))


@pytest.mark.parametrize(
    "case",
    [
        "two rows of a class",
        *(
            pytest.param(case, marks=pytest.mark.slow)
            for case in ("one class but for a row", "far apart", "close together")
        ),
    ],
)
def test_a_fit_has_the_posterior_of_a_grid(case, seed):
    """One unpenalised column without an intercept, so that its coefficient and a cut point are all that is unknown."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(40)
    z = 0.8 * x + rng.standard_normal(40)
    y = np.digitize(z, {"far apart": [-2.5, 2.0], "close together": [0.0, 0.15]}.get(case, [0.0, 1.0]))
    if case == "two rows of a class":
        y[y == 1] = 0
        y[:2] = 1
    if case == "one class but for a row":
        y[:] = 2
        y[np.argsort(z)[:2]] = 0, 1
    y[:3] = 0, 1, 2  # each class has a row
    how = {"n_iter": 2000, "fit_intercept": False, "unpenalized": [0], "random_state": seed, "ordered": True}
    model = HorseshoeProbitClassifier(**how).fit(x[:, None], y)
    beta, theta = np.linspace(-3, 6, 151)[:, None], np.linspace(-9, 4, 201)[None]
    own, law, total = np.exp(theta)[..., None], OrderedProbit(3), theta - np.exp(2 * theta) / (2 * 100.0**2)
    for value, place in zip(x, y, strict=True):
        total = total + law.log_density_of_class(value * beta + 0 * theta, np.full((151, 201), place), own)
    share = np.exp(total - total.max())
    share /= share.sum()
    draws = model.coef_draws_[..., 0], np.log(model._own_draws[..., 0])
    for mine, values in zip(draws, (beta, theta), strict=True):
        right = (share * values).sum()
        assert abs(mine.mean() - right) < 4.5 * mcse_mean(mine)
        second = (mine - right) ** 2
        assert abs(second.mean() - (share * (values - right) ** 2).sum()) < 4.5 * mcse_mean(second)


def test_unpenalized_columns_have_the_estimates_of_polr():
    sat, rest = np.arange(72) % 3, np.arange(72) // 3
    infl, kind, cont = rest % 3, rest // 3 % 4, rest // 12
    columns = [infl == 1, infl == 2, kind == 1, kind == 2, kind == 3, cont == 1]
    X = np.column_stack(columns).astype(float)
    model = HorseshoeProbitClassifier(ordered=True, unpenalized=list(range(6)), random_state=0, target_ess=4000)
    model.fit(X, sat, sample_weight=np.array(HOUSING, float))
    coef, cuts = map(np.array, POLR)
    sd = model.coef_draws_.std(axis=(0, 1)), model.cut_points_draws_.std(axis=(0, 1))
    assert (abs(model.coef_[0] - coef) < 0.1 * sd[0]).all()
    assert (abs(model.cut_points_ - cuts) < 0.1 * sd[1]).all()


SLAB, WIDE, EACH = 2.0, 1.5, 10
NAMES = "one coefficient", "another", "tau", "first cut point", "second", "third", "gap", "next gap"
OF_GROUPS, N_GROUPS, SCALE = ("log s", "an effect"), 10, 0.7


def ranks_of(seed, sampler, n=14, has_groups=False):
    """The ranks, among draws, of the truth from which few rows of four classes are simulated; in (0, 1)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) + np.array([0, 0.7])
    tau, coef = of_prior(rng, SLAB)
    coef = coef[:, 0]
    cuts, z, groups, more = np.sort(rng.standard_normal(3) * WIDE) + coef @ X.mean(axis=0), X @ coef, None, []
    if has_groups:
        codes, s = (
            np.sort(np.append(np.arange(N_GROUPS), rng.integers(0, N_GROUPS, n - N_GROUPS))),
            rng.standard_cauchy(),
        )
        u = SCALE * abs(s) * rng.standard_normal(N_GROUPS)
        z, groups, more = z + u[codes], Groups(codes.astype(np.int32), N_GROUPS, SCALE), [SCALE * abs(s), u[0]]
    y = np.digitize(z + rng.standard_normal(n), cuts).astype(np.uint8)
    rows = Rows(X, y, True, device.resolve("cpu").ops, ALONE, likelihood=OrderedProbit(4), groups=groups)
    key = rng.integers(2**32, size=2, dtype=np.uint32)
    draws = ended(rows, sampler, 400, SLAB, WIDE, n_chains=8, key=key).draws
    first = -draws.intercept[..., None]
    drawn = np.concatenate([first, first + draws.of_blocks[0].kept], axis=2)
    ours = [draws.coef[..., 0], draws.coef[..., 1], draws.global_scale, *np.moveaxis(drawn, 2, 0)]
    ours += [*np.moveaxis(np.diff(drawn, axis=2), 2, 0)]
    ours += [draws.of_blocks[1].kept, draws.of_blocks[1].effects[..., 0]] if has_groups else []
    return ranks(ours, [*coef, tau, *cuts, *np.diff(cuts), *more], EACH, rng)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "n_sets", "how"),
    [("hmc", 40, {}), (PRIOR_COORDINATES, 24, {}), ("hmc", 40, {"n": 40, "has_groups": True})],
    ids=["hmc", "prior coordinates", "groups"],
)
def test_ranks_of_the_truth_are_uniform(sampler, n_sets, how):
    names = (*NAMES, *OF_GROUPS) if how else NAMES
    check_uniform([ranks_of(seed, sampler, **how) for seed in range(repeated(n_sets, 200))], names)


def test_going_on_gives_the_draws_of_one_run():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 3, 60)
    for columns in (X, rng.standard_normal((60, 100))):
        how = {"ordered": True, "burn_in": 60, "random_state": 1, "max_draws": 16, "slab_scale": 2.0}
        whole = HorseshoeProbitClassifier(n_iter=40, **how).fit(columns, y)
        parts = HorseshoeProbitClassifier(n_iter=20, warm_start=True, **how).fit(columns, y).fit(columns, y)
        np.testing.assert_array_equal(parts.coef_draws_, whole.coef_draws_)
        np.testing.assert_array_equal(parts.cut_points_draws_, whole.cut_points_draws_)
