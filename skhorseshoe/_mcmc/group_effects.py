"""The block of the effects u of groups of rows and of their standard deviation s ~ C+(0, scale)."""

import numpy as np
from scipy.special import ndtr

from .._backends import EFFECT_PURPOSE, NO_SWEEP
from . import group_moves
from .blocks import Block
from .effects_integrated_out import MarginalPrecision, products_kept, sweep_given_latents
from .group_draws import ROOM_BYTES, GroupDraws
from .group_map import GroupMap, MapAverages, as_saved
from .known_predictors import KnownPredictors
from .rows_given_effects import RowsGivenEffects

_FIRST_SHARES = 0.05, 0.95  # shares of the prior of s between which chains start
# Width of slices in log s: the first one, for one group; its bounds; and in standard deviations of the law, whose
# variance is half the mean square of a step from draw to draw.
_FIRST_WIDTH, _LEAST_WIDTH, _LARGEST_WIDTH, _WIDTH_IN_DEVIATIONS = 14.0, 1e-3, 4.0, 8.0
_FEWEST_TUNING_SWEEPS = 25  # least number of sweeps whose steps tune the width
_SWEEPS_BETWEEN_STATES = 3  # sweeps from one state that is added to the averages of the map to the next
_MEASURED = "measured_beta", "measured_effects", "measured_scale"  # names of saved arrays


