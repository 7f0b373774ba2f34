"""Rows that belong together, as a sampler of beta asks them while the effects of their groups are held.

    z_i = offset_i + x_i beta + u_g(i) + e_i,   u_g ~ N(0, s^2)

u follows beta along a map that burn-in freezes (``group_map.py``): u = delta + A (beta - r), and delta is held. What
the sampler is told is log p(y, u | beta, s) as a function of beta, with its gradient, and the information along the
map. A poor map costs acceptance and nothing else.
"""

import numpy as np

from .._backends import EFFECT, NO_SWEEP
from .group_map import GroupMap, Seen, as_saved
from .known_predictors import KnownPredictors

_FIRST_SCALE = 0.7, 0.5  # the median of s where chains start, and the standard deviation of its logarithm
# Of slices in log s: the width to begin with of one group, the least and the largest, and the width in standard
# deviations of what it is drawn from, whose square is half of that of a step from one draw to another.
_FIRST_WIDTH, _WIDTHS, _DEVIATIONS = 14.0, (1e-3, 4.0), 8.0
_FEWEST = 25  # sweeps whose steps tell the width
_OF_ROWS = "n", "shape", "columns", "ops", "threads", "groups", "size", "gram", "lines", "separated_by"


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
        self.map, self.pending = GroupMap.none(self.n_groups), None  # and the next one
        self.of_point = None  # x r of all rows (n, 1)
        if saved is None:
            self._start()
        else:
            self._restore(saved)
        self.known, self.seen = KnownPredictors(saved), Seen(saved)
        self.delta, self.beta = self.effects, self.known.grown  # (n_chains, q) where the effects are

    def _start(self):
        median, deviation = _FIRST_SCALE
        standard = self.ops.normal((self.n_chains, 1 + self.n_groups), self.key, NO_SWEEP, EFFECT)
        self.scale = median * np.exp(deviation * standard[:, 0])  # s (n_chains,)
        self.effects = (standard[:, 1:] * self.scale[:, None]).T.copy()  # u (n_groups, n_chains)
        self.widths, self.steps = np.full(2, min(_WIDTHS[1], _FIRST_WIDTH / np.sqrt(self.n_groups))), np.zeros(3)

    def stand(self, beta):
        """From here on u goes from where it is at beta (n_chains, q)."""
        self.beta, self.delta = beta, self.effects - self.followed(beta)

    def hold(self, beta):
        """The same; the log-density (n_chains,) and its gradient (n_chains, q) there."""
        self.stand(beta)
        known, m = self.known, self.n_chains
        if not known.are_of(beta):
            known.begin(beta, self._predictors(beta))
        self._recall()
        how = {"known": known.values, "factor": known.factor}
        if self.map.along is not None:  # one pass finds the gradient at the point of the map too
            if self.of_point is None:
                self.of_point = self._predictors(self.map.point[None])
            beta, how["common"] = np.concatenate([beta, np.tile(self.map.point, (m, 1))]), self.of_point[:, 0]
        loglik, score, _ = self._score(beta, **how)
        self.slope = score[m:]  # (n_chains, q) at the point of the map, u of each chain having gone along to there
        return loglik[:m], score[:m]

    def at(self, beta):
        """The effects where beta (m, q) is; (n_groups, m). One point has the means of the chains, and more than there
        are chains belong to them in turn."""
        delta = self.delta
        if len(beta) != self.n_chains:
            delta = delta.mean(axis=1, keepdims=True) if len(beta) == 1 else np.tile(delta, len(beta) // self.n_chains)
        return np.ascontiguousarray(delta + self.followed(beta))

    def followed(self, beta):
        """By how much the effects have changed from the point of the map to beta (m, q); (n_groups, m)."""
        return self.map.followed(beta - self.map.point)

    def _precision(self, m):
        """s^-2 of m points, as in ``at``; (m,)."""
        log = np.log(self.scale)
        return np.exp(-2 * (log.mean(keepdims=True) if m == 1 else np.tile(log, m // self.n_chains)))

    def score(self, beta):
        """log p(y, u | beta, s) but for a constant (m,), and its gradient (m, q)."""
        loglik, score, predictors = self._score(beta)
        if len(beta) == self.n_chains:
            self.known.see(beta, predictors)
        return loglik, score

    def _score(self, beta, **known):
        """The same, and x beta of all rows (n, m) where it was not known. known : as in ``Rows.shift``."""
        effects, precision = self.at(beta), self._precision(len(beta))
        shift = self.rows.shift(len(beta), effects, **known)
        loglik, score = self.rows.score(beta, shift)
        loglik = loglik - (effects**2).sum(axis=0) * precision / 2
        if self.map.along is not None:
            score = score + (self.of_groups.sums(shift.terms) - effects * precision).T @ self.map.along
        return loglik, score, shift.predictors

    def _predictors(self, beta):
        """x beta of all rows, (n, m)."""
        shift = self.rows.shift(len(beta))
        self.rows.score(beta, shift)
        return shift.predictors

    def _recall(self):
        """Compute what a run that goes on had before it stopped."""
        if self.known.values is None and self.known.beta is not None:
            self.known.values = self._predictors(self.known.beta)

    def predictors(self, beta):
        """x beta of all rows but for a factor, (n, n_chains), and the factor (n_chains,), at the end of a sweep."""
        self._recall()
        if not self.known.end(beta):
            self.known.begin(beta, self._predictors(beta))
        return self.known.values, self.known.factor

    def line(self, beta, direction, steps):
        """log p(y, u | beta, s) at beta + step direction; (n_chains, k)."""
        effects, precision = self.at(beta), self._precision(len(beta))[:, None]
        slopes = self.map.followed(direction)
        values = self.rows.line(beta, direction, steps, self.rows.shift(len(beta), effects, slopes, kept=False))
        linear, square = (effects * slopes).sum(axis=0)[:, None], (slopes**2).sum(axis=0)[:, None]
        energy = (effects**2).sum(axis=0)[:, None] + steps * (2 * linear + steps * square)
        return values - energy * precision / 2

    def see(self):
        """Add to what has been seen of the rows, where the chains are."""
        self.seen.add(self.of_groups, self.predictors(self.beta), self.beta, self.effects, self.scale)

    def information(self, beta, spare=()):
        """That of beta, u following along the map that ``refer`` is to take, by what has been seen; (q, q). Where u
        stays, that at beta (m, q)."""
        if not self.follows:
            shift = self.rows.shift(len(beta), self.at(beta))
            self.rows.score(beta, shift)
            return self.rows.weighted_gram(self.rows.information_weights(shift), spare)
        if not self.seen.n:
            self.see()
        H, *learnt = self.seen.learn(self.rows, spare)
        self.pending, self.seen = (self.seen, *learnt), Seen()
        return H

    def marginal(self, beta, effects, scale):
        """The information of beta (q, q) where effects follow, by a state of the chains."""
        seen = Seen()
        seen.add(self.of_groups, (self._predictors(beta), np.ones(len(beta))), beta, effects, scale)
        return seen.learn(self.rows)[0]

    def sums_of_groups(self):
        """The number of rows of each group (n_groups, 1), and the sums of their columns (n_groups, q)."""
        sums = self.rows.sums_by_group(np.ones(self.n))
        q = self.shape[1] + self.columns.fit_intercept
        return sums[:, -1:].copy(), np.ascontiguousarray(self.columns.gradient(sums[:, :q]))

    def settle(self):
        """The widths of the slices in log s, by the steps since the last time."""
        n, *squares = self.steps
        if n >= _FEWEST:
            self.widths = np.clip(_DEVIATIONS * np.sqrt(np.array(squares) / (2 * n)), *_WIDTHS)
        self.steps = np.zeros(3)

    def refer(self, point):
        """u follows from this point on, along the map of the last information."""
        if self.pending is not None:
            (seen, *learnt), self.pending = self.pending, None
            self.of_point = self._predictors(point[None])
            self.map = seen.made(*learnt, point, self.of_groups, self.of_point)
            self.delta = self.effects - self.followed(self.beta)

    def stay(self, beta):
        """u does not follow from where it is at beta (n_chains, q)."""
        self.map, self.follows = GroupMap.none(self.n_groups), False
        self.stand(beta)

    def arrays(self):
        """All that a later run needs to go on, beside what ``Rows`` has."""
        out = {"effects": self.effects, "scale": self.scale, "widths": self.widths, "steps": self.steps}
        if self.map.along is not None:
            out |= {f"map_{name}": value for name, value in self.map._asdict().items()}
        return {f"group_{name}": value for name, value in out.items()} | self.known.arrays() | self.seen.arrays()

    def _restore(self, saved):
        self.effects, self.scale = saved["group_effects"].copy(), saved["group_scale"].copy()
        self.widths, self.steps = saved["group_widths"].copy(), saved["group_steps"].copy()
        if "group_map_along" in saved:
            self.map = GroupMap(*(as_saved(saved[f"group_map_{name}"]) for name in GroupMap._fields))
            self.follows = True
