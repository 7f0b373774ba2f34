"""Lines of covariances: the core's steps beside those of NumPy, where groups are many and effects are three."""

import numpy as np
import pytest
from laws import ALONE
from scipy.special import log_ndtr

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._mcmc.known_predictors import Given
from skhorseshoe._utils.threads import open_threads

N, N_GROUPS, Q, N_STEPS, N_CHAINS = 900, 300, 3, 5, 6  # groups of two of the core's tiles


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_first_proposal_inside_the_slice_is_taken_with_the_effects_that_follow(n_threads, seed):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(N) % N_GROUPS).astype(np.int32)
    x = np.vstack([np.ones(N), rng.standard_normal((Q - 1, N))])
    y, weight, offset = rng.integers(0, 2, N).astype(np.uint8), rng.uniform(0.5, 2, N), rng.standard_normal(N)
    given = Given(rng.standard_normal((N, N_CHAINS)), rng.uniform(0.5, 2, N_CHAINS))
    half = rng.standard_normal((N_GROUPS, Q, Q))
    information = np.moveaxis(half @ np.swapaxes(half, 1, 2), 0, 2).copy()
    linear, weighed = rng.standard_normal((Q, N_GROUPS)), rng.standard_normal((Q, N_GROUPS, N_CHAINS))
    inverse_root = np.tril(rng.uniform(0.5, 1.5, (N_STEPS, N_CHAINS, Q, Q)))
    factor = rng.uniform(0.9, 1.1, (N_STEPS, N_CHAINS))
    factor[0] = 1.0
    effects, others = rng.standard_normal((Q, N_GROUPS, N_CHAINS)), np.zeros((N_STEPS, N_CHAINS))

    def law(k, c):
        """L (N_GROUPS, Q, Q) and m (N_GROUPS, Q) of a step and a chain."""
        precision = information.transpose(2, 0, 1) + inverse_root[k, c].T @ inverse_root[k, c]
        mean = np.linalg.solve(precision, (linear - factor[k, c] * weighed[..., c]).T[..., None])[..., 0]
        return np.linalg.cholesky(precision), mean

    def at(k, c):
        """The effects there (Q, N_GROUPS), the log-likelihood, and the log-density but for ``others``."""
        (L, mean), (first_L, first_mean) = law(k, c), law(0, c)
        held = np.swapaxes(first_L, 1, 2) @ (effects[..., c].T - first_mean)[..., None]
        b = (mean + np.linalg.solve(np.swapaxes(L, 1, 2), held)[..., 0]).T
        eta = factor[k, c] * given.factor[c] * given.values[:, c] + offset + (x * b[:, codes]).sum(axis=0)
        loglik = (weight * log_ndtr(np.where(y == 1, eta, -eta))).sum()
        volume = np.log(np.diagonal(L, axis1=1, axis2=2)).sum()
        return b, loglik, loglik - ((inverse_root[k, c] @ b) ** 2).sum() / 2 - volume

    expected, want = [1, 2, 4, 0, 1, 3], []  # 0: none of them
    for c, taken in enumerate(expected):
        density = np.array([at(k, c)[2] for k in range(N_STEPS)])
        inside = np.arange(N_STEPS) == taken
        others[:, c] = np.where(inside | (np.arange(N_STEPS) == 0), 0.3, -2.0) - density
        want.append(at(taken, c))

    with open_threads(n_threads) as threads:
        bounds = np.linspace(0, N, 1 + 2 * (n_threads - 1) + 1).astype(np.int64)
        threads = threads if n_threads > 1 else ALONE
        groups = cpu.RowGroups(y, weight, offset, codes, N_GROUPS, np.dtype(float), bounds, threads, slope=x)
        lines = cpu.CovarianceLines(groups, Q, N_CHAINS, N_STEPS)
        along = np.moveaxis(inverse_root, (2, 3), (0, 1)).copy()
        lines.hold((linear, information, weighed), effects, along[:, :, 0])
        moved, uniform = effects.copy(), np.full(N_CHAINS, 0.5)
        taken, loglik = lines.step(given, along, factor, others, uniform, moved)
        np.testing.assert_array_equal(taken, expected)
        np.testing.assert_allclose(moved, np.stack([b for b, *_ in want], axis=2), atol=1e-10)
        np.testing.assert_allclose(loglik, [one for _, one, _ in want], rtol=1e-11)
        # From a log-likelihood that is known, the same.
        again = effects.copy()
        lines.step(given, along, factor, others, uniform, again, np.array([at(0, c)[1] for c in range(N_CHAINS)]))
        np.testing.assert_array_equal(lines.taken, expected)
        np.testing.assert_allclose(again, moved, atol=1e-10)
