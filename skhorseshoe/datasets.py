"""Synthetic data whose truth is known.

``SIGNALS`` and ``RARE_EVENT_SIGNALS`` are the coefficients of the columns that matter, from the first column on: of
`make_sparse_probit` and of `make_rare_events`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from sklearn.utils import check_random_state

if TYPE_CHECKING:
    from ._types import DataFrame, DTypeLike, Floats, Ints, NDArray, Seed

__all__ = [
    "RARE_EVENT_SIGNALS",
    "SIGNALS",
    "make_correlated_probit",
    "make_patients",
    "make_rare_events",
    "make_sparse_probit",
]

SIGNALS = (1.3, 4.0, -1.0, 1.6, 5.0, -2.0)
RARE_EVENT_SIGNALS = (1.0, -0.8, 0.6, -0.4, 0.3)
# Share of the patients in each ward, and its effect on the score.
_WARDS = {
    "surgery": (0.35, 0.0),
    "medicine": (0.3, 0.1),
    "cardiology": (0.2, 0.0),
    "oncology": (0.1, 0.5),
    "intensive care": (0.05, 0.9),
}
# Median and log standard deviation of a measurement, share of missing values, and effect of its logarithm on the score.
_LABS = {
    "CRP": (30.0, 1.0, 0.05, 0.25),
    "lactate": (1.5, 0.4, 0.3, 0.6),
    "albumin": (35.0, 0.15, 0.1, -2.0),
    "creatinine": (85.0, 0.35, 0.02, 0.0),
    "sodium": (139.0, 0.025, 0.02, 0.0),
    "potassium": (4.2, 0.12, 0.03, 0.0),
    "haemoglobin": (125.0, 0.15, 0.02, 0.0),
    "platelets": (240.0, 0.35, 0.02, 0.0),
    "bilirubin": (10.0, 0.6, 0.15, 0.0),
    "glucose": (6.5, 0.3, 0.1, 0.0),
}


def make_sparse_probit(
    n_samples: int = 2000, n_features: int = 50, *, dtype: DTypeLike = np.float64, random_state: Seed = None
) -> tuple[NDArray[Any], Ints, Floats]:
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
    random_state : int, RandomState, Generator or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), int64, 0 or 1
    coef : ndarray of shape (n_features,), float64
        The true coefficients.

    Raises
    ------
    ValueError
        If there is no row or no column, or ``dtype`` is neither of the two.

    Examples
    --------
    >>> from skhorseshoe.datasets import make_sparse_probit
    >>> X, y, coef = make_sparse_probit(1000, 8, random_state=0)
    >>> X.shape, coef.tolist()
    ((1000, 8), [1.3, 4.0, -1.0, 1.6, 5.0, -2.0, 0.0, 0.0])
    """
    rng, X = _draw_columns(n_samples, n_features, 0.0, dtype, random_state)
    coef = np.zeros(n_features)
    coef[: len(SIGNALS)] = SIGNALS[:n_features]
    return X, _response(rng, X @ coef), coef


def make_rare_events(
    n_samples: int = 20_000,
    n_features: int = 50,
    *,
    event_rate: float = 0.005,
    rho: float = 0.5,
    dtype: DTypeLike = np.float64,
    random_state: Seed = None,
) -> tuple[NDArray[Any], Ints, Floats, float]:
    """Correlated columns, five of which matter, an intercept, and few ones in the probit response.

    Each row is a stationary autoregression along its columns: standard normal, with correlation ``rho ** |j - k|``
    between columns j and k. beta = (1, -0.8, 0.6, -0.4, 0.3, 0, ...), P(y = 1) = Phi(intercept + x beta).

    Parameters
    ----------
    n_samples, n_features : see `make_sparse_probit`
        Numbers of rows and of columns, with fewer than five of which only the first signals are there.
    event_rate : float, default=0.005
        The mean of P(y = 1) over the rows, in (0, 1), which the intercept is solved for. The number of ones varies
        about ``n_samples * event_rate``; where that is small there may be none.
    rho : float, default=0.5
        Correlation of neighbouring columns, in (-1, 1).
    dtype, random_state : see `make_sparse_probit`
        Type of X, and seed.

    Returns
    -------
    X, y, coef : see `make_sparse_probit`
        The rows, their labels and the true coefficients.
    intercept : float
        The true intercept.

    Raises
    ------
    ValueError
        If there is no row or no column, ``dtype`` is neither of the two, or ``event_rate`` or ``rho`` is not in its
        interval.

    Examples
    --------
    >>> from skhorseshoe.datasets import make_rare_events
    >>> X, y, coef, intercept = make_rare_events(20_000, 8, event_rate=0.01, random_state=0)
    >>> int(y.sum())  # about 200
    209
    """
    if not 0 < event_rate < 1:
        raise ValueError(f"event_rate must be between 0 and 1, as in 0.005 for 0.5 %; got {event_rate!r}.")
    rng, X = _draw_columns(n_samples, n_features, rho, dtype, random_state)
    coef = np.zeros(n_features)
    coef[: len(RARE_EVENT_SIGNALS)] = RARE_EVENT_SIGNALS[:n_features]
    eta = X @ coef
    centre = ndtri(event_rate)
    # At the ends the probabilities of all rows are on the same side of the rate.
    ends = centre - eta.max() - 1, centre - eta.min() + 1
    intercept = brentq(lambda b: ndtr(b + eta).mean() - event_rate, *ends, xtol=1e-12)
    return X, _response(rng, intercept + eta), coef, intercept


