"""Groups where their scale s is hardly known: few groups, groups of one class, s near zero and large. Draws of every
sampler have the law of s and of the coefficient that quadrature gives, out to the tails."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from laws import ALONE
from scipy.interpolate import PchipInterpolator
from scipy.special import log_ndtr, logsumexp
from whole_runs import ended, off_below

from skhorseshoe._backends import device
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import group_moves
from skhorseshoe._mcmc.run import PRIOR_COORDINATES
from skhorseshoe.diagnostics import rhat

SLAB = 1.0
SHARES = 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98
COEF = np.linspace(-1.6, 1.6, 64) ** 3  # the cube root is even, as the density has a peak at 0
LOG_S = np.linspace(-12, 12, 161)
pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")


class Case(NamedTuple):
    """Rows of one column in groups, without an intercept."""

    x: np.ndarray
    y: np.ndarray
    codes: np.ndarray
    scale: float = 1.0  # of the prior of s
    offset: np.ndarray | None = None
    weight: np.ndarray | None = None


def cases():
    rng = np.random.default_rng(4)
    x, sixes, fours = 0.5 * rng.standard_normal(24), np.repeat(np.arange(2), 6), np.repeat(np.arange(6), 4)
    one_class, mixed = np.isin(fours, [0, 1, 2]), np.array([1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0])
    one_class[0] = False
    many, few = np.repeat(np.arange(20), 5), rng.integers(0, 12, 40)
    z, of_few, offset = rng.standard_normal(100), 1.5 * rng.standard_normal(12), rng.standard_normal(40)
    few = np.unique(few, return_inverse=True)[1]
    y = offset + of_few[few] + rng.standard_normal(40) > 0
    of_rows = {"offset": offset, "weight": rng.choice([1.0, 2.0, 3.0], 40)}
    return {
        "all groups but one of one class": Case(x, one_class, fours),
        "four groups of one class, a narrow prior": Case(x[:12], fours[:12] % 2, np.repeat(np.arange(4), 3), 0.3),
        "two groups": Case(x[:12], mixed, sixes),
        "one group": Case(x[:12], mixed, 0 * sixes),
        "s near zero": Case(z, z + 2.0 * rng.standard_normal(100) > 0, many),
        "offset and weights": Case(z[:40], y, few, 1.0, **of_rows),
        "separated within groups": Case(
            z[:40], z[:40] + 3.0 * np.repeat(of_few, 4)[:40] > 0, np.repeat(np.arange(10), 4)
        ),
        "far offset": Case(z[:40], y, few, 3.0, offset=3.0 * offset + 2.0),
    }


CASES = cases()


@cache
def quantiles(name):
    """Of the coefficient and of log s, at ``SHARES``; (2, 7)."""
    case, s = CASES[name], np.exp(LOG_S)
    sign = np.where(case.y, 1.0, -1.0)
    offset = 0.0 * sign if case.offset is None else case.offset
    weight = 1.0 + 0.0 * sign if case.weight is None else case.weight
    total = np.zeros((len(COEF), len(s)))
    for k, scale in enumerate(s):
        finest = min(0.05, scale / 20)  # of nodes about zero; they are ever farther apart, out to 9 s
        end = np.arcsinh(9 * scale / finest)
        t = end * np.linspace(-1, 1, 121)
        u = finest * np.sinh(t)
        log_prior = np.log(finest * np.cosh(t) * end / scale) - (u / scale) ** 2 / 2
        for g in np.unique(case.codes):
            i = np.flatnonzero(case.codes == g)
            eta = offset[i, None, None] + case.x[i, None, None] * COEF[:, None] + u
            terms = weight[i, None, None] * log_ndtr(sign[i, None, None] * eta)
            total[:, k] += logsumexp(terms.sum(axis=0) + log_prior, axis=1)
    total += log_horseshoe(COEF)[:, None] + LOG_S - np.log1p((s / case.scale) ** 2)
    share = np.exp(total - logsumexp(total))
    out = []
    for axis, points in enumerate((np.cbrt(COEF), LOG_S)):
        ends, fine = points + (points[1] - points[0]) / 2, np.linspace(points[0], points[-1], 20_000)
        out.append(np.interp(SHARES, PchipInterpolator(ends, np.cumsum(share.sum(axis=1 - axis)))(fine), fine))
    return out[0] ** 3, out[1]


def log_horseshoe(coef):
    """Of a grid whose cube roots are even: with the slab, and lambda tau integrated out, which has the density of a
    product of two half-Cauchy variables."""
    log_x = np.linspace(-14, 10, 800)  # none is 0
    mixing = np.log(log_x / np.expm1(2 * log_x))
    log = logsumexp(mixing - (coef[:, None] / np.exp(log_x)) ** 2 / 2, axis=1)
    return log - (coef / SLAB) ** 2 / 2 + np.log(np.cbrt(coef) ** 2)


def run(name, sampler, n_iter=2000):
    """The draws of a run. "gibbs" has no weights, but rows that repeat."""
    case, ops = CASES[name], device.resolve("cpu").ops
    if sampler == "gibbs" and case.weight is not None:
        times = case.weight.astype(int)
        case = Case(*(np.repeat(values, times) for values in case[:3]), case.scale, np.repeat(case.offset, times))
    groups = Groups(case.codes.astype(np.int32), case.codes.max() + 1, case.scale)
    how = {"offset": case.offset, "groups": groups, "weight": case.weight}
    rows = Rows(case.x[:, None], case.y.astype(np.uint8), False, ops, ALONE, **how)
    return ended(rows, sampler, n_iter, SLAB, 1.0).draws


def deviations(name, draws):
    """By how many standard errors shares of the draws of the coefficient and of log s are off; (14,)."""
    both = zip((draws.coef[:, :, 0], np.log(draws.of_blocks[0].kept)), quantiles(name), strict=True)
    return np.concatenate([off_below(values, ends, SHARES) for values, ends in both])


def each_case():
    """The first case with the default sampler runs always, the others are slow."""
    marks = ([] if name.startswith("all") and sampler == "hmc" else pytest.mark.slow for name, sampler in every())
    return [pytest.param(*one, marks=mark) for one, mark in zip(every(), marks, strict=True)]


def every():
    return [(name, sampler) for name in CASES for sampler in ("hmc", "gibbs", PRIOR_COORDINATES)]


@pytest.mark.parametrize(("name", "sampler"), each_case())
def test_the_scale_of_groups_has_its_law_out_to_the_tails(name, sampler):
    draws = run(name, sampler, 1000 if sampler == PRIOR_COORDINATES else 2000)  # its sweeps take longest
    assert abs(deviations(name, draws)).max() < 4.5
    assert rhat(np.log(draws.of_blocks[0].kept)) < 1.01


@pytest.mark.slow
def test_quadrature_sees_a_volume_that_one_group_forgets(monkeypatch):
    right = group_moves.along_line

    def forgetful(r, *given):
        *scale_and_c, terms = right(r, *given)
        return *scale_and_c, terms + r

    monkeypatch.setattr(group_moves, "along_line", forgetful)
    name = "four groups of one class, a narrow prior"
    assert abs(deviations(name, run(name, "hmc", 250))).max() > 6.0
