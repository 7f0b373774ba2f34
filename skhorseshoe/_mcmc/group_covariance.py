"""The covariance Sigma of the effects of a group, with the prior of Huang & Wand (2013), and small matrices.

    b_g ~ N(0, Sigma),   Sigma | a ~ IW(nu + q - 1, 2 nu diag(1 / a)),   1 / a_k ~ Gamma(1 / 2, A_k^-2),   nu = 2

Standard deviations have the half-t prior with nu degrees of freedom and scale A_k, correlations are uniform. With G
groups and Omega = Sigma^-1,

    1 / a_k | Sigma  ~ Gamma((nu + q) / 2, A_k^-2 + nu Omega_kk)
    Omega | a, b     ~ Wishart(nu + q - 1 + G, (2 nu diag(1 / a) + sum_g b_g b_g')^-1)
    p(Sigma)         prop. to |Sigma|^-(nu + 2q)/2 prod_k (A_k^-2 + nu Omega_kk)^-(nu + q)/2

Matrices are arrays (q, q, ...), vectors (q, ...): the operations are on all of the other axes at once, as q is small.
"""

import numpy as np

from .._backends import GROUP_LINE_PURPOSE, GROUP_SCALE_PURPOSE, GROUP_XI_PURPOSE

NU = 2.0  # degrees of freedom of the half-t prior of deviations, with which correlations are uniform


def product(A, v):
    """A v."""
    out = A[:, 0] * v[0]
    for k in range(1, len(v)):
        out += A[:, k] * v[k]
    return out


def cholesky(P):
    """The lower triangular L with L L' = P."""
    L = np.zeros_like(P)
    for j in range(len(P)):
        for k in range(j + 1):
            rest = P[j, k]
            for m in range(k):
                rest = rest - L[j, m] * L[k, m]
            L[j, k] = np.sqrt(rest) if j == k else rest / L[k, k]
    return L


def solve(L, v):
    """L^-1 v for a lower triangular L."""
    out = np.empty((len(L), *np.broadcast_shapes(L.shape[2:], v.shape[1:])))
    for j in range(len(L)):
        rest = v[j]
        for k in range(j):
            rest = rest - L[j, k] * out[k]
        np.divide(rest, L[j, j], out=out[j])
    return out


def solve_transposed(L, v):
    """L'^-1 v for a lower triangular L."""
    return solve(np.swapaxes(L, 0, 1)[::-1, ::-1], v[::-1])[::-1]


def inverse(L):
    """L^-1 for a lower triangular L."""
    out = np.zeros_like(L)
    for k in range(len(L)):
        out[k, k] = 1.0 / L[k, k]
        for j in range(k + 1, len(L)):
            out[j, k] = -sum(L[j, m] * out[m, k] for m in range(k, j)) / L[j, j]
    return out


def squared(inverse_root):
    """Omega of the inverse of the root of Sigma."""
    return np.einsum("ki...,kj...->ij...", inverse_root, inverse_root)


def log_determinant(L):
    """log |L| of a triangular L."""
    total = np.log(L[0, 0])
    for k in range(1, len(L)):
        total = total + np.log(L[k, k])
    return total


def log_prior(inverse_root, scales):
    """log p(Sigma) up to a constant (...). inverse_root : (q, q, ...), of the root of Sigma. scales : A (q,)."""
    diagonal, q = (inverse_root**2).sum(axis=0), len(scales)  # of Omega
    of_diagonal = np.log((scales**-2 + NU * diagonal.T).T).sum(axis=0)
    return (NU + 2 * q) * log_determinant(inverse_root) - (NU + q) / 2 * of_diagonal


def draw_root(effects, root, scales, ops, keys, t):
    """The root of Sigma given effects (q, n_groups, n_chains), by way of a, with the root before. keys : q."""
    q, n, n_chains = effects.shape
    scatter, diagonal = np.einsum("inc,jnc->ijc", effects, effects), (inverse(root) ** 2).sum(axis=0)
    T, ones = np.zeros(root.shape), np.ones(n_chains)  # upper triangular, T T' ~ Wishart(nu + q - 1 + n, I)
    for k, key in enumerate(keys):
        a_inv = ops.gamma((NU + q) / 2, scales[k] ** -2 + NU * diagonal[k], key, t, GROUP_XI_PURPOSE)
        scatter[k, k] += 2 * NU * a_inv
        T[k, k] = np.sqrt(ops.gamma((NU + n + k) / 2, ones / 2, key, t, GROUP_SCALE_PURPOSE))
        T[k, k + 1 :] = ops.normal((n_chains, q), key, t, GROUP_LINE_PURPOSE).T[k + 1 :]
    factor, inverse_T = cholesky(scatter), inverse(np.swapaxes(T, 0, 1))  # Sigma = factor T'^-1 T^-1 factor'
    return np.einsum("ikc,kjc->ijc", factor, inverse_T)
