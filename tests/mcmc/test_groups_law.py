"""Rows with groups: the draws of every sampler have the law that quadrature gives, and what says so catches planted
errors."""

from functools import cache

import numpy as np
import pytest
from laws import ALONE
from scipy.special import logsumexp, ndtr
from whole_runs import ended, off, off_below

from skhorseshoe._backends import device
from skhorseshoe._backends._cpu.row_groups import RowGroups
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import group_moves
from skhorseshoe._mcmc.group_effects import GroupEffects
from skhorseshoe._mcmc.run import PRIOR_COORDINATES
from skhorseshoe._model import PROBIT

SIZES = 1, 2, 3, 5, 9, 4
SCALE, SLAB, WIDE = 0.7, 2.0, 1.5  # the prior bounds the intercept, so that a grid has room for its law
RNG = np.random.default_rng(5)
CODES = RNG.permutation(np.repeat(np.arange(len(SIZES)), SIZES)).astype(np.int32)
X = RNG.standard_normal((len(CODES), 1)) + 0.5 * CODES[:, None]
Y = (X[:, 0] - 1.5 + np.array([-1.0, 1.5, 0.0, 2.0, -1.5, 0.5])[CODES] + RNG.standard_normal(len(X)) > 0).astype(
    np.uint8
)
OFFSET = 0.8 * RNG.standard_normal(len(X))
WEIGHT = RNG.choice([0.5, 1.0, 2.0], len(X))
SHARES = 0.25, 0.5, 0.75

pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")


def cube(t):
    return t**3


# Of the grid: the intercept, the cube root of the coefficient, whose density has a peak at 0, and log s.
AXES = {"intercept": np.linspace(-8.5, 5.5, 57), "coef": np.linspace(-1.5, 1.7, 64), "log_s": np.linspace(-7, 5, 41)}


@cache
def exact(weighted, cdf=ndtr):
    """Probabilities of the points of the grid, and that the effect of each group is below zero, (n_groups,)."""
    intercept, root, log_s = np.meshgrid(*AXES.values(), indexing="ij")
    shape, at = root.shape, [one.ravel() for one in (intercept, cube(root), log_s)]
    t = np.linspace(-1, 1, 62)  # an even number: none is zero
    nodes = 6 * t * abs(t)  # of u / s, close to one another near zero
    of_nodes = abs(t) * np.exp(-(nodes**2) / 2)
    of_nodes = np.stack([of_nodes, of_nodes * (nodes < 0)])
    total = log_prior(*at) + 2 * np.log(abs(root.ravel()))
    below = np.empty((len(SIZES), len(total)))
    for g in range(len(SIZES)):
        likelihood = np.ones((len(nodes), len(total)))
        for i in np.flatnonzero(g == CODES):
            eta = OFFSET[i] + at[0] + at[1] * X[i, 0] + np.exp(at[2]) * nodes[:, None]
            likelihood *= cdf(eta if Y[i] else -eta) ** (WEIGHT[i] if weighted else 1.0)
        of_group, half = np.maximum(of_nodes @ likelihood, 1e-300)
        total, below[g] = total + np.log(of_group), half / of_group
    share = np.exp(total - logsumexp(total))
    return share.reshape(shape), below @ share


def quartiles(share):
    """Of the intercept, the coefficient and log s; (3, 3)."""
    out = []
    for axis, points in enumerate(AXES.values()):
        cumulated = np.cumsum(share.sum(axis=tuple({0, 1, 2} - {axis})))
        out.append(np.interp(SHARES, cumulated, points + (points[1] - points[0]) / 2))
    out[1] = cube(out[1])
    return out


def log_prior(intercept, coef, log_s):
    """Of a grid of points: the horseshoe's with a slab, whose scale lambda tau has the density of a product of two
    half-Cauchy variables."""
    log_x = np.linspace(-12, 8, 801)
    x = np.exp(log_x)
    mixing = np.log(np.where(abs(log_x) < 1e-6, 0.5, log_x / np.where(abs(log_x) < 1e-6, 1, x**2 - 1)) * x)
    points, place = np.unique(coef, return_inverse=True)
    horseshoe = logsumexp(mixing - log_x - (points[:, None] / x) ** 2 / 2, axis=1)
    anchored = (intercept + coef * X.mean()) / WIDE
    of_s = log_s - np.log1p((np.exp(log_s) / SCALE) ** 2)
    return horseshoe[place] - (coef / SLAB) ** 2 / 2 - anchored**2 / 2 + of_s


def run(sampler, n_iter, weighted=False, likelihood=PROBIT):
    """The draws of a run."""
    ops = device.resolve("cpu").ops
    how = {"offset": OFFSET, "groups": Groups(CODES, len(SIZES), SCALE), "weight": WEIGHT if weighted else None}
    rows = Rows(X, Y, True, ops, ALONE, likelihood=likelihood, **how)
    return ended(rows, sampler, n_iter, SLAB, WIDE).draws


def deviations(draws, weighted=False, cdf=ndtr):
    """By how many standard errors shares of the draws are off: below the quartiles of the intercept, the coefficient
    and s, and of each u below 0."""
    share, below = exact(weighted, cdf)
    quantities = draws.intercept, draws.coef[:, :, 0], np.log(draws.of_blocks[0].kept)
    of_each = [off_below(values, ends, SHARES) for values, ends in zip(quantities, quartiles(share), strict=True)]
    of_effects = [off(draws.of_blocks[0].effects[:, :, g] < 0, below[g]) for g in range(len(SIZES))]
    return np.concatenate([*of_each, of_effects])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "weighted"), [("hmc", False), ("hmc", True), ("gibbs", False), (PRIOR_COORDINATES, True)]
)
def test_draws_with_groups_have_the_law_that_quadrature_gives(sampler, weighted):
    assert abs(deviations(run(sampler, 2000, weighted), weighted)).max() < 4.5


def sums_of_others(right, groups, values):
    """A group has the sum over the rows of another one."""
    return np.roll(right(groups, values), 1, axis=0)


def jacobian_is_forgotten(right, *given):
    """The volume by which the intercept and tau grow with s is left out."""
    rest = right(*given)
    rest.n_free = 0
    return rest


def reference_follows_beta(right, block, beta):
    """The score of the reference is a multiple of that where beta is, which a trajectory changes."""
    loglik, score = right(block, beta)
    block.reference_score = 4.0 * score
    return loglik, score


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "owner", "name", "wrong", "n_iter"),
    [
        ("gibbs", RowGroups, "sums", sums_of_others, 250),
        ("hmc", group_moves, "BetaAndOthers", jacobian_is_forgotten, 250),
        ("hmc", GroupEffects, "begin_sweep", reference_follows_beta, 2000),
    ],
)
def test_quadrature_catches_errors_in_sweeps_with_groups(sampler, owner, name, wrong, n_iter, monkeypatch):
    right = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given: wrong(right, *given))
    assert abs(deviations(run(sampler, n_iter))).max() > 6.0


@pytest.mark.slow
@pytest.mark.parametrize("error", ["WIDTH_OF_STATE", "SQUARES_FORGOTTEN"])
def test_quadrature_catches_a_slice_whose_width_depends_on_the_effect_or_that_forgets_squares(error, plant):
    plant(error)
    assert abs(deviations(run("hmc", 2000))).max() > 6.0