def make_correlated_probit(
    n_samples: int = 100,
    n_features: int = 300,
    *,
    rho: float = 0.6,
    n_signals: int = 5,
    signal: float = 2.0,
    dtype: DTypeLike = np.float64,
    random_state: Seed = None,
) -> tuple[NDArray[Any], Ints, Floats]:
    """More correlated columns than rows, a few of which matter, and a probit response.

    Each row is a stationary autoregression along its columns: standard normal, with correlation ``rho ** |j - k|``
    between columns j and k. The signals are all equal, of the same sign, and spread evenly: signal k of K is column
    ``k * n_features // K``, counted from 0. P(y = 1) = Phi(x beta). No intercept. With the default sizes the classes
    can be separated by a plane.

    Parameters
    ----------
    n_samples, n_features : see `make_sparse_probit`
        Numbers of rows and of columns.
    rho : float, default=0.6
        Correlation of neighbouring columns, in (-1, 1).
    n_signals : int, default=5
        Number of columns that matter, 0 to ``n_features``.
    signal : float, default=2.0
        Their coefficient.
    dtype, random_state : see `make_sparse_probit`
        Type of X, and seed.

    Returns
    -------
    X, y, coef : see `make_sparse_probit`
        The rows, their labels and the true coefficients.

    Raises
    ------
    ValueError
        If there is no row or no column, ``dtype`` is neither of the two, ``rho`` or ``n_signals`` is not in its range,
        or ``signal`` is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe.datasets import make_correlated_probit
    >>> X, y, coef = make_correlated_probit(random_state=0)
    >>> np.flatnonzero(coef)
    array([  0,  60, 120, 180, 240])
    """
    rng, X = _draw_columns(n_samples, n_features, rho, dtype, random_state)
    if not 0 <= n_signals <= n_features:
        raise ValueError(f"n_signals must be from 0 to n_features; got n_signals={n_signals}, n_features={n_features}.")
    if not np.isfinite(signal):
        raise ValueError(f"signal must be a finite number; got {signal!r}.")
    coef = np.zeros(n_features)
    coef[[k * n_features // n_signals for k in range(n_signals)]] = signal
    return X, _response(rng, X @ coef), coef


def make_patients(n_samples: int = 2000, *, random_state: Seed = None) -> tuple[DataFrame, NDArray[Any]]:
    """A made-up table of patients in hospital, as one has it: text, numbers in their units, missing measurements.

    What matters is the ward (intensive care, then oncology), the age, along a curve that rises from 60 years on, and
    the logarithms of CRP, lactate and albumin; sex and the other measurements do nothing. P(died) is the normal
    distribution function of the score; about one in seven dies. A measurement is missing whatever its value.

    Parameters
    ----------
    n_samples, random_state : see `make_sparse_probit`
        Number of patients, 1 or more, and seed.

    Returns
    -------
    X : pandas.DataFrame of shape (n_samples, 13)
        The columns sex, ward and age (years), and ten measurements of blood.
    y : ndarray of shape (n_samples,), str
        "alive" or "died", the second class.

    Raises
    ------
    ValueError
        If ``n_samples`` is below 1.

    Examples
    --------
    >>> from skhorseshoe.datasets import make_patients
    >>> X, y = make_patients(random_state=0)
    >>> X.columns[:5].tolist(), bool(0.1 < (y == "died").mean() < 0.2)
    (['sex', 'ward', 'age', 'CRP', 'lactate'], True)
    """
    rng, Z = _draw_columns(n_samples, 1 + len(_LABS), 0.0, np.float64, random_state)
    wards, shares, effects = zip(*((name, *both) for name, both in _WARDS.items()), strict=True)
    ward = rng.choice(len(wards), n_samples, p=shares)
    X = pd.DataFrame({"sex": rng.choice(["female", "male"], n_samples), "ward": np.array(wards)[ward]})
    X["age"] = np.clip(np.round(66 + 16 * Z[:, 0]), 18, 99)
    score = np.array(effects)[ward] + 0.6 * np.maximum(0, (X["age"].to_numpy() - 60) / 15) ** 1.5 - 1.9
    for (name, (median, spread, missing, effect)), z in zip(_LABS.items(), Z[:, 1:].T, strict=True):
        score += effect * spread * z
        X[name] = np.where(rng.random(n_samples) < missing, np.nan, np.round(median * np.exp(spread * z), 1))
    return X, np.where(_response(rng, score), "died", "alive")


def _draw_columns(n_samples, n_features, rho, dtype, random_state):
    """The generator, and X: standard normal, an autoregression along each row."""
    if n_samples < 1 or n_features < 1:
        raise ValueError(f"n_samples and n_features must be at least 1; got {n_samples} and {n_features}.")
    if not -1 < rho < 1:
        raise ValueError(f"rho must be between -1 and 1; got {rho!r}.")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64; got {np.dtype(dtype)}.")
    rng = random_state
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    X = rng.standard_normal((n_samples, n_features), dtype=dtype)
    if rho:
        X[:, 1:] *= np.sqrt(1 - rho**2)
        for j in range(1, n_features):
            X[:, j] += rho * X[:, j - 1]
    return rng, X


def _response(rng, eta):
    return (eta + rng.standard_normal(len(eta)) > 0).astype(np.int64)
