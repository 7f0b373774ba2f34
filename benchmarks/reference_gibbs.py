"""The sampler of ``skhorseshoe`` as one would write it with NumPy and SciPy alone.

The same full conditionals in the same order, with its own random numbers: a baseline of speed, and a second opinion
on the draws. z is inverted from uniforms, X is read by two matrix products a sweep, all chains at once.
"""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp


def reference_gibbs(X, y, n_iter, burn_in, n_chains, rng, global_scale=1.0, intercept_sd=100.0, slab_scale=np.inf):
    """Draws from the posterior of probit regression with an intercept and the horseshoe prior.

    X : (n, p) float32 or float64; products with X are made in its dtype, the rest in float64.
    y : (n,) bool or 0 and 1. rng : numpy.random.Generator.
    Returns coef (n_chains, n_iter, p), intercept (n_chains, n_iter) and tau (n_chains, n_iter).
    """
    n, p = X.shape
    positive = np.asarray(y, dtype=bool)[:, None]
    ones = np.ones(n, X.dtype)
    gram = np.empty((p + 1, p + 1))
    gram[:p, :p] = X.T @ X
    gram[:p, p] = gram[p, :p] = ones @ X
    gram[p, p] = n

    coef, intercept = np.zeros((n_chains, p)), np.zeros(n_chains)
    lambda_sq_inv, nu_inv = np.ones((n_chains, p)), np.ones((n_chains, p))
    tau_sq_inv = np.full(n_chains, global_scale**-2.0)
    xi_inv = np.full(n_chains, global_scale**2.0)
    coef_draws = np.empty((n_chains, n_iter, p))
    intercept_draws, tau_draws = np.empty((2, n_chains, n_iter))

    for t in range(-burn_in, n_iter):
        mean = X @ coef.T.astype(X.dtype) + intercept
        z = truncated_normal(mean, positive, rng)
        xtz = np.column_stack([(X.T @ z.astype(X.dtype)).T, z.sum(axis=0)])

        precision = np.repeat(gram[None], n_chains, axis=0)
        diagonal = np.einsum("cjj->cj", precision)
        diagonal[:, :p] += tau_sq_inv[:, None] * lambda_sq_inv + slab_scale**-2.0
        diagonal[:, p] += intercept_sd**-2.0
        for c, factor in enumerate(np.linalg.cholesky(precision)):
            half = solve_triangular(factor, xtz[c], lower=True) + rng.standard_normal(p + 1)
            beta = solve_triangular(factor, half, lower=True, trans="T")
            coef[c], intercept[c] = beta[:p], beta[p]

        half_sq = coef**2 / 2
        lambda_sq_inv = rng.standard_exponential((n_chains, p)) / (nu_inv + tau_sq_inv[:, None] * half_sq)
        nu_inv = rng.standard_exponential((n_chains, p)) / (1 + lambda_sq_inv)
        rate = xi_inv + (lambda_sq_inv * half_sq).sum(axis=1)
        tau_sq_inv = rng.standard_gamma((p + 1) / 2, n_chains) / rate
        xi_inv = rng.standard_exponential(n_chains) / (global_scale**-2.0 + tau_sq_inv)

        if t >= 0:
            coef_draws[:, t], intercept_draws[:, t], tau_draws[:, t] = coef, intercept, tau_sq_inv**-0.5
    return coef_draws, intercept_draws, tau_draws


def truncated_normal(mean, positive, rng):
    """N(mean, 1) given that it is positive, or negative where ``positive`` is False; float64.

    The positive case inverts P(Z > z) = Phi(mean - z), the negative one is its mirror image. Where the condition is
    improbable, in logarithms.
    """
    sign = np.where(positive, 1.0, -1.0)
    m = sign * mean
    z = m - ndtri(rng.uniform(2.0**-54, 1.0, m.shape) * ndtr(m))
    far = m < -5.0
    z[far] = m[far] - ndtri_exp(log_ndtr(m[far]) - rng.standard_exponential(far.sum()))
    return sign * z
