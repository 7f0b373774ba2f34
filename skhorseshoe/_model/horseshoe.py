"""The horseshoe: beta_j ~ N(0, lambda_j^2 tau^2), lambda_j ~ C+(0, 1), tau ~ C+(0, tau_0), C+ the half-Cauchy law.

Where a column has a coefficient for each of d contrasts of classes, these share its lambda_j.
Its other half is ``_backends/core/priors/horseshoe.hpp``. Here are tau_0, the law of tau, the quantiles of a
coefficient, draws, and the expected number of effectively nonzero coefficients, m_eff = sum_j (1 - kappa_j).
"""

from functools import cache
from math import log, pi

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import exp1, gammainc, gammaincc, gammainccinv, gammaincinv, ndtri, ndtri_exp

from .._utils.memmap import cut
from .probit import PROBIT

LEAST_SCALE, LARGEST_SCALE = 1e-100, 1e100  # bounds of tau_0


def log_half_cauchy(square):
    """log p(s), s ~ C+(0, 1), up to a constant, on any device. square : s^2."""
    return -np.log1p(square)


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


_STEP, _END = 0.4, 20.0  # of a grid of log(tau / tau_0): sums over it are integrals to some eight digits
_SLABS_AT_A_TIME = 100
_FLAT = 25.0  # largest size of log a in the table of ``log_slab_factor``
_NUMBERS_AT_A_TIME = 2**18  # draws of coefficients


def describe_prior(tau_0, slab_scale, sd, n, rate, likelihood=PROBIT):
    """The fitted attribute ``prior_``: the scales, and the prior mean of m_eff, for columns as if orthogonal.

    slab_scale : as ``FixedPrior`` has it. sd : (p,) of the columns whose coefficients are shrunk, in the unit in which
    the prior holds. n : number of rows, or the sum of their weights. rate : share of the second class. "m_eff" is the
    mean over the prior of tau, "m_eff_at_tau_0" that given tau = tau_0 (Piironen & Vehtari 2017, section 3),
    "tau_median" the median of tau.

    The working model of the likelihood is Gaussian with the Fisher information of a row at the base rate. Column
    j then has information h_j = n sd_j^2 times that, and 1 - kappa_j = h_j / (h_j + 1 / (tau lambda_j)^2 + 1/c_j^2), of
    each of its contrasts.
    """
    slabs, root = each_slab(slab_scale, len(sd)), np.sqrt(n * likelihood.information_at(rate)) * sd
    log_x, log_density = _on_grid(tau_0, slabs, likelihood.n_predictors)
    m_eff = _m_eff(tau_0 * np.exp(log_x), root, slabs, likelihood.n_predictors)
    weights = np.exp(log_density - log_density.max())
    return {
        "tau_0": tau_0,
        "slab_scale": slab_scale,
        "tau_median": float(_quantiles_of_tau(tau_0, log_x, log_density, 0.5)),
        "m_eff": float(weights @ m_eff / weights.sum()),
        "m_eff_at_tau_0": float(m_eff[log_x == 0][0]),
    }


def _quantiles_of_tau(tau_0, log_x, log_density, shares):
    """The quantiles of tau at these shares. log_x, log_density : as from ``_on_grid``."""
    fine = np.arange(log_x[0], log_x[-1], 0.01)
    density = np.exp(CubicSpline(log_x, log_density - log_density.max())(fine))
    below = np.cumsum(density) - density / 2
    return tau_0 * np.exp(np.interp(shares * density.sum(), below, fine))


