"""How effects of several factors follow beta and one another: they solve one sparse system.

With Z the indicators of the levels of all factors, W the information of rows and D the precisions of the effects, s^-2
of each, all effects together most likely follow beta along A = -(Z' W Z + D)^-1 Z' W X. Between levels of one factor
Z' W Z is zero but for the diagonal; between those of two it has an entry for each pair that occurs in a row. Conjugate
gradients solve it nearly, which is enough: the information is that along the A that is taken.
"""

from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
from scipy.sparse import coo_array

from .conjugate_gradients import IterativePrecision


class Couplings:
    """Z' W Z between factors. factors : ``Factor``s. weight : (n,) information of rows about eta. precisions : pairs of
    factors with slopes and the precision of the effects of a group, whose diagonal is in D."""

    def __init__(self, factors, weight, ops, precisions=()):
        n = factors[-1].part.stop
        self.between = coo_array((n, n)).tocsr()
        for a, b in combinations(factors, 2):
            rows, columns = a.row_groups.codes + a.part.start, b.row_groups.codes + b.part.start
            between = coo_array((b.times_slope(a.times_slope(weight)), (rows, columns)), shape=(n, n)).tocsr()
            self.between = self.between + between + between.T
        for family, precision in precisions:
            for a, b in permutations(range(family.q), 2):
                at = [family.components[k].part.start + np.arange(family.n) for k in (a, b)]
                values = np.full(family.n, precision[a, b])
                self.between = self.between + coo_array((values, at), shape=(n, n)).tocsr()
        self.rows = SimpleNamespace(ops=ops)

    # What ``IterativePrecision`` asks for.

    tolerance, most_steps = 1e-3, 50

    def times(self, v):
        """(Z' W Z + D) v; v (m, n_effects)."""
        return self.diagonal * v + (self.between @ v.T).T

    def solve_otherwise(self, b, d, x):
        """x, as near as ``most_steps`` have come."""
        return x

    def followed(self, products, precision):
        """A (n_effects, q). products : Z' W X. precision : the diagonal of Z' W Z + D (n_effects, 1)."""
        self.diagonal = precision[:, 0]
        unit = np.sqrt((products**2 / precision).mean(axis=0))
        unit = np.where(unit > 0.0, unit, 1.0)
        b = np.ascontiguousarray((products / unit).T)
        return np.ascontiguousarray(-IterativePrecision(self).solve(b, 0.0 * b).T * unit)

    def response(self, factor, precision):
        """How the most likely effects of a factor follow others (n, n_effects). precision : of its effects (n, 1)."""
        return (self.between[factor.part] * (-1.0 / precision)).tocsr()
