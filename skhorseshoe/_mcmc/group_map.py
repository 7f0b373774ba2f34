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

from .group_couplings import Couplings

_SAVED = "group_seen_"  # prefix of the names of saved arrays
_DEGREE = 3  # degree of the polynomials in log s
_REACH = 4.0, 0.3, 2.0  # largest |log(s / s_0)| of the polynomials: in standard deviations of log s; and its bounds
_SCALES = 7  # number of scales s at which the polynomials are fitted
_NODES, _GRID_END, _BEND = 25, 5.0, 2.0  # of grids in u: nodes; the end, in s; where they get wider, in deviations
_NEWTON_STEPS = 6  # number of steps to the most likely effects of a scale, from those of the scale before
_GRIDS_AT_ONCE = 2**13  # number of groups whose grids are in memory at a time


class Followed(NamedTuple):
    """How much effects have changed while beta moved from the point of a map to c beta: c linear - held + slope log c.

    Each is (n_groups, n_chains), or (n_groups, 1) where chains are alike."""

    linear: object
    held: object
    slope: object = 0.0  # (n_groups, 1); log c is added to the logarithms of gaps of cut points


class GroupMap(NamedTuple):
    """The map, and the law of each effect given its rows and beta = r, as polynomials in t = log(s / s_0).

    Below the reach of the polynomials the prior is all that an effect knows, so that u_g goes on in proportion to s.
    Above it u_g goes on with a power of s: that of a group of one class is near 1, as its u_g is about half-normal with
    deviation s; that of a group with both classes is near 0, as its rows bound u_g."""

    along: object  # A (n_groups, q) float32; None where effects do not follow
    point: object  # r (q,)
    precision: object  # h (n_groups, 1)
    scale: float  # s_0, the scale for which A was computed
    reach: float  # the largest |t| of the polynomials
    ratio: object  # (n_groups, _DEGREE + 1) coefficients of the mean of u_g over its deviation, in powers of t
    log_sd: object  # (n_groups, _DEGREE + 1) coefficients of the logarithm of its standard deviation
    power: object  # (n_groups, 1) the power of s with which u_g grows beyond the reach

    @classmethod
    def none(cls, n_groups):
        """The map of effects that do not follow, with no knowledge of them but their scale."""
        slope = np.zeros((n_groups, 1 + _DEGREE))
        slope[:, 1] = 1.0
        zero = np.zeros((n_groups, 1))
        return cls(None, np.zeros(1), zero, 1.0, np.inf, np.zeros_like(slope), slope, zero)

    def followed(self, beta):
        """``change_along`` this map."""
        return change_along(self.along, len(self.precision), beta)

    @property
    def laws(self):
        """The fields of ``EffectLaws`` (``_backends/core/group_scales.hpp``)."""
        return self.ratio, self.log_sd, self.power, self.precision, self.scale, self.reach


def change_along(along, n, beta):
    """How much n effects change while beta moves from 0 to beta (m, q) and they follow along A, or None; (n, m)."""
    if along is None:
        return np.zeros((n, len(beta)))
    return (along @ np.ascontiguousarray(beta.T, np.float32)).astype(np.float64)


def nodes_about(mode, sd, s, widest=None):
    """Nodes (n_groups, k), closer to one another about the mode (n_groups,), and the gaps between them.

    sd (n_groups,) is by the curvature at the mode. The effect of a group of one class may be as wide as s, so that the
    nodes reach ``_GRID_END`` s beyond zero and the mode. widest : the gap between nodes before they bend, in units of
    ``_BEND`` sd; by default there are ``_NODES``."""
    unit = _BEND * sd[:, None]
    end = np.arcsinh((_GRID_END * s + abs(mode))[:, None] / unit)
    k = _NODES if widest is None else int(np.ceil(2 * end.max() / widest)) + 1
    t = end * np.linspace(-1.0, 1.0, k)
    return mode[:, None] + unit * np.sinh(t), unit * np.cosh(t) * (2.0 / (k - 1) * end)