def draws_of_prior(tau_0, slabs, n, rng, d=1):
    """Yields n draws of the coefficients, one for each of n equal shares of the law of tau; blocks (k, p) of them.

    slabs : (p,), inf for none. Of d coefficients of a column one is drawn.
    """
    taus = _quantiles_of_tau(tau_0, *_on_grid(tau_0, slabs, d), (np.arange(n) + 0.5) / n)
    for some in cut(0, n, max(1, _NUMBERS_AT_A_TIME // max(1, len(slabs)))):
        scales = scales_given_tau(taus[some], slabs, rng, d)
        yield scales * rng.standard_normal(scales.shape)


def scales_given_tau(tau, slabs, rng, d=1):
    """A draw (k, p) of the standard deviations of the coefficients for each tau (k,).

    Given tau, a = tau / c and a uniform u, that of a single one is tau tan(u arccos a) / sqrt(1 - a^2), or
    tau tanh(u arccosh a) / sqrt(a^2 - 1) where a > 1: that is lambda with the slab's factor, integrated and inverted.
    With d > 1 the factor has a power, and some are drawn again. slabs : (p,), inf for none.
    """
    tau, slabs = np.broadcast_arrays(tau[:, None], slabs)
    sd, left = np.empty(tau.shape), np.ones(tau.shape, bool)
    while left.any():
        a, u = tau[left] / slabs[left], rng.random(left.sum())
        root = np.sqrt(np.abs(a - 1)) * np.sqrt(a + 1)
        angle = np.where(a < 1, np.tan(u * np.arctan2(root, a)), np.tanh(u * np.arcsinh(root)))
        drawn = tau[left] * np.divide(angle, root, out=u, where=root > 0)
        sd[left] = drawn
        if d == 1:
            break
        share = np.maximum(1 - (drawn / slabs[left]) ** 2, 0.0) ** ((d - 1) / 2)
        left[left] = rng.random(len(drawn)) >= share
    return sd


def each_slab(slab_scale, p):
    """The slab of each of p columns, inf for none. slab_scale : as ``FixedPrior`` has it."""
    return np.full(p, np.inf if slab_scale is None else slab_scale) if np.ndim(slab_scale) == 0 else slab_scale


def log_density_of_tau(tau, tau_0, slabs, d=1):
    """log p(tau), for tau of any shape. slabs : (p,), inf for none. d : coefficients of a column."""
    log_total = np.logaddexp.reduce(_on_grid(tau_0, slabs, d)[1]) + log(_STEP)
    return _log_density(np.log(tau) - log(tau_0), tau_0, slabs, d) - np.log(tau) - log_total


def _on_grid(tau_0, slabs, d=1):
    """A grid of log(tau / tau_0), and ``_log_density`` there."""
    low = -_END - log(max(1.0, tau_0 * np.sqrt(d) * (1 / slabs).sum()))
    log_x = _STEP * np.arange(round(low / _STEP), round(_END / _STEP) + 1)
    return log_x, _log_density(log_x, tau_0, slabs, d)


def _log_density(log_x, tau_0, slabs, d):
    """Logarithm of the density of log(tau / tau_0) at log_x, up to a constant.

    The slab is a further factor N(beta_j; 0, c_j^2 I), so that the prior of the scales has the factor
    (1 + (tau lambda_j / c_j)^2)^(-d/2) for each column: without a slab tau ~ C+(0, tau_0), with one it is smaller, and
    ever smaller with more columns.
    """
    log_density = log_x - np.logaddexp(0.0, 2 * log_x)
    distinct, counts = np.unique(slabs, return_counts=True)
    for at in range(0, len(distinct), _SLABS_AT_A_TIME):
        some = slice(at, at + _SLABS_AT_A_TIME)
        factors = log_slab_factor(np.exp(log_x)[..., None] * (tau_0 / distinct[some]), d)
        log_density = log_density + factors @ counts[some]
    return log_density


def log_slab_factor(a, d=1):
    """Logarithm of the mean of (1 + (a lambda)^2)^(-d/2) over half-Cauchy lambda, for a >= 0."""
    if d > 1:
        with np.errstate(divide="ignore"):
            log_a = np.log(a)
        return _log_slab_factors(d)(np.clip(log_a, -_FLAT, _FLAT)) - np.maximum(log_a - _FLAT, 0.0)
    root = np.sqrt(np.abs(a - 1)) * np.sqrt(a + 1)
    arc = np.where(a < 1, np.arctan2(root, a), np.arcsinh(root))
    return np.log(np.divide(arc, root, out=np.ones_like(root), where=root > 0)) + log(2 / pi)


@cache
def _log_slab_factors(d):
    """``log_slab_factor`` as a function of log a, for d > 1, by quadrature over log lambda. Beyond the ends of the
    table the mean is 1, or proportional to 1 / a."""
    log_a, step = np.arange(-_FLAT, _FLAT + 0.01, 0.02), 0.2
    log_lambda = np.arange(-40.0, 40.0, step) - np.logaddexp(0.0, log_a)[:, None]
    both = np.logaddexp(0.0, 2 * log_lambda) + d / 2 * np.logaddexp(0.0, 2 * (log_lambda + log_a[:, None]))
    return CubicSpline(log_a, np.logaddexp.reduce(log_lambda - both, axis=1) + log(2 / pi * step))


_REACH = 40.0  # beyond which neither a logarithm of a length nor of lambda matters for the other
_FAR = 300.0  # least b for which e^b E1(b) is computed by its asymptotic series


def log_marginal(square, d=1):
    """Logarithm of the density of d coefficients that share a lambda, up to a constant; lambda is integrated out.

    square : of their length, in units of tau. With d > 1, to some eight digits.
    """
    if d == 1:
        return np.log(_scaled_integral(np.maximum(square, 1e-300) / 2))
    log_length = np.log(np.maximum(square, 1e-300)) / 2
    inside = np.clip(log_length, -_REACH, _REACH)
    above, below = np.maximum(log_length - inside, 0.0), np.minimum(log_length - inside, 0.0)
    return _log_marginals(d)(inside) - (d + 1) * above - (d - 1) * below


def _scaled_integral(b):
    """e^b E1(b), b > 0."""
    near, far = np.minimum(b, _FAR), np.maximum(b, _FAR)
    return np.where(b < _FAR, np.exp(near) * exp1(near), (1 - (1 - 2 / far) / far) / far)


@cache
def _log_marginals(d):
    """``log_marginal`` as a function of the logarithm of the length, for d > 1, by quadrature over log lambda."""
    log_length, log_lambda = np.arange(-_REACH, _REACH + 0.01, 0.02), np.arange(-_REACH - 5, 2 * _REACH, 0.2)
    prior = (1 - d) * log_lambda - np.logaddexp(0.0, 2 * log_lambda)
    ratio = np.exp(np.minimum(2 * (log_length[:, None] - log_lambda), 700.0))
    return CubicSpline(log_length, np.logaddexp.reduce(prior - ratio / 2, axis=1))


def _m_eff(taus, root, slabs, d):
    """The mean of sum_j (1 - kappa_j) over lambda, for each tau. root : (p,) square roots of the informations.

    With b^2 = tau^2 (h + 1/c^2), 1 - kappa = h / (h + 1/c^2) (b lambda)^2 / (1 + (b lambda)^2). By partial fractions
    its mean is one of the slab's factor at two places.
    """
    root = np.maximum(root, 1e-300)  # a column without information, and perhaps without a slab
    both = np.hypot(root, 1 / slabs)
    log_end = log_slab_factor(1 / (slabs * both), d)

    def given(tau):
        tau = np.where(np.abs(tau * both - 1) < 1e-4, 1.0002 * tau, tau)  # for b = 1 numerator and denominator vanish
        b, ratio = tau * both, np.exp(log_end - log_slab_factor(tau / slabs, d))
        return ((root / both) ** 2 * (b / (b + 1)) * ((b - ratio) / (b - 1))).sum()

    return np.array([given(tau) for tau in taus])


_QUADRATURE_STEP, _FROM, _TO = 0.01, -60.0, 105.0  # step and ends of the grid in log x for quadrature
_TINY = 1e-7  # probability below which a normal quantile is taken as linear in it


def quantiles(d=1):
    """log x and v on a grid, where x, a coefficient divided by tau, is at the quantile of a standard normal v.

    With lambda integrated out x has the density (2 pi^3)^(-1/2) e^b E1(b), b = x^2 / 2 (Carvalho, Polson & Scott 2010).
    With d > 1, x is the length of d coefficients that share a lambda, and v that of a standard normal vector.
    """
    log_x = np.arange(_FROM, _TO, _QUADRATURE_STEP)
    if d > 1:
        below, above = _probabilities_of_lengths(log_x, d)
        is_low = (below < 0.25) & (log_x < _REACH / 2)
        low, high = np.where(is_low, below, 0.25), np.where(is_low, 0.75, above)
        return log_x, np.sqrt(2 * np.where(is_low, gammaincinv(d / 2, low), gammainccinv(d / 2, high)))
    below, above = _probabilities(log_x)
    v = np.where(below < 0.25, ndtri(0.5 + below), -ndtri_exp(np.log(above)))
    return log_x, np.where(below < _TINY, below * np.sqrt(2 * np.pi), v)


def _probabilities_of_lengths(log_x, d):
    """P(X < x) and P(X > x) at the points of a grid, right where they are below a half: log x is log lambda plus the
    logarithm of the length of a standard normal vector."""
    log_length = np.arange(-_REACH, _REACH, _QUADRATURE_STEP)
    log_lambda = np.arange(len(log_x) + len(log_length) - 1) * _QUADRATURE_STEP + log_x[0] - log_length[-1]
    density = _QUADRATURE_STEP / (pi * np.cosh(log_lambda))
    laws = (law(d / 2, np.exp(2 * log_length) / 2) for law in (gammainc, gammaincc))
    return [np.convolve(density, law, "valid") for law in laws]


def _probabilities(log_x):
    """P(0 < X < x), P(X > x) at the points of a grid."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    x = np.exp(log_x[:-1, None] + _QUADRATURE_STEP * (nodes + 1) / 2)
    with np.errstate(over="ignore"):
        density = _scaled_integral(x * x / 2) / np.sqrt(2 * np.pi**3)
    cell = (density * x) @ weights * (_QUADRATURE_STEP / 2)
    edge = 2.0 / np.sqrt(2 * np.pi**3)  # the tail beyond x is edge / x
    start = np.exp(log_x[0]) * (1 - log_x[0]) * edge
    above = np.append(np.cumsum(cell[::-1])[::-1], 0.0) + edge * np.exp(-log_x[-1])
    return start + np.append(0.0, np.cumsum(cell)), above
