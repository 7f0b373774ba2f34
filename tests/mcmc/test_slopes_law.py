"""Slopes of groups: the draws have the law of plain data augmentation, extreme tables and ordered classes too, and what
says so catches planted errors; the prior is that of Huang & Wand (2013)."""

from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from laws import ALONE
from scipy.special import ndtr, ndtri
from scipy.stats import invwishart, kstest, t
from whole_runs import ended

from skhorseshoe._backends import device
from skhorseshoe._backends._cpu.group_lines import CovarianceLines
from skhorseshoe._backends._cpu.row_groups import RowGroups
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import group_slopes
from skhorseshoe._mcmc.cut_points import OwnParameters
from skhorseshoe._mcmc.group_covariance import inverse, log_prior
from skhorseshoe._mcmc.group_effects import GroupEffects
from skhorseshoe._mcmc.run import PRIOR_COORDINATES
from skhorseshoe._model import PROBIT
from skhorseshoe._model.ordered_probit import OrderedProbit
from skhorseshoe.diagnostics import ess_bulk

SCALES, WIDE, N_CHAINS = (0.6, 0.4), 1.5, 16
SHARES = 0.05, 0.25, 0.5, 0.75, 0.95
N_REPEATED, N_SWEEPS, EVERY = 600, 1320, 50  # chains of data augmentation, sweeps of each, and between their draws

pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")


def case(name):
    """Codes of groups, a column, labels and weights of few rows."""
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(3), 6)
    x = rng.standard_normal(18) + 0.8 * (codes - 1)
    y = 0.3 + np.array([1, -1, 0.2])[codes] * (1 + 0.8 * x) + rng.standard_normal(18) > 0
    weight = rng.choice([1.0, 2.0], 18) if name == "weights" else None
    if name == "a group of one class":
        y[codes == 0] = True
    if name == "one class":
        y[:] = True
    if name == "groups of two rows":
        codes, x, y = codes[::3], x[::3], y[::3]
    if name in ORDERED:
        y = codes if name == "a class for each group" else np.digitize(x + rng.standard_normal(18), [-0.5, 0.7])
        weight = rng.choice([1.0, 2.0], 18) if name == "classes in order, weights" else None
    return codes, x, y.astype(np.uint8), weight


ORDERED = "classes in order, weights", "a class for each group"
CASES = "both classes", "weights", "a group of one class", "one class", "groups of two rows", *ORDERED


def normal_between(rng, mean, low, high):
    """Draws of normals between ends, by the tail on the side of zero that keeps digits."""
    side = np.where(low + high > 2 * mean, -1.0, 1.0)
    first, last = ndtr(side * (low - mean)), ndtr(side * (high - mean))
    return mean + side * ndtri(first + rng.random(mean.shape) * (last - first))


