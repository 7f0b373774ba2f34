"""The quantile function of the horseshoe, which maps a standard normal variable to a coefficient.

With v ~ N(0, 1), g(v) is a coefficient divided by tau. g is odd. Its table has a cubic for each of many intervals of v,
which are shorter near zero, where g has no second derivative; some eight digits are correct. In the first interval,
abs(v) < 2.5e-4, g is linear.

Of d coefficients that share a lambda, g is the quantile function of their length, and v the length of a standard normal
vector. Near zero g is then about a power d of v.
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
def quantile_table(d=1):
    """The ``QuantileTable`` of d coefficients that share a lambda."""
    log_x, v = quantiles(d)
    spline = CubicSpline(np.sqrt(v), log_x - d * np.log(v))  # smooth as a function of the root
    fine = np.arange(round(EDGE * FINE) + 1) / FINE
    coarse = np.arange(EDGE * COARSE, (END if d == 1 else v[-1]) * COARSE + (d == 1)) / COARSE
    least = 1e-300 if d == 1 else v[0]  # below which there is a power of v
    cubics = np.concatenate([_cubics(spline, edges, least, d) for edges in (fine, coarse)])
    cubics[0] = 0.0, max(cubics[0].sum(), 1e-300), 0.0, 0.0
    at = LEAST_LOG + np.arange(round((log_x[-1] - LEAST_LOG) * STARTS)) / STARTS
    return QuantileTable(cubics, np.interp(at, log_x, v))


def _cubics(spline, edges, least, d):
    """Cubics on the intervals between these edges, from values and slopes of g."""
    root = np.sqrt(np.maximum(edges, least))
    ratio = np.exp(spline(root)) * edges ** (d - 1)
    value, slope = edges * ratio, ratio * (d + root * spline(root, 1) / 2) * np.diff(edges)[0]
    first, last, rise = slope[:-1], slope[1:], np.diff(value)
    return np.column_stack([value[:-1], first, 3 * rise - 2 * first - last, first + last - 2 * rise])