def _modes(row_groups, given, u, s):
    """The most likely effects given s (n_groups,) from u on, and the information of the rows there.

    The density is log-concave: a step of Newton's that leaves the interval in which the mode must lie halves it."""
    low, high = np.full(len(u), -np.inf), np.full(len(u), np.inf)
    for _ in range(_NEWTON_STEPS):
        curvature, slope = row_groups.curvature(given, u[:, None])
        h = np.maximum(np.bincount(row_groups.codes, curvature, row_groups.n), 0.0)
        slope = slope - u * s**-2.0
        low, high = np.where(slope > 0.0, u, low), np.where(slope < 0.0, u, high)
        step = u + slope / (h + s**-2.0)
        outside = ((step < low) | (step > high)) & (high - low < np.inf)
        u = np.where(outside, np.where(outside, low, 0.0) / 2 + np.where(outside, high, 0.0) / 2, step)
    return u, h


def _moments(row_groups, given, mode, h, s):
    """The mean of u_g given s over its deviation, and the logarithm of that, by quadrature; (2, n_groups).

    mode, h : as ``_modes`` gives them. A deviation is a quarter of a gap at least: nodes resolve no less."""
    out = []
    for u, gap, log in _on_grids(row_groups, given, mode, h, s):
        share = np.exp(log - log.max(axis=1, keepdims=True)) * gap
        share /= share.sum(axis=1, keepdims=True)
        mean = (share * u).sum(axis=1)
        variance = (share * (u - mean[:, None]) ** 2).sum(axis=1)
        sd = np.sqrt(np.maximum(variance, ((share * gap).sum(axis=1) / 4) ** 2))
        out.append((mean / sd, np.log(sd)))
    return np.concatenate(out, axis=1)


def _on_grids(row_groups, given, mode, h, s):
    """Yields nodes, gaps and the log-density of u but for a constant, each (n, n_nodes), of some groups at a time."""
    for first in range(0, len(mode), _GRIDS_AT_ONCE):
        some = slice(first, first + _GRIDS_AT_ONCE)
        u, gap = nodes_about(mode[some], (h[some] + s**-2.0) ** -0.5, s)
        yield u, gap, row_groups.logliks_on_grid(given, u, first) - u**2 / (2 * s**2)


def marginal_logliks(row_groups, given, s):
    """The logarithm of the likelihood of the rows of each group, averaged over u_g ~ N(0, s^2); (n_groups,).

    given : ``Given`` of one chain."""
    mode, h = _modes(row_groups, given, np.zeros(row_groups.n), s)
    out = []
    for _, gap, log in _on_grids(row_groups, given, mode, h, s):
        most = log.max(axis=1)
        out.append(most + np.log((np.exp(log - most[:, None]) * gap).sum(axis=1)))
    return np.concatenate(out) - np.log(s * np.sqrt(2 * np.pi))


def _laws(row_groups, given, scale, reach):
    """The polynomials of ``GroupMap`` and the powers beyond them. given : ``Given`` of the point r."""
    t, mode, moments = np.linspace(-reach, reach, _SCALES), np.zeros(row_groups.n), []
    for s in scale * np.exp(t):
        mode, h = _modes(row_groups, given, mode, s)
        moments.append(_moments(row_groups, given, mode, h, s))
    moments = np.moveaxis(np.array(moments), 0, -1)  # (2, n_groups, _SCALES)
    power = (moments[1, :, -1:] - moments[1, :, -2:-1]) / (t[-1] - t[-2])
    polynomials = moments @ np.linalg.pinv(np.vander(t, 1 + _DEGREE, increasing=True)).T
    return *np.ascontiguousarray(polynomials), np.clip(power, 0.0, 1.0)


def as_saved(value):
    """An array, or a number if it was one: powers of an array without axes are rounded in another way."""
    return value.copy() if np.ndim(value) else float(value)


class GroupState(NamedTuple):
    """Of all factors at a moment."""

    beta: np.ndarray  # (m, q), or with parameters of the likelihood's own (m, q + k)
    effects: np.ndarray  # (n_effects, m)
    scale: np.ndarray  # (m,), or of several factors (n_factors, m)
    partial: np.ndarray  # ``SlopesOfFactor.partial`` of effects of one factor (n_factors, n_factors), zero of others

    def copied(self):
        return GroupState(*(values.copy() for values in self))