@cache
def expected(name):
    """Draws (N_REPEATED, draws, 7 or 8) of intercept and slope, effect and slope of the first group, log deviations and
    Fisher's transformed correlation, and of three classes the logarithm of the second cut point, the first being 0, by
    data augmentation in NumPy from as many starts in the prior."""
    codes, x, y, weight = case(name)
    number = np.ones(len(y), int) if weight is None else weight.astype(int)
    codes, x, y = (np.repeat(values, number) for values in (codes, x, y))
    rng, m = np.random.default_rng(4), N_REPEATED
    sd = x.std()
    z, scales = np.column_stack([np.ones(len(x)), (x - x.mean()) / sd]), np.array(SCALES) * [1, sd]
    q, n = 2, codes.max() + 1
    design = np.zeros((len(x), 2 + 2 * n))
    design[:, :2] = z
    for g in range(n):
        design[codes == g, 2 + 2 * g : 4 + 2 * g] = z[codes == g]
    a_inv = rng.gamma(0.5, scales**2, (m, q))
    omega = np.stack([np.linalg.inv(invwishart.rvs(3, 4 * np.diag(one), random_state=rng)) for one in a_inv])
    theta, kept, gram = np.zeros((m, 2 + 2 * n)), [], design.T @ design
    ordered, cut = name in ORDERED, np.ones((m, 1))
    for sweep in range(N_SWEEPS):
        eta, far = theta @ design.T, np.full((m, 1), np.inf)
        ends = np.hstack([-far, np.zeros((m, 1)), *[cut] * ordered, far])
        latent = normal_between(rng, eta, ends[:, y], ends[:, y + 1])
        linear, precision = latent @ design, np.tile(gram, (m, 1, 1))
        precision[:, [0, 1], [0, 1]] += np.array([1 + ordered, 1]) * WIDE**-2
        if ordered:  # the prior of the second cut point is about the intercept
            low, high = (np.where(y == k, latent, -far * sign) for k, sign in ((1, 1), (2, -1)))
            low, high = low.max(axis=1, initial=0.0, keepdims=True), high.min(axis=1, keepdims=True)
            cut = WIDE * normal_between(rng, theta[:, :1] / WIDE, low / WIDE, high / WIDE)
            linear[:, :1] += cut * WIDE**-2
        for g in range(n):
            precision[:, 2 + 2 * g : 4 + 2 * g, 2 + 2 * g : 4 + 2 * g] += omega
        root = np.linalg.cholesky(precision)
        half = np.linalg.solve(root, linear[..., None]) + rng.standard_normal((m, 2 + 2 * n, 1))
        theta = np.linalg.solve(np.swapaxes(root, 1, 2), half)[..., 0]
        b = theta[:, 2:].reshape(m, n, 2)
        a_inv = rng.gamma(2.0, 1 / (scales**-2 + 2 * omega[:, [0, 1], [0, 1]]))
        scatter = np.einsum("mgi,mgj->mij", b, b)
        scatter[:, [0, 1], [0, 1]] += 4 * a_inv
        normal = rng.standard_normal((m, 3 + n, 2))  # 3 + n degrees of freedom
        half = np.linalg.solve(np.swapaxes(np.linalg.cholesky(scatter), 1, 2), np.swapaxes(normal, 1, 2))
        omega = half @ np.swapaxes(half, 1, 2)
        if sweep > N_SWEEPS // 2 and sweep % EVERY == 0:
            sigma = np.linalg.inv(omega)
            s = np.sqrt(sigma[:, [0, 1], [0, 1]])
            own = [theta[:, :4], np.log(s), np.arctanh(sigma[:, 0, 1] / s.prod(axis=1))]
            kept.append(np.column_stack(own + [np.log(cut)] * ordered))
    return np.stack(kept, axis=1)


def made_of(name, n_iter, burn_in=300, sampler="hmc"):
    """A run at its end."""
    codes, x, y, weight = case(name)
    n, levels = len(y), np.stack([codes, codes], axis=1).astype(np.int32)
    groups = Groups(np.arange(n, dtype=np.int32), n, SCALES, levels, ("g", "g:x"), (None, 1))
    likelihood = OrderedProbit(3) if name in ORDERED else PROBIT
    more = {"weight": weight, "groups": groups, "unpenalized": np.array([False, True]), "likelihood": likelihood}
    X = np.column_stack([np.zeros(n), x])
    rows = Rows(X, y, True, device.resolve("cpu").ops, ALONE, **more)
    return ended(rows, sampler, n_iter, 2.0, WIDE, burn_in=burn_in, n_chains=N_CHAINS)


def run(name, n_iter, sampler="hmc"):
    """The same quantities of a run (N_CHAINS, n_iter, 7 or 8)."""
    made, codes = made_of(name, n_iter, sampler=sampler), case(name)[0]
    rows = made.problem.rows
    drawn, mean, sd = made.draws, rows.columns.mean_of_X[1], rows.columns.sd_of_X[1]
    (*of_cuts, of_groups), slope = drawn.of_blocks, drawn.coef[..., 1]
    s, r = of_groups.kept[..., :2] * [1, sd], of_groups.kept[..., 2]
    first = of_groups.effects[..., 0], of_groups.effects[..., codes.max() + 1] * sd
    ours = [drawn.intercept + slope * mean, slope * sd, *first, *np.moveaxis(np.log(s), 2, 0), np.arctanh(r)]
    return np.stack(ours + [np.log(cuts.kept[..., 0]) for cuts in of_cuts], axis=2)


