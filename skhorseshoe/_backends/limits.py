"""What samplers and forecasts of memory agree on: how large a factor may be, how long a path."""

MAX_STEPS = 47  # of a path
LARGEST_FACTOR = 8000  # columns up to which Q is factorised in every sweep: seconds for each chain


def is_without_factor(n_columns):
    """Whether so many columns are for conjugate gradients. The draws depend on no machine."""
    return n_columns > LARGEST_FACTOR


def is_without_matrix(X):
    """Whether not even X'X has room, and passes over X take its place: sparse rows of many columns."""
    return hasattr(X, "indptr") and is_without_factor(X.shape[1])
