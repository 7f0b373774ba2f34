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


def fixed_precision(mean, q, slab_precision):
    """The prior precision (q, q) that does not depend on the scales.

    That of the slab, which is an observation "0 with standard deviation c" of each shrunk coefficient (Nishimura &
    Suchard 2023), and that of the intercept at the mean of the columns, so that it does not matter where their zero is.
    """
    p = len(mean)
    anchor = np.append(mean, 1.0) / _INTERCEPT_SD if q > p else np.zeros(p)
    fixed = np.outer(anchor, anchor)
    fixed.reshape(-1)[: p * q : q + 1] += slab_precision
    return fixed