def deviations(draws, name):
    """By how many standard errors the shares of draws below quantiles of the others are off; (7 or 8, len(SHARES))."""
    others = expected(name)
    assert np.isfinite(others).all()
    out = np.empty((others.shape[2], len(SHARES)))
    for k in range(len(out)):
        for i, end in enumerate(np.quantile(others[..., k], SHARES)):
            ours, theirs = ((of[..., k] < end).astype(float) for of in (draws, others))
            # Chains of data augmentation are independent of one another.
            error = np.hypot(
                np.sqrt(SHARES[i] * (1 - SHARES[i]) / ess_bulk(ours)), theirs.mean(axis=1).std() / N_REPEATED**0.5
            )
            out[k, i] = (ours.mean() - theirs.mean()) / error
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sampler"), [*product(CASES, ["hmc"]), *product(ORDERED, [PRIOR_COORDINATES])])
def test_draws_have_the_law_of_data_augmentation(name, sampler):
    found = deviations(run(name, 1000, sampler), name)
    print(name, found.round(1))
    assert abs(found).max() < 4.5, found


def test_what_a_sampler_is_told_is_a_density_with_its_gradient_along_the_map():
    made, (codes, x, y, weight) = made_of("weights", 3, 60), case("weights")
    (block,), rows, rng = made.blocks, made.problem.rows, np.random.default_rng(0)
    beta = made.chains.state.beta + 0.1 * rng.standard_normal((N_CHAINS, 3))
    block.begin_sweep(made.chains.state.beta)
    sigma = np.moveaxis(np.einsum("ikc,jkc->ijc", block.families[0].root, block.families[0].root), 2, 0)
    z = np.column_stack([np.ones(18), (x - rows.columns.mean_of_X[1]) / rows.columns.sd_of_X[1]])

    def density(at):
        b, of_X = block.at(at).reshape(2, 3, N_CHAINS), rows.columns.of_X(at)
        eta = of_X[:, 1] * x[:, None] + of_X[:, 2] + (z.T[:, :, None] * b[:, codes]).sum(axis=0)
        prior = np.einsum("igc,cij,jgc->c", b, np.linalg.inv(sigma), b)
        return (weight[:, None] * np.log(ndtr(np.where(y[:, None], eta, -eta)))).sum(axis=0) - prior / 2

    loglik, score = block.rows.score(beta)
    np.testing.assert_allclose(loglik, density(beta), rtol=1e-8)
    for j, step in enumerate(3e-3 * np.eye(3)):  # the map has single precision
        slope = (density(beta + step) - density(beta - step)) / 6e-3
        np.testing.assert_allclose(score[:, j], slope, atol=2e-3)
    direction, steps = rng.standard_normal((N_CHAINS, 3)), np.tile([0.0, 0.5], (N_CHAINS, 1))
    along = block.rows.line(beta, direction, steps)
    np.testing.assert_allclose(along, np.stack([density(beta), density(beta + direction / 2)], axis=1), rtol=1e-6)


def test_effects_and_slopes_follow_coefficients_and_cut_points_along_the_solution_of_one_system():
    made, (codes, x, *_) = made_of("classes in order, weights", 3, 60), case("classes in order, weights")
    (_, block), columns = made.blocks, made.problem.rows.columns
    block._add_to_averages()
    (family,), averages = block.families, block.averages
    z = np.stack([np.ones(18), (x - columns.mean_of_X[1]) / columns.sd_of_X[1]])
    of_effects = (np.eye(3)[codes][:, None] * z.T[..., None]).reshape(18, 6)
    to_beta = np.column_stack([0 * x, x, np.ones(18)]) @ columns.of_X(np.eye(3)).T
    weight, with_own = averages.weight / averages.n, averages.with_own / averages.n
    precision = (of_effects.T * weight) @ of_effects
    precision += np.kron(averages.precision(family), np.eye(3))
    linear = of_effects.T @ np.hstack([weight[:, None] * to_beta, with_own])
    along, *_ = averages.maps(block.rows.rows, block.factors, block.families)
    expected = -np.linalg.solve(precision, linear)
    np.testing.assert_allclose(along, expected, atol=5e-3 * abs(expected).max())


