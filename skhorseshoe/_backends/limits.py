"""Limits that samplers and forecasts of memory share: the largest Cholesky factor, the longest trajectory."""

MAX_STEPS = 47  # largest number of steps of a trajectory
LARGEST_FACTOR = 8000  # largest number of columns of which Q is factorised in every sweep: seconds for each chain


def is_without_factor(n_columns):
    """Whether so many columns need conjugate gradients; on every machine alike, since draws depend on it."""
    return n_columns > LARGEST_FACTOR


def is_without_matrix(X):
    """Whether passes over X replace even X'X, for lack of memory: sparse rows of many columns."""
    return hasattr(X, "indptr") and is_without_factor(X.shape[1])
