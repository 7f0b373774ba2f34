"""Rows with groups as a sampler of beta sees them, while the effects of the groups are held.

    z_i = offset_i + x_i beta + u_g(i) + e_i,   u_g ~ N(0, s^2)

u follows beta along a map that burn-in freezes (``group_map.py``): u = delta + A (beta - r), and delta is held. The
sampler gets log p(y, u | beta, s) as a function of beta, its gradient, and the information along the map. A poor map
costs acceptance and nothing else.
"""

import numpy as np
from scipy.special import ndtr

from .._backends import EFFECT_PURPOSE, NO_SWEEP
from .group_map import GroupMap, MapAverages, as_saved
from .known_predictors import KnownPredictors

_FIRST_SHARES = 0.05, 0.95  # shares of the prior of s between which chains start
# Width of slices in log s: the first one, for one group; its bounds; and in standard deviations of the law, whose
# variance is half the mean square of a step from draw to draw.
_FIRST_WIDTH, _LEAST_WIDTH, _LARGEST_WIDTH, _WIDTH_IN_DEVIATIONS = 14.0, 1e-3, 4.0, 8.0
_FEWEST_TUNING_SWEEPS = 25  # least number of sweeps whose steps tune the width
_SHARED = "n", "shape", "columns", "is_sparse", "likelihood", "ops", "threads", "groups"
_SHARED += "size", "gram", "lines", "separated_by"


