"""Draws of the effects of groups: s of each draw that is kept, u of evenly spaced ones, and moments of all."""

import numpy as np

from .draws import Moments, keep_every_second

ROOM = 2**28  # largest size of the draws of u, in bytes


class GroupDraws:
    """Draws of s and u, part of ``Draws``; strides of both are powers of two.

    room : the most draws of a chain that ``Draws`` keeps.
    """

    def __init__(self, n_chains, room, n_groups):
        self.scale = np.empty((n_chains, room))
        effects_room = max(1, min(room, ROOM // (4 * n_chains * n_groups)))
        self.effects = np.empty((n_chains, effects_room, n_groups), np.float32)
        self.stride = 1  # u is kept of each ``stride``-th draw
        self.moments = Moments((n_chains, n_groups))

    def add(self, n_offered, at, effects, scale):
        """Take u (n_groups, n_chains) and s (n_chains,). n_offered : draws before. at : index of s, or None."""
        self.moments.add(effects.T)
        if self.are_full(n_offered):
            self._halve_effects(n_offered // self.stride)
        if self._is_due(n_offered):
            self.effects[:, n_offered // self.stride] = effects.T
        if at is not None:
            self.scale[:, at] = scale

    def _is_due(self, n_offered):
        """Whether u of the next draw is to be kept."""
        return (n_offered + 1) % self.stride == 0

    def are_full(self, n_offered):
        """Whether the next draw needs half of the draws of u to be given up."""
        return self._is_due(n_offered) and n_offered // self.stride == self.effects.shape[1]

    def _halve_effects(self, n):
        keep_every_second(self.effects, n)
        self.stride *= 2

    def halve(self, n, stride):
        """Give up every second s of n, and of u if its stride was as small. stride : that of s before."""
        keep_every_second(self.scale, n)
        if self.stride == stride:
            self._halve_effects(n)

    def trim(self, n, n_offered):
        """Give up the room of draws that were not made."""
        self.scale = self.scale[:, :n].copy()
        self.effects = self.effects[:, : n_offered // self.stride].copy()

    def arrays(self, n, n_offered):
        """The argument of ``restore``."""
        moments = {f"group_{name}": value for name, value in self.moments.arrays().items()}
        draws = {"scale": self.scale[:, :n], "effect": self.effects[:, : n_offered // self.stride]}
        draws = {f"group_{name}_draws": values.copy() for name, values in draws.items()}
        return {"group_stride": self.stride, **moments, **draws}

    def restore(self, arrays):
        """Return to the state in which ``arrays`` gave these."""
        self.stride = int(arrays["group_stride"])
        for name, values in (("scale", self.scale), ("effect", self.effects)):
            saved = arrays[f"group_{name}_draws"]
            values[:, : saved.shape[1]] = saved
        moments = {name[6:]: value for name, value in arrays.items() if name.startswith("group_all")}
        self.moments = Moments.restored(moments)
