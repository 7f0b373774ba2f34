"""What tests of the samplers share: draws from the joint law, known answers, comparisons that know their error."""

import os
import tracemalloc
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import log_ndtr

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse as sparse_cpu
from skhorseshoe._backends._cpu.library import record
from skhorseshoe._data.columns import Columns
from skhorseshoe._data.rows import Rows
from skhorseshoe._data.weights import arrange, is_whole
from skhorseshoe._mcmc import run
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._model import PROBIT
from skhorseshoe._utils.threads import Threads
from skhorseshoe.diagnostics import ess_bulk, mcse_mean

TAU_0 = 0.7
KEY = np.array([7, 1], np.uint32)
ALONE = Threads(1)
N_CHAINS = 250  # at once: a random number has 8 bits for its chain
X = np.random.default_rng(0).standard_normal((6, 3)) + 0.3

# Random123's own: counter, key, and the words that follow from them.
PHILOX_ANSWERS = [
    ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def philox(counter, key):
    """The four words of Philox4x32-10 from a counter of four words and a key of two, of any shape."""
    (c0, c1, c2, c3), (k0, k1), low = (np.asarray(word, np.uint64) for word in counter), key, np.uint64(2**32 - 1)
    for i in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        k = (np.uint64((int(word) + i * step) % 2**32) for word, step in ((k0, 0x9E3779B9), (k1, 0xBB67AE85)))
        c0, c1, c2, c3 = b >> np.uint64(32) ^ c1 ^ next(k), b & low, a >> np.uint64(32) ^ c3 ^ next(k), a & low
    return c0, c1, c2, c3


def same_draws(one, other):
    """Whether two models hold the same draws, those of groups too, and their mean shrinkage, to the bit."""
    of_groups = (name for name in vars(one) if name.startswith("group_") and name.endswith("draws_"))
    names = "coef_draws_", "intercept_draws_", "global_scale_draws_", "shrinkage_", *of_groups
    return all(_same(getattr(one, name), getattr(other, name)) for name in names)


def _same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return np.array_equal(one, other)


def peak_memory(function):
    """Bytes of Python's memory that a function takes at its peak."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def resident(kind):
    """Bytes of the process in memory, on Linux. kind : RssAnon, its own, or RssFile, of files."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[kind].split()[0]) * 1024


def repeated(few, many):
    """How often a slow test repeats what it does: ``many`` times with SKHORSESHOE_TEST_FULL=1."""
    return many if os.environ.get("SKHORSESHOE_TEST_FULL") else few


def mostly_slow(errors):
    """Parameters of a test, as planted errors that it must catch: the first in the default run, the others not."""
    return [pytest.param(error, marks=[pytest.mark.slow] * (i > 0)) for i, error in enumerate(errors)]


def prior_draws(n, rng, anchor=(0.0, 0.0, 0.0, 1.0)):
    """Independent draws of beta, lambda^-2, tau^-2 and y, written with the half-Cauchys themselves.

    The intercept is such that anchor . beta is N(0, 1); anchor ends with 1.
    """
    tau = TAU_0 * abs(stats.cauchy.rvs(size=n, random_state=rng))
    lam = abs(stats.cauchy.rvs(size=(n, 3), random_state=rng))
    beta = rng.standard_normal((n, 4)) * np.column_stack([lam * tau[:, None], np.ones(n)])
    beta[:, 3] -= beta[:, :3] @ np.array(anchor[:3])
    return beta, lam**-2, tau**-2, redrawn(beta, rng)


def redrawn(beta, rng):
    """y given beta (n, 4); (n, 6) float64, 0 or 1."""
    return (beta[:, :3] @ X.T + beta[:, 3:] + rng.standard_normal((len(beta), 6)) > 0).astype(float)


def bounded_without_lambda(beta, tau_sq_inv, y):
    """Functions of the parameters and the data whose means exist: half-Cauchys have none. One row for each draw."""
    functions = [
        np.tanh(beta),
        np.tanh(beta**2),
        np.tanh(beta[:, :3] * (2 * y[:, :3] - 1)),
        1 / (1 + tau_sq_inv),
        np.exp(-abs(np.log(tau_sq_inv * TAU_0**2))),
        1 / (1 + tau_sq_inv[:, None] * beta[:, :3] ** 2),
        y.mean(axis=1),
    ]
    return np.column_stack(functions)


def bounded(beta, lambda_sq_inv, tau_sq_inv, y, *others):
    """The same functions, and those of lambda and of other positive parameters."""
    positive = lambda_sq_inv, tau_sq_inv * lambda_sq_inv[:, 0], *others
    return np.column_stack([bounded_without_lambda(beta, tau_sq_inv, y), *(1 / (1 + one) for one in positive)])


def geweke(start, advance, redraw, functions, n_batches, n_redraws):
    """Largest change of the mean of a bounded function, in standard errors, along chains that start from the joint law
    of parameters and data (Geweke 2004).

    Each chain has a few rounds of sweeps given the data and a draw of the data given beta. Independent chains from
    exact draws have independent changes: nothing has to mix, and the functions at the start cancel most of the noise.

    start() : draws of all parameters, beta first, and the data. advance(parameters, data, k) : the parameters after
    round k. redraw(beta) : data. functions(*parameters, data) : one row for each chain.
    """
    changes = []
    for batch in range(n_batches):
        *parameters, data = start()
        before = functions(*parameters, data)
        for k in range(batch * n_redraws, (batch + 1) * n_redraws):
            parameters = advance(parameters, data, k)
            data = redraw(parameters[0])
        changes.append(functions(*parameters, data) - before)
    changes = np.concatenate(changes)
    error = changes.std(axis=0) / np.sqrt(len(changes))
    z = abs(changes.mean(axis=0))[error > 0] / error[error > 0]
    print(f"z = {z.max():.2f}")
    return z.max()


def planted(**replaced):
    """The back end with some of its functions replaced."""
    return SimpleNamespace(**{**vars(cpu), **replaced})


def always_accepted(change, *rest):
    """In place of ``ops.metropolis``."""
    *state, _ = cpu.metropolis(change - 1e9, *rest)
    return *state, np.exp(-np.maximum(change, 0.0))


def plain_columns(p, fit_intercept=True):
    """``Columns`` of mean 0 and standard deviation 1."""
    return Columns(np.zeros(p), np.ones(p), np.zeros(p, bool), np.zeros(p, bool), fit_intercept, False)


def in_full(X, fit_intercept):
    """Rows in float64, with a column of ones for an intercept."""
    rows = (X.toarray() if sparse.issparse(X) else X).astype(np.float64)
    return np.column_stack([rows, np.ones(len(rows))]) if fit_intercept else rows


def along_lines(rows, sign, weight, coef, direction, steps):
    """sum_i w_i log Phi(s_i (eta_i + step change_i)) in float64."""
    eta, change = coef @ rows.T, direction @ rows.T
    return log_ndtr(sign * (eta[:, None] + steps[:, :, None] * change[:, None])) @ weight


def grid_cdf(grid, log_density):
    """The distribution function of a law on a grid of equal steps, beyond which it has nothing."""
    density = np.exp(log_density - log_density.max())
    cdf = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2))
    return partial(np.interp, xp=grid, fp=cdf / cdf[-1])


