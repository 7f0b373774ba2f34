"""Rows that belong together, as a sampler of beta asks them while the effects of their groups are held.

    z_i = offset_i + x_i beta + u_g(i) + e_i,   u_g ~ N(0, s^2)

u follows beta along a map that burn-in freezes: u = delta + A (beta - r), and delta is held. With b_g = sum w_i x_i
and h_g = sum w_i over the rows of a group, w_i being their information, A_g = -b_g / (h_g + s^-2): where beta goes, the
most likely u_g goes along. What the sampler is told is log p(y, u | beta, s) as a function of beta, with its gradient
and its information H - sum_g b_g b_g' / (h_g + s^-2). A poor map costs acceptance and nothing else.
"""

from typing import NamedTuple

import numpy as np

from .._backends import EFFECT, NO_SWEEP

_FIRST_SCALE = 0.7, 0.5  # the median of s where chains start, and the standard deviation of its logarithm
# Of slices in log s: the width to begin with of one group, the least and the largest, and the width in standard
# deviations of what it is drawn from, whose square is half of that of a step from one draw to another.
_FIRST_WIDTH, _WIDTHS, _DEVIATIONS = 14.0, (1e-3, 4.0), 8.0
_FEWEST = 25  # sweeps whose steps tell the width
_OF_ROWS = "n", "shape", "columns", "ops", "threads", "groups", "size", "gram", "lines", "separated_by"


class Told(NamedTuple):
    """What the rows of each group tell of its effect, about, where beta is at the point of the map: a Gaussian; frozen
    with the map."""

    precision: object  # h (n_groups, 1)
    towards: object  # h times the mean (n_groups, 1)
    of_prior: float  # s^-2 with which the map was made


