"""The prior, as far as it does not depend on the scales that are drawn."""

import numpy as np

_INTERCEPT_SD = 100.0  # of the intercept at the mean of the columns; wide on the probit scale


def tau_scale(global_scale, expected_nonzero, p, y):
    """tau_0 of tau ~ C+(0, tau_0): as given, 1, or from the expected number of nonzero coefficients.

    p0 / (p - p0) s / sqrt(n) with s^2 = 1 / (r (1 - r)), r the share of ones in y (Piironen & Vehtari 2017, eq. 3.12).
    """
    if expected_nonzero is None:
        return 1.0 if global_scale is None else float(global_scale)
    if global_scale is not None:
        raise ValueError(
            f"global_scale={global_scale} and expected_nonzero={expected_nonzero} say the same thing in two ways: give "
            "one of them."
        )
    if not expected_nonzero < p:
        raise ValueError(f"expected_nonzero={expected_nonzero} must be below the number of columns, which is {p}.")
    rate = (y.sum(dtype=int) + 0.5) / (len(y) + 1)
    return float(expected_nonzero / (p - expected_nonzero) / np.sqrt(rate * (1 - rate) * len(y)))


class FixedPrior:
    """The part of the prior that does not depend on the scales: Gaussian, with a precision of rank one and a diagonal.

    The slab is an observation "0 with standard deviation c" of each shrunk coefficient (Nishimura & Suchard 2023). The
    intercept's prior is that of the intercept at the mean of the columns: it does not matter where their zero is.
    """

    def __init__(self, mean, q, slab_scale):
        p = len(mean)
        self.anchor = np.append(mean, 1.0) / _INTERCEPT_SD if q > p else np.zeros(p)
        self.diagonal = np.zeros(q)
        self.slab_precision = 0.0 if slab_scale is None else slab_scale**-2.0
        self.diagonal[:p] = self.slab_precision

    def add_to(self, H):
        """H plus the precision, in place; (q, q)."""
        for row, value in zip(H, self.anchor, strict=True):
            row += value * self.anchor
        H.reshape(-1)[:: len(H) + 1] += self.diagonal
        return H

    def energy(self, beta):
        """Minus the logarithm of the density at beta (q,), up to a constant."""
        return (self.anchor @ beta) ** 2 / 2 + self.diagonal @ beta**2 / 2