def test_each_line_of_a_sweep_begins_where_the_last_has_ended(monkeypatch):
    """What is known of the log-likelihood and what is held are those of the effects of now, in burn-in and after it, by
    the Gaussian and by the prior; and burn-in tunes the widths of all lines."""
    right, seen = CovarianceLines.step, {"known": 0, "by the prior": 0}

    def step(lines, given, along, factor, others, uniform, effects, loglik=None):
        of_rows = partial(lines.row_groups.logliks, asked=np.ones(N_CHAINS, bool))
        if loglik is not None:
            seen["known"] += 1
            np.testing.assert_allclose(loglik, of_rows(given, effects), rtol=1e-10)
        seen["by the prior"] += not lines.information.any()
        taken, loglik = right(lines, given, along, factor, others, uniform, effects, loglik)
        at = taken, np.arange(N_CHAINS)
        np.testing.assert_allclose(loglik, of_rows(given.times(factor[at]), effects), rtol=1e-10)
        if (factor == 1.0).all():  # the last line multiplies beta, for which nothing is held
            held = lines.standard.copy()
            lines.hold((lines.linear.copy(), lines.information.copy(), lines.weighed.copy()), effects, along[:, :, *at])
            np.testing.assert_allclose(lines.standard, held, atol=1e-9 * (1 + abs(held).max()))
        return taken, loglik

    monkeypatch.setattr(CovarianceLines, "step", step)
    (block,) = made_of("weights", 40, 300).blocks
    assert seen["known"] == 5 * 340
    assert 340 * 1.4 < seen["by the prior"] < 340 * 6
    (family,) = block.families
    others = [kind != ("entry", 1, 0) for kind in family.kinds]  # of which three groups tell so little that it stays
    assert (family.widths[:, others] != group_slopes.first_widths(1, 3)).all()


def their_jacobian_is_forgotten(right, *given):
    root, jacobian = right(*given)
    return root, 0.9 * jacobian


def the_volume_of_effects_is_forgotten(right, family, kind, r, rest):
    *law, terms = right(family, kind, r, rest)
    return *law, terms + 0.3 * r * (kind[0] == "row")


def effects_do_not_know_one_another(right, rows, *law, mean=None):
    return right(rows, *law[:-1], None if law[-1] is None else 0.0 * law[-1])


def covariance_has_the_other_sign(right, block, effects):
    return -right(block, effects)


def the_prior_of_cut_points_is_forgotten(right, *_):
    return 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "attribute", "wrong"),
    [
        (OwnParameters, "energy", the_prior_of_cut_points_is_forgotten),
        (group_slopes.SlopesOfFactor, "_moved", their_jacobian_is_forgotten),
        (group_slopes.SlopesOfFactor, "_at", the_volume_of_effects_is_forgotten),
        (RowGroups, "move_effects", effects_do_not_know_one_another),
        (GroupEffects, "across", covariance_has_the_other_sign),
    ],
)
def test_data_augmentation_catches_planted_errors(owner, attribute, wrong, monkeypatch):
    right = getattr(owner, attribute)
    monkeypatch.setattr(owner, attribute, lambda *args: wrong(right, *args))
    name = "a class for each group" if owner is OwnParameters else "both classes"
    found = deviations(run(name, 1000), name)
    print(wrong.__name__, abs(found).max().round(1))
    assert abs(found).max() > 6, found


def test_the_prior_is_that_of_huang_and_wand():
    rng, scales, n = np.random.default_rng(0), np.array([0.7, 2.0]), 4000
    a_inv = rng.gamma(0.5, scales**2, (n, 2))
    sigma = np.stack([invwishart.rvs(3, 4 * np.diag(one), random_state=rng) for one in a_inv])
    s = np.sqrt(sigma[:, [0, 1], [0, 1]])
    for k in range(2):
        assert kstest(s[:, k], lambda x, k=k: 2 * t(2, scale=scales[k]).cdf(x) - 1).pvalue > 1e-3
    assert kstest(sigma[:, 0, 1] / s.prod(axis=1), "uniform", (-1, 2)).pvalue > 1e-3
    # a integrated out, by Bayes' theorem: p(Sigma) = p(Sigma | a) p(a) / p(a | Sigma), for any a.
    a_inv, some = np.array([1.3, 0.4]), sigma[:20]
    omega = np.linalg.inv(some)[:, [0, 1], [0, 1]]
    rate = scales**-2 + 2 * omega
    given_sigma = (2 * np.log(rate) + np.log(a_inv) - rate * a_inv).sum(axis=1)  # Gamma(2, rate), up to a constant
    expected = np.array([invwishart.logpdf(one, 3, 4 * np.diag(a_inv)) for one in some]) - given_sigma
    found = log_prior(inverse(np.moveaxis(np.linalg.cholesky(some), 0, -1)), scales)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-8)
