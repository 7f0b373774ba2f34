"""The prior: tau_0, the part that does not depend on the scales, and the expected number of effectively nonzero
coefficients, m_eff = sum_j (1 - kappa_j).
"""

from math import log, pi

import numpy as np
from scipy.interpolate import CubicSpline

from .._model import PROBIT

LEAST_SCALE, LARGEST_SCALE = 1e-100, 1e100  # bounds of tau_0
WIDE = 100.0  # standard deviation of intercept and unpenalised coefficients; wide for a linear predictor
PER_CONTRAST = "per_contrast"  # the parameter ``slab_scale`` of a slab for each column, in the unit of its contrast
SLAB = 4  # standard deviation of such a slab, of the linear predictor per contrast of a column
SLAB_TEXT = f"{SLAB} per contrast of each column"


def scale_of_tau_prior(global_scale, expected_nonzero, p, n, rate, likelihood=PROBIT):
    """tau_0 of tau ~ C+(0, tau_0): as given, 1, or from the expected number of nonzero coefficients.

    p0 / (p - p0) s / sqrt(n) (Piironen & Vehtari 2017, eq. 3.12), where 1 / s^2 is the information of a row at the
    share of ones in y. If columns have unit variance, p0 coefficients are effectively nonzero at the median of tau.
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
        cure = "" if p else " Leave it out: all columns are unpenalized."
        raise ValueError(
            f"expected_nonzero={expected_nonzero} must be below the number of columns that are shrunk, which is "
            f"{p}.{cure}"
        )
    scale = float(expected_nonzero / (p - expected_nonzero) / np.sqrt(likelihood.information_at(rate) * n))
    if not LEAST_SCALE <= scale <= LARGEST_SCALE:
        raise ValueError(
            f"expected_nonzero={expected_nonzero} of {p} columns makes the scale of the prior {scale:.1g}: it must be "
            f"from {LEAST_SCALE:g} to {LARGEST_SCALE:g}. Choose a number that is less extreme."
        )
    return scale


def slabs_of(contrast):
    """Standard deviations of the slabs of columns with these contrasts (p,); inf, for no slab, where that is 0.

    The contrast of a column is 2 E d^2 / E|d|, d the deviations from its mean: the difference of its values if it has
    two, however rare one is; 2.5 standard deviations if it is normal. It is never below two standard deviations. A slab
    per standard deviation alone would hardly bound the coefficient of a rare level.
    """
    return np.divide(SLAB, contrast, out=np.full(len(contrast), np.inf), where=contrast > 0)


class FixedPrior:
    """The part of the prior that does not depend on the scales: a Gaussian whose precision is rank one plus a diagonal.

    The slab is an observation "0 with standard deviation c" of each shrunk coefficient (Nishimura & Suchard 2023). The
    prior of the intercept is that of the intercept at the mean of the columns, so that their zero does not matter. The
    prior of an unpenalised coefficient is wide for the standard deviation of its column, or standard normal in the unit
    that ``prior_scale`` gives it.

    slab_scale : a number, None, or what ``slabs_of`` gives for the shrunk columns. wide : standard deviation of the
    intercept and of unpenalised coefficients, times that of their columns.
    """

    def __init__(self, columns, slab_scale, wide=WIDE):
        p = len(columns.mean)
        self.anchor = np.append(columns.mean, 1.0) / wide if columns.fit_intercept else np.zeros(p)
        self.slab_scale = slab_scale
        self.slab_precision = 0.0 if slab_scale is None else slab_scale**-2.0
        self.diagonal = np.zeros(len(self.anchor))
        self.diagonal[: columns.n_shrunk] = self.slab_precision
        sd, is_wide = columns.sd[columns.n_shrunk :], columns.wide[columns.order][columns.n_shrunk :]
        self.diagonal[columns.n_shrunk : p] = np.where(is_wide, (np.where(sd > 0, sd, 1.0) / wide) ** 2, 1.0)
        # Prior variances of the coefficients that are not shrunk, and of the intercept at the mean of the columns.
        self.variances = np.append(1.0 / self.diagonal[columns.n_shrunk : p], [wide**2] * columns.fit_intercept)

    def add_to(self, H):
        """Add the precision to H (q, q), in place."""
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


_STEP, _END = 0.4, 20.0  # of a grid of log(tau / tau_0): sums over it are integrals to some eight digits
_SLABS_AT_A_TIME = 100


def describe_prior(tau_0, slab_scale, sd, n, rate, likelihood=PROBIT):
    """The fitted attribute ``prior_``: the scales, and the prior mean of m_eff, for columns as if orthogonal.

    slab_scale : as ``FixedPrior`` has it. sd : (p,) of the columns whose coefficients are shrunk, in the unit in which
    the prior holds. n : number of rows, or the sum of their weights. rate : share of the second class. "m_eff" is the
    mean over the prior of tau, "m_eff_at_tau_0" that given tau = tau_0 (Piironen & Vehtari 2017, section 3),
    "tau_median" the median of tau.

    The working model of the likelihood is Gaussian with the Fisher information of a row at the base rate. Column
    j then has information h_j = n sd_j^2 times that, and 1 - kappa_j = h_j / (h_j + 1 / (tau lambda_j)^2 + 1/c_j^2).
    """
    slabs, root = each_slab(slab_scale, len(sd)), np.sqrt(n * likelihood.information_at(rate)) * sd
    log_x, log_density = _on_grid(tau_0, slabs)
    log_density -= log_density.max()
    m_eff, weights = _m_eff(tau_0 * np.exp(log_x), root, slabs), np.exp(log_density)
    fine = np.arange(log_x[0], log_x[-1], 0.01)
    density = np.exp(CubicSpline(log_x, log_density)(fine))
    below = np.cumsum(density) - density / 2
    return {
        "tau_0": tau_0,
        "slab_scale": slab_scale,
        "tau_median": float(tau_0 * np.exp(np.interp(density.sum() / 2, below, fine))),
        "m_eff": float(weights @ m_eff / weights.sum()),
        "m_eff_at_tau_0": float(m_eff[log_x == 0][0]),
    }


def each_slab(slab_scale, p):
    """The slab of each of p columns, inf for none. slab_scale : as ``FixedPrior`` has it."""
    return np.full(p, np.inf if slab_scale is None else slab_scale) if np.ndim(slab_scale) == 0 else slab_scale


def log_density_of_tau(tau, tau_0, slabs):
    """log p(tau), for tau of any shape. slabs : (p,), inf for none."""
    log_total = np.logaddexp.reduce(_on_grid(tau_0, slabs)[1]) + log(_STEP)
    return _log_density(np.log(tau) - log(tau_0), tau_0, slabs) - np.log(tau) - log_total


def _on_grid(tau_0, slabs):
    """A grid of log(tau / tau_0), and ``_log_density`` there."""
    low = -_END - log(max(1.0, tau_0 * (1 / slabs).sum()))
    log_x = _STEP * np.arange(round(low / _STEP), round(_END / _STEP) + 1)
    return log_x, _log_density(log_x, tau_0, slabs)


def _log_density(log_x, tau_0, slabs):
    """Logarithm of the density of log(tau / tau_0) at log_x, up to a constant.

    The slab is a further factor N(beta_j; 0, c_j^2), so that the prior of the scales has the factor
    (1 + (tau lambda_j / c_j)^2)^(-1/2) for each column: without a slab tau ~ C+(0, tau_0), with one it is smaller, and
    ever smaller with more columns.
    """
    log_density = log_x - np.logaddexp(0.0, 2 * log_x)
    distinct, counts = np.unique(slabs, return_counts=True)
    for at in range(0, len(distinct), _SLABS_AT_A_TIME):
        some = slice(at, at + _SLABS_AT_A_TIME)
        log_density = log_density + log_slab_factor(np.exp(log_x)[..., None] * (tau_0 / distinct[some])) @ counts[some]
    return log_density


def log_slab_factor(a):
    """Logarithm of the mean of (1 + (a lambda)^2)^(-1/2) over half-Cauchy lambda, for a >= 0."""
    root = np.sqrt(np.abs(a - 1)) * np.sqrt(a + 1)
    arc = np.where(a < 1, np.arctan2(root, a), np.arcsinh(root))
    return np.log(np.divide(arc, root, out=np.ones_like(root), where=root > 0)) + log(2 / pi)


def _m_eff(taus, root, slabs):
    """The mean of sum_j (1 - kappa_j) over lambda, for each tau. root : (p,) square roots of the informations.

    With b^2 = tau^2 (h + 1/c^2), 1 - kappa = h / (h + 1/c^2) (b lambda)^2 / (1 + (b lambda)^2). By partial fractions
    its mean is one of the slab's factor at two places.
    """
    root = np.maximum(root, 1e-300)  # a column without information, and perhaps without a slab
    both = np.hypot(root, 1 / slabs)
    log_end = log_slab_factor(1 / (slabs * both))

    def given(tau):
        tau = np.where(np.abs(tau * both - 1) < 1e-4, 1.0002 * tau, tau)  # for b = 1 numerator and denominator vanish
        b, ratio = tau * both, np.exp(log_end - log_slab_factor(tau / slabs))
        return ((root / both) ** 2 * (b / (b + 1)) * ((b - ratio) / (b - 1))).sum()

    return np.array([given(tau) for tau in taus])
