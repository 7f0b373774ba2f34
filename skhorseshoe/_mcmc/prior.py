"""The prior: tau_0, the part that does not depend on the scales, and the expected number of effectively nonzero
coefficients, m_eff = sum_j (1 - kappa_j).
"""

from math import log, pi

import numpy as np
from scipy.special import ndtri

from .burn_in import AUTO

LEAST_SCALE, LARGEST_SCALE = 1e-100, 1e100  # bounds of tau_0
WIDE = 100.0  # standard deviation of intercept and unpenalised coefficients; wide on the probit scale
SLAB = 2  # standard deviation of the slab, on the probit scale per standard deviation of a column
PER_SD = f"{SLAB} per standard deviation of each column"


def scale_of_tau_prior(global_scale, expected_nonzero, p, n, rate):
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
        raise ValueError(
            f"expected_nonzero={expected_nonzero} must be below the number of columns that are shrunk, which is {p}."
        )
    scale = float(expected_nonzero / (p - expected_nonzero) / np.sqrt(row_information(rate) * n))
    if not LEAST_SCALE <= scale <= LARGEST_SCALE:
        raise ValueError(
            f"expected_nonzero={expected_nonzero} of {p} columns makes the scale of the prior {scale:.1g}: it must be "
            f"from {LEAST_SCALE:g} to {LARGEST_SCALE:g}. Choose a number that is less extreme."
        )
    return scale


def slab_of(slab_scale, sd):
    """Standard deviations of the slab, as given: None or a number for all columns; with "auto" one for each (p,).

    sd : (p,) of the columns, in the unit in which the prior holds. A column that does not vary has no slab: inf.
    """
    if slab_scale != AUTO:
        return None if slab_scale is None else float(slab_scale)
    return np.divide(SLAB, sd, out=np.full(len(sd), np.inf), where=sd > 0)


class FixedPrior:
    """The part of the prior that does not depend on the scales: a Gaussian whose precision is rank one plus a diagonal.

    The slab is an observation "0 with standard deviation c" of each shrunk coefficient (Nishimura & Suchard 2023). The
    prior of the intercept is that of the intercept at the mean of the columns, so that their zero does not matter. The
    prior of an unpenalised coefficient is wide for the standard deviation of its column.

    slab_scale : a number, None, or "auto" for ``PER_SD``. wide : standard deviation of the intercept and of unpenalised
    coefficients, times that of their columns.
    """

    def __init__(self, columns, slab_scale, wide=WIDE):
        p = len(columns.mean)
        self.anchor = np.append(columns.mean, 1.0) / wide if columns.fit_intercept else np.zeros(p)
        self.slab_scale = slab_of(slab_scale, columns.sd[: columns.n_shrunk])
        self.slab_precision = 0.0 if self.slab_scale is None else self.slab_scale**-2.0
        self.diagonal = np.zeros(len(self.anchor))
        self.diagonal[: columns.n_shrunk] = self.slab_precision
        sd = columns.sd[columns.n_shrunk :]
        self.diagonal[columns.n_shrunk : p] = (np.where(sd > 0, sd, 1.0) / wide) ** 2
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


GRID_STEP = 0.05  # step of grids in the logarithms of scales; sums over them are integrals to some ten digits
GRID_END = 30.0  # end of grids: a half-Cauchy variable is above e^30, or below e^-30, with a probability of 1e-13


def row_information(rate):
    """phi(Phi^-1(r))^2 / (r (1 - r)): the Fisher information of a probit row whose probability is r."""
    return np.exp(-(ndtri(rate) ** 2)) / (2 * pi * rate * (1 - rate))


def describe_prior(tau_0, slab_scale, sd, n, rate):
    """The fitted attribute ``prior_``: the scales, and the prior mean of m_eff, for columns as if orthogonal.

    slab_scale : as ``slab_of`` gives it. sd : (p,) of the columns whose coefficients are shrunk, in the unit in which
    the prior holds. n : number of rows, or the sum of their weights. rate : share of the second class. "m_eff" is the
    mean over the prior of tau, "m_eff_at_tau_0" that given tau = tau_0 (Piironen & Vehtari 2017, section 3),
    "tau_median" the median of tau.

    The working model of the probit likelihood is Gaussian with the Fisher information of a row at the base rate. Column
    j then has information h_j = n sd_j^2 times that, and 1 - kappa_j = h_j / (h_j + 1 / (tau lambda_j)^2 + 1/c_j^2).

    The slab is a further factor N(beta_j; 0, c_j^2), so that the prior of the scales has the factor
    (1 + (tau lambda_j / c_j)^2)^(-1/2) for each column: without a slab tau ~ C+(0, tau_0), with one it is smaller, and
    ever smaller with more columns. All of it depends on tau lambda_j alone, whose logarithm is a sum, so that means
    over both scales are convolutions.
    """
    information = n * row_information(rate)
    if np.ndim(slab_scale) and (sd > 0).any():
        log_tau, tau_weights, m_eff = _with_a_slab_per_sd(tau_0, sd[sd > 0], information)
    else:
        slab = slab_scale if np.ndim(slab_scale) == 0 else None
        log_tau, tau_weights, m_eff = _with_one_slab(tau_0, slab, sd, information)
    median = tau_0 * np.exp(np.interp(0.5, np.cumsum(tau_weights) - tau_weights / 2, log_tau))
    return {"tau_0": tau_0, "slab_scale": slab_scale, "tau_median": float(median), **m_eff}


