"""Ordered classes in groups of rows, in small extreme tables: draws of the coefficient or intercept, of the gap of the
cut points and of s have the law that quadrature gives, out to the tails; and what says so catches planted errors."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from group_laws import check_density_and_score, let_follow
from laws import ALONE, KEY
from mcmc.test_groups_extremes import SHARES, SLAB, log_horseshoe
from scipy.interpolate import PchipInterpolator
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, ndtr
from scipy.stats import multivariate_t
from whole_runs import ended, off_below

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends import device
from skhorseshoe._backends.constants import LINE_PROPOSALS
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import cut_points
from skhorseshoe._mcmc.group_effects import GroupEffects
from skhorseshoe._mcmc.known_predictors import Given, KnownPredictors
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import PRIOR_COORDINATES, Problem
from skhorseshoe._model.ordered_probit import OrderedProbit
from skhorseshoe.diagnostics import mcse_mean, rhat

WIDE = 1.5  # the prior of the cut points bounds them, so that a grid has room
ROOTS, INTERCEPTS = np.linspace(-1.6, 1.6, 64), np.linspace(-8.5, 8.5, 64)
LOG_S, NODES = np.linspace(-9, 9, 73), 81
pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")


class Case(NamedTuple):
    """Rows of three classes: of one column without an intercept, or of an intercept and a column of zeros."""

    y: np.ndarray
    codes: np.ndarray
    x: np.ndarray | None = None  # None for an intercept
    scale: float = 1.0  # of the prior of s
    offset: np.ndarray | None = None
    weight: np.ndarray | None = None
    least: float = -4.0  # of the logarithm of the gap of the cut points

    @property
    def log_gaps(self):
        return np.linspace(self.least, 2.3, 40)


def cases():
    rng = np.random.default_rng(7)
    x, fours, threes = 0.5 * rng.standard_normal(24), np.repeat(np.arange(6), 4), np.repeat(np.arange(4), 3)
    nearly = np.repeat([0, 0, 1, 1, 2, 2], 4)
    nearly[0] = 2
    rare, mixed = np.where(x + rng.standard_normal(24) > 0, 2, 0), rng.integers(0, 3, 24)
    rare[5] = 1
    of_rows = {"offset": rng.standard_normal(24), "weight": rng.choice([0.5, 1.0, 2.0], 24)}
    z = 0.7 * rng.standard_normal(48)
    return {
        "an intercept, few rows": Case(mixed[:9], np.repeat(np.arange(3), 3)),
        "all groups but one of one class": Case(nearly, fours, x),
        "a row of the middle class": Case(rare, fours, x, 0.5, least=-9.0),
        "four groups of one class, a narrow prior": Case(np.repeat([0, 1, 2, 1], 3), threes, x[:12], 0.3),
        "one group": Case(mixed[:8], 0 * fours[:8], x[:8]),
        "s near zero": Case(
            np.digitize(z + rng.standard_normal(48), [0, 0.8]), np.repeat(np.arange(12), 4), z, least=-2.0
        ),
        "offset and weights": Case(mixed, fours, x, 1.0, **of_rows),
        "an intercept, groups of one class": Case(nearly, fours, None, 3.0),
    }


CASES = cases()


def likelihood(eta, y, gap):
    """P(y) of a row."""
    if y == 0:
        return ndtr(-eta)
    return ndtr(eta - gap) if y == 2 else ndtr(gap - eta) - ndtr(-eta)


@cache
def quantiles(name):
    """Of the coefficient or intercept, of log s and of the logarithm of the gap, at ``SHARES``; (3, 7)."""
    case = CASES[name]
    n, at = len(case.y), INTERCEPTS if case.x is None else ROOTS**3
    x = np.ones(n) if case.x is None else case.x
    offset, weight = (np.full(n, k) if v is None else v for k, v in ((0.0, case.offset), (1.0, case.weight)))
    total, rows = np.zeros((len(at), len(LOG_S), len(case.log_gaps))), [*zip(x, offset, case.y, strict=True)]
    for k, s in enumerate(np.exp(LOG_S)):
        finest = min(0.1, s / 10)  # of nodes about zero; they are ever farther apart, out to 9 s
        end = np.arcsinh(9 * s / finest)
        t = end * np.linspace(-1, 1, NODES)
        u, nodes = finest * np.sinh(t), finest * np.cosh(t) * end / s
        nodes = nodes * np.exp(-((finest * np.sinh(t) / s) ** 2) / 2)
        for j, gap in enumerate(np.exp(case.log_gaps)):
            of_row = {(a, b, c): likelihood(b + a * at[:, None] + u, c, gap) for a, b, c in {*rows}}
            for g in np.unique(case.codes):
                product = np.ones((len(at), NODES))
                for i in np.flatnonzero(g == case.codes):
                    product *= of_row[rows[i]] ** weight[i]
                total[:, k, j] += np.log(np.maximum(product @ nodes, 1e-300))
    gap = np.exp(case.log_gaps)
    if case.x is None:  # the prior of both cut points, -a and gap - a
        total += -(at[:, None, None] ** 2 + (gap - at[:, None, None]) ** 2) / (2 * WIDE**2)
    else:
        total += log_horseshoe(at)[:, None, None] - gap**2 / (2 * WIDE**2)
    total += (LOG_S - np.log1p((np.exp(LOG_S) / case.scale) ** 2))[:, None] + case.log_gaps
    share, out = np.exp(total - logsumexp(total)), []
    for axis, points in enumerate((at if case.x is None else ROOTS, LOG_S, case.log_gaps)):
        ends, fine = points + (points[1] - points[0]) / 2, np.linspace(points[0], points[-1], 20_000)
        cumulated = np.cumsum(share.sum(axis=tuple({0, 1, 2} - {axis})))
        out.append(np.interp(SHARES, PchipInterpolator(ends, cumulated)(fine), fine))
    out[0] = out[0] if case.x is None else out[0] ** 3
    return out


def run(name, sampler, n_iter=1000):
    """The draws of a run."""
    case, ops = CASES[name], device.resolve("cpu").ops
    groups = Groups(case.codes.astype(np.int32), case.codes.max() + 1, case.scale)
    how = {"offset": case.offset, "groups": groups, "weight": case.weight, "likelihood": OrderedProbit(3)}
    X = np.zeros((len(case.y), 1)) if case.x is None else case.x[:, None]
    rows = Rows(X, case.y.astype(np.uint8), case.x is None, ops, ALONE, **how)
    return ended(rows, sampler, n_iter, SLAB, WIDE).draws


def deviations(name, draws):
    """By how many standard errors shares of the draws are off; (21,)."""
    cuts, groups = draws.of_blocks
    first = draws.intercept if CASES[name].x is None else draws.coef[..., 0]
    all_three = zip((first, np.log(groups.kept), np.log(cuts.kept[..., 0])), quantiles(name), strict=True)
    return np.concatenate([off_below(values, ends, SHARES) for values, ends in all_three])


def each_case():
    """The first case with the default sampler runs always, the others are slow."""
    every = [(name, sampler) for name in CASES for sampler in ("hmc", PRIOR_COORDINATES)]
    return [pytest.param(*one, marks=[pytest.mark.slow] if k else []) for k, one in enumerate(every)]


@pytest.mark.parametrize(("name", "sampler"), each_case())
def test_draws_have_the_law_of_quadrature_out_to_the_tails(name, sampler):
    draws = run(name, sampler)
    off = deviations(name, draws)
    print(name, sampler, round(abs(off).max(), 2))
    assert abs(off).max() < 4.5
    assert rhat(np.log(draws.of_blocks[1].kept)) < 1.01


def prior_of_cuts_is_forgotten(right, *_):
    """Where cut points grow, their prior is left out."""
    return 0.0


def cuts_of_before(right, block, *law):
    """Effects move given the cut points of the sweep before."""
    given = right(block, *law)
    block.before, before = given.own, getattr(block, "before", given.own)
    return given._replace(own=before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [(cut_points.OwnParameters, "energy", prior_of_cuts_is_forgotten), (GroupEffects, "given_others", cuts_of_before)],
)
def test_quadrature_catches_errors_about_cut_points(owner, name, wrong, monkeypatch):
    right = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given: wrong(right, *given))
    assert is_off()


@pytest.mark.slow
def test_quadrature_catches_cut_points_that_stay_where_coefficients_grow(plant):
    plant("CUTS_STAY")
    assert is_off()


def is_off():
    """Whether quadrature tells draws with an error."""
    case = "an intercept, few rows"
    return abs(deviations(case, run(case, "hmc", 250))).max() > 6.0


def test_what_a_sampler_is_told_is_a_density_with_its_gradient_along_the_map(seed):
    """And where s and coefficients grow together, effects follow as they do along the map."""
    rng, m, n, law = np.random.default_rng(seed), 3, 300, OrderedProbit(4)
    codes, X, y = rng.integers(0, 12, n).astype(np.int32), rng.standard_normal((n, 2)) + 0.5, rng.integers(0, 4, n)
    offset, weight = rng.standard_normal(n), rng.uniform(0.5, 2, n)
    how = {"offset": offset, "weight": weight, "groups": Groups(codes, 12, 1.0), "likelihood": law}
    rows = Rows(X, y.astype(np.uint8), True, device.resolve("cpu").ops, ALONE, **how)
    problem = Problem(rows, FixedPrior(rows.columns, SLAB, WIDE), 1.0, KEY)
    problem = cut_points.CutPoints(problem, m).given(problem)
    block, beta = GroupEffects(problem, m), 0.3 * rng.standard_normal((m, 5))
    let_follow(block, beta)

    def density(at):
        effects, coef = block.at(at), rows.columns.of_X(at[:, :3])
        eta = X @ coef[:, :2].T + coef[:, 2] + offset[:, None] + effects[codes]
        own = np.cumsum(np.exp(at[:, 3:]), axis=1)
        logs = law.log_density_of_class(eta, np.broadcast_to(y[:, None], eta.shape), own)
        at_mean = own - (at[:, :3] @ np.append(rows.columns.mean, 1.0))[:, None]
        of_cuts = at[:, 3:].sum(axis=1) - (at_mean**2).sum(axis=1) / (2 * WIDE**2)
        return weight @ logs + of_cuts - (effects**2).sum(axis=0) / (2 * block.scale**2)

    there = beta + 0.1 * rng.standard_normal(beta.shape)
    direction = check_density_and_score(block.rows, density, there, rng, rtol=5e-3, atol=0.3)
    direction[:, 3:] = 0.0
    got = block.rows.holding(there[:, 3:]).line(there[:, :3], direction[:, :3], np.array([[0.5, -1.0]] * m))
    want = [density(there + k * direction) - there[:, 3:].sum(axis=1) for k in (0.5, -1.0)]
    np.testing.assert_allclose(got, np.stack(want, axis=1), rtol=1e-6)
    c, (factor,) = rng.uniform(0.5, 2, m), block.factors
    grown = block.own.grown(there, c)
    np.testing.assert_allclose(block.own.cut_points(grown), c[:, None] * block.own.cut_points(there))
    followed = factor.map.followed(grown) - factor.map.followed(block.point[None])
    linear, held, slope = block.followed_beside(factor, there)
    np.testing.assert_allclose(c * linear - held + np.log(c) * slope, followed, atol=1e-5)
    for n_blocks in (1, 3):
        check_step_of_scale(block, there, c, n_blocks)


def check_step_of_scale(block, beta, c, n_blocks):
    """After a step to c beta and another s, what lines hold there is what they held, and the log-likelihood is that of
    the rows. n_blocks : of rows; for one, a call of the core is a whole step."""
    (factor,), m, effects, known = block.factors, len(beta), block.effects.copy(), KnownPredictors()
    factor.row_groups.bounds = np.linspace(0, block.rows.n, n_blocks + 1).astype(np.int64)
    scale, factors, others = np.ones((3, 1 + LINE_PROPOSALS, m))
    scale[0], scale[1:], factors[1:], others[1:] = block.scale, 1.5 * block.scale, c, 1e6
    known.begin(beta, block.rows.predictors(beta))
    factor.lines.hold(block.followed_beside(factor, beta), effects, scale[0])
    held, given = factor.lines.standard.copy(), block.given_others(factor, known, effects)
    taken, loglik = factor.lines.step(given, scale, factors, others, np.full(m, 0.5), effects)
    assert (taken == 1).all()
    grown = block.own.grown(beta, c)
    known.begin(grown, block.rows.predictors(grown))
    at_end = factor.row_groups.logliks(block.given_others(factor, known, effects), effects, np.ones(m, bool))
    np.testing.assert_allclose(loglik, at_end, rtol=1e-9)
    factor.lines.hold(block.followed_beside(factor, grown), effects, scale[1])
    np.testing.assert_allclose(factor.lines.standard, held, atol=1e-4)


def test_curvature_of_rows_is_the_derivative_of_their_slope():
    """From the middle of a class to far tails, of classes as narrow as 1e-6; and sums over groups are of slopes."""
    law, own, eta = OrderedProbit(5), np.array([[1e-6, 0.5, 4.0]]), np.tile(np.linspace(-30, 30, 241), 5)
    y, codes, h = np.repeat(np.arange(5), 241).astype(np.uint8), np.arange(1205, dtype=np.int32), 1e-4
    ops = device.resolve("cpu").ops
    groups = ops.RowGroups(y, np.empty(0), None, codes, 1205, np.dtype(float), np.array([0, 1205]), ALONE, law)
    one = np.ones(1)
    curvature, slope = groups.curvature(Given(eta[:, None], one, own), np.zeros((1205, 1)))
    low, high = (groups.curvature(Given((eta + by)[:, None], one, own), np.zeros((1205, 1)))[1] for by in (-h, h))
    np.testing.assert_allclose(curvature, (low - high) / (2 * h), atol=3e-6)
    total = groups.logliks(Given(eta[:, None], one, own), np.zeros((1205, 1)), np.array([True]))
    logs = law.log_density_of_class(eta, y.astype(int), np.tile(own, (1205, 1)))
    np.testing.assert_allclose(total, logs.sum(), rtol=1e-10)
    assert (slope[:241] < 0).all()


# Ratings of the bitterness of wine by nine judges, "wine" of R's ordinal (Randall 1989, Biometrical Journal 31, 711).
# Each judge had four cold ones and four warm ones, of which the last two had contact with skins.
WINE = "233444551213235423325544323232532343333332322454112223232223333412323244"


def wine():
    """Temperature and contact, ratings from 0 on, judges."""
    one = np.array([(warm, contact) for warm in (0.0, 1.0) for contact in (0.0, 0.0, 1.0, 1.0)])
    return np.tile(one, (9, 1)), np.array([int(rating) - 1 for rating in WINE]), np.repeat(np.arange(9), 8)


def marginal_loglik(at, cdf):
    """The log-likelihood, u integrated out by quadrature, at rows of: the first cut point, logarithms of gaps, two
    coefficients, log s; (m,)."""
    X, y, _ = wine()
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    cuts = np.cumsum(np.hstack([at[:, :1], np.exp(at[:, 1:4])]), axis=1)
    cuts = np.hstack([np.full((len(at), 1), -np.inf), cuts, np.full((len(at), 1), np.inf)])
    eta = (at[:, 4:6] @ X.T)[..., None] + np.exp(at[:, 6])[:, None, None] * nodes  # (m, n, nodes)
    p = cdf(cuts[:, y + 1, None] - eta) - cdf(cuts[:, y, None] - eta)
    by_judge = np.log(np.maximum(p, 1e-300)).reshape(len(at), 9, 8, -1).sum(axis=2)
    return logsumexp(by_judge, axis=2, b=weights / weights.sum()).sum(axis=1)


def estimates(cdf):
    """The maximum of the likelihood, and minus its inverse second derivatives, nearly."""
    start = np.array([-1.0, 0.5, 0.5, 0.5, 1.0, 1.0, 0.0])
    return minimize(lambda at: -marginal_loglik(at[None], cdf)[0], start, method="BFGS")


@pytest.mark.slow
def test_wine_has_the_estimates_that_are_published_and_the_posterior_of_weighted_draws():
    """clmm(rating ~ temp + contact + (1 | judge)) with the logit link (Christensen, vignette of ordinal): 3.063, 1.835,
    deviation of judges 1.131, log-likelihood -81.57, by Laplace's method. With the probit link and our prior, flat but
    for s, the same quadrature weights draws of a t distribution."""
    logit = estimates(expit)
    np.testing.assert_allclose(
        [*logit.x[4:6], np.exp(logit.x[6]), -logit.fun], [3.063, 1.835, 1.131, -81.57], rtol=4e-3
    )
    probit, rng = estimates(ndtr), np.random.default_rng(0)
    t = multivariate_t(probit.x, 1.7 * probit.hess_inv, df=5, seed=rng)
    at = t.rvs(3000)
    log = marginal_loglik(at, ndtr) + at[:, 1:4].sum(axis=1) + at[:, 6] - np.log1p(np.exp(2 * at[:, 6])) - t.logpdf(at)
    weight = np.exp(log - logsumexp(log))
    assert 1 / (weight**2).sum() > 600
    X, y, judge = wine()
    model = HorseshoeProbitClassifier(ordered=True, unpenalized=[0, 1], random_state=0, target_ess=1000)
    model.fit(X, y, groups=judge)
    cuts = model.cut_points_draws_
    ours = [cuts[..., 0], *np.moveaxis(np.log(np.diff(cuts, axis=2)), 2, 0), *np.moveaxis(model.coef_draws_, 2, 0)]
    for mine, values in zip([*ours, np.log(model.group_scale_draws_)], at.T, strict=True):
        for one, other in ((mine, values), (mine**2, values**2)):
            mean = weight @ other
            error = np.hypot(mcse_mean(one), np.sqrt(weight**2 @ (other - mean) ** 2))
            assert abs(one.mean() - mean) < 4.5 * error
    assert (abs(model.coef_[0] - probit.x[4:6]) < 0.35 * model.coef_draws_.std(axis=(0, 1))).all()
