"""Pareto-smoothed importance sampling of the posterior without one row, for many rows at once.

Vehtari, Simpson, Gelman, Yao & Gabry (2024). Pareto smoothed importance sampling. JMLR 25(72). The fit of the Pareto
distribution is that of Zhang & Stephens (2009), Technometrics 51, 316-325, with their prior and that of the former.
"""

import numpy as np

_WIDEST = -np.log(np.finfo(float).tiny)  # logarithms of ratios further apart have no ratio in float64
# Ratios within 1 % of one another weigh all draws alike: leaving out such a row changes nothing, whatever the shape of
# its tail. Of rows that all draws are nearly sure of, that shape is often a heavy one.
_EQUAL = 0.01


def tail_length(n_draws, r_eff):
    """How many of the largest ratios are smoothed; r_eff : effective draws, as a share of all."""
    return int(np.ceil(min(n_draws / 5, 3 * (n_draws / r_eff) ** 0.5)))


def leave_one_out(loglik, n_tail):
    """Of log-likelihoods (n, n_draws), which are overwritten: the log predictive density of each row given the others,
    the shape k of its Pareto distribution, and its log predictive density given all rows; (n,) each.

    k is infinite where no distribution can be fitted, so that nothing is smoothed, and 0 where ratios are nearly equal.
    """
    n_draws = loglik.shape[1]
    log_ratio = np.negative(loglik, out=loglik)
    log_ratio.partition(n_draws - n_tail - 1, axis=1)
    body, tail = log_ratio[:, :-n_tail], np.sort(log_ratio[:, -n_tail:], axis=1)
    least, most = body.min(axis=1, keepdims=True), tail[:, -1:]
    with np.errstate(all="ignore"):  # what cannot be fitted is settled below
        smooth, k = _smoothed(tail, np.maximum(body[:, -1:], most - _WIDEST))
    # The weight times the likelihood is the same for all draws that are not smoothed.
    top = n_draws - n_tail + np.exp(smooth - tail).sum(axis=1)
    total = np.exp(body - most).sum(axis=1) + np.exp(smooth - most).sum(axis=1)
    elpd = np.log(top) - np.log(total) - most[:, 0]
    likelihood = np.exp(least - body).sum(axis=1) + np.exp(least - tail).sum(axis=1)
    k[(most - least)[:, 0] < _EQUAL] = 0.0
    return elpd, k, np.log(likelihood / n_draws) - least[:, 0]


def _smoothed(tail, cutoff):
    """Logarithms of the ratios above a cutoff (n, 1), ascending, as quantiles of a Pareto distribution; and its k."""
    n_tail = tail.shape[1]
    k, sigma = _fit_pareto(np.expm1(np.maximum(tail - cutoff, 0.0)))  # excess, in units of the ratio at the cutoff
    can = np.isfinite(k) & (sigma > 0)
    exponential = -np.log1p(-(np.arange(n_tail) + 0.5) / n_tail)
    shape = np.where(k == 0, 1.0, k)[:, None]
    quantile = sigma[:, None] * np.where(k[:, None] == 0, exponential, np.expm1(shape * exponential) / shape)
    smooth = np.minimum(cutoff + np.log1p(quantile), tail[:, -1:])
    return np.where(can[:, None] & (tail >= cutoff), smooth, tail), np.where(can, k, np.inf)


def _fit_pareto(x):
    """Shape k and scale sigma of the generalised Pareto distribution of x (n, m), ascending; (n,) each."""
    m = x.shape[1]
    n_grid = 30 + int(m**0.5)
    grid = (1.0 - np.sqrt(n_grid / (np.arange(n_grid) + 0.5))) / 3.0
    theta = 1.0 / x[:, -1:] + grid / x[:, int(m / 4 + 0.5) - 1, None]
    k = _mean_log1m(theta, x)
    profile = m * (np.log(-theta / k) - k - 1.0)
    weight = np.exp(profile - profile.max(axis=1, keepdims=True))
    weight[weight < 10 * np.finfo(float).eps * weight.sum(axis=1, keepdims=True)] = 0.0
    theta = (theta * weight).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    k = _mean_log1m(theta, x)
    sigma = -k / theta
    return (m * k[:, 0] + 5.0) / (m + 10.0), sigma[:, 0]  # a prior that counts as ten values with k = 0.5


def _mean_log1m(theta, x):
    """Means of log(1 - theta x) over x (n, m), for theta (n, l); (n, l)."""
    terms = -theta[:, :, None] * x[:, None, :]
    return np.log1p(terms, out=terms).mean(axis=2)