def agree(ours, theirs, level=4.0):
    """Means of draws (n_chains, n_draws, ...) equal within Monte Carlo error."""
    error = np.hypot(mcse_mean(ours), mcse_mean(theirs))
    apart = abs(ours.mean(axis=(0, 1)) - theirs.mean(axis=(0, 1)))
    assert (apart <= level * error).all(), f"differences {apart}, errors {error}"


def all_draws(model):
    """Draws of beta, the intercept and log tau, side by side."""
    log_tau = np.log(model.global_scale_draws_)[..., None]
    return np.concatenate([model.coef_draws_, model.intercept_draws_[..., None], log_tau], axis=2)


def same_law(ours, theirs):
    """Means and shares below some quantiles of draws (n_chains, n_draws, k) equal within Monte Carlo error."""
    agree(ours, theirs, 4.5)
    for level in (0.05, 0.5, 0.95):
        bound = np.quantile(theirs, level, axis=(0, 1))
        agree((ours < bound).astype(float), (theirs < bound).astype(float), 4.5)


def load_gold(name="synthetic_300x20"):
    """300 x 20, no intercept: NUTS of another package and a plain Gibbs sampler, long runs that agree.

    "slab_150x8", and "logistic_150x8" for tests/likelihoods: with unpenalised columns and an intercept; NUTS alone, by
    benchmarks/exactness.py. So is "factors_400x4", with classes in schools and a factor that is crossed with both.
    """
    return np.load(Path(__file__).parent / "data" / f"gold_{name}.npz")


