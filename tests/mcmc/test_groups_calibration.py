"""Simulation-based calibration (Talts et al. 2018): parameters are drawn from the prior and rows given them. Among the
draws from the posterior the rank of what the rows were made of is then uniform, whatever that is. Groups have 1 to 200
rows, and in every other set of rows an event is rare, or of three classes in order the upper ones. Fits by
the default sampler have the default length for one factor: burn-in until chains agree, draws until they suffice. Rows
have no weights, since a weighted likelihood is no law that y could be drawn from; ``test_groups_law.py`` has them."""

import numpy as np
import pytest
from laws import ALONE, repeated
from scipy.special import ndtr
from scipy.stats import invwishart
from whole_runs import check_uniform, ended, ranks

from skhorseshoe._backends import device
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.run import PRIOR_COORDINATES
from skhorseshoe._model import PROBIT
from skhorseshoe._model.ordered_probit import OrderedProbit

SIZES = 200, 40, 20, 10, 5, 3, 2, 2, 1, 1, 1, 1
SCALE, SLAB, TAU_0, RARE = 0.7, 2.0, 0.5, -2.3
WIDE = 0.7  # of a prior of the intercept that rows can be drawn from
N_DRAWN = 40  # draws that have a rank, evenly spaced in each chain
LENGTH = {"hmc": (4, 10_000, "auto", 400.0)}  # n_chains, n_iter, burn_in and target_ess of a default fit
SHORT, OF_MORE_EFFECTS = (4, 250, 150, None), (8, 150, 150, None)  # of other samplers; of slopes and a second factor
pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")
NAMES = "intercept", "within", "between", "log s", "u of 200 rows", "u of one row"
OF_SECOND = "log s of the second factor", "u of the second factor"
OF_SLOPES = "log s of slopes", "log s of the second factor", "correlation", "slope of 200 rows", "slope of one row"
OF_ORDER = (*OF_SLOPES, "second cut point")
N_SECOND, SECOND_SCALE = 6, 0.5


def of_prior(rng, mean, n_cuts=1):
    """Cut points, at the mean of the columns those of an intercept in order, coefficients and s. mean : of columns."""
    while True:
        lambdas, tau = abs(rng.standard_cauchy(len(mean))), TAU_0 * abs(rng.standard_cauchy())
        coef = lambdas * tau * rng.standard_normal(len(mean))
        if np.log(rng.random()) < -((coef / SLAB) ** 2).sum() / 2:
            return np.sort(WIDE * rng.standard_normal(n_cuts)) + coef @ mean, coef, SCALE * abs(rng.standard_cauchy())


def second_factor(rng, codes):
    """``Groups`` with a second factor, crossed with the first, and what it adds to rows; its s and first effect."""
    second, s = rng.integers(0, N_SECOND, len(codes)), SECOND_SCALE * abs(rng.standard_cauchy())
    levels, combined = np.unique(np.stack([codes, second], axis=1), axis=0, return_inverse=True)
    scales, names, u = (SCALE, SECOND_SCALE), ("first", "second"), s * rng.standard_normal(N_SECOND)
    groups = Groups(combined.ravel().astype(np.int32), len(levels), scales, levels.astype(np.int32), names)
    return groups, u[second], [s, u[0]]


def slopes_and_second_factor(rng, codes, x):
    """``Groups`` with slopes of a column x of the first of two crossed factors, what they add to rows, the deviation
    and effects of its groups, and the rest of ``OF_SLOPES``."""
    a_inv = rng.gamma(0.5, SCALE**2, 2)
    covariance = invwishart.rvs(3, 4 * np.diag(a_inv), random_state=rng)
    b = rng.standard_normal((len(SIZES), 2)) @ np.linalg.cholesky(covariance).T
    second, s = rng.integers(0, N_SECOND, len(codes)), SECOND_SCALE * abs(rng.standard_cauchy())
    levels = np.stack([codes, codes, second], axis=1).astype(np.int32)
    names, scales = ("first", "first:x", "second"), (SCALE, SCALE, SECOND_SCALE)
    groups = Groups(np.arange(len(codes), dtype=np.int32), len(codes), scales, levels, names, (None, 0, None))
    of_rows = b[codes, 0] + b[codes, 1] * (x - x.mean()) + s * rng.standard_normal(N_SECOND)[second]
    deviations = np.sqrt(np.diag(covariance))
    more = [deviations[1], s, covariance[0, 1] / deviations.prod(), b[0, 1], b[-1, 1]]
    return groups, of_rows, deviations[0], b[:, 0], more


