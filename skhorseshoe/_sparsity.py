"""How many coefficients the prior lets away from zero: m_eff = sum_j (1 - kappa_j)."""

from math import pi

import numpy as np
from scipy.special import ndtri


def row_information(rate):
    """phi(Phi^-1(r))^2 / (r (1 - r)): the Fisher information of a probit row whose probability is r."""
    return np.exp(-(ndtri(rate) ** 2)) / (2 * pi * rate * (1 - rate))


def describe_prior(tau_0, slab_scale, sd, n, rate):
    """The fitted attribute ``prior_``: the scales, and the prior mean of m_eff, for columns as if orthogonal.

    sd : (p,) of the columns whose coefficients are shrunk, in the unit in which the prior holds. n : number of rows,
    or the sum of their weights. rate : share of the second class. "m_eff" is the mean over tau ~ C+(0, tau_0),
    "m_eff_at_tau_0" that given tau = tau_0, the median of tau (Piironen & Vehtari 2017, section 3).

    The working model of the probit likelihood is Gaussian with the Fisher information of a row at the base rate,
    phi(Phi^-1(r))^2 / (r (1 - r)). Column j then has information h_j = n sd_j^2 times that, and with the slab
    1 - kappa_j = b_j (a_j lambda_j)^2 / (1 + (a_j lambda_j)^2), a_j^2 = tau^2 (h_j + 1/c^2), b_j = h_j / (h_j + 1/c^2).
    Its mean over lambda_j ~ C+(0, 1) is b_j a_j / (1 + a_j); that over tau follows by partial fractions.
    """
    slab_precision = 0.0 if slab_scale is None else slab_scale**-2.0
    h = n * sd**2 * row_information(rate)
    h = h[h > 0]
    share = h / (h + slab_precision)
    a = np.clip(tau_0 * np.sqrt(h + slab_precision), 1e-150, 1e150)
    mean = 1 - (1 + 2 / pi * a * np.log(a)) / (1 + a**2)
    return {
        "tau_0": tau_0,
        "slab_scale": slab_scale,
        "m_eff": float(share @ mean),
        "m_eff_at_tau_0": float(share @ (a / (1 + a))),
    }
