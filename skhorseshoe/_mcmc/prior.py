"""The prior, as far as it does not depend on the scales that are drawn."""

import numpy as np

from ._sparsity import row_information

LEAST_SCALE, LARGEST_SCALE = 1e-100, 1e100
_WIDE = 100.0  # standard deviation of the intercept and of unpenalised coefficients; wide on the probit scale


def tau_scale(global_scale, expected_nonzero, p, n, rate):
    """tau_0 of tau ~ C+(0, tau_0): as given, 1, or from the expected number of nonzero coefficients.

    p0 / (p - p0) s / sqrt(n) (Piironen & Vehtari 2017, eq. 3.12), where 1 / s^2 is what a row tells at the share of
    ones in y. With columns of unit variance, p0 coefficients are then effectively nonzero at the median of tau.
    p : columns that are shrunk. n : rows, or the sum of their weights. rate : the share of ones, in (0, 1).
    """
    if expected_nonzero is None:
        return 1.0 if global_scale is None else float(global_scale)
    if global_scale is not None:
        raise ValueError(
            f"global_scale={global_scale} and expected_nonzero={expected_nonzero} say the same thing in two ways: give "
            "one of them."
        )
    if not expected_nonzero < p:
        raise ValueError(
            f"expected_nonzero={expected_nonzero} must be below the number of columns that are shrunk, which is {p}."
        )
    found = float(expected_nonzero / (p - expected_nonzero) / np.sqrt(row_information(rate) * n))
    if not LEAST_SCALE <= found <= LARGEST_SCALE:
        raise ValueError(
            f"expected_nonzero={expected_nonzero} of {p} columns makes the scale of the prior {found:.1g}: it must be "
            f"from {LEAST_SCALE:g} to {LARGEST_SCALE:g}. Choose a number that is less extreme."
        )
    return found


class FixedPrior:
    """The part of the prior that does not depend on the scales: Gaussian, with a precision of rank one and a diagonal.

    The slab is an observation "0 with standard deviation c" of each shrunk coefficient (Nishimura & Suchard 2023). The
    intercept's prior is that of the intercept at the mean of the columns: it does not matter where their zero is. An
    unpenalised coefficient has a prior that is wide for a column of its standard deviation.
    """

    def __init__(self, columns, slab_scale):
        p = len(columns.mean)
        self.anchor = np.append(columns.mean, 1.0) / _WIDE if columns.fit_intercept else np.zeros(p)
        self.slab_precision = 0.0 if slab_scale is None else slab_scale**-2.0
        self.diagonal = np.zeros(len(self.anchor))
        self.diagonal[: columns.n_shrunk] = self.slab_precision
        sd = columns.sd[columns.n_shrunk :]
        self.diagonal[columns.n_shrunk : p] = (np.where(sd > 0, sd, 1.0) / _WIDE) ** 2
        # Prior variances of the coefficients that are not shrunk, and of the intercept at the mean of the columns.
        self.variances = np.append(1.0 / self.diagonal[columns.n_shrunk : p], [_WIDE**2] * columns.fit_intercept)

    def add_to(self, H):
        """H plus the precision, in place; (q, q)."""
        for row, value in zip(H, self.anchor, strict=True):
            row += value * self.anchor
        H.reshape(-1)[:: len(H) + 1] += self.diagonal
        return H

    def force(self, beta):
        """The precision times beta (m, q)."""
        return (beta * self.anchor).sum(axis=1)[:, None] * self.anchor + self.diagonal * beta

    def along(self, beta, direction):
        """The first and the second derivative of the energy at beta along a direction, (n_chains, q) each."""
        slope = (self.force(direction) * beta).sum(axis=1)
        return slope, (self.force(direction) * direction).sum(axis=1)

    def energy(self, beta):
        """Minus the logarithm of the density at beta (q,), up to a constant."""
        return (self.anchor @ beta) ** 2 / 2 + self.diagonal @ beta**2 / 2