class GroupedRows:
    """Rows with groups, and the effects of these in each chain.

    rows : ``Rows``. n_chains : chains. key : the seed. saved : what ``arrays`` gave, or None.
    """

    is_near = False

    def __init__(self, rows, n_chains, key, saved=None):
        for name in _OF_ROWS:
            setattr(self, name, getattr(rows, name))
        self.rows, self.key, self.n_chains = rows, key, n_chains
        codes, self.n_groups, self.prior_scale = rows.groups
        _, y, weight = rows.held
        kept = np.promote_types(rows.dtype, np.float32)
        how = y, weight, rows.offset, codes, self.n_groups, n_chains, kept, rows.bounds, rows.threads
        self.of_groups = rows.ops.RowGroups(*how)
        self.follows = False  # whether u follows beta; before the first reference it stays
        self.map = self.pending = None  # A (n_groups, q) float32; the next one, with what it is about
        self.point = 0.0  # r (q,)
        self.told = Told(*np.zeros((2, self.n_groups, 1)), 0.0)
        if saved is None:
            self._start()
        else:
            self._restore(saved)
        self.delta, self.kept, self.beta = self.effects, [], None  # beta (n_chains, q) where the effects are

    def _start(self):
        median, deviation = _FIRST_SCALE
        standard = self.ops.normal((self.n_chains, 1 + self.n_groups), self.key, NO_SWEEP, EFFECT)
        self.scale = median * np.exp(deviation * standard[:, 0])  # s (n_chains,)
        self.effects = (standard[:, 1:] * self.scale[:, None]).T.copy()  # u (n_groups, n_chains)
        self.widths, self.steps = np.full(2, min(_WIDTHS[1], _FIRST_WIDTH / np.sqrt(self.n_groups))), np.zeros(3)

    def hold(self, beta):
        """From here on u goes from where it is at beta (n_chains, q); the log-density and its gradient there."""
        self.beta, self.kept = beta, []
        self.delta = self.effects - self.followed(beta)
        return self.score(beta)

    def at(self, beta):
        """The effects where beta (m, q) is; (n_groups, m). One point has the means of the chains, and more than there
        are chains belong to them in turn."""
        delta = self.delta
        if len(beta) != self.n_chains:
            delta = delta.mean(axis=1, keepdims=True) if len(beta) == 1 else np.tile(delta, len(beta) // self.n_chains)
        return np.ascontiguousarray(delta + self.followed(beta))

    def followed(self, beta):
        """By how much the effects have changed from the point of the map to beta (m, q); (n_groups, m)."""
        return self.along(beta - self.point)

    def along(self, change):
        """By how much the effects change with beta (m, q); (n_groups, m)."""
        if self.map is None:
            return np.zeros((self.n_groups, len(change)))
        return (self.map @ np.ascontiguousarray(change.T, np.float32)).astype(np.float64)

    def _precision(self, m):
        """s^-2 of m points, as in ``at``; (m,)."""
        log = np.log(self.scale)
        return np.exp(-2 * (log.mean(keepdims=True) if m == 1 else np.tile(log, m // self.n_chains)))

    def score(self, beta):
        """log p(y, u | beta, s) but for a constant (m,), and its gradient (m, q)."""
        effects, precision = self.at(beta), self._precision(len(beta))
        shift = self.rows.shift(len(beta), effects)
        loglik, score = self.rows.score(beta, shift)
        loglik = loglik - (effects**2).sum(axis=0) * precision / 2
        if self.map is not None:
            score = score + (self.of_groups.sums(shift.terms) - effects * precision).T @ self.map
        if len(beta) == self.n_chains:
            self.kept = [*self.kept[:1], (beta.copy(), shift.predictors)]
        return loglik, score

    def predictors(self, beta):
        """x beta of all rows, (n, n_chains): as a score of this sweep has left it, of each chain."""
        (first, at_first), (last, at_last) = self.kept[0], self.kept[-1]
        is_last, is_first = ((point == beta).all(axis=1) for point in (last, first))
        if is_last.all():
            return at_last
        if not (is_last | is_first).all():
            self.score(beta)
            return self.kept[-1][1]
        at_last[:, ~is_last] = at_first[:, ~is_last]
        return at_last

    def line(self, beta, direction, steps):
        """log p(y, u | beta, s) at beta + step direction; (n_chains, k)."""
        effects, precision = self.at(beta), self._precision(len(beta))[:, None]
        slopes = self.along(direction)
        values = self.rows.line(beta, direction, steps, self.rows.shift(len(beta), effects, slopes, kept=False))
        linear, square = (effects * slopes).sum(axis=0)[:, None], (slopes**2).sum(axis=0)[:, None]
        energy = (effects**2).sum(axis=0)[:, None] + steps * (2 * linear + steps * square)
        return values - energy * precision / 2

    def information(self, beta, spare=()):
        """That of beta, u following along the map that ``refer`` is to take; (q, q). It is measured where the chains
        are, and at a single point there."""
        beta, effects = (beta, self.at(beta)) if len(beta) == 1 else (self.beta, self.effects)
        if not self.follows:
            return self._measured(beta, effects, spare)[0]
        H, *self.pending = self.marginal(beta, effects, self.scale, spare)
        return H

    def _measured(self, beta, effects, spare):
        """The information of beta with effects held, that of each row, and what rows are weighted by in the score."""
        shift = self.rows.shift(len(beta), effects)
        self.rows.score(beta, shift)
        weight = self.rows.information_weights(shift)
        return self.rows.weighted_gram(weight, spare), weight, shift.terms

    def marginal(self, beta, effects, scale, spare=()):
        """The information of beta (q, q) where effects follow, the map, ``Told``, and the point that they are about.
        Measured at beta (m, q), effects (n_groups, m) and scale (n_chains,)."""
        H, weight, terms = self._measured(beta, effects, spare)
        sums = self.rows.sums_by_group(weight)
        products, h = self.columns.gradient(sums[:, : len(H)]), sums[:, -1:].copy()  # b (n_groups, q)
        precision = np.exp(-2 * np.log(scale).mean())
        share, point = 1.0 / (h + precision), beta.mean(axis=0)
        towards = self.of_groups.sums(terms) + h * effects + products @ (beta - point).T
        told = Told(h, towards.mean(axis=1, keepdims=True), precision)
        along = (-products * share).astype(np.float32)
        products *= np.sqrt(share)
        H -= products.T @ products
        return H, along, told, point

    def sums_of_groups(self):
        """The number of rows of each group (n_groups, 1), and the sums of their columns (n_groups, q)."""
        sums = self.rows.sums_by_group(np.ones(self.n))
        q = self.shape[1] + self.columns.fit_intercept
        return sums[:, -1:].copy(), np.ascontiguousarray(self.columns.gradient(sums[:, :q]))

    def conditional(self, scale, along):
        """Mean and precision of u given s (n_chains,) as the map has them; (n_groups, n_chains) each. along : by how
        much the effects follow beta from the point of the map, as ``along``."""
        h, towards, precision = self.told
        total = h + scale**-2.0
        return (towards + along * (h + precision)) / total, total

    def settle(self):
        """The widths of the slices in log s, by the steps since the last time."""
        n, *squares = self.steps
        if n >= _FEWEST:
            self.widths = np.clip(_DEVIATIONS * np.sqrt(np.array(squares) / (2 * n)), *_WIDTHS)
        self.steps = np.zeros(3)

    def refer(self, point):
        """u follows from this point on, along the map of the last information."""
        if self.pending is not None:
            (self.map, self.told, at), self.pending, self.point = self.pending, None, point
            change = self.along((at - point)[None])  # of the effects to here
            self.told = self.told._replace(
                towards=self.told.towards - change * (self.told.precision + self.told.of_prior)
            )
            if self.beta is not None:
                self.delta = self.effects - self.followed(self.beta)

    def stay(self):
        """u does not follow."""
        self.map, self.follows, self.delta = None, False, self.effects

    def arrays(self):
        """All that a later run needs to go on, beside what ``Rows`` has."""
        out = {"effects": self.effects, "scale": self.scale, "widths": self.widths, "steps": self.steps}
        if self.map is not None:
            out |= {"map": self.map, "point": self.point}
            out |= {f"told_{name}": value for name, value in self.told._asdict().items()}
        return {f"group_{name}": value for name, value in out.items()}

    def _restore(self, saved):
        self.effects, self.scale = saved["group_effects"].copy(), saved["group_scale"].copy()
        self.widths, self.steps = saved["group_widths"].copy(), saved["group_steps"].copy()
        if "group_map" in saved:
            self.map, self.point, self.follows = saved["group_map"], saved["group_point"], True
            self.told = Told(*(saved[f"group_told_{name}"] for name in Told._fields))
