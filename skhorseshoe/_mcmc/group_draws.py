"""What is kept of the effects of groups: s with every draw that is kept, u evenly spaced, and the moments of all."""

import numpy as np

from .draws import Moments, keep_every_second

ROOM = 2**28  # bytes of the draws of u


class GroupDraws:
    """Draws of s and u beside those of ``Draws``, whose strides are powers of two like the one of u.

    room : the most draws of a chain that ``Draws`` keeps.
    """

    def __init__(self, n_chains, room, n_groups):
        self.scale = np.empty((n_chains, room))
        most = max(1, min(room, ROOM // (4 * n_chains * n_groups)))
        self.effects = np.empty((n_chains, most, n_groups), np.float32)
        self.stride = 1  # of draws that were offered, from one whose u is kept to the next
        self.moments = Moments((n_chains, n_groups))

    def add(self, seen, at, effects, scale):
        """Take u (n_groups, n_chains) and s (n_chains,). seen : draws before. at : the place of s, or None."""
        self.moments.add(effects.T)
        if self.are_full(seen):
            self._halve_effects(seen // self.stride)
        if self._is_due(seen):
            self.effects[:, seen // self.stride] = effects.T
        if at is not None:
            self.scale[:, at] = scale

    def _is_due(self, seen):
        """Whether u of the draw that comes after so many is one to keep."""
        return (seen + 1) % self.stride == 0

    def are_full(self, seen):
        """Whether half of u is given up when the draw comes that is next after so many."""
        return self._is_due(seen) and seen // self.stride == self.effects.shape[1]

    def _halve_effects(self, n):
        keep_every_second(self.effects, n)
        self.stride *= 2

    def halve(self, n, stride):
        """Give up every second s of n; u has at least the new stride. ``stride`` : before."""
        keep_every_second(self.scale, n)
        if self.stride == stride:
            self._halve_effects(n)

    def trim(self, n, seen):
        """Give up the room of draws that were not made."""
        self.scale = self.scale[:, :n].copy()
        self.effects = self.effects[:, : seen // self.stride].copy()

    def arrays(self, n, seen):
        """What ``restore`` takes."""
        moments = {f"group_{name}": value for name, value in self.moments.arrays().items()}
        kept = {"scale": self.scale[:, :n], "effect": self.effects[:, : seen // self.stride]}
        kept = {f"group_{name}_draws": values.copy() for name, values in kept.items()}
        return {"group_stride": self.stride, **moments, **kept}

    def restore(self, arrays):
        """As it was when ``arrays`` gave these."""
        self.stride = int(arrays["group_stride"])
        for name, values in (("scale", self.scale), ("effect", self.effects)):
            saved = arrays[f"group_{name}_draws"]
            values[:, : saved.shape[1]] = saved
        moments = {name[6:]: value for name, value in arrays.items() if name.startswith("group_all")}
        self.moments = Moments.restored(moments)
