"""Likelihoods of groups averaged over several effects, beside fine grids and what is known exactly."""

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

from skhorseshoe._backends import device
from skhorseshoe._mcmc.known_predictors import Given
from skhorseshoe._model import PROBIT
from skhorseshoe._posterior.loo_groups import SeveralEffects
from skhorseshoe._utils.threads import open_threads


def averaged(y, codes, eta, x, root, weight=None):
    """The logarithms by ``SeveralEffects``."""
    ops, y, codes = device.host_back_end(), y.astype(np.uint8), codes.astype(np.int32)
    given, weight = Given(eta[:, None], np.ones(1)), np.empty(0) if weight is None else weight
    with open_threads(1) as threads:

        def make_row_groups(y, weight, codes, n, slope=None):
            return ops.RowGroups(y, weight, None, codes, n, np.dtype(float), [0, len(y)], threads, PROBIT, slope)

        return SeveralEffects(make_row_groups, y, weight, codes, x).marginal_logliks(given, root)


def by_grid(y, codes, eta, x, root, weight, n_nodes, end=7):
    """The same by as many nodes, up to so many deviations, in each direction."""
    nodes, q = np.linspace(-end, end, n_nodes), len(root)
    e, out = np.stack(np.meshgrid(*q * [nodes]), axis=-1).reshape(-1, q), []
    for g in range(codes.max() + 1):
        log = -(e**2).sum(axis=1) / 2
        for i in np.flatnonzero(codes == g):
            log += weight[i] * log_ndtr((2 * y[i] - 1.0) * (eta[i] + e @ (root.T @ x[i])))
        out.append(logsumexp(log) + q * np.log((nodes[1] - nodes[0]) / np.sqrt(2 * np.pi)))
    return out


def table(rng, sizes, q, s):
    """Rows in no order of groups of these sizes, every second of which has one class only."""
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    x = np.column_stack([np.ones(len(codes)), rng.standard_normal((len(codes), q - 1))])
    y = np.where(codes % 2, codes % 4 == 1, rng.random(len(codes)) < 0.5)
    correlation = np.full((q, q), -0.4) + 1.4 * np.eye(q) if q > 2 else np.array([[1.0, 0.9], [0.9, 1.0]])
    root = s * np.linspace(1, 0.6, q)[:, None] * np.linalg.cholesky(correlation)
    return y, codes, rng.standard_normal(len(codes)), x, root, rng.integers(1, 4, len(codes)).astype(float)


@pytest.mark.parametrize(
    ("s", "q", "n_nodes", "close"),
    [(0.0, 2, 101, 1e-5), (0.3, 2, 101, 1e-5), (3.0, 2, 501, 1e-3), (10.0, 2, 701, 0.03), (0.7, 3, 91, 5e-4)],
)
def test_averages_are_those_of_a_fine_grid(s, q, n_nodes, close, seed):
    *of_rows, weight = table(np.random.default_rng(seed), [1, 2, 6, 3] if q == 3 else [1, 2, 6, 5, 4, 3], q, s)
    np.testing.assert_allclose(averaged(*of_rows, weight), by_grid(*of_rows, weight, n_nodes), atol=close)
    np.testing.assert_allclose(averaged(*of_rows), by_grid(*of_rows, np.ones(len(weight)), n_nodes), atol=close)


@pytest.mark.parametrize(("s", "close"), [(0.01, 4e-4), (1.0, 4e-4), (5.0, 0.01), (100.0, 0.1)])
@pytest.mark.parametrize("q", [2, 3])
def test_a_group_of_one_row_has_the_probability_of_a_new_group(s, close, q, seed):
    """Also where that is 1e-200, and the mode far from zero."""
    rng, n = np.random.default_rng(seed), 40
    _, _, _, x, root, _ = table(rng, n * [1], q, s)
    deviation, y = np.sqrt(1 + ((x @ root) ** 2).sum(axis=1)), np.arange(n) % 2
    t = rng.uniform(-30, 5, n)
    found = averaged(y, np.arange(n), (2 * y - 1) * t * deviation, x, root)
    np.testing.assert_allclose(found, log_ndtr(t), atol=close)


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("s", [1e-3, 0.5, 4.0])
def test_an_effect_without_variance_changes_nothing(k, s, seed):
    """Of the last group one row asks for a large effect, and the other forbids it by a steep slope."""
    y, codes, eta, x, _, weight = table(np.random.default_rng(seed), [1, 8, 2, 5, 40], 2, 1.0)
    y, codes, weight = np.append(y, [True, False]), np.append(codes, [5, 5]), np.append(weight, [1.0, 1.0])
    eta, x = np.append(eta, [-30.0, -200.0]), np.vstack([x, [[1.0, 1.0], [1.0, 40.0]]])
    root = np.zeros((2, 2))
    root[k, k] = s
    alone = by_grid(y, codes, eta, x[:, [k]], np.array([[s]]), weight, 40001, end=20)
    np.testing.assert_allclose(averaged(y, codes, eta, x, root, weight), alone, atol=1e-3)
