"""Chains of "hmc" for rows with groups: the burn-in of ``hmc_burn_in.py``, and what freezes the map along which effects
follow."""

from functools import partial

from . import group_moves
from .grouped_rows import GroupedRows
from .hmc_burn_in import HmcChains


class GroupedHmcChains(HmcChains):
    """As ``HmcChains``."""

    def __init__(self, problem, start, burn_in, saved=None):
        rows = GroupedRows(problem.rows, len(start.beta), problem.key, saved)
        super().__init__(problem._replace(rows=rows), start, burn_in, saved)

    def _whole(self, sweep):
        _, fixed, tau_0, _ = self.problem
        return partial(group_moves.sweep, inner=sweep, rows=self.problem.rows, fixed=fixed, tau_0=tau_0)

    def _mode(self):
        rows = self.problem.rows
        rows.stay()
        point, *_ = super()._mode()
        rows.follows = True
        information = rows.information(point[None], self.precision.work)
        rows.refer(point)
        _, (score,) = rows.score(point[None])
        return point, score, information

    def _refer(self, point, score, information, spread=None):
        super()._refer(point, score, information, spread)
        self.problem.rows.refer(point)

    def arrays(self):
        return {**super().arrays(), **self.problem.rows.arrays()}

    def of_groups(self):
        """u (n_groups, n_chains) and s (n_chains,)."""
        return self.problem.rows.effects, self.problem.rows.scale
