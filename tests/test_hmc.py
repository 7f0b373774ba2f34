"""Split Hamiltonian Monte Carlo draws from the posterior: its kernels against SciPy, the sweep against the joint law
with planted errors, whole runs against other samplers and simulated data."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
from laws import TAU_0, X, agree, agrees_with_gold, bounded, load_gold, planted, prior_draws, redrawn
from scipy import stats
from scipy.special import erfcx, exp1, log_ndtr, ndtr

from skhorseshoe import HorseshoeProbitClassifier, _adapt, _hmc, _run
from skhorseshoe._design import Rows
from skhorseshoe._ops import ACCEPT, MOMENTUM, _gaussian, cpu
from skhorseshoe._ops._normal import log_cdf
from skhorseshoe._ops._scales import scaled_exponential_integral
from skhorseshoe._threads import Threads, open_threads
from skhorseshoe.diagnostics import rhat

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KEY = (np.uint32(7), np.uint32(1))
P_VALUE = 1e-4
N_CHAINS = 250  # at once: a random number has 8 bits for its chain
ALONE = Threads(1)
DTYPES = [np.float32, np.float64]

# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def log_cdf_and_ratio(t):
    scratch, log_phi, ratio = np.empty((3, len(t)))
    log_cdf(t, scratch, log_phi, ratio)
    return log_phi, ratio


def test_log_cdf_and_its_derivative_are_accurate_to_1e_12():
    t = np.concatenate([np.linspace(-37, 37, 30_001), np.geomspace(1e-300, 1, 500), -np.geomspace(1e-300, 1, 500)])
    log_phi, ratio = log_cdf_and_ratio(t)
    np.testing.assert_allclose(log_phi, log_ndtr(t), rtol=1e-12)
    density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    want = np.where(t < 0, np.sqrt(2 / np.pi) / erfcx(np.maximum(-t, 0) / np.sqrt(2)), density / ndtr(t))
    np.testing.assert_allclose(ratio, want, rtol=1e-12)


def test_log_cdf_is_finite_and_right_far_beyond():
    t = np.array([38.0, 40, 1e3, 1e8, 1e150, 1e300, np.inf])
    log_phi, ratio = log_cdf_and_ratio(np.concatenate([-t, t]))
    assert np.isfinite(log_phi).all()
    assert np.isfinite(ratio).all()
    np.testing.assert_allclose(log_phi[:5], log_ndtr(-t[:5]), rtol=1e-12)
    np.testing.assert_allclose(ratio[:5], np.sqrt(2 / np.pi) / erfcx(t[:5] / np.sqrt(2)), rtol=1e-12)
    assert (abs(log_phi[7:]) < 1e-300).all()
    assert (ratio[7:] < 1e-300).all()


def test_exponential_integral_is_accurate_to_1e_12():
    b = np.concatenate([np.geomspace(1e-290, 700, 20_000), np.linspace(0.9, 1.1, 2001)])
    got = np.array([scaled_exponential_integral(x) for x in b])
    np.testing.assert_allclose(got, np.exp(b) * exp1(b), rtol=1e-12)
    for b in (1e6, 1e100, 1e300):
        assert abs(scaled_exponential_integral(b) * b - (1 - 1 / b)) < 1e-11


@pytest.mark.parametrize("b", [1e-6, 1e-3, 0.1, 0.9, 1.0, 1.1, 5.0, 50.0])
def test_local_scales_have_their_law(b):
    tau_sq_inv = np.full(100, 0.3)
    beta = np.full((100, 200), np.sqrt(2 * b / 0.3))
    x = cpu.local_scales(beta, tau_sq_inv, KEY, 4).ravel()
    assert (x > 0).all()
    assert stats.kstest(x, lambda x: 1 - exp1(b * (1 + x)) / exp1(b)).pvalue > P_VALUE


def test_global_scale_leaves_the_joint_law_of_tau_and_beta_alone():
    rng = np.random.default_rng(0)
    n, before, after, betas = 250, [], [], []
    for t in range(80):
        tau = TAU_0 * abs(rng.standard_cauchy(n))
        beta = rng.standard_normal((n, 5)) * abs(rng.standard_cauchy((n, 5))) * tau[:, None]
        before.append(tau)
        betas.append(beta)
        after.append(cpu.global_scale(beta, tau**-2, TAU_0, KEY, t) ** -0.5)
    before, after, beta = (np.concatenate(part) for part in (before, after, betas))
    assert stats.kstest(after, stats.halfcauchy(scale=TAU_0).cdf).pvalue > P_VALUE
    fresh = abs(rng.standard_normal(len(beta)) * rng.standard_cauchy(len(beta)))
    for j in range(5):
        assert stats.ks_2samp(abs(beta[:, j]) / after, fresh).pvalue > P_VALUE
    assert abs(stats.spearmanr(beta[:, 0] / after, after).statistic) < 4 / np.sqrt(len(after))
    assert (after != before).all()


def test_global_scale_finds_its_law_from_any_start():
    beta = np.array([0.5, -3.0, 0.02])
    grid = np.linspace(-12, 12, 4001)
    b = beta**2 / 2 * np.exp(-2 * grid[:, None])
    with np.errstate(invalid="ignore"):
        integral = np.where(b < 600, np.exp(np.minimum(b, 600)) * exp1(b), 1 / b)
    log_density = np.log(integral).sum(axis=1) - 2 * grid - np.log1p(np.exp(2 * grid) / TAU_0**2)
    tau_sq_inv = np.geomspace(1e-8, 1e8, 250)
    many, kept = np.tile(beta, (250, 1)), []
    for t in range(800):
        tau_sq_inv = cpu.global_scale(many, tau_sq_inv, TAU_0, KEY, t)
        if t % 10 == 9:
            kept.append(-np.log(tau_sq_inv) / 2)
    assert stats.kstest(np.ravel(kept), grid_cdf(grid, log_density)).pvalue > P_VALUE


@pytest.mark.parametrize("p", [1, 5])
def test_global_scale_ends_where_all_coefficients_are_zero(p):
    tau_sq_inv = np.array([1.0, 1e-6])
    for t in range(50):
        tau_sq_inv = cpu.global_scale(np.zeros((2, p)), tau_sq_inv, TAU_0, KEY, t)
        assert np.isfinite(tau_sq_inv).all()


def grid_cdf(grid, log_density):
    density = np.exp(log_density - log_density.max())
    cdf = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2))
    return partial(np.interp, xp=grid, fp=cdf / cdf[-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (64, 5), (65, 7), (131, 33), (1030, 1), (7, 3000)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_chains", [1, 3])
def test_score_pass_equals_plain_scipy(shape, fit_intercept, n_chains, dtype):
    rng = np.random.default_rng(2)
    data = rng.standard_normal(shape).astype(dtype)
    data.flags.writeable = False
    y = rng.integers(0, 2, len(data)).astype(np.uint8)
    coef = 2 * rng.standard_normal((n_chains, shape[1] + fit_intercept)) / np.sqrt(shape[1])
    bounds = np.linspace(0, len(data), min(len(data), 3) + 1).astype(np.int64)
    loglik, score = cpu.score(data, y, np.empty(0), coef, bounds, ALONE)
    bordered = np.hstack([data.astype(np.float64), np.ones((len(data), int(fit_intercept)))])
    sign = 2.0 * y - 1
    t = coef.astype(dtype).astype(np.float64) @ bordered.T * sign
    slope = np.exp(-(t**2) / 2 - log_ndtr(t)) / np.sqrt(2 * np.pi) * sign
    tolerance = {"rtol": 2e-5, "atol": 2e-5 * np.sqrt(len(data))} if dtype == np.float32 else {"rtol": 1e-11}
    np.testing.assert_allclose(loglik, log_ndtr(t).sum(axis=1), **tolerance)
    tolerance["atol"] = tolerance.get("atol", 1e-11)
    np.testing.assert_allclose(score, slope @ bordered, **tolerance)


def test_score_does_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(3)
    data, y = rng.standard_normal((20_000, 20)), rng.integers(0, 2, 20_000).astype(np.uint8)
    beta = rng.standard_normal((2, 21))
    one = Rows(data, y, True, cpu, ALONE).score(beta)
    with open_threads(3) as threads:
        three = Rows(data, y, True, cpu, threads).score(beta)
    for got, want in zip(three, one, strict=True):
        np.testing.assert_array_equal(got, want)


def whitening(n_chains, p=2, q=3, threads=ALONE, kind=cpu.Whitening):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((q + 3, q))
    b = 2 * rng.standard_normal(q)
    return A.T @ A, b, kind(A.T @ A, b, n_chains, p, threads)


def precisions(lambda_sq_inv, tau_sq_inv, q):
    d = np.zeros((len(tau_sq_inv), q))
    d[:, : lambda_sq_inv.shape[1]] = tau_sq_inv[:, None] * lambda_sq_inv
    return d


def dense(H, b, d, p):
    """Mean, matrix and log_norm, with other routines."""
    M = H + np.diag(d)
    mean = np.linalg.solve(M, b)
    return mean, M, np.log(d[:p]).sum() / 2 - np.linalg.slogdet(M)[1] / 2 + mean @ M @ mean / 2


@pytest.mark.parametrize(("p", "q", "n_threads"), [(2, 3, 1), (3, 3, 2), (139, 140, 1), (139, 140, 2), (139, 140, 5)])
def test_whitening_equals_dense_formulas(p, q, n_threads):
    rng = np.random.default_rng(5)
    d = precisions(np.exp(rng.standard_normal((3, p))), np.array([0.1, 1.0, 10.0]), q)
    beta, gradient = rng.standard_normal((2, 3, q))
    with open_threads(n_threads) as threads:
        H, b, gauss = whitening(3, p, q, threads)
        gauss.set(np.ones_like(d))
        gauss.set(d)
    u = gauss.whiten(beta)
    np.testing.assert_allclose(gauss.unwhiten(u), beta, rtol=1e-8, atol=1e-9)
    for c in range(3):
        mean, M, log_norm = dense(H, b, d[c], p)
        L = np.linalg.cholesky(M)
        np.testing.assert_allclose(gauss.mean[c], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(gauss.log_norm[c], log_norm, rtol=1e-9)
        np.testing.assert_allclose(u[c], L.T @ (beta[c] - mean), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(gauss.force(gradient)[c], np.linalg.solve(L, gradient[c]), rtol=1e-8, atol=1e-9)


def assert_is_that_of(gauss, H, b, precisions):
    """Mean, factor and log_norm of each chain are those of its prior precisions (n_chains, q)."""
    q = len(b)
    for c, d in enumerate(precisions):
        mean, M, log_norm = dense(H, b, d, q - 1)
        np.testing.assert_allclose(gauss.mean[c], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(gauss.log_norm[c], log_norm, rtol=1e-9)
        column = gauss.unwhiten(np.eye(len(precisions), q))[c] - mean
        np.testing.assert_allclose(column, np.linalg.inv(np.linalg.cholesky(M)).T[:, c], atol=1e-9)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_move_of_the_global_scale_takes_the_gaussian_along(n_threads):
    rng = np.random.default_rng(6)
    lambda_sq_inv, tau_sq_inv = np.exp(rng.standard_normal((3, 139))), np.array([0.1, 1.0, 10.0])
    steps, thresholds = 0.1 * rng.standard_normal((3, 4)), rng.standard_exponential((3, 4))
    with open_threads(n_threads) as threads:
        H, b, gauss = whitening(3, 139, 140, threads)
        gauss.set(precisions(lambda_sq_inv, tau_sq_inv, 140))
        moved, share = gauss.move_global_scale(lambda_sq_inv, tau_sq_inv, TAU_0, steps, thresholds)
    assert (moved != tau_sq_inv).any()
    assert ((share > 0) == (moved != tau_sq_inv)).all()
    assert_is_that_of(gauss, H, b, precisions(lambda_sq_inv, moved, 140))


@pytest.mark.parametrize("start", ["from its law", "from far away"])
def test_move_of_the_global_scale_has_its_stated_law(start):
    """|D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log tau), normalised on a grid."""
    rng = np.random.default_rng(7)
    n, n_steps = (8000, 3) if start == "from its law" else (1000, 60)
    H, b, gauss = whitening(n)
    lambda_sq_inv = np.tile([0.5, 30.0], (n, 1))
    grid = np.linspace(-12, 12, 4001)
    d = precisions(lambda_sq_inv[:1], np.exp(-2 * grid), 3)
    prior = stats.halfcauchy(scale=TAU_0).logpdf(np.exp(grid)) + grid
    cdf = grid_cdf(grid, np.array([dense(H, b, row, 2)[2] for row in d]) + prior)
    exact = np.interp(rng.uniform(size=n), cdf(grid), grid)
    log_tau = exact if start == "from its law" else rng.choice([-6.0, 6.0], n)
    tau_sq_inv = np.exp(-2 * log_tau)
    gauss.set(precisions(lambda_sq_inv, tau_sq_inv, 3))
    steps, thresholds = 1.5 * rng.standard_normal((n, n_steps)), rng.standard_exponential((n, n_steps))
    moved, share = gauss.move_global_scale(lambda_sq_inv, tau_sq_inv, TAU_0, steps, thresholds)
    assert (moved != tau_sq_inv).mean() > 0.5
    assert ((share > 0) == (moved != tau_sq_inv)).all()
    assert stats.kstest(-np.log(moved) / 2, cdf).pvalue > P_VALUE


@pytest.mark.parametrize("n_threads", [1, 2])
def test_moves_of_local_scales_take_the_gaussian_along(n_threads):
    rng = np.random.default_rng(8)
    lambda_sq_inv, tau_sq_inv = np.exp(rng.standard_normal((3, 139))), np.array([0.1, 1.0, 10.0])
    columns = np.array([3, 4, 77, 138])
    with open_threads(n_threads) as threads:
        H, b, gauss = whitening(3, 139, 140, threads)
        gauss.set(precisions(lambda_sq_inv, tau_sq_inv, 140))
        moved = gauss.move_local_scales(lambda_sq_inv, tau_sq_inv, columns, 0, KEY)
    assert (np.flatnonzero((moved != lambda_sq_inv).any(axis=0)) == columns).all()
    assert_is_that_of(gauss, H, b, precisions(moved, tau_sq_inv, 140))


@pytest.mark.parametrize("start", ["from its law", "from far away"])
@pytest.mark.parametrize("tau_sq_inv", [0.3, 100.0])
def test_moves_of_local_scales_have_their_stated_law(start, tau_sq_inv):
    """|D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log lambda_1, log lambda_2), normalised on a grid of two dimensions."""
    rng = np.random.default_rng(9)
    n, rounds = (8000, 1) if start == "from its law" else (1000, 30)
    H, b, gauss = whitening(N_CHAINS)
    grid = np.linspace(-10, 10, 201)
    first, second = (axis.ravel() for axis in np.meshgrid(grid, grid, indexing="ij"))
    lambda_sq_inv = np.exp(-2 * np.column_stack([first, second]))
    rows = precisions(lambda_sq_inv, np.full(len(first), tau_sq_inv), 3)
    prior = stats.halfcauchy().logpdf(np.exp(first)) + first + stats.halfcauchy().logpdf(np.exp(second)) + second
    M = H + rows[:, :, None] * np.eye(3)
    mean_M_mean = np.einsum("i,nij,j->n", b, np.linalg.inv(M), b)
    law = np.log(rows[:, :2]).sum(axis=1) / 2 - np.linalg.slogdet(M)[1] / 2 + mean_M_mean / 2 + prior
    weight = np.exp(law - law.max())
    if start == "from its law":
        at = rng.choice(len(weight), n, p=weight / weight.sum())
        jitter = rng.uniform(-0.05, 0.05, (n, 2))
        log_lambda = np.column_stack([first[at], second[at]]) + jitter
    else:
        log_lambda = rng.choice([-6.0, 6.0], (n, 2))
    moved, taus = np.empty((n, 2)), np.full(N_CHAINS, tau_sq_inv)
    for i in range(0, n, N_CHAINS):
        x = np.exp(-2 * log_lambda[i : i + N_CHAINS])
        gauss.set(precisions(x, taus, 3))
        for t in range(rounds):
            x = gauss.move_local_scales(x, taus, np.arange(2), i * rounds + t, KEY)
        moved[i : i + N_CHAINS] = -np.log(x) / 2
    assert (abs(moved - log_lambda) > 0.1).mean() > 0.5
    weight = weight.reshape(201, 201)
    for values, density in zip(moved.T, (weight.sum(axis=1), weight.sum(axis=0)), strict=True):
        assert stats.kstest(values, grid_cdf(grid, np.log(density))).pvalue > P_VALUE
    difference = np.sort(np.unique(np.round(first - second, 6)))
    of_difference = np.array([weight[abs(first - second - d).reshape(201, 201) < 1e-6].sum() for d in difference])
    assert stats.kstest(moved[:, 0] - moved[:, 1], grid_cdf(difference, np.log(of_difference))).pvalue > P_VALUE


# ---------------------------------------------------------------------------------------------------------------------
# The sweep leaves the joint law of parameters and data alone (Geweke 2004)

ANCHOR = np.array([0.4, 0.0, -0.3, 1.0])
ONE, THREE, FAR = _hmc.Tuning(1.2, 1, 2, 0.8), _hmc.Tuning(0.7, 3, 2, 0.8), _hmc.Tuning(1.0, 3, 2, 0.8)


class RowsOfManyDataSets:
    """Each chain has its own y: the score of every row by the kernel, for both values of y."""

    def __init__(self, ops):
        self.rows = [
            [Rows(X[i : i + 1], np.full(1, value, np.uint8), True, ops, ALONE) for value in (0, 1)] for i in range(6)
        ]

    def score(self, beta):
        loglik, score = np.zeros(len(beta)), np.zeros(beta.shape)
        for i, pair in enumerate(self.rows):
            (loglik_0, score_0), (loglik_1, score_1) = (rows.score(beta) for rows in pair)
            loglik += np.where(self.y[:, i] > 0, loglik_1, loglik_0)
            score += np.where(self.y[:, i, None] > 0, score_1, score_0)
        return loglik, score


def imperfect_reference(ops, anchor, share, push):
    """Some quadratic, right for no y, that leaves the Metropolis test something to do."""
    H = share * Rows(X, np.zeros(6, np.uint8), True, ops, ALONE).information(np.zeros((1, 4)))
    point, score = np.array([0.3, -0.2, 0.1, 0.2]), push * np.array([1.0, -1.0, 0.7, -0.8])
    gauss = ops.Whitening(H + np.outer(anchor, anchor), H @ point + score, N_CHAINS, 3, ALONE)
    return _hmc.Reference(point, score, H, gauss)


def geweke(tuning, ops=cpu, n_batches=24, n_redraws=4, n_sweeps=2, anchor=ANCHOR, share=1.0, push=1.5):
    """Largest change of the mean of a bounded function, in standard errors, along chains that start from the joint law.

    Each chain has a few rounds of sweeps given y and a draw of y given the parameters. Independent chains from exact
    draws have independent changes: nothing has to mix, and the functions at the start cancel most of the noise.
    """
    rng = np.random.default_rng(5)
    rows, reference = RowsOfManyDataSets(ops), imperfect_reference(ops, anchor, share, push)
    changes, acceptance, t = [], [], 0
    with np.errstate(over="ignore", invalid="ignore"):  # as in a run
        for _ in range(n_batches):
            *parameters, rows.y = prior_draws(N_CHAINS, rng, ANCHOR)
            before = bounded(*parameters, rows.y)
            state = _hmc.HmcState(*parameters, None, None, t, None, None)
            for _ in range(n_redraws):
                loglik, score = rows.score(state.beta)
                state = state._replace(loglik=loglik, score=score)
                for _ in range(n_sweeps):
                    state = _hmc.sweep(state, rows, reference, tuning, TAU_0, ops, KEY)
                    acceptance.append(state.acceptance.mean())
                rows.y = redrawn(state.beta, rng)
            changes.append(bounded(state.beta, state.lambda_sq_inv, state.tau_sq_inv, rows.y) - before)
            t = state.sweep
    assert 0.1 < np.mean(acceptance) < 0.9
    changes = np.concatenate(changes)
    error = changes.std(axis=0) / np.sqrt(len(changes))
    z = abs(changes.mean(axis=0))[error > 0] / error[error > 0]
    print(f"z = {z.max():.2f}")
    return z.max()


def tau_as_it_was(beta, tau_sq_inv, *rest):
    """A valid update of tau given beta that does nothing: what the move on the way does is then all there is."""
    return tau_sq_inv


def whitening_with(change):
    """log_norm with something added."""

    class Changed(cpu.Whitening):
        def _moments(self, factor, d):
            mean, log_norm = super()._moments(factor, d)
            return mean, log_norm + change(factor, d[: self.p], self.b @ mean)

    return Changed


class LocalMovesWith(cpu.Whitening):
    """Moves of the local scales that read something else than they should."""

    def __init__(self, *args, mean=1.0, precision=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.change = mean, precision

    def move_local_scales(self, lambda_sq_inv, tau_sq_inv, *rest):
        mean, precision = self.change
        self.mean = self.mean * mean
        return super().move_local_scales(lambda_sq_inv, tau_sq_inv * precision, *rest)


class LocalMovesForgotten(cpu.Whitening):
    """The scales move, and the Gaussian stays."""

    def move_local_scales(self, lambda_sq_inv, tau_sq_inv, *rest):
        kept = self.mean.copy(), self.log_norm.copy()
        out = super().move_local_scales(lambda_sq_inv, tau_sq_inv, *rest)
        self.mean, self.log_norm = kept
        return out


class EndKickTooSmall(cpu.Whitening):
    calls = 0

    def force(self, gradient):
        self.calls += 1
        return super().force(gradient) * (0.5 if self.calls % 2 == 0 else 1.0)


class Where:
    """``where`` that takes always the new or always the old value in one of the six calls of a sweep."""

    def __init__(self, call, new):
        self.call, self.new, self.n = call, new, -1

    def __call__(self, condition, new, old):
        self.n += 1
        return cpu.where(self.new if self.n % 6 == self.call else condition, new, old)


class LocalScalesWithOldTau:
    def global_scale(self, beta, tau_sq_inv, *rest):
        self.old = tau_sq_inv
        return cpu.global_scale(beta, tau_sq_inv, *rest)

    def local_scales(self, beta, tau_sq_inv, *rest):
        return cpu.local_scales(beta, self.old, *rest)


def always_accepted(rate, key, t, purpose):
    return cpu.exponential(rate, key, t, purpose) + (1e9 if purpose == ACCEPT else 0.0)


def momentum_kept(shape, key, t, purpose):
    return cpu.normal(shape, key, 0 if purpose == MOMENTUM else t, purpose)


def old_tau():
    scales = LocalScalesWithOldTau()
    return {"global_scale": scales.global_scale, "local_scales": scales.local_scales}


TAU_ON_THE_WAY = {"global_scale": tau_as_it_was}
WITHOUT_M = whitening_with(lambda L, d, mMm: np.log(L.diagonal()).sum())
WITHOUT_D = whitening_with(lambda L, d, mMm: -np.log(d).sum() / 2)
WITHOUT_MEAN = whitening_with(lambda L, d, mMm: -mMm / 2)
LOOSE = {"share": 0.25, "push": 0.3}  # where what the reference leaves out is mostly the data's
ERRORS = {
    "move of tau without |M|": (ONE, {"Whitening": WITHOUT_M}, {}),
    "move of tau without |D|": (ONE, {"Whitening": WITHOUT_D}, {}),
    "move of tau without m'Mm": (ONE, {"Whitening": WITHOUT_MEAN, **TAU_ON_THE_WAY}, {}),
    "tau left behind by an accepted proposal": (
        THREE._replace(tau_moves=6),
        {"where": Where(1, False), **TAU_ON_THE_WAY},
        {"n_batches": 24},
    ),
    "tau of a rejected proposal": (ONE, {"where": Where(1, True), **TAU_ON_THE_WAY}, {}),
    "lambda moved as if the mean were larger": (
        ONE._replace(slow=(0, 1, 2)),
        {"Whitening": partial(LocalMovesWith, mean=3.0)},
        {},
    ),
    "lambda moved as if tau were smaller": (
        ONE._replace(slow=(0, 1, 2)),
        {"Whitening": partial(LocalMovesWith, precision=10.0)},
        {},
    ),
    "lambda moved without the mean": (
        ONE._replace(slow=(0, 1, 2)),
        {"Whitening": LocalMovesForgotten},
        {"n_batches": 24},
    ),
    "last half-kick": (ONE, {"Whitening": EndKickTooSmall}, {}),
    "half-kicks at the ends of turns": (THREE, {"Whitening": EndKickTooSmall}, {"n_batches": 16}),
    "no Metropolis test": (ONE, {"exponential": always_accepted}, {}),
    "momentum kept": (ONE, {"normal": momentum_kept}, {}),
    "log-likelihood not updated": (FAR, {"where": Where(2, False)}, {"n_redraws": 2, "n_sweeps": 4, "push": 0.3}),
    "b of lambda doubled": (ONE, {"local_scales": lambda beta, t, *rest: cpu.local_scales(beta, 2 * t, *rest)}, {}),
    "lambda given the old tau": (THREE, old_tau(), LOOSE),
    "prior scale of tau": (ONE, {"global_scale": lambda b, t, t0, *r: cpu.global_scale(b, t, 1.5 * t0, *r)}, {}),
}
PRIOR_ERRORS = {
    "left out": lambda tau_sq_inv, tau_0: 0.0,
    "twice": lambda tau_sq_inv, tau_0: 2 * LOG_PRIOR(tau_sq_inv, tau_0),
    "without its Jacobian": lambda tau_sq_inv, tau_0: LOG_PRIOR(tau_sq_inv, tau_0) + np.log(tau_sq_inv) / 2,
}
LOG_PRIOR = _gaussian._log_prior


@pytest.mark.parametrize(("tau_moves", "slow"), [(0, ()), (2, ()), (2, (0, 1, 2)), (2, (1,))])
@pytest.mark.parametrize("tuning", [ONE, THREE], ids=["1 turn", "3 turns"])
def test_sweep_passes_gewekes_joint_test(tuning, tau_moves, slow):
    assert geweke(tuning._replace(tau_moves=tau_moves, slow=slow)) < 4


def test_sweep_whose_tau_moves_on_the_way_only_passes_gewekes_joint_test():
    assert geweke(THREE, planted(**TAU_ON_THE_WAY)) < 4


@pytest.mark.parametrize("error", ERRORS)
def test_gewekes_joint_test_catches(error):
    tuning, replaced, settings = ERRORS[error]
    assert geweke(tuning, planted(**replaced), **{"n_batches": 12, **settings}) > 6


@pytest.mark.parametrize("error", PRIOR_ERRORS)
def test_gewekes_joint_test_catches_a_prior_of_tau(error, monkeypatch):
    monkeypatch.setattr(_gaussian, "_log_prior", PRIOR_ERRORS[error])
    assert geweke(ONE, planted(**TAU_ON_THE_WAY), 12) > 6


def test_gewekes_joint_test_catches_a_forgotten_prior_of_the_intercept():
    assert geweke(ONE, n_batches=12, anchor=0 * ANCHOR) > 6


def few_sweeps(ops, n):
    """Rows, and the states of the first n sweeps of four chains, of whose proposals a part is rejected."""
    rows = Rows(X, np.array([0, 1, 0, 1, 1, 0], dtype=np.uint8), True, ops, ALONE)
    H = rows.information(np.zeros((1, 4))) + np.outer(ANCHOR, ANCHOR)
    point, score = np.zeros(4), np.array([1.5, -1.5, 1.0, -1.0])
    reference = _hmc.Reference(point, score, H, ops.Whitening(H, score, 4, 3, ALONE))
    beta = np.zeros((4, 4))
    state = _hmc.HmcState(beta, np.ones((4, 3)), np.ones(4), *rows.score(beta), 0, None, None)
    states = []
    for _ in range(n):
        state = _hmc.sweep(state, rows, reference, THREE, TAU_0, ops, KEY)
        states.append(state)
    return rows, states


def is_fresh(ops):
    """Whether the log-likelihood and the score of every state are those at its beta."""
    rows, states = few_sweeps(ops, 50)
    pairs = [(rows.score(state.beta), (state.loglik, state.score)) for state in states]
    return all(np.allclose(want, got) for pair in pairs for want, got in zip(*pair, strict=True))


@pytest.mark.parametrize("call", [2, 3])
@pytest.mark.parametrize("new", [False, True])
def test_state_has_the_log_likelihood_and_the_score_at_its_beta(call, new):
    assert is_fresh(cpu)
    assert not is_fresh(planted(where=Where(call, new)))


def test_every_unknown_is_redrawn_in_every_sweep():
    """What is never drawn leaves the joint law alone, so Geweke's test would not see it."""
    _, states = few_sweeps(cpu, 200)
    for name in ("lambda_sq_inv", "tau_sq_inv"):
        values = np.array([getattr(state, name) for state in states])
        assert len(np.unique(values)) == values.size
    moved = np.diff([state.beta for state in states], axis=0) != 0
    assert (moved.all(axis=2) == moved.any(axis=2)).all()
    rate = np.mean([state.acceptance for state in states[1:]])
    assert 0.1 < rate < 0.95
    assert abs(moved.any(axis=2).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / moved.any(axis=2).size)