def _with_one_slab(tau_0, slab_scale, sd, information):
    """log(tau / tau_0) on a grid, its probabilities, and both m_eff. information : of a column of sd 1."""
    slab_precision = 0.0 if slab_scale is None else slab_scale**-2.0
    below = GRID_END if slab_scale is None else GRID_END + max(0.0, log(tau_0 / slab_scale))
    log_tau, log_lambda = _grid(-below), _grid(-GRID_END)
    first = log_tau[0] + log_lambda[0]
    product = tau_0 * np.exp(first + GRID_STEP * np.arange(len(log_tau) + len(log_lambda) - 1))  # tau lambda
    square, slab = product**2, 1 / np.hypot(1.0, product * slab_precision**0.5)
    lambda_weights = _half_cauchy(log_lambda)
    factor = np.correlate(slab, lambda_weights, "valid")  # factor of the prior of tau from the slab of one column
    tau_weights = _prior_of_tau(log_tau, len(sd) * np.log(factor / factor.max()))

    log_h = log(information) + 2 * np.log(sd[sd > 0])  # the logarithm, since sd^2 may overflow
    log_h, times = np.unique(log_h, return_counts=True)
    m_eff = {}
    for name, weight in {"m_eff": tau_weights, "m_eff_at_tau_0": (log_tau == 0.0).astype(float)}.items():
        product_weights = slab * np.convolve(weight / factor, lambda_weights)
        means = (product_weights @ _one_less_kappa(h, square, slab_precision) for h in log_h)
        m_eff[name] = float(sum(k * mean for k, mean in zip(times, means, strict=True)))
    return log_tau, tau_weights, m_eff


def _with_a_slab_per_sd(tau_0, sd, information):
    """As ``_with_one_slab``, with a slab of ``SLAB`` in the unit of each column. Columns then differ by tau sd_j in
    place of tau alone, whose logarithms are on a grid too."""
    log_tau, log_lambda = _grid(-GRID_END - max(0.0, log(tau_0) + log(sd.sum() / SLAB))), _grid(-GRID_END)
    first, counts = on_grid(np.log(sd))
    size = len(log_tau) + len(counts) - 1
    log_product = log_tau[0] + GRID_STEP * first + log_lambda[0] + GRID_STEP * np.arange(size + len(log_lambda) - 1)
    product = np.exp(log(tau_0) + log_product)  # tau lambda_j sd_j
    slab, lambda_weights = 1 / np.hypot(1.0, product / SLAB), _half_cauchy(log_lambda)
    factor = np.correlate(slab, lambda_weights, "valid")  # factor from the slab of one column, given tau sd_j
    weighted = slab * _one_less_kappa(log(information), product**2, SLAB**-2.0)
    mean = np.correlate(weighted, lambda_weights, "valid") / factor
    log_factor, m_eff = (np.correlate(values, counts, "valid") for values in (np.log(factor), mean))
    tau_weights = _prior_of_tau(log_tau, log_factor - log_factor.max())
    at_tau_0 = float(m_eff[log_tau == 0.0][0])
    return log_tau, tau_weights, {"m_eff": float(tau_weights @ m_eff), "m_eff_at_tau_0": at_tau_0}


def on_grid(x):
    """Weights of multiples of ``GRID_STEP`` with which the weighted sum of a smooth function over them is its sum over
    the values x, by cubic interpolation. Returns the index of the first multiple, and the weights."""
    place = np.floor(x / GRID_STEP).astype(np.int64)
    r, first = x / GRID_STEP - place, int(place.min()) - 1
    near = (1 - r) * (2 - r) * np.stack([-r / 6, (1 + r) / 2])
    far = r * (1 + r) * np.stack([(2 - r) / 2, (r - 1) / 6])
    points = place - first + np.arange(-1, 3)[:, None]
    return first, np.bincount(points.ravel(), np.concatenate([near, far]).ravel())


def _grid(low):
    """A grid from about low to ``GRID_END`` that includes 0."""
    return GRID_STEP * np.arange(round(low / GRID_STEP), round(GRID_END / GRID_STEP) + 1)


def _prior_of_tau(log_tau, log_factor):
    """Probabilities of the points of a grid: half-Cauchy, times the factor of the slabs."""
    tau_weights = _half_cauchy(log_tau) * np.exp(log_factor)
    return tau_weights / tau_weights.sum()


def _half_cauchy(log_x):
    """Probabilities of the points of a grid for the logarithm of a half-Cauchy variable."""
    density = 1 / np.cosh(log_x)
    return density / density.sum()


def _one_less_kappa(log_h, square, slab_precision):
    """1 - kappa = 1 / (1 + (1 / (tau lambda)^2 + 1 / c^2) / h), for (tau lambda)^2."""
    with np.errstate(over="ignore", divide="ignore"):  # for a column without information
        return 1 / (1 + np.exp(np.log(1 / square + slab_precision) - log_h))