class GroupedRows:
    """Rows with groups, and the effects of these in each chain.

    rows : ``Rows``. n_chains : chains. key : the seed. saved : what ``arrays`` gave, or None.
    """

    takes_fused_calls = False

    def __init__(self, rows, n_chains, key, saved=None):
        for name in _SHARED:
            setattr(self, name, getattr(rows, name))
        self.rows, self.key, self.n_chains = rows, key, n_chains
        codes, self.n_groups, self.prior_scale = rows.groups
        _, y, weight = rows.held
        dtype = np.promote_types(rows.dtype, np.float32)
        self.row_groups = rows.ops.RowGroups(
            y, weight, rows.offset, codes, self.n_groups, n_chains, dtype, rows.bounds, rows.threads, rows.likelihood
        )
        self.follows = False  # whether u follows beta; not before the first reference
        self.map, self.pending = GroupMap.none(self.n_groups), None  # and what the next map is computed from
        self.point_predictors = None  # x r of all rows (n, 1)
        if saved is None:
            self._start()
        else:
            self._restore(saved)
        self.known, self.averages = KnownPredictors(saved), MapAverages(saved)
        self.delta, self.beta = self.effects, self.known.grown  # (n_chains, q) where the effects are

    def _start(self):
        # Each chain starts in its own part of the prior of s, so that R-hat sees what the chains have not left.
        standard = self.ops.normal((self.n_chains, 1 + self.n_groups), self.key, NO_SWEEP, EFFECT_PURPOSE)
        least, most = _FIRST_SHARES
        share = least + (most - least) * (np.arange(self.n_chains) + ndtr(standard[:, 0])) / self.n_chains
        self.scale = self.prior_scale * np.tan(share * np.pi / 2)  # s (n_chains,)
        self.effects = (standard[:, 1:] * self.scale[:, None]).T.copy()  # u (n_groups, n_chains)
        self.widths, self.steps = np.full(2, min(_LARGEST_WIDTH, _FIRST_WIDTH / np.sqrt(self.n_groups))), np.zeros(3)

    def set_origin(self, beta):
        """Take beta (n_chains, q) as where the effects are; u follows from there."""
        self.beta, self.delta = beta, self.effects - self.followed(beta)

    def begin_sweep(self, beta):
        """``set_origin``, and the log-density (n_chains,) and its gradient (n_chains, q) there."""
        self.set_origin(beta)
        known, m = self.known, self.n_chains
        if not known.are_of(beta):
            known.begin(beta, self._predictors(beta))
        self._recall()
        common = None
        if self.map.along is not None:  # one pass finds the gradient at the point of the map too
            if self.point_predictors is None:
                self.point_predictors = self._predictors(self.map.point[None])
            beta, common = np.concatenate([beta, np.tile(self.map.point, (m, 1))]), self.point_predictors[:, 0]
        loglik, score, _ = self._score(beta, known, common)
        self.reference_score = score[m:]  # (n_chains, q) at the point of the map, with u that has followed to there
        return loglik[:m], score[:m]

    def at(self, beta):
        """The effects at beta (m, q); (n_groups, m). One point has the means of the chains; of more points than chains,
        each block of n_chains has the effects of the chains."""
        delta = self.delta
        if len(beta) != self.n_chains:
            delta = delta.mean(axis=1, keepdims=True) if len(beta) == 1 else np.tile(delta, len(beta) // self.n_chains)
        return np.ascontiguousarray(delta + self.followed(beta))

    def followed(self, beta):
        """How much effects change while beta moves from the point of the map to beta (m, q); (n_groups, m)."""
        return self.map.followed(beta - self.map.point)

    def _precision(self, m):
        """s^-2 of m points, as in ``at``; (m,)."""
        log_scale = np.log(self.scale)
        return np.exp(-2 * (log_scale.mean(keepdims=True) if m == 1 else np.tile(log_scale, m // self.n_chains)))

    def score(self, beta):
        """log p(y, u | beta, s) up to a constant (m,), and its gradient (m, q)."""
        loglik, score, predictors = self._score(beta)
        if len(beta) == self.n_chains:
            self.known.add_pass(beta, predictors)
        return loglik, score

    def _score(self, beta, known=None, common=None):
        """As ``score``, and x beta of all rows (n, m) if it was not known. known, common : as in ``Rows.shift``."""
        effects, precision = self.at(beta), self._precision(len(beta))
        shift = self.rows.shift(len(beta), effects, known=known, common=common)
        loglik, score = self.rows.score(beta, shift)
        loglik = loglik - (effects**2).sum(axis=0) * precision / 2
        if self.map.along is not None:
            score = score + (self.row_groups.sums(shift.terms) - effects * precision).T @ self.map.along
        return loglik, score, shift.predictors

    def _predictors(self, beta):
        """x beta of all rows, (n, m)."""
        shift = self.rows.shift(len(beta))
        self.rows.score(beta, shift)  # leaves x beta in shift.predictors
        return shift.predictors

    def _recall(self):
        """Compute the predictors that an earlier run had when it stopped."""
        if self.known.values is None and self.known.beta is not None:
            self.known.values = self._predictors(self.known.beta)

    def predictors(self, beta):
        """``KnownPredictors`` of beta at the end of a sweep."""
        self._recall()
        if not self.known.end(beta):
            self.known.begin(beta, self._predictors(beta))
        return self.known

    def line(self, beta, direction, steps):
        """log p(y, u | beta, s) at beta + step direction; (n_chains, k)."""
        effects, precision = self.at(beta), self._precision(len(beta))[:, None]
        slopes = self.map.followed(direction)
        values = self.rows.line(beta, direction, steps, self.rows.shift(len(beta), effects, slopes, kept=False))
        linear, square = (effects * slopes).sum(axis=0)[:, None], (slopes**2).sum(axis=0)[:, None]
        energy = (effects**2).sum(axis=0)[:, None] + steps * (2 * linear + steps * square)
        return values - energy * precision / 2

    def add_to_averages(self):
        """Add the state of the chains to the averages for the next map."""
        self.averages.add(self.row_groups, self.predictors(self.beta), self.effects, self.scale)

    def information(self, beta, spare=()):
        """The information of beta (q, q) with u following along the map that ``set_reference`` will take, by the
        averages; if u does not follow, the information at beta (m, q)."""
        if not self.follows:
            return self.rows.gram(spare=spare, weight=self.rows.information_weights(beta, self.at(beta)))
        if not self.averages.n:
            self.add_to_averages()
        H, along, h = self.averages.information(self.rows, spare)
        self.pending, self.averages = (self.averages, along, h), MapAverages()
        return H

    def marginal(self, beta, effects, scale):
        """The information of beta (q, q) with u following, by one state of the chains."""
        averages, known = MapAverages(), KnownPredictors()
        known.begin(beta, self._predictors(beta))
        averages.add(self.row_groups, known, effects, scale)
        return averages.information(self.rows)[0]

    def sums_of_groups(self):
        """The number of rows of each group (n_groups, 1), and the sums of their columns (n_groups, q)."""
        sums = self.rows.sums_by_group(np.ones(self.n))
        q = self.shape[1] + self.columns.fit_intercept
        return sums[:, -1:].copy(), np.ascontiguousarray(self.columns.gradient(sums[:, :q]))

    def tune_widths(self):
        """Tune the widths of slices in log s to the steps since the last call."""
        n, *squares = self.steps
        if n >= _FEWEST_TUNING_SWEEPS:
            widths = _WIDTH_IN_DEVIATIONS * np.sqrt(np.array(squares) / (2 * n))
            self.widths = np.clip(widths, _LEAST_WIDTH, _LARGEST_WIDTH)
        self.steps = np.zeros(3)

    def set_reference(self, point):
        """Let u follow about this point (q,), along the map of the last ``information``."""
        if self.pending is not None:
            (averages, along, h), self.pending = self.pending, None
            self.point_predictors = self._predictors(point[None])
            self.map = averages.group_map(along, h, point, self.row_groups, self.point_predictors)
            self.delta = self.effects - self.followed(self.beta)

    def stay(self, beta):
        """Let u stay as it is at beta (n_chains, q)."""
        self.map, self.follows = GroupMap.none(self.n_groups), False
        self.set_origin(beta)

    def arrays(self):
        """Everything that a later run needs to go on, but for ``Rows``."""
        out = {"effects": self.effects, "scale": self.scale, "widths": self.widths, "steps": self.steps}
        if self.map.along is not None:
            out |= {f"map_{name}": value for name, value in self.map._asdict().items()}
        return {f"group_{name}": value for name, value in out.items()} | self.known.arrays() | self.averages.arrays()

    def _restore(self, saved):
        self.effects, self.scale = saved["group_effects"].copy(), saved["group_scale"].copy()
        self.widths, self.steps = saved["group_widths"].copy(), saved["group_steps"].copy()
        if "group_map_along" in saved:
            self.map = GroupMap._make(as_saved(saved[f"group_map_{name}"]) for name in GroupMap._fields)
            self.follows = True