# ---------------------------------------------------------------------------------------------------------------------
# Whole runs


def test_posterior_is_that_of_two_other_samplers():
    gold = load_gold()
    model = HorseshoeProbitClassifier(n_iter=10_000, thin=2, fit_intercept=False, sampler="hmc", random_state=1)
    agrees_with_gold(model.fit(gold["X"], gold["y"]), gold)


def fit_all(samplers, data, y, **params):
    """Draws of beta, the intercept and log tau of the named samplers with their numbers of sweeps."""
    for sampler, n_iter in samplers.items():
        model = HorseshoeProbitClassifier(sampler=sampler, n_iter=n_iter, thin=n_iter // 4000, **params).fit(data, y)
        log_tau = np.log(model.global_scale_draws_)[..., None]
        yield np.concatenate([model.coef_draws_, model.intercept_draws_[..., None], log_tau], axis=2)


def same_law(ours, theirs):
    """Means and shares below some quantiles of draws (n_chains, n_draws, k) equal within Monte Carlo error."""
    agree(ours, theirs, 4.5)
    for level in (0.05, 0.5, 0.95):
        bound = np.quantile(theirs, level, axis=(0, 1))
        agree((ours < bound).astype(float), (theirs < bound).astype(float), 4.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hmc_agrees_with_gibbs_where_there_is_an_intercept(dtype):
    rng = np.random.default_rng(3)
    data = rng.normal([0, 1, -2, 0], 1, (120, 4))
    y = data @ [1.0, 0.5, 0, 0] - 1 + rng.standard_normal(120) > 0
    same_law(*fit_all({"hmc": 8000, "gibbs": 12_000}, data.astype(dtype), y, global_scale=0.5, random_state=0))


def test_float32_agrees_with_float64():
    rng = np.random.default_rng(4)
    data = rng.standard_normal((300, 5))
    y = data @ [1.0, -0.5, 0.2, 0, 0] + 0.5 + rng.standard_normal(300) > 0
    (single,) = fit_all({"hmc": 8000}, data.astype(np.float32), y, random_state=0)
    (double,) = fit_all({"hmc": 8000}, data, y, random_state=1)
    same_law(single, double)


def test_hmc_agrees_with_a_long_gibbs_run_on_rare_events():
    rng = np.random.default_rng(5)
    data = rng.standard_normal((400, 3))
    y = data @ [0.7, 0, 0] - 2.4 + rng.standard_normal(400) > 0
    assert 5 <= y.sum() <= 20
    hmc, gibbs, pxda = fit_all(
        {"hmc": 8000, "gibbs": 48_000, "pxda": 24_000}, data, y, global_scale=0.5, random_state=0
    )
    same_law(hmc, gibbs)
    same_law(hmc, pxda)


def far_start(monkeypatch):
    """Chains that begin ten times as far away as they do, tau too."""
    initial_state = _run.initial_state

    def further(*args):
        start = initial_state(*args)
        return start._replace(beta=10 * start.beta, tau_sq_inv=start.tau_sq_inv**3)

    monkeypatch.setattr(_run, "initial_state", further)


def test_chains_that_start_far_apart_meet(monkeypatch):
    far_start(monkeypatch)
    rng = np.random.default_rng(8)
    data = rng.standard_normal((400, 3))
    y = data[:, 0] + rng.standard_normal(400) > 0
    model = HorseshoeProbitClassifier(n_chains=16, sampler="hmc", n_iter=1000, burn_in=300, random_state=0)
    model.fit(data, y)
    assert rhat(model.coef_draws_).max() < 1.01
    assert rhat(np.log(model.global_scale_draws_)) < 1.02


@pytest.fixture
def record(monkeypatch):
    """What each sweep was given, and the acceptance that it reports."""
    calls = []
    sweep = _hmc.sweep

    def recorded(state, rows, reference, tuning, *rest):
        new = sweep(state, rows, reference, tuning, *rest)
        frozen = (
            reference.point.copy(),
            reference.score.copy(),
            reference.information.copy(),
            reference.whitening.b.copy(),
        )
        calls.append((tuning, reference, frozen, new.acceptance))
        return new

    monkeypatch.setattr(_hmc, "sweep", recorded)
    return calls


@pytest.mark.parametrize("data", ["synthetic", "breast cancer"])
def test_nothing_is_tuned_after_burn_in(data, record, short_fit, breast_cancer):
    gold = load_gold()
    X, y = (gold["X"], gold["y"]) if data == "synthetic" else breast_cancer
    model = short_fit(X, y, n_iter=150, burn_in=200, sampler="hmc", random_state=0)
    assert len({tuning for tuning, *_ in record[:-150]}) > 50
    kept = record[-150:]
    assert len({tuning for tuning, *_ in kept}) == 1
    *numbers, _ = kept[0][0]
    assert numbers == [value for name, value in model.tuning_.items() if name != "acceptance"]
    assert len({id(reference) for _, reference, *_ in kept}) == 1
    for _, _, frozen, _ in kept:
        for now, then in zip(frozen, kept[0][2], strict=True):
            np.testing.assert_array_equal(now, then)
    assert all(tuning.n_steps % 2 == 1 for tuning, *_ in record)
    assert all(0 < tuning.step <= np.pi / 2 + 1e-12 for tuning, *_ in record)


def test_local_scales_move_on_the_way_where_one_turn_is_enough(record, short_fit, weak_problem, breast_cancer):
    for data, slow, n_steps in ((weak_problem, (0, 1, 2), 1), (breast_cancer, (), 3)):
        short_fit(*data, n_iter=10, burn_in=200, sampler="hmc")
        tuning = record[-1][0]
        assert (tuning.slow, tuning.n_steps) == (slow, n_steps)


def test_the_slowest_coefficients_are_those_of_the_largest_autocorrelation():
    rng = np.random.default_rng(1)
    memory = np.where(np.arange(60) % 2, 0.2, 0.8)
    stage, beta = _adapt._Stage(4000, _hmc.Tuning(1.0, 1, 2, 1.0)), rng.standard_normal((2, 61))
    for _ in range(2000):
        noise = rng.standard_normal((2, 61))
        beta[:, :60] = memory * beta[:, :60] + np.sqrt(1 - memory**2) * noise[:, :60]
        scaled = 100.0 + beta * np.arange(1, 62)
        stage.see(_hmc.HmcState(scaled, None, None, None, scaled, 0, None, None))
        stage.n += 1
    slow = stage.slowest(60)
    assert len(slow) == 32
    assert set(range(0, 60, 2)) < set(slow)
    assert stage.slowest(5) == tuple(range(5))


@pytest.mark.parametrize("start", ["usual", "far"])
@pytest.mark.parametrize("random_state", [0, 1, 2])
def test_burn_in_ends_with_a_fair_acceptance(start, random_state, record, short_fit, monkeypatch):
    if start == "far":
        far_start(monkeypatch)
    gold = load_gold()
    short_fit(gold["X"], gold["y"], n_iter=300, burn_in=500, sampler="hmc", random_state=random_state)
    assert 0.6 < np.mean([acceptance for *_, acceptance in record[-300:]]) < 0.99


# ---------------------------------------------------------------------------------------------------------------------
# Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari & Gelman 2018)

N_DRAWS = 99  # so that the rank is one of 100


def ranks(sampler, n_iter, seed):
    """Ranks of beta and log tau of the prior among draws from the posterior of data simulated from them."""
    rng = np.random.default_rng([seed, 12])
    tau = 0.5 * abs(rng.standard_cauchy())
    beta = rng.standard_normal(3) * abs(rng.standard_cauchy(3)) * tau
    data = rng.standard_normal((40, 3))
    y = data @ beta + rng.standard_normal(40) > 0
    if y.all() or not y.any():  # no model is fitted to one class; the next data set, so the law is that given two
        return ranks(sampler, n_iter, seed + 100_000)
    model = HorseshoeProbitClassifier(
        n_iter=n_iter,
        thin=n_iter // N_DRAWS,
        n_chains=1,
        fit_intercept=False,
        global_scale=0.5,
        sampler=sampler,
        n_jobs=1,
        random_state=seed,
    ).fit(data, y)
    draws = np.column_stack([model.coef_draws_[0], model.global_scale_draws_[0]])[-N_DRAWS:]
    return (draws < np.append(beta, tau)).sum(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "n_iter"), [("hmc", 4950), ("collapsed", 4950), ("gibbs", 49_500)])
def test_ranks_of_the_truth_are_uniform_over_simulated_data_sets(sampler, n_iter):
    with ProcessPoolExecutor(2) as pool:
        found = np.array(list(pool.map(partial(ranks, sampler, n_iter), range(200))))
    counts = np.array([np.bincount(column // 10, minlength=10) for column in found.T])
    p_values = stats.chisquare(counts, axis=1).pvalue
    print(f"{sampler}: counts\n{counts}\np values {p_values}")
    assert (p_values > P_VALUE).all()
