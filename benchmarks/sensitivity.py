"""Whether ``inspection.sensitivity`` says what refits say, whose prior is raised to the powers 1.05 and 1 / 1.05.

prior       shifts of means by weights of the draws beside those of refits by a Gibbs sampler in NumPy, with the laws of
            tau, slab, intercept, unpenalized coefficients and scale of groups raised to these powers
likelihood  the same beside refits of the library, in which each row has the power as its weight
"""

import numpy as np
from _measure import fit, run
from scipy.special import ndtr, ndtri

from skhorseshoe import inspection
from skhorseshoe.diagnostics import mcse_mean

DELTA, WIDE = 0.05, 100.0
DOUBLINGS = 2 * np.log2(1 + DELTA)  # of the power, between both
GRID = np.exp(np.linspace(-14, 10, 500))  # of scales
POWERS = 1 / (1 + DELTA), 1 + DELTA


def data(name):
    """Columns, labels, groups or None, and settings of a data set of few rows, which leave the prior a say."""
    n, p, settings, n_groups = {
        "30 rows": (30, 4, {}, 0),
        "slab of 1": (25, 6, {"slab_scale": 1.0}, 0),
        "small tau": (60, 8, {"global_scale": 0.02}, 0),
        "groups": (60, 3, {"group_scale": 0.5}, 8),
        "unpenalized": (30, 4, {"unpenalized": [1], "prior_scale": {1: 0.3}, "global_scale": 0.1}, 0),
    }[name]
    rng = np.random.default_rng(n + p)
    X = rng.standard_normal((n, p))
    X -= X.mean(axis=0)
    groups = np.arange(n) % n_groups if n_groups else None
    eta = 0.8 * X[:, 0] - 0.6 * X[:, 1] + (0.8 * rng.standard_normal(n_groups)[groups] if n_groups else 0.0)
    return X, eta + rng.standard_normal(n) > 0, groups, settings


NAMES = "30 rows", "slab of 1", "small tau", "groups", "unpenalized"


def drawn_scale(rng, n_chains, count, squares, scale, power):
    """Draws with density s^-count exp(-squares / 2 s^2) (1 + s^2 / scale^2)^-power, on a grid of log s."""
    s2 = GRID**2
    log_density = (1 - count) * np.log(GRID) - squares[:, None] / (2 * s2) - power * np.log1p(s2 / scale**2)
    below = np.cumsum(np.exp(log_density - log_density.max(axis=1, keepdims=True)), axis=1)
    at = (below < rng.random((n_chains, 1)) * below[:, -1:]).sum(axis=1)
    return GRID[at] * np.exp((rng.random(n_chains) - 0.5) * np.log(GRID[1] / GRID[0]))