def agrees_with_gold(model, gold):
    """Means, standard deviations, quantiles and probabilities within Monte Carlo error."""
    found = {"beta": model.coef_draws_, "logtau": np.log(model.global_scale_draws_)[..., None]}
    if model.fit_intercept:
        found["intercept"] = model.intercept_draws_[..., None]
    if "logs_mean" in gold:
        found["logs"] = np.log(np.stack(list(model.group_scale_draws_.values()), axis=-1))
    for name, draws in found.items():
        error = np.hypot(mcse_mean(draws), gold[f"{name}_mcse_mean"])
        assert (abs(draws.mean(axis=(0, 1)) - gold[f"{name}_mean"]) < 4.5 * error).all()
        assert (abs(draws.std(axis=(0, 1)) / gold[f"{name}_sd"] - 1) < 8 / np.sqrt(ess_bulk(draws))).all()
        below = (draws[..., None] < gold[f"{name}_q"].T).astype(float)
        assert (abs(below.mean(axis=(0, 1)) - gold["quantile_levels"]) < 5 * mcse_mean(below)).all()
    if "prob_mean" in gold:
        assert abs(model.predict_proba(gold["X"])[:, 1] - gold["prob_mean"]).max() < 0.02


def start_further(monkeypatch):
    """Have chains begin ten times as far away as they do, tau too."""
    initial_state = run.initial_state

    def further(*args):
        start = initial_state(*args)
        return start._replace(beta=10 * start.beta, tau_sq_inv=start.tau_sq_inv**3)

    monkeypatch.setattr(run, "initial_state", further)


def chains_of(rows, kind, burn_in, saved=None, n_chains=3, slab=None, tau_0=1.0):
    """Chains on these rows, from the start or from what was saved."""
    key = np.array([1, 2], np.uint32)
    problem = run.Problem(rows, FixedPrior(rows.columns, slab), tau_0, key)
    start = run.initial_state(n_chains, rows.columns, rows.base_rate(), tau_0, key)
    return run._CHAINS[kind](problem, rows.ops.to_device(start), burn_in, saved)


class Given(NamedTuple):
    """How rows are given to a sampler.

    design : the columns whose coefficients have the prior; (6, 3). trials : how often each row was seen, so that y is
    a number of ones. shares : the weights of the rows as which an observation is given.
    """

    data: object = X
    design: object = X
    ops: object = cpu
    standardize: bool = False
    unpenalized: object = None
    trials: int = 1
    shares: tuple = (1.0,)
    likelihood: object = PROBIT

    def predictors(self, beta):
        """Linear predictors at beta (n_chains, 4), whose unpenalised columns come after the others; (n_chains, 6)."""
        order = np.argsort(np.zeros(3) if self.unpenalized is None else self.unpenalized, kind="stable")
        return beta[:, :3] @ self.design[:, order].T + beta[:, 3:]

    def redrawn(self, beta, rng):
        """y given beta; (n_chains, 6) float64."""
        eta = self.predictors(beta)
        if self.likelihood is not PROBIT:
            return rng.binomial(self.trials, self.likelihood.probability(eta)).astype(float)
        return (eta + rng.standard_normal((self.trials, *eta.shape)) > 0).sum(axis=0).astype(float)

    def rows(self, sampler, ops=None, numbers=range(6), ones=0):
        """``Rows`` as a fit gives them to a sampler. ones : how often the rows with these numbers had class 1."""
        n, times = len(numbers), np.array([ones, self.trials - ones])
        weight = np.outer(self.shares, np.repeat(times, n)).ravel()
        seen = weight > 0
        y = np.tile(np.repeat(np.array([1, 0], np.uint8), n), len(self.shares))[seen]
        X, weight = self.data[np.tile(numbers, 2 * len(self.shares))[seen]], weight[seen]
        if (weight == 1).all():
            weight = None
        elif is_whole(weight):  # others would be put together again
            X, y, weight = arrange(X, y, weight, sampler)
        of_columns = {"unpenalized": self.unpenalized, "standardize": self.standardize, "likelihood": self.likelihood}
        return Rows(X, y, True, ops or self.ops, ALONE, weight=weight, **of_columns)


