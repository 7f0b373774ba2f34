"""The map along which effects u of groups follow beta, frozen by burn-in, and what burn-in has seen of the rows for it.

Along u = delta + A (beta - r), delta held, the information of beta is, with w_i that of row i, b_g = sum w_i x_i and
h_g = sum w_i over the rows of a group,

    H + sum_g (A_g b_g' + b_g A_g' + (h_g + s^-2) A_g A_g'),  H = sum_i w_i x_i x_i',

the least for A_g = -b_g / (h_g + s^-2): where beta goes, the most likely u_g goes along. The w_i are -d^2 log Phi(s_i
eta_i) / d eta_i^2 averaged over states of the chains. As the information is linear in them, that of the frozen map is
then, on average, what the reference has; from a single state, the map would follow what happens to be there.
"""

from typing import NamedTuple

import numpy as np

_SAVED = "group_seen_"
_DEGREE = 3  # of polynomials in log s
_REACH = 4.0, (0.3, 2.0)  # of them: standard deviations of log s that have been seen, but at least and at most
_SCALES = 9  # at which they are fitted
_NODES, _WIDE = 49, 7.0  # of the grid in u, to so many standard deviations
_TOGETHER = 2**13  # groups whose grids are in memory together


class GroupMap(NamedTuple):
    """The map, and what the rows of each group tell of its effect where beta is at r, as polynomials in
    t = log(s / s_0)."""

    along: object  # A (n_groups, q) float32; None where effects stay
    point: object  # r (q,)
    precision: object  # h (n_groups, 1)
    scale: float  # s_0, with which the map was made
    reach: float  # the largest t of the polynomials
    mean: object  # (n_groups, _DEGREE + 1) coefficients of the mean of u_g by t
    log_sd: object  # likewise, of the logarithm of its standard deviation

    @classmethod
    def none(cls, n_groups):
        """Effects stay, and nothing is known of them but their scale."""
        slope = np.zeros((n_groups, 1 + _DEGREE))
        slope[:, 1] = 1.0
        return cls(None, np.zeros(1), np.zeros((n_groups, 1)), 1.0, np.inf, np.zeros_like(slope), slope)

    def followed(self, beta):
        """By how much the effects have changed from where beta is 0 to beta (m, q); (n_groups, m)."""
        if self.along is None:
            return np.zeros((len(self.precision), len(beta)))
        return (self.along @ np.ascontiguousarray(beta.T, np.float32)).astype(np.float64)

    def conditional(self, scale, followed):
        """Mean of u given s (n_chains,), and the logarithm of its standard deviation; (n_groups, n_chains) each.
        followed : by how much the effects have followed beta from r."""
        powers = _powers(np.clip(np.log(scale / self.scale), -self.reach, self.reach))
        kept = (self.precision + self.scale**-2.0) / (self.precision + scale**-2.0)
        return self.mean @ powers + kept * followed, self.log_sd @ powers


def _powers(t):
    """From 0 to the degree; (_DEGREE + 1, len(t))."""
    return np.vander(t, 1 + _DEGREE, increasing=True).T


def _moments(of_groups, of_point, centre, sd, scale, reach):
    """The polynomials of the mean and of the logarithm of the standard deviation of u_g, by quadrature about a centre
    (n_groups,) on a grid of its standard deviations sd (n_groups,). of_point : x r of all rows (n, 1)."""
    t, grid = np.linspace(-reach, reach, _SCALES), np.linspace(-_WIDE, _WIDE, _NODES)
    least = (sd * (grid[1] - grid[0]) / 4) ** 2  # of a variance: between two nodes the grid tells nothing
    fit, fitted = np.linalg.pinv(_powers(t).T).T, []
    for first in range(0, len(centre), _TOGETHER):
        some = slice(first, first + _TOGETHER)
        u = centre[some, None] + sd[some, None] * grid
        of_rows, moments = of_groups.logliks_on_grid(of_point, u, first), []
        for s in scale * np.exp(t):
            log = of_rows - u**2 / (2 * s**2)
            share = np.exp(log - log.max(axis=1, keepdims=True))
            share /= share.sum(axis=1, keepdims=True)
            mean = (share * u).sum(axis=1)
            variance = np.maximum((share * (u - mean[:, None]) ** 2).sum(axis=1), least[some])
            moments.append((mean, np.log(variance) / 2))
        fitted.append(np.moveaxis(np.array(moments), 0, -1) @ fit)
    return np.ascontiguousarray(np.concatenate(fitted, axis=1))


def as_saved(value):
    """An array, or the number that it was: of an array of no axes, powers are rounded in another way."""
    return value.copy() if value.ndim else float(value)


class Seen:
    """Averages over states of the chains. saved : what ``arrays`` gave, or None."""

    def __init__(self, saved=None):
        self.n = 0
        self.weight = self.terms = self.effects = self.beta = self.log_scale = self.square = 0.0
        if saved is not None and f"{_SAVED}n" in saved:
            for name in vars(self):
                setattr(self, name, as_saved(saved[_SAVED + name]))
            self.n = int(self.n)

    def add(self, of_groups, known, beta, effects, scale):
        """A state: beta (m, q), effects (n_groups, m) and scale (m,). known : x beta, as in ``RowGroups.logliks``."""
        weight, terms = of_groups.curvature(*known, effects)
        self.n += 1
        self.weight, self.terms = self.weight + weight, self.terms + terms
        self.effects, self.beta = self.effects + effects.mean(axis=1), self.beta + beta.mean(axis=0)
        log = np.log(scale)
        self.log_scale, self.square = self.log_scale + log.mean(), self.square + (log**2).mean()

    def scale(self):
        """s, and how far it reaches."""
        mean = self.log_scale / self.n
        deviations, ends = _REACH
        return np.exp(mean), np.clip(deviations * np.sqrt(max(self.square / self.n - mean**2, 0.0)), *ends)

    def learn(self, rows, spare=()):
        """The information of beta (q, q) where effects follow, the map A (n_groups, q), and h (n_groups, 1). rows :
        ``Rows``."""
        weight = self.weight / self.n
        H, sums = rows.weighted_gram(weight, spare), rows.sums_by_group(weight)
        products, h = rows.columns.gradient(sums[:, : len(H)]), sums[:, -1:].copy()  # b (n_groups, q)
        share = 1.0 / (h + self.scale()[0] ** -2.0)
        along = (-products * share).astype(np.float32)
        products *= np.sqrt(share)
        H -= products.T @ products
        return H, along, h

    def made(self, along, h, point, of_groups, of_point):
        """``GroupMap`` about a point r (q,). of_point : x r of all rows (n, 1)."""
        scale, reach = self.scale()
        sd = (h[:, 0] + scale**-2.0) ** -0.5
        centre = (self.terms + h[:, 0] * self.effects) / self.n * sd**2
        centre += along @ (point - self.beta / self.n)
        return GroupMap(along, point, h, scale, reach, *_moments(of_groups, of_point, centre, sd, scale, reach))

    def arrays(self):
        """All that a later run needs to go on."""
        return {_SAVED + name: value for name, value in vars(self).items()} if self.n else {}
