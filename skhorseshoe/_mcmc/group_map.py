"""The map along which effects u of groups follow beta. Burn-in freezes it, from averages over states.

Along u = delta + A (beta - r), delta held, the information of beta is, with w_i that of row i, b_g = sum w_i x_i and
h_g = sum w_i over the rows of a group,

    H + sum_g (A_g b_g' + b_g A_g' + (h_g + s^-2) A_g A_g'),  H = sum_i w_i x_i x_i',

which is least for A_g = -b_g / (h_g + s^-2): the most likely u_g follows beta. The w_i are -d^2 log Phi(s_i eta_i) / d
eta_i^2 averaged over states of the chains. Since the information is linear in them, the frozen map has, on average, the
information of the reference; a map from a single state would fit that state alone.
"""

from typing import NamedTuple

import numpy as np

_SAVED = "group_seen_"  # prefix of the names of saved arrays
_DEGREE = 3  # degree of the polynomials in log s
_REACH = 4.0, 0.3, 2.0  # largest |log(s / s_0)| of the polynomials: in standard deviations of log s; and its bounds
_SCALES = 9  # number of scales s at which the polynomials are fitted
_NODES, _GRID_END = 49, 7.0  # number of nodes of the grid in u, and its end in standard deviations
_GRIDS_AT_ONCE = 2**13  # number of groups whose grids are in memory at a time


class GroupMap(NamedTuple):
    """The map, and the law of each effect given its rows and beta = r, as polynomials in t = log(s / s_0)."""

    along: object  # A (n_groups, q) float32; None where effects do not follow
    point: object  # r (q,)
    precision: object  # h (n_groups, 1)
    scale: float  # s_0, the scale for which A was computed
    reach: float  # the largest |t| of the polynomials
    mean: object  # (n_groups, _DEGREE + 1) coefficients of the mean of u_g, in powers of t
    log_sd: object  # (n_groups, _DEGREE + 1) coefficients of the logarithm of its standard deviation

    @classmethod
    def none(cls, n_groups):
        """The map of effects that do not follow, with no knowledge of them but their scale."""
        slope = np.zeros((n_groups, 1 + _DEGREE))
        slope[:, 1] = 1.0
        return cls(None, np.zeros(1), np.zeros((n_groups, 1)), 1.0, np.inf, np.zeros_like(slope), slope)

    def followed(self, beta):
        """How much effects change while beta moves from 0 to beta (m, q); (n_groups, m)."""
        if self.along is None:
            return np.zeros((len(self.precision), len(beta)))
        return (self.along @ np.ascontiguousarray(beta.T, np.float32)).astype(np.float64)

    def conditional(self, scale, followed):
        """Mean of u given s (n_chains,), and the logarithm of its standard deviation; (n_groups, n_chains) each.

        followed : how much the effects have changed while beta moved from r."""
        powers = _powers(np.clip(np.log(scale / self.scale), -self.reach, self.reach))
        share = (self.precision + self.scale**-2.0) / (self.precision + scale**-2.0)
        return self.mean @ powers + share * followed, self.log_sd @ powers


def _powers(t):
    """Powers of t from 0 to the degree; (_DEGREE + 1, len(t))."""
    return np.vander(t, 1 + _DEGREE, increasing=True).T


def _moments(row_groups, point_predictors, centre, sd, scale, reach):
    """The polynomials of the mean of u_g and of the logarithm of its standard deviation, by quadrature on a grid about
    centre (n_groups,), in units of sd (n_groups,). point_predictors : x r of all rows (n, 1)."""
    t, grid = np.linspace(-reach, reach, _SCALES), np.linspace(-_GRID_END, _GRID_END, _NODES)
    least = (sd * (grid[1] - grid[0]) / 4) ** 2  # least variance, since the grid resolves no less
    fit, fitted = np.linalg.pinv(_powers(t).T).T, []
    for first in range(0, len(centre), _GRIDS_AT_ONCE):
        groups = slice(first, first + _GRIDS_AT_ONCE)
        u = centre[groups, None] + sd[groups, None] * grid
        row_logliks, moments = row_groups.logliks_on_grid(point_predictors, u, first), []
        for s in scale * np.exp(t):
            log = row_logliks - u**2 / (2 * s**2)
            share = np.exp(log - log.max(axis=1, keepdims=True))
            share /= share.sum(axis=1, keepdims=True)
            mean = (share * u).sum(axis=1)
            variance = np.maximum((share * (u - mean[:, None]) ** 2).sum(axis=1), least[groups])
            moments.append((mean, np.log(variance) / 2))
        fitted.append(np.moveaxis(np.array(moments), 0, -1) @ fit)
    return np.ascontiguousarray(np.concatenate(fitted, axis=1))


def as_saved(value):
    """An array, or a number if it was one: powers of an array without axes are rounded in another way."""
    return value.copy() if value.ndim else float(value)


class MapAverages:
    """Averages over states of the chains, from which the map is computed. saved : what ``arrays`` gave, or None."""

    def __init__(self, saved=None):
        self.n = 0
        self.weight = self.terms = self.effects = self.beta = self.log_scale = self.square = 0.0
        if saved is not None and f"{_SAVED}n" in saved:
            for name in vars(self):
                setattr(self, name, as_saved(saved[_SAVED + name]))
            self.n = int(self.n)

    def add(self, row_groups, known, beta, effects, scale):
        """Add a state: beta (m, q), effects (n_groups, m), scale (m,). known : ``KnownPredictors``."""
        weight, terms = row_groups.curvature(known.values, known.factor, effects)
        self.n += 1
        self.weight, self.terms = self.weight + weight, self.terms + terms
        self.effects, self.beta = self.effects + effects.mean(axis=1), self.beta + beta.mean(axis=0)
        log_scale = np.log(scale)
        self.log_scale, self.square = self.log_scale + log_scale.mean(), self.square + (log_scale**2).mean()

    def scale(self):
        """s_0, and the reach of the polynomials."""
        mean = self.log_scale / self.n
        deviations, least, most = _REACH
        return np.exp(mean), np.clip(deviations * np.sqrt(max(self.square / self.n - mean**2, 0.0)), least, most)

    def information(self, rows, spare=()):
        """The information of beta (q, q) with u following, A (n_groups, q) and h (n_groups, 1). rows : ``Rows``."""
        weight = self.weight / self.n
        H, sums = rows.gram(spare=spare, weight=weight), rows.sums_by_group(weight)
        products, h = rows.columns.gradient(sums[:, : len(H)]), sums[:, -1:].copy()  # b (n_groups, q)
        share = 1.0 / (h + self.scale()[0] ** -2.0)
        along = (-products * share).astype(np.float32)
        products *= np.sqrt(share)
        H -= products.T @ products
        return H, along, h

    def group_map(self, along, h, point, row_groups, point_predictors):
        """``GroupMap`` about a point r (q,). point_predictors : x r of all rows (n, 1)."""
        scale, reach = self.scale()
        sd = (h[:, 0] + scale**-2.0) ** -0.5
        centre = (self.terms + h[:, 0] * self.effects) / self.n * sd**2
        centre += along @ (point - self.beta / self.n)
        mean, log_sd = _moments(row_groups, point_predictors, centre, sd, scale, reach)
        return GroupMap(along, point, h, scale, reach, mean, log_sd)

    def arrays(self):
        """Everything that a later run needs to go on."""
        return {_SAVED + name: value for name, value in vars(self).items()} if self.n else {}
