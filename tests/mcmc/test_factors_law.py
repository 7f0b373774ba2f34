"""Several factors of rows: the draws have the law that quadrature gives, crossed and nested, and what says so catches
planted errors."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from laws import ALONE
from scipy.special import logsumexp, ndtr
from whole_runs import ended, off, off_below

from skhorseshoe._backends import device
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import group_factors, group_moves
from skhorseshoe._mcmc.run import PRIOR_COORDINATES

SCALES, WIDE = (0.8, 0.6), 1.5
SHARES = 0.05, 0.25, 0.5, 0.75, 0.95
INTERCEPT, LOG_S = np.linspace(-7.5, 7.5, 31), np.linspace(-8, 5, 41)
_T = np.linspace(-1, 1, 40)  # an even number: none is zero
NODES, GAPS = 5.5 * _T * abs(_T), abs(_T)  # of effects over s, closer to one another near zero
_T = np.linspace(-1, 1, 80)
OF_FEW, GAPS_OF_FEW = 12 * _T**3, _T**2  # of the effects of the factor with two levels

pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")


class Case(NamedTuple):
    """Rows of an intercept alone, beside a column of zeros, with levels of two factors; the second has two."""

    first: np.ndarray
    second: np.ndarray
    y: np.ndarray
    offset: np.ndarray
    weight: np.ndarray | None = None


def cases():
    rng = np.random.default_rng(8)
    first, offset = np.repeat(np.arange(4), 5), 0.5 * rng.standard_normal(20)
    second = np.tile([0, 0, 1, 1, 1], 4)
    y = offset + np.array([1.0, -1.0, 0.3, 0.0])[first] + np.array([0.6, -0.4])[second] + rng.standard_normal(20) > 0
    weight = rng.choice([0.5, 1.0, 2.0], 20)
    return {
        "crossed": Case(first, second, y, offset),
        "crossed, with weights": Case(first, second, y, offset, weight),
        "nested": Case(first, first // 2, y, offset),
    }


CASES = cases()


@cache
def exact(name):
    """Of a case, probabilities of the points of the intercept, and of log s of both factors; and that effects of the
    second are below zero.

    Given the intercept and the effects of the second factor, levels of the first are independent."""
    case = CASES[name]
    intercept, log_s, v, node = np.meshgrid(INTERCEPT, LOG_S, OF_FEW, NODES, indexing="ij", sparse=True)
    at, of_nodes = intercept + v + np.exp(log_s) * node, GAPS * np.exp(-(NODES**2) / 2)
    total = -((intercept / WIDE) ** 2) / 2 + log_s - np.log1p((np.exp(log_s) / SCALES[0]) ** 2)
    for g in range(4):
        likelihood = [np.ones(at.shape), np.ones(at.shape)]  # of the rows of each level of the second factor
        for i in np.flatnonzero(case.first == g):
            probability = ndtr((case.offset[i] + at) * (1 if case.y[i] else -1))
            likelihood[case.second[i]] *= probability ** (1.0 if case.weight is None else case.weight[i])
        of_both = (likelihood[0] * of_nodes) @ np.swapaxes(likelihood[1], 2, 3)
        total = total + np.log(np.maximum(of_both, 1e-300))
    total = total + np.log(GAPS_OF_FEW)[:, None] + np.log(GAPS_OF_FEW)
    # The second scale, given its two effects.
    s = np.exp(LOG_S)
    squares = (OF_FEW[:, None] ** 2 + OF_FEW**2)[..., None]
    of_scale = LOG_S - np.log1p((s / SCALES[1]) ** 2) - 2 * LOG_S - squares / (2 * s**2)
    of_effects = logsumexp(total, axis=(0, 1))
    second = logsumexp(of_effects[..., None] + of_scale, axis=(0, 1))
    total = total + logsumexp(of_scale, axis=2)
    share = np.exp(total - logsumexp(total))
    shares = share.sum(axis=(1, 2, 3)), share.sum(axis=(0, 2, 3)), np.exp(second - logsumexp(second))
    below = [share.sum(axis=(0, 1, 2 + other))[OF_FEW < 0].sum() for other in (1, 0)]
    return shares, below


def run(name, sampler, n_iter):
    """The draws of a run at its end."""
    case = CASES[name]
    levels, codes = np.unique(np.stack([case.first, case.second], axis=1), axis=0, return_inverse=True)
    groups = Groups(codes.ravel().astype(np.int32), len(levels), SCALES, levels.astype(np.int32), ("first", "second"))
    more = {"offset": case.offset, "weight": case.weight, "groups": groups}
    rows = Rows(np.zeros((20, 1)), case.y.astype(np.uint8), True, device.resolve("cpu").ops, ALONE, **more)
    return ended(rows, sampler, n_iter, 2.0, WIDE).draws


def deviations(draws, name):
    """By how many standard errors shares of the draws are off: below quantiles of the intercept and log s, and of
    effects of the second factor below zero."""
    shares, below = exact(name)
    scale, effects = draws.of_blocks[0].kept, draws.of_blocks[0].effects
    quantities, found = (draws.intercept, *np.moveaxis(np.log(scale), 2, 0)), []
    for values, points, share in zip(quantities, (INTERCEPT, LOG_S, LOG_S), shares, strict=True):
        cumulated = np.cumsum(share)
        at = np.searchsorted(cumulated, SHARES)
        ends = points[at] + (points[1] - points[0]) / 2  # of intervals of the grid
        below_ends = cumulated[at] + (share[at + 1] - share[at]) / 24  # midpoint rule, with its first error
        found += off_below(values, ends, below_ends)
    return np.array(found + [off(effects[:, :, 4 + k] < 0, below[k]) for k in range(2)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler"), [(name, "hmc") for name in CASES] + [("crossed, with weights", PRIOR_COORDINATES)]
)
def test_draws_with_two_factors_have_the_law_that_quadrature_gives(name, sampler):
    assert abs(deviations(run(name, sampler, 2000), name)).max() < 4.5


def others_stay(right, *given):
    """The scales of other factors grow, and their prior is forgotten."""
    rest = right(*given)
    rest.others = []
    return rest


def their_prior_is_forgotten(right, shift, effects, ops, t, across):
    """What one factor gains, the other loses, whatever its scale."""
    _, theirs = shift.factors
    scale, theirs.scale = theirs.scale, 1e3 * theirs.scale
    right(shift, effects, ops, t, across)
    theirs.scale = scale


def prior_of_parents_is_forgotten(right, square):
    """The scale of parents moves as if it had a flat prior."""
    return 0.0 * square


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "owner", "attribute", "wrong"),
    [
        ("crossed", group_moves, "BetaAndOthers", others_stay),
        ("crossed", group_factors.Shift, "move", their_prior_is_forgotten),
        ("nested", group_factors, "log_half_cauchy", prior_of_parents_is_forgotten),
    ],
)
def test_quadrature_catches_errors_of_moves_between_factors(name, owner, attribute, wrong, monkeypatch):
    right = getattr(owner, attribute)
    monkeypatch.setattr(owner, attribute, lambda *given: wrong(right, *given))
    assert abs(deviations(run(name, "hmc", 2000), name)).max() > 6.0
