"""The quantile function of the horseshoe, which maps a standard normal variable to a coefficient.

With v ~ N(0, 1), g(v) is a coefficient divided by tau. g is odd. Its table has a cubic for each of many intervals of v,
which are shorter near zero, where g has no second derivative; some eight digits are correct. In the first interval,
abs(v) < 2.5e-4, g is linear.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from .._model.horseshoe import quantiles
from .constants import COARSE, EDGE, END, FINE, LEAST_LOG, STARTS


class QuantileTable(NamedTuple):
    """cubics : (m, 4) coefficients of g in the place within an interval, from 0 to 1, the constant first. starts :
    values of v at log g(v) = LEAST_LOG + i / STARTS."""

    cubics: np.ndarray
    starts: np.ndarray


@cache
def quantile_table():
    """The ``QuantileTable``."""
    log_x, v = quantiles()
    spline = CubicSpline(np.sqrt(v), log_x - np.log(v))  # smooth as a function of the root
    fine = np.arange(round(EDGE * FINE) + 1) / FINE
    coarse = np.arange(EDGE * COARSE, END * COARSE + 1) / COARSE
    cubics = np.concatenate([_cubics(spline, fine), _cubics(spline, coarse)])
    cubics[0] = 0.0, cubics[0].sum(), 0.0, 0.0
    at = LEAST_LOG + np.arange(round((log_x[-1] - LEAST_LOG) * STARTS)) / STARTS
    return QuantileTable(cubics, np.interp(at, log_x, v))


def _cubics(spline, edges):
    """Cubics on the intervals between these edges, from values and slopes of g."""
    root = np.sqrt(np.maximum(edges, 1e-300))
    ratio = np.exp(spline(root))
    value, slope = edges * ratio, ratio * (1 + root * spline(root, 1) / 2) * np.diff(edges)[0]
    first, last, rise = slope[:-1], slope[1:], np.diff(value)
    return np.column_stack([value[:-1], first, 3 * rise - 2 * first - last, first + last - 2 * rise])