def refit(X, y, groups, settings, power, n_chains, n_sweeps):
    """Means of coefficients, intercept, and logarithms of tau and scale of groups, of each chain; (n_chains, k)."""
    rng, (n, p) = np.random.default_rng(0), X.shape
    free = np.isin(np.arange(p), settings.get("unpenalized", []))
    own = np.where(free, [settings.get("prior_scale", {}).get(j, 1.0) for j in range(p)], np.inf)
    fixed = np.append(np.where(free, own**-2.0, settings.get("slab_scale", np.inf) ** -2.0), WIDE**-2.0) * power
    design, shrunk = np.column_stack([X, np.ones(n)]), np.flatnonzero(~free)
    members = np.zeros((n, 1)) if groups is None else np.eye(groups.max() + 1)[groups]
    theta, tau, s = np.zeros((n_chains, p + 1)), np.full(n_chains, 0.1), np.full(n_chains, 0.3)
    lam, u, sums = np.ones((n_chains, len(shrunk))), np.zeros((n_chains, members.shape[1])), 0.0
    for sweep in range(n_sweeps + n_sweeps // 5):
        eta = theta @ design.T + u @ members.T
        share, sign = rng.random((n_chains, n)), np.where(y, 1.0, -1.0)
        z = eta - sign * ndtri(np.maximum(share * ndtr(sign * eta), 1e-300))
        precision = np.tile(fixed, (n_chains, 1))
        precision[:, shrunk] += (lam * tau[:, None]) ** -2.0
        root = np.linalg.cholesky(design.T @ design + precision[:, :, None] * np.eye(p + 1))
        half = np.linalg.solve(root, ((z - u @ members.T) @ design)[..., None])
        half += rng.standard_normal((n_chains, p + 1, 1))
        theta = np.linalg.solve(np.swapaxes(root, 1, 2), half)[..., 0]
        beta = theta[:, shrunk]
        nu = rng.exponential(1 / (1 + lam**-2.0))
        lam = rng.exponential(1 / (nu + (beta / tau[:, None]) ** 2 / 2)) ** -0.5
        scale = settings.get("global_scale", 1.0)
        tau = drawn_scale(rng, n_chains, len(shrunk), ((beta / lam) ** 2).sum(axis=1), scale, power)
        if groups is not None:
            variance = 1 / (members.sum(axis=0) + s[:, None] ** -2)
            u = variance * ((z - theta @ design.T) @ members) + np.sqrt(variance) * rng.standard_normal(u.shape)
            s = drawn_scale(rng, n_chains, u.shape[1], (u**2).sum(axis=1), settings.get("group_scale", 1.0), power)
        if sweep >= n_sweeps // 5:
            sums = sums + np.column_stack([theta, np.log(tau)] + ([] if groups is None else [np.log(s)]))
    return sums / n_sweeps


def compare(report, name, what, frame, moved, error):
    """Report the largest difference of shifts in standard errors. moved, error : of refits (k,)."""
    ours, own = frame[f"{what}_shift"].to_numpy(), frame[f"{what}_error"].to_numpy()
    away = np.abs(ours - moved) / np.hypot(own, error)
    worst = int(away.argmax())
    report.add(f"{name}, {what}: largest shift by refits", float(moved[np.abs(moved).argmax()]), "sd")
    report.add(f"{name}, {what}: the same by weights", float(ours[np.abs(moved).argmax()]), "sd")
    report.add(f"{name}, {what}: largest difference", float(np.abs(ours - moved).max()), "sd")
    report.add(f"{name}, {what}: in standard errors ({frame.index[worst]})", float(away.max()), "errors", at_most=4.0)


def draws_of(model):
    """Draws of the same, (n_chains, n_draws, k)."""
    scales = [model.global_scale_draws_, *([model.group_scale_draws_] if hasattr(model, "groups_") else [])]
    draws = [*np.moveaxis(model.coef_draws_, 2, 0), model.intercept_draws_, *map(np.log, scales)]
    return np.stack(draws, axis=-1)


def prior(report, options):
    """By weights and by refits, of all quantities."""
    n_iter, n_chains, n_sweeps = (200, 20, 50) if options.quick else (20_000, 200, 2000)
    for name in NAMES:
        X, y, groups, settings = data(name)
        model = fit(X, y, {"n_iter": n_iter, "burn_in": 500, "random_state": 0, **settings}, groups=groups)
        low, high = (refit(X, y, groups, settings, power, n_chains, n_sweeps) for power in POWERS)
        shifts = (high - low) / DOUBLINGS / draws_of(model).std(axis=(0, 1))  # coupled by their random numbers
        frame = inspection.sensitivity(model, delta=DELTA)
        compare(report, name, "prior", frame, shifts.mean(axis=0), shifts.std(axis=0) / np.sqrt(n_chains))


def likelihood(report, options):
    """By weights and by refits of the library."""
    n_iter = 200 if options.quick else 20_000
    for name in NAMES:
        X, y, groups, settings = data(name)
        common = {"n_iter": n_iter, "burn_in": 500, "sampler": "hmc", **settings}
        model = fit(X, y, {**common, "random_state": 0}, groups=groups)
        means, errors = [], []
        for seed, power in enumerate(POWERS, 1):
            again = fit(X, y, {**common, "random_state": seed}, groups=groups, sample_weight=np.full(len(y), power))
            means.append(draws_of(again).mean(axis=(0, 1)))
            errors.append(mcse_mean(draws_of(again)))
        unit = DOUBLINGS * draws_of(model).std(axis=(0, 1))
        frame = inspection.sensitivity(model, X, y, groups=groups, delta=DELTA)
        compare(report, name, "likelihood", frame, (means[1] - means[0]) / unit, np.hypot(*errors) / unit)


if __name__ == "__main__":
    run(__file__, __doc__, {"prior": prior, "likelihood": likelihood})