def ranks_of(seed, sampler, kind=""):
    """For each of ``NAMES``, and of ``OF_SECOND``, ``OF_SLOPES`` or ``OF_ORDER``, where what rows were made of is among
    its draws, in (0, 1)."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES)).astype(np.int32)
    X = rng.standard_normal((len(codes), 2))
    X[:, 1] = rng.standard_normal(len(SIZES))[codes] + 0.7
    has_slopes, is_ordered = "slopes" in kind, kind == "slopes, classes in order"
    cuts, coef, s = of_prior(rng, X.mean(axis=0), 1 + is_ordered)
    u = s * rng.standard_normal(len(SIZES))
    offset = rng.standard_normal(len(codes)) / 2 + RARE * (seed % 2)
    groups, of_second, more = Groups(codes, len(SIZES), SCALE), 0.0, []
    if kind == "second factor":
        groups, of_second, more = second_factor(rng, codes)
    if has_slopes:
        groups, of_second, s, u, more = slopes_and_second_factor(rng, codes, X[:, 0])
        of_second = of_second - u[codes]
    eta = offset + X @ coef + u[codes] + of_second
    y = (rng.random((1, len(codes))) < ndtr(eta - cuts[:, None])).sum(axis=0).astype(np.uint8)
    likelihood = OrderedProbit(3) if is_ordered else PROBIT
    rows = Rows(X, y, True, device.resolve("cpu").ops, ALONE, offset=offset, groups=groups, likelihood=likelihood)
    n_chains, n_iter, burn_in, target_ess = OF_MORE_EFFECTS if kind else LENGTH.get(sampler, SHORT)
    more_of_run = {"tau_0": TAU_0, "key": rng.integers(2**32, size=2, dtype=np.uint32), "target_ess": target_ess}
    drawn = ended(rows, sampler, n_iter, SLAB, WIDE, burn_in=burn_in, n_chains=n_chains, **more_of_run).draws
    n, (*of_cuts, of_groups) = drawn.n, drawn.of_blocks
    effects = np.moveaxis(of_groups.effects[:, :n], 2, 0)
    scale, *others = np.moveaxis(of_groups.kept[:, :n].reshape(n_chains, n, -1), 2, 0)
    ours = [drawn.intercept[:, :n], *np.moveaxis(drawn.coef[:, :n], 2, 0), scale, *effects[[0, len(SIZES) - 1]]]
    ours += [*others, effects[len(SIZES)]] if kind else []
    ours += [effects[2 * len(SIZES) - 1]] if has_slopes else []
    ours += [one.kept[:, :n, 0] - drawn.intercept[:, :n] for one in of_cuts]
    return ranks(ours, [-cuts[0], *coef, s, u[0], u[-1], *more, *cuts[1:]], N_DRAWN // n_chains, rng)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "n_sets", "kind"),
    [
        ("hmc", 40, ""),
        ("gibbs", 40, ""),
        (PRIOR_COORDINATES, 24, ""),
        ("hmc", 40, "second factor"),
        ("hmc", 40, "slopes"),
        ("hmc", 20, "slopes, classes in order"),
    ],
)
def test_ranks_are_uniform(sampler, n_sets, kind):
    more = {"second factor": OF_SECOND, "slopes": OF_SLOPES, "slopes, classes in order": OF_ORDER}.get(kind, ())
    check_uniform([ranks_of(seed, sampler, kind) for seed in range(repeated(n_sets, 200))], (*NAMES, *more))