PLAIN, SORTED, SOME = Given(), X[X[:, 0].argsort()], X * (abs(X) > 0.3)
UNITS = np.array([3.0, 0.5, 20.0])
SINGLE = X.astype(np.float32)
GIVEN = {
    "whole weights": Given(SORTED, SORTED, trials=3),
    "parts of rows": Given(shares=(0.1, 0.2, 0.3, 0.4)),
    "standardised": Given((X + 1) * UNITS, (X - X.mean(axis=0)) / X.std(axis=0), standardize=True),
    "sparse": Given(sparse.csr_array(SOME), SOME, sparse_cpu),
    "float32": Given(SINGLE, SINGLE.astype(float)),
}
MISREAD = {  # what a sampler takes them for when a weight or a unit is forgotten, or columns are mixed up
    "whole weights": {"shares": (1 / 3,)},
    "parts of rows": {"shares": (1.0,) * 4},
    "standardised": {"standardize": False},
    "sparse": {"data": sparse.csr_array(SOME[:, [1, 2, 0]])},
    "float32": {"data": SINGLE.ravel("F").reshape(6, 3)},
}


class RowsOfManyDataSets:
    """Each chain has its own y: every row by the kernels, for all values of y.

    sampler : as for ``Given.rows``. ``y`` (n_chains, 6), as of ``Given.redrawn``, is to be set.
    """

    bounds = np.arange(3)  # of two blocks, which the core does not take in one call where threads share them

    offset = groups = None
    quick = property(lambda self: self)

    def __init__(self, ops, given=PLAIN, sampler="hmc", takes_fused_calls=False):
        self.ops, self.given, self.takes_fused_calls = ops, given, takes_fused_calls
        self.threads = SimpleNamespace(n=2, run=ALONE.run)
        self.whole = given.rows(sampler, ops)  # of some data set
        self.n, self.columns, self.likelihood = self.whole.n, self.whole.columns, self.whole.likelihood
        self.n_own, self.prior_of_own = self.whole.n_own, self.whole.prior_of_own
        self.rows = [[self._row_alone(sampler, i, ones) for ones in range(given.trials + 1)] for i in range(6)]

    def _row_alone(self, sampler, i, ones):
        """Row i, whose columns are not taken for constant."""
        row = self.given.rows(sampler, self.ops, [i], ones)
        row.columns, row._translate = self.columns, self.ops.to_device(self.columns)
        return row

    def _sum(self, answers):
        """The sum over the rows of the answers for their y; answers(i, row) : a tuple of arrays (n_chains, ...)."""
        total = 0.0
        for i, kinds in enumerate(self.rows):
            for ones, row in enumerate(kinds):
                right = self.y[:, i] == ones
                parts = [np.where(right[(...,) + (None,) * (x.ndim - 1)], x, 0.0) for x in answers(i, row)]
                total = parts if total == 0.0 else [a + b for a, b in zip(total, parts, strict=True)]
        return total

    def score(self, beta):
        return self._sum(lambda i, row: row.score(beta))

    def line(self, *given):
        return self._sum(lambda i, row: (row.line(*given),))[0]

    def latent(self, beta, sweep, key):
        """Every observation has its own random numbers."""
        coef = self.columns.of_X(beta)
        sums = self._sum(
            lambda i, row: self.ops.latent(row.X, row.y, coef, row.bounds, sweep, key, ALONE, self.given.trials * i)
        )
        return self.columns.gradient(sums[0]), sums[1]

    @property
    def held(self):
        """For ``fused_of_many``; of rows that were seen once."""
        shares = self.given.shares
        X = self.given.data.repeat(len(shares), axis=0)
        X.flags.writeable = False
        weight = np.tile(shares, 6) if len(shares) > 1 else np.empty(0)
        return X, self.y.astype(np.uint8).repeat(len(shares), axis=1), weight


def fused_of_many(move):
    """``fused_line_moves`` for chains of which each has its own y."""

    def moved(*arguments):
        line_rows, coef, uniform, hold_uniforms, first, last, state = arguments
        fields = line_rows.given["source"].given
        source, y = record("FusedScoreRows", fields), fields["of_pass"][1]
        own = record("FusedLineRows", line_rows.given | {"source": source})
        for c in range(first, last):
            source.of_pass.y = y.ctypes.data + c * y.strides[0]
            move(own, coef, uniform, hold_uniforms, c, c + 1, state)

    return moved
