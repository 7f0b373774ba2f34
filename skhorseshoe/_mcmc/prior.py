"""The prior: tau_0, the part that does not depend on the scales, and the expected number of effectively nonzero
coefficients, m_eff = sum_j (1 - kappa_j).
"""

from math import log, pi

import numpy as np
from scipy.special import ndtri

LEAST_SCALE, LARGEST_SCALE = 1e-100, 1e100  # bounds of tau_0
WIDE = 100.0  # standard deviation of intercept and unpenalised coefficients; wide on the probit scale
PER_CONTRAST = "per_contrast"  # the parameter ``slab_scale`` of a slab for each column, in the unit of its contrast
SLAB = 4  # standard deviation of such a slab, on the probit scale per contrast of a column
SLAB_TEXT = f"{SLAB} per contrast of each column"


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
        cure = "" if p else " Leave it out: all columns are unpenalized."
        raise ValueError(
            f"expected_nonzero={expected_nonzero} must be below the number of columns that are shrunk, which is "
            f"{p}.{cure}"
        )
    scale = float(expected_nonzero / (p - expected_nonzero) / np.sqrt(row_information(rate) * n))
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


GRID_STEP = 0.05  # step of grids in the logarithms of scales; sums over them are integrals to some ten digits
_SIZE_STEP = 0.2  # the same of the logarithms of sizes, of which functions are smoother
GRID_END = 30.0  # end of grids: a half-Cauchy variable is above e^30, or below e^-30, with a probability of 1e-13


def row_information(rate):
    """phi(Phi^-1(r))^2 / (r (1 - r)): the Fisher information of a probit row whose probability is r."""
    return np.exp(-(ndtri(rate) ** 2)) / (2 * pi * rate * (1 - rate))


def describe_prior(tau_0, slab_scale, sd, n, rate):
    """The fitted attribute ``prior_``: the scales, and the prior mean of m_eff, for columns as if orthogonal.

    slab_scale : as ``FixedPrior`` has it. sd : (p,) of the columns whose coefficients are shrunk, in the unit in which
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
        log_tau, tau_weights, m_eff = _with_a_slab_each(tau_0, slab_scale[sd > 0], sd[sd > 0], information)
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


def _with_a_slab_each(tau_0, slab_scale, sd, information):
    """As ``_with_one_slab``, with a slab for each column. Its factor depends on tau / c_j, kappa_j on c_j sd_j too;
    the logarithms of both are on grids."""
    log_tau, log_lambda = _grid(-GRID_END - max(0.0, log(tau_0) + log((1 / slab_scale).sum()))), _grid(-GRID_END)
    at, weights = _interpolation(-np.log(slab_scale), GRID_STEP)
    of_size, size_weights = _interpolation(np.log(slab_scale * sd * (2 / SLAB)), _SIZE_STEP)  # 0 for two equal halves
    first, first_size = at.min(), of_size.min()
    counts = np.zeros((of_size.max() - first_size + 1, at.max() - first + 1))
    np.add.at(counts, (of_size[:, None] - first_size, at - first), size_weights[:, None] * weights)

    size = len(log_tau) + counts.shape[1] - 1
    log_product = log_tau[0] + GRID_STEP * first + log_lambda[0] + GRID_STEP * np.arange(size + len(log_lambda) - 1)
    product = np.exp(log(tau_0) + log_product)  # tau lambda_j / c_j
    slab, lambda_weights = 1 / np.hypot(1.0, product), _half_cauchy(log_lambda)
    factor = np.correlate(slab, lambda_weights, "valid")  # factor from the slab of one column, given tau / c_j
    tau_weights = np.correlate(np.log(factor), counts.sum(axis=0), "valid")
    tau_weights = _prior_of_tau(log_tau, tau_weights - tau_weights.max())
    m_eff = np.zeros(len(log_tau))
    for number, count in zip(range(first_size, of_size.max() + 1), counts, strict=True):
        log_h = log(information) + 2 * (_SIZE_STEP * number + log(SLAB / 2))  # of the coefficient in units of c_j
        weighted = slab * _one_less_kappa(log_h, product**2, 1.0)
        m_eff += np.correlate(np.correlate(weighted, lambda_weights, "valid") / factor, count, "valid")
    at_tau_0 = float(m_eff[log_tau == 0.0][0])
    return log_tau, tau_weights, {"m_eff": float(tau_weights @ m_eff), "m_eff_at_tau_0": at_tau_0}


def on_grid(x):
    """Weights of multiples of ``GRID_STEP`` with which the weighted sum of a smooth function over them is its sum over
    the values x. Returns the index of the first multiple, and the weights."""
    points, weights = _interpolation(x, GRID_STEP)
    first = int(points.min())
    return first, np.bincount((points - first).ravel(), weights.ravel())


def _interpolation(x, step):
    """The four multiples of a step, as whole numbers, by which each x (p,) is interpolated, and their weights in a
    cubic; (4, p) each."""
    place = np.floor(x / step).astype(np.int64)
    r = x / step - place
    near = (1 - r) * (2 - r) * np.stack([-r / 6, (1 + r) / 2])
    far = r * (1 + r) * np.stack([(2 - r) / 2, (r - 1) / 6])
    return place + np.arange(-1, 3)[:, None], np.concatenate([near, far])


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