class MapAverages:
    """Averages over states of the chains, from which the maps of all factors come. saved : of ``arrays``, or None."""

    def __init__(self, saved=None):
        self.n = 0
        self.weight = self.log_scale = self.square = self.centre = self.beta = 0.0
        self.with_own = self.of_own = self.partial = 0.0
        if saved is not None and f"{_SAVED}n" in saved:
            for name in [name for name in vars(self) if _SAVED + name in saved]:
                setattr(self, name, as_saved(saved[_SAVED + name]))
            self.n = int(self.n)

    @classmethod
    def of(cls, terms, state):
        out = cls()
        out.add(terms, state)
        return out

    def add(self, terms, state):
        """Add a ``GroupState``. terms : information of rows about eta (n,), and with parameters of the likelihood's
        own, or else None, that about both (n, k) and about these (k, k)."""
        (weight, with_own, of_own), (beta, effects, scale, partial) = terms, state
        self.n, self.weight = self.n + 1, self.weight + weight
        if with_own is not None:
            self.with_own, self.of_own = self.with_own + with_own, self.of_own + of_own
        log_scale, self.beta = np.log(scale), self.beta + beta.mean(axis=0)
        self.log_scale = self.log_scale + log_scale.mean(axis=-1)
        self.square = self.square + (log_scale**2).mean(axis=-1)
        if scale.ndim > 1:
            self.centre = self.centre + effects.mean(axis=1)
        self.partial = self.partial + partial

    def scale(self, k):
        """s_0 of a factor, and the reach of its polynomials."""
        log_scale, square = (sums if np.ndim(sums) == 0 else sums[k] for sums in (self.log_scale, self.square))
        mean = log_scale / self.n
        deviations, least, most = _REACH
        return np.exp(mean), np.clip(deviations * np.sqrt(max(square / self.n - mean**2, 0.0)), least, most)

    def precision(self, family):
        """Sigma_0^-1 (q, q) of a factor with slopes."""
        own = self.partial[family.among_factors] / self.n
        scales = np.array([self.scale(one.number)[0] for one in family.components])
        return own / scales[:, None] / scales

    def maps(self, rows, factors, families=()):
        """A (n_effects, q), b (n_effects, q) and h (n_effects, 1); and the ``Couplings`` of several factors, or None.
        rows : ``Rows``."""
        weight, parts = self.weight / self.n, []
        for factor in factors:
            codes, of_rows = factor.row_groups.codes, factor.times_slope(weight)
            sums, h = rows.sampler_sums(of_rows, codes, factor.n)
            if factor.slope is not None:
                h = np.bincount(codes, factor.times_slope(of_rows), factor.n)[:, None]
            parts.append((sums, h))
        products, h = (np.concatenate(of_all) for of_all in zip(*parts, strict=True))
        if np.ndim(self.with_own):
            sums = [f.row_groups.sums(np.ascontiguousarray(self.with_own / self.n, f.dtype)) for f in factors]
            products = np.hstack([products, np.concatenate(sums)])
        own = np.concatenate([np.full((factor.n, 1), self.scale(k)[0] ** -2.0) for k, factor in enumerate(factors)])
        if len(factors) > 1:
            precisions = [(family, self.precision(family)) for family in families]
            couplings = Couplings(factors, weight, rows.ops, precisions)
            return couplings.followed(products, h + own), products, h, couplings
        return -products / (h + own), products, h, None

    def information(self, rows, factors, spare=(), families=()):
        """The information of beta (q, q) with u following, A (n_effects, q) and h (n_effects, 1). rows : ``Rows``."""
        H = rows.gram(spare=spare, weight=self.weight / self.n)
        if np.ndim(self.with_own):
            H = rows.bordered(H, self.with_own / self.n, self.of_own / self.n)
        A, products, h, couplings = self.maps(rows, factors, families)
        if couplings is None:
            H += A.T @ products
        else:
            linear = A.T @ products
            H += linear + linear.T + A.T @ couplings.times(A.T).T
        return H, A.astype(np.float32), h

    def freeze(self, factors, along, h, point, given):
        """Give each factor its ``GroupMap`` about a point r (q,). given : ``Given`` of this point."""
        for k, factor in enumerate(factors):
            (scale, reach), at = self.scale(k), given
            if factor.family is not None:
                none = GroupMap.none(factor.n)
                factor.map = none._replace(along=along[factor.part], point=point, precision=h[factor.part], scale=scale)
                continue
            if len(factors) > 1:
                others = sum(f.times_slope(self.centre[f.part][f.row_groups.codes]) for f in factors if f is not factor)
                at = given._replace(values=(given.values + (others / self.n)[:, None]).astype(given.values.dtype))
            laws = _laws(factor.row_groups, at, scale, reach)
            factor.map = GroupMap(along[factor.part], point, h[factor.part], scale, reach, *laws)

    def arrays(self):
        """Everything that a later run needs to go on."""
        return {_SAVED + name: value for name, value in vars(self).items()} if self.n else {}
