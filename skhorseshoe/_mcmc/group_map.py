"""The map along which effects u of groups follow beta, frozen by burn-in, and what burn-in has seen of the rows for it.

Along u = delta + A (beta - r), delta held, the information of beta is, with w_i that of row i, b_g = sum w_i x_i and
h_g = sum w_i over the rows of a group,

    H + sum_g (A_g b_g' + b_g A_g' + (h_g + s^-2) A_g A_g'),  H = sum_i w_i x_i x_i',

the least for A_g = -b_g / (h_g + s^-2): where beta goes, the most likely u_g goes along. The w_i are -d^2 log Phi(s_i
eta_i) / d eta_i^2 averaged over states of the chains. As the information is linear in them, that of the frozen map is
then, on average, what the reference has; from a single state, the map would follow what happens to be there.
"""

from typing import NamedTuple

import numpy as np

_SAVED = "group_seen_"


class GroupMap(NamedTuple):
    """The map, and what the rows of each group tell of its effect, about, where beta is at r: a Gaussian."""

    along: object  # A (n_groups, q) float32; None where effects stay
    point: object  # r (q,)
    precision: object  # h (n_groups, 1)
    towards: object  # h times the mean (n_groups, 1)
    of_prior: float  # s^-2 with which the map was made

    @classmethod
    def none(cls, n_groups):
        """Effects stay, and nothing is known of them."""
        return cls(None, 0.0, *np.zeros((2, n_groups, 1)), 0.0)

    def followed(self, change):
        """By how much the effects change with beta (m, q); (n_groups, m)."""
        if self.along is None:
            return np.zeros((len(self.precision), len(change)))
        return (self.along @ np.ascontiguousarray(change.T, np.float32)).astype(np.float64)

    def about(self, point):
        """The same map about another point."""
        change = self.followed((self.point - point)[None])  # of the effects to where they were seen
        towards = self.towards - change * (self.precision + self.of_prior)
        return self._replace(point=point, towards=towards)

    def conditional(self, scale, followed):
        """Mean and precision of u given s (n_chains,) as the map has them; (n_groups, n_chains) each. followed : by how
        much the effects have followed beta from the point of the map."""
        total = self.precision + scale**-2.0
        return (self.towards + followed * (self.precision + self.of_prior)) / total, total


class Seen:
    """Averages over states of the chains. saved : what ``arrays`` gave, or None."""

    def __init__(self, saved=None):
        self.n = 0
        self.weight = self.terms = self.effects = self.beta = self.log_scale = 0.0
        if saved is not None and f"{_SAVED}n" in saved:
            for name in vars(self):
                setattr(self, name, saved[_SAVED + name].copy())
            self.n = int(self.n)

    def add(self, of_groups, known, beta, effects, scale):
        """A state: beta (m, q), effects (n_groups, m) and scale (m,). known : x beta, as in ``RowGroups.logliks``."""
        weight, terms = of_groups.curvature(*known, effects)
        self.n += 1
        self.weight, self.terms = self.weight + weight, self.terms + terms
        self.effects, self.beta = self.effects + effects.mean(axis=1), self.beta + beta.mean(axis=0)
        self.log_scale += np.log(scale).mean()

    def learn(self, rows, spare=()):
        """The information of beta (q, q) where effects follow, and the ``GroupMap``. rows : ``Rows``."""
        weight, point = self.weight / self.n, self.beta / self.n
        H, sums = rows.weighted_gram(weight, spare), rows.sums_by_group(weight)
        products, h = rows.columns.gradient(sums[:, : len(H)]), sums[:, -1:].copy()  # b (n_groups, q)
        precision = np.exp(-2 * self.log_scale / self.n)
        towards = self.terms[:, None] / self.n + h * self.effects[:, None] / self.n
        share = 1.0 / (h + precision)
        made = GroupMap((-products * share).astype(np.float32), point, h, towards, precision)
        products *= np.sqrt(share)
        H -= products.T @ products
        return H, made

    def arrays(self):
        """All that a later run needs to go on."""
        return {_SAVED + name: value for name, value in vars(self).items()} if self.n else {}
