"""Where single columns have not converged, but what they do together has, the warning says so."""

from types import SimpleNamespace

import numpy as np
import pytest

from skhorseshoe._fit.findings import are_sums_well


def model_of(X, draws, weight=None):
    mean = np.average(X, axis=0, weights=weight)
    sd = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    return SimpleNamespace(coef_draws_=draws, _column_sd=sd, _column_means=mean)


@pytest.fixture
def twins(seed):
    """Columns 0 and 1 are the same but for the sign, the scale and a correlation of -0.999; their chains have not met,
    and the sum of their effects has."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4))
    X[:, 1] = -10 * (X[:, 0] + 0.045 * X[:, 1])
    draws = 0.1 * rng.standard_normal((4, 500, 4))
    apart = np.repeat([0.0, 1.0, 2.0, 3.0], 500).reshape(4, 500) * X[:, 0].std()
    draws[..., 0] += apart / X[:, 0].std()
    draws[..., 1] += apart / X[:, 1].std()  # its effect has the other sign: the signed sum is that of the noise
    return X, draws


FAILED = np.array([True, True, False, False, False, False])  # the intercept and tau come last


def judged(X, draws, failed=FAILED, weight=None):
    rows = X, None, weight
    return are_sums_well(model_of(X, draws, weight), rows, failed, np.ones(4, bool))


def test_twins_have_converged_together(twins):
    X, draws = twins
    assert judged(X, draws)
    assert judged(X.astype(np.float32), draws)
    assert judged(np.asfortranarray(X), draws.astype(np.float32))


def test_rows_without_weight_do_not_count(twins, seed):
    X, draws = twins
    X = np.vstack([X, X.std(axis=0) * np.random.default_rng(seed).standard_normal((300, 4))])
    assert judged(X, draws, weight=np.repeat([2.0, 0.0], 300))
    assert not judged(X, draws)  # half of the rows are none of twins


@pytest.mark.parametrize("also", [2, 4, 5])
def test_all_else_has_to_converge(twins, also):
    """A column without a twin, the intercept, tau."""
    assert not judged(*twins, failed=FAILED | (np.arange(6) == also))


def test_the_sum_itself_has_to_converge(twins):
    X, draws = twins
    draws[..., 1] = 0
    assert not judged(X, draws)


def test_rows_that_are_not_looked_at(twins, tmp_path):
    X, draws = twins
    held = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
    held[:] = X
    assert not judged(held, draws)
    assert not are_sums_well(model_of(X, draws), None, FAILED, np.ones(4, bool))


def test_no_room_for_correlations_loses_no_fit(twins, free_memory):
    free_memory(1)
    assert not judged(*twins)
