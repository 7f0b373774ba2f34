"""Synthetic data whose truth is known."""

import numpy as np
from sklearn.utils import check_random_state

SIGNALS = (1.3, 4.0, -1.0, 1.6, 5.0, -2.0)


def make_sparse_probit(n_samples=2000, n_features=50, *, dtype=np.float64, random_state=None):
    """Independent standard normal columns, six of which matter, and a probit response.

    The generator of Terenin, Dong & Draper (2019), section 4: x ~ N(0, 1), beta = (1.3, 4, -1, 1.6, 5, -2, 0, ...),
    P(y = 1) = Phi(x beta). No intercept.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of rows.
    n_features : int, default=50
        Number of columns; with fewer than six only the first signals are there.
    dtype : numpy.float32 or numpy.float64, default=numpy.float64
        Type of X.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), int64, 0 or 1
    coef : ndarray of shape (n_features,), float64
        The true coefficients.
    """
    if n_samples < 1 or n_features < 1:
        raise ValueError(
            f"n_samples and n_features must be at least 1; got n_samples={n_samples}, n_features={n_features}."
        )
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    X = rng.standard_normal((n_samples, n_features), dtype=dtype)
    coef = np.zeros(n_features)
    coef[: len(SIGNALS)] = SIGNALS[:n_features]
    y = (X @ coef + rng.standard_normal(n_samples) > 0).astype(np.int64)
    return X, y, coef
