"""The quantile function of the horseshoe, which maps a standard normal variable to a coefficient.

With v ~ N(0, 1), x = g(v) has the density (2 pi^3)^(-1/2) e^b E1(b), b = x^2 / 2, of a coefficient divided by tau, with
its lambda integrated out (Carvalho, Polson & Scott 2010). g is odd. Its table has a cubic for each of many intervals of
v, which are shorter near zero, where g has no second derivative; some eight digits are correct. In the first interval,
abs(v) < 2.5e-4, g is linear.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import exp1, ndtri, ndtri_exp

from .constants import COARSE, EDGE, END, FINE, LEAST_LOG, STARTS

_STEP, _FROM, _TO = 0.01, -60.0, 105.0  # step and ends of the grid in log x for quadrature
_FAR = 300.0  # least b for which e^b E1(b) is computed by its asymptotic series
_TINY = 1e-7  # probability below which a normal quantile is taken as linear in it


class QuantileTable(NamedTuple):
    """cubics : (m, 4) coefficients of g in the place within an interval, from 0 to 1, the constant first. starts :
    values of v at log g(v) = LEAST_LOG + i / STARTS."""

    cubics: np.ndarray
    starts: np.ndarray


@cache
def quantile_table():
    """The ``QuantileTable``."""
    log_x = np.arange(_FROM, _TO, _STEP)
    below, above = _probabilities(log_x)
    v = np.where(below < 0.25, ndtri(0.5 + below), -ndtri_exp(np.log(above)))
    v = np.where(below < _TINY, below * np.sqrt(2 * np.pi), v)
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


def _probabilities(log_x):
    """P(0 < X < x), P(X > x) at the points of a grid."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    x = np.exp(log_x[:-1, None] + _STEP * (nodes + 1) / 2)
    with np.errstate(over="ignore"):
        b = x * x / 2
        near, far = np.minimum(b, _FAR), np.maximum(b, _FAR)
        scaled = np.where(b < _FAR, np.exp(near) * exp1(near), (1 - (1 - 2 / far) / far) / far)
    density = scaled / np.sqrt(2 * np.pi**3)
    cell = (density * x) @ weights * (_STEP / 2)
    edge = 2.0 / np.sqrt(2 * np.pi**3)  # the tail beyond x is edge / x
    start = np.exp(log_x[0]) * (1 - log_x[0]) * edge
    above = np.append(np.cumsum(cell[::-1])[::-1], 0.0) + edge * np.exp(-log_x[-1])
    return start + np.append(0.0, np.cumsum(cell)), above