class GroupEffects(Block):
    """u and s of each chain, and how u follows beta.

    problem : ``Problem``, with ``Rows``. n_chains : chains. saved : what ``arrays`` gave, or None.
    """

    def __init__(self, problem, n_chains, saved=None):
        rows, self.fixed, self.tau_0, self.key = problem
        self.rows, self.ops, self.columns = RowsGivenEffects(rows, self), rows.ops, rows.columns
        self.n_chains = n_chains
        codes, self.n_groups, self.prior_scale = rows.groups
        _, y, weight = rows.held
        dtype = np.promote_types(rows.dtype, np.float32)
        self.row_groups = rows.ops.RowGroups(
            y, weight, rows.offset, codes, self.n_groups, n_chains, dtype, rows.bounds, rows.threads, rows.likelihood
        )
        self.follows = False  # whether u follows beta; not before the first reference
        self.map, self.pending = GroupMap.none(self.n_groups), None  # and what the next map is computed from
        self.point_predictors = None  # x r of all rows (n, 1)
        self.measured = None  # beta, u and s at which the shrinkage is measured, where there is no reference
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

    # What rows ask for.

    def at(self, beta):
        """The effects at beta (m, q); (n_groups, m). One point has the means of the chains; of more points than chains,
        each block of n_chains has the effects of the chains."""
        delta = self.delta
        if len(beta) != self.n_chains:
            delta = delta.mean(axis=1, keepdims=True) if len(beta) == 1 else np.tile(delta, len(beta) // self.n_chains)
        return np.ascontiguousarray(delta + self._followed(beta))

    def precisions(self, m):
        """s^-2 of m points, as in ``at``; (m,)."""
        log_scale = np.log(self.scale)
        return np.exp(-2 * (log_scale.mean(keepdims=True) if m == 1 else np.tile(log_scale, m // self.n_chains)))

    def _followed(self, beta):
        """How much effects change while beta moves from the point of the map to beta (m, q); (n_groups, m)."""
        return self.map.followed(beta - self.map.point)

    def add_pass(self, beta, predictors):
        """Keep the predictors of a pass at beta (m, q) within a trajectory."""
        if len(beta) == self.n_chains:
            self.known.add_pass(beta, predictors)

    def next_information(self, spare):
        """The information of beta (q, q) with u following along the map that ``set_reference`` will take, by the
        averages."""
        if not self.averages.n:
            self._add_to_averages()
        H, along, h = self.averages.information(self.rows.rows, spare)
        self.pending, self.averages = (self.averages, along, h), MapAverages()
        return H

    def information_where_measured(self):
        """The information of beta (q, q) with u following, by the one state that ``mark`` kept."""
        averages, known = MapAverages(), KnownPredictors()
        beta, effects, scale = self.measured
        known.begin(beta, self.rows.predictors(beta))
        averages.add(self.row_groups, known, effects, scale)
        return averages.information(self.rows.rows)[0]

    # Sweeps.

    def sweep(self, state, law):
        """As in ``Block``; the law moves beta with delta held. state : of any sampler that asks rows for the score."""
        loglik, score = self.begin_sweep(state.beta)
        new = law(state._replace(loglik=loglik, score=score))
        beta, tau_sq_inv = group_moves.move_effects_and_scale(self, new.beta, new.tau_sq_inv, state.sweep)
        return new._replace(beta=beta, tau_sq_inv=tau_sq_inv)

    def begin_sweep(self, beta):
        """``set_origin``, and the log-density (n_chains,) and its gradient (n_chains, q) there."""
        self.set_origin(beta)
        known, m = self.known, self.n_chains
        if not known.are_of(beta):
            known.begin(beta, self.rows.predictors(beta))
        self._recall()
        common = None
        if self.map.along is not None:  # one pass finds the gradient at the point of the map too
            if self.point_predictors is None:
                self.point_predictors = self.rows.predictors(self.map.point[None])
            beta, common = np.concatenate([beta, np.tile(self.map.point, (m, 1))]), self.point_predictors[:, 0]
        loglik, score, _ = self.rows.score_and_predictors(beta, known, common)
        self.reference_score = score[m:]  # (n_chains, q) at the point of the map, with u that has followed to there
        return loglik[:m], score[:m]

    def set_origin(self, beta):
        """Take beta (n_chains, q) as where the effects are; u follows from there."""
        self.beta, self.delta = beta, self.effects - self._followed(beta)

    def _recall(self):
        """Compute the predictors that an earlier run had when it stopped."""
        if self.known.values is None and self.known.beta is not None:
            self.known.values = self.rows.predictors(self.known.beta)

    def predictors(self, beta):
        """``KnownPredictors`` of beta at the end of a sweep."""
        self._recall()
        if not self.known.end(beta):
            self.known.begin(beta, self.rows.predictors(beta))
        return self.known

    def precision(self, precision):
        """As in ``Block``."""
        return MarginalPrecision(precision, self)

    def sweep_given_latents(self, state, rows, law, precision):
        """As in ``Block``."""
        return sweep_given_latents(state, rows, law, precision, self)

    # What burn-in learns.

    def end_phase(self):
        """Tune the widths of slices in log s to the steps since the last call."""
        n, *squares = self.steps
        if n >= _FEWEST_TUNING_SWEEPS:
            widths = _WIDTH_IN_DEVIATIONS * np.sqrt(np.array(squares) / (2 * n))
            self.widths = np.clip(widths, _LEAST_WIDTH, _LARGEST_WIDTH)
        self.steps = np.zeros(3)

    def see(self, n_seen):
        """Add the state of the chains to the averages for the next map, where it is due."""
        if n_seen % _SWEEPS_BETWEEN_STATES == 1:
            self._add_to_averages()

    def _add_to_averages(self):
        self.averages.add(self.row_groups, self.predictors(self.beta), self.effects, self.scale)

    def held(self, reference):
        """The reference with the score that follows from the held effects of each chain."""
        reference.mass_matrix.set_b(reference.information @ reference.point + self.reference_score)
        return reference._replace(score=self.reference_score)

    def stay(self, beta):
        """As in ``Block``."""
        self.map, self.follows = GroupMap.none(self.n_groups), False
        self.set_origin(beta)

    def followed(self, reference, spare):
        """As in ``Block``."""
        self.follows, point = True, reference.point
        information = self.rows.information(point[None], spare)
        self.set_reference(point)
        _, (score,) = self.rows.score(point[None])
        return reference._replace(score=score, information=information)

    def set_reference(self, point):
        """Let u follow about this point (q,), along the map of the last ``next_information``."""
        if self.pending is not None:
            (averages, along, h), self.pending = self.pending, None
            self.point_predictors = self.rows.predictors(point[None])
            self.map = averages.group_map(along, h, point, self.row_groups, self.point_predictors)
            self.delta = self.effects - self._followed(self.beta)

    def mark(self, beta):
        """As in ``Block``."""
        if self.measured is None:
            self.measured = [values.copy() for values in (beta, self.effects, self.scale)]

    # What is judged, kept and saved.

    def judged(self):
        """log s (n_chains, 1)."""
        return np.log(self.scale)[:, None]

    def values(self, state):
        """u (n_groups, n_chains) and s (n_chains,)."""
        return self.effects, self.scale

    def draws_of(self, n_chains, room):
        """``GroupDraws``."""
        return GroupDraws(n_chains, room, self.n_groups)

    def prior(self):
        """As in ``Block``."""
        return {"group_scale": float(self.prior_scale)}

    def arrays(self):
        """As in ``Block``."""
        out = {"effects": self.effects, "scale": self.scale, "widths": self.widths, "steps": self.steps}
        if self.map.along is not None:
            out |= {f"map_{name}": value for name, value in self.map._asdict().items()}
        out = {f"group_{name}": value for name, value in out.items()} | self.known.arrays() | self.averages.arrays()
        return out | ({} if self.measured is None else dict(zip(_MEASURED, self.measured, strict=True)))

    def _restore(self, saved):
        self.effects, self.scale = saved["group_effects"].copy(), saved["group_scale"].copy()
        self.widths, self.steps = saved["group_widths"].copy(), saved["group_steps"].copy()
        if "group_map_along" in saved:
            self.map = GroupMap._make(as_saved(saved[f"group_map_{name}"]) for name in GroupMap._fields)
            self.follows = True
        if _MEASURED[0] in saved:
            self.measured = [saved[name] for name in _MEASURED]


def forecast_of_groups(n, p, n_chains, n_draws, n_groups, sampler):
    """Bytes that groups of rows add to the draws and to the working set of a fit."""
    q, effects = p + 1, n_chains * n_groups
    draws = min(ROOM_BYTES, 4 * n_chains * n_draws * n_groups)
    by_row = n * (32 * n_chains + 8 * 5)  # kept of each row and chain, and the places of the rows of groups
    sizes = min(n_groups, int((2 * n) ** 0.5), products_kept(n_groups, q)) if sampler == "gibbs" else 0
    matrices = q * q * (sizes + 2) + 3 * n_groups * q
    return draws + 8 * n_chains * n_draws, by_row + 8 * 12 * effects + 8 * matrices
