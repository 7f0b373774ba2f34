"""Draws of the effects of groups: s of each draw that is kept, u of evenly spaced ones, and moments of all."""

import numpy as np

from .blocks import BlockDraws
from .draws import Moments, keep_every_second
from .effects_integrated_out import products_kept

ROOM_BYTES = 2**28  # largest size of the draws of u, in bytes
CORRELATION = "{}, {}"  # name of the correlation of two effects of a factor
_MOMENTS = "group_all_"  # prefix of the names of saved moments


class GroupDraws(BlockDraws):
    """Draws of s, and of u with a stride of its own, a power of two k: each k-th draw is kept.

    sizes : number of effects of each factor. names : of factors, or None for a single one, whose attributes are arrays;
    those of several are dicts of arrays. correlations : pairs of names whose correlations are kept behind s. slopes :
    as a model has them, or None.
    """

    def __init__(self, n_chains, room, sizes, names=None, correlations=(), slopes=None):
        self.correlations, self.slopes = correlations, slopes
        n_groups, self.names, self.ends = sum(sizes), names, np.cumsum(sizes)[:-1]
        of_draw = () if names is None else (len(names) + len(correlations),)
        super().__init__("group_scale_draws", (n_chains, room, *of_draw))
        effects_room = max(1, min(room, ROOM_BYTES // (4 * n_chains * n_groups)))
        self.effects = np.empty((n_chains, effects_room, n_groups), np.float32)
        self.stride = 1  # of u
        self.moments = Moments((n_chains, n_groups))

    def add(self, n_offered, at, effects, scale):
        """Take u (n_groups, n_chains) and s (n_chains, ...)."""
        self.moments.add(effects.T)
        if self.will_halve(n_offered):
            self._halve_effects(self._n_effects(n_offered))
        if self._is_due(n_offered):
            self.effects[:, self._n_effects(n_offered)] = effects.T
        super().add(n_offered, at, scale)

    def _n_effects(self, n_offered):
        return n_offered // self.stride

    def _is_due(self, n_offered):
        """Whether u of the next draw is to be kept."""
        return (n_offered + 1) % self.stride == 0

    def will_halve(self, n_offered):
        return self._is_due(n_offered) and self._n_effects(n_offered) == self.effects.shape[1]

    def _halve_effects(self, n):
        keep_every_second(self.effects, n)
        self.stride *= 2

    def halve(self, n, stride):
        super().halve(n, stride)
        if self.stride == stride:
            self._halve_effects(n)

    def to_predict(self, n):
        return self._scales(self.kept[:, :n])

    def _scales(self, scale):
        """The attributes with draws of s, and of correlations where there are slopes."""
        if self.names is None:
            return {"group_scale_draws_": scale}
        by_name = dict(zip((*self.names, *self.correlations), np.moveaxis(scale, 2, 0), strict=True))
        out = {"group_scale_draws_": {name: by_name[name] for name in self.names}}
        if self.slopes is not None:
            out["group_correlation_draws_"] = {CORRELATION.format(*pair): by_name[pair] for pair in self.correlations}
            out["_group_slopes"] = self.slopes
        return out

    def _effects(self, values):
        """Values of effects (..., n_groups) as a model has them."""
        if self.names is None:
            return values
        return dict(zip(self.names, np.split(values, self.ends, axis=-1), strict=True))

    def attributes(self, stride):
        of_all = self.moments.pooled()
        moments = {name: self._effects(of_all[name]) for name in ("mean", "sd")}
        return {
            **self._scales(self.kept),
            "group_effect_draws_": self._effects(self.effects),
            "group_effect_moments_": moments,
            "_group_stride": self.stride // stride,  # of effects, in kept draws
        }

    def trim(self, n, n_offered):
        super().trim(n, n_offered)
        if (n_effects := self._n_effects(n_offered)) < self.effects.shape[1]:
            self.effects = self.effects[:, :n_effects].copy()

    def arrays(self, n, n_offered):
        effects = self.effects[:, : self._n_effects(n_offered)].copy()
        of_effects = {"group_stride": self.stride, "group_effect_draws": effects, **self.moments.arrays(_MOMENTS)}
        return super().arrays(n, n_offered) | of_effects

    def restore(self, arrays):
        super().restore(arrays)
        self.stride, effects = int(arrays["group_stride"]), arrays["group_effect_draws"]
        self.effects[:, : effects.shape[1]] = effects
        self.moments = Moments.restored(arrays, _MOMENTS)


def forecast_of_groups(n, p, n_chains, n_draws, n_groups, sampler, n_factors=1):
    """Bytes that groups of rows add to the draws and to the working set of a fit. n_groups : of all factors."""
    q, effects = p + 1, n_chains * n_groups
    draws = min(ROOM_BYTES, 4 * n_chains * n_draws * n_groups)
    # Kept of each row and chain; the places of the rows of groups; and of several factors their sums and couplings.
    by_row = n * (32 * n_chains + 8 * 5 * n_factors) + (n_factors > 1) * n * (32 * n_chains + 60 * n_factors)
    sizes = min(n_groups, int((2 * n) ** 0.5), products_kept(n_groups, q)) if sampler == "gibbs" else 0
    matrices = q * q * (sizes + 2) + 3 * n_groups * q
    return draws + 8 * n_chains * n_draws, by_row + 8 * 12 * effects + 8 * matrices
