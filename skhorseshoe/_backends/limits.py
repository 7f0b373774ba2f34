"""Limits that samplers and forecasts of memory share: the largest Cholesky factor, the longest trajectory."""

MOST_LEAPFROG_STEPS = 47  # of a trajectory of "hmc", but in the coordinates of the prior
MOST_CHOLESKY_COLUMNS = 8000  # most columns of which Q is factorised in every sweep: seconds for each chain
MOST_FACTORED_ROWS = 4000  # most sparse rows of which the shrinkage of more columns comes from a Cholesky factor


def needs_conjugate_gradients(n_columns):
    """Whether so many columns need conjugate gradients; on every machine alike, since draws depend on it."""
    return n_columns > MOST_CHOLESKY_COLUMNS


def factors_rows(n_rows, is_sparse, n_contrasts, groups):
    """Whether the shrinkage of more columns than rows comes from a Cholesky factor over the rows: always, but for many
    sparse rows of two classes without groups."""
    return not is_sparse or n_rows <= MOST_FACTORED_ROWS or n_contrasts > 1 or groups is not None


def is_without_matrix(X):
    """Whether passes over X replace even X'X, for lack of memory: sparse rows of many columns."""
    return hasattr(X, "indptr") and needs_conjugate_gradients(X.shape[1])
