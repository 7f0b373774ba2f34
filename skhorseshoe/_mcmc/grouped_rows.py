"""Rows that belong together, as a sampler of beta asks them while the effects of their groups are held.

    z_i = offset_i + x_i beta + u_g(i) + e_i,   u_g ~ N(0, s^2)

u follows beta along a map that burn-in freezes: u = delta + A (beta - r), and delta is held. With b_g = sum w_i x_i
and h_g = sum w_i over the rows of a group, w_i being their information, A_g = -b_g / (h_g + s^-2): where beta goes, the
most likely u_g goes along. What the sampler is told is log p(y, u | beta, s) as a function of beta, with its gradient
and its information H - sum_g b_g b_g' / (h_g + s^-2). A poor map costs acceptance and nothing else.
"""

import numpy as np

from .._backends import EFFECT

_NO_SWEEP = 2**32 - 1  # a number of the counter that no sweep has
_FIRST_SCALE = 0.7, 0.5  # the median of s where chains start, and the standard deviation of its logarithm
_OF_ROWS = "n", "shape", "dtype", "columns", "ops", "threads", "groups", "offset", "lines", "size", "separated_by"


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
        X, y, weight = rows.held
        kept = np.promote_types(rows.dtype, np.float32)
        how = y, weight, rows.offset, codes, self.n_groups, n_chains, kept, rows.bounds, rows.threads
        self.X, self.of_groups = X, rows.ops.RowGroups(*how)
        self.follows = False  # whether u follows beta; before the first reference it stays
        self.map = self.point = self.pending = None  # A (n_groups, q) float32; r (q,); the next A and h
        if saved is None:
            self._start()
        else:
            self._restore(saved)
        self.delta, self.kept, self.beta = self.effects, [], None  # beta (n_chains, q) where the effects are

    def _start(self):
        median, deviation = _FIRST_SCALE
        standard = self.ops.normal((self.n_chains, 1 + self.n_groups), self.key, _NO_SWEEP, EFFECT)
        self.scale = median * np.exp(deviation * standard[:, 0])  # s (n_chains,)
        self.effects = (standard[:, 1:] * self.scale[:, None]).T.copy()  # u (n_groups, n_chains)
        self.information_of_groups = np.zeros(self.n_groups)  # h

    def gram(self):
        """As ``Rows.gram``."""
        return self.rows.gram()

    def hold(self, beta):
        """From here on u goes from where it is at beta (n_chains, q); the log-density and its gradient there."""
        self.beta, self.kept = beta, []
        self.delta = self.effects if self.map is None else self.effects - self._along(beta - self.point)
        return self.score(beta)

    def at(self, beta):
        """The effects where beta (m, q) is; (n_groups, m). One point has the means of the chains, and more than there
        are chains belong to them in turn."""
        delta = self.delta
        if len(beta) != self.n_chains:
            delta = delta.mean(axis=1, keepdims=True) if len(beta) == 1 else np.tile(delta, len(beta) // self.n_chains)
        return np.ascontiguousarray(delta if self.map is None else delta + self._along(beta - self.point))

    def _along(self, change):
        """By how much the effects change with beta; (n_groups, m)."""
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
        slopes = np.zeros_like(effects) if self.map is None else self._along(direction)
        values = self.rows.line(beta, direction, steps, self.rows.shift(len(beta), effects, slopes, kept=False))
        linear, square = ((effects * slopes).sum(axis=0)[:, None], (slopes**2).sum(axis=0)[:, None])
        energy = (effects**2).sum(axis=0)[:, None] + steps * (2 * linear + steps * square)
        return values - energy * precision / 2

    def information(self, beta, spare=()):
        """That of beta, u following along the map that ``refer`` is to take; (q, q). It is measured where the chains
        are, and at a single point there."""
        beta = beta if len(beta) == 1 else self.beta
        effects = self.at(beta) if len(beta) == 1 else self.effects
        weight = self.rows.information_weights(beta, effects)
        H = self.rows.weighted_gram(weight, spare)
        if not self.follows:
            return H
        sums = self.of_groups.rows(self.X, weight)
        products = self.columns.gradient(sums[:, : len(H)])  # b (n_groups, q)
        share = 1.0 / (sums[:, -1] + np.exp(-2 * np.log(self.scale).mean()))
        self.pending = (-products * share[:, None]).astype(np.float32), sums[:, -1].copy()
        products *= np.sqrt(share)[:, None]
        H -= products.T @ products
        return H

    def refer(self, point):
        """u follows from this point on, along the map of the last information."""
        if self.pending is not None:
            (self.map, self.information_of_groups), self.pending, self.point = self.pending, None, point
            if self.beta is not None:
                self.delta = self.effects - self._along(self.beta - point)

    def stay(self):
        """u does not follow."""
        self.map, self.follows, self.delta = None, False, self.effects

    def arrays(self):
        """All that a later run needs to go on, beside what ``Rows`` has."""
        out = {"effects": self.effects, "scale": self.scale}
        if self.map is not None:
            out |= {"map": self.map, "information": self.information_of_groups}
        return {f"group_{name}": value for name, value in out.items()}

    def _restore(self, saved):
        self.effects, self.scale = saved["group_effects"].copy(), saved["group_scale"].copy()
        self.information_of_groups = np.zeros(self.n_groups)
        if "group_map" in saved:
            self.pending, self.follows = (saved["group_map"], saved["group_information"]), True
