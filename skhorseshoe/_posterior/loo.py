"""Leave-one-out estimate of the log score of new rows, by reweighting the draws.

Pareto-smoothed importance sampling as in Vehtari, Simpson, Gelman, Yao & Gabry (2024), JMLR 25(72). The Pareto
distribution is fitted as in Zhang & Stephens (2009), Technometrics 51, 316-325, with the priors of both papers.
"""

from dataclasses import dataclass
from math import ceil, log10
from numbers import Integral

import numpy as np

from .._utils.warn import warn
from ..diagnostics import ess_bulk
from . import predict
from .grouped_prediction import evenly
from .loo_groups import group_logliks

LEAST_DRAWS = 100  # with fewer, no k is low enough
_WIDEST = -np.log(np.finfo(float).tiny)  # largest range of log ratios that float64 can hold as ratios
# Ratios within 1 % of one another weight all draws alike: leaving out such a row changes nothing, whatever the shape of
# its tail, which is often heavy for rows of which all draws are nearly certain.
_EQUAL = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """What `skhorseshoe.inspection.loo` returns. To compare two models of the same rows, compare ``elpd_i`` row by row.

    Parameters
    ----------
    elpd_loo : float
        Expected log predictive density: the sum of ``elpd_i``, an estimate of the log score of as many new rows.
    se : float
        Standard error of ``elpd_loo``, as a sum over rows (of place weight) that might have been others: sqrt(n)
        times the standard deviation of ``elpd_i``, with n - 1 in its denominator; nan of one row.
    p_loo : float
        Effective number of parameters: by how much the log score of these rows, given all of them, is better.
    elpd_i : ndarray of shape (n_samples,), float64
        Log predictive density of each row given the others: log E[p^w] for weight w, which is not w log E[p].
    pareto_k : ndarray of shape (n_samples,), float64
        Shape of the Pareto distribution of the largest importance ratios of each row: up to ``good_k`` its ``elpd_i``
        is to be trusted. It is infinite where no distribution can be fitted, and 0 where the weights of all draws are
        within 1 % of one another.
    good_k : float
        Highest k of a row that is to be trusted: min(1 - 1 / log10(n_draws), 0.7).
    n_high_k : int
        Number of rows whose ``pareto_k`` is above ``good_k``.
    n_draws : int
        Draws used.
    r_eff : float
        Effective draws as a share of these: means of the bulk effective sample sizes of all parameters.
    n_rows : int
        Rows that count: those of place weight; or groups.
    left_out : {"rows", "groups"}, default="rows"
        What is left out, and what the arrays have an entry for.
    """

    elpd_loo: float
    se: float
    p_loo: float
    elpd_i: np.ndarray
    pareto_k: np.ndarray
    good_k: float
    n_high_k: int
    n_draws: int
    r_eff: float
    n_rows: int
    left_out: str = "rows"

    def __repr__(self):
        n, high = f"{self.n_rows} {self.left_out}", self.n_high_k
        k = f"Pareto k is at most {self.good_k:.2g} for all {self.left_out}: the estimate is to be trusted."
        if high:
            k = f"Pareto k is above {self.good_k:.2g} for {high} of {n}: such terms are not to be trusted."
        return (
            f"PSIS-LOO of {n}, {self.n_draws} draws\n"
            f"elpd_loo {self.elpd_loo:12.2f}   standard error {self.se:.2f}\n"
            f"p_loo    {self.p_loo:12.2f}\n{k}"
        )


def leave_one_out(model, rows, place, weight, max_draws):
    """``LeaveOneOut`` of ``GivenRows``, or of their groups if they have any; place (n,) of the labels; weight (n,) or
    None."""
    n_chains = len(model.intercept_draws_)
    if isinstance(max_draws, Integral) and max_draws >= LEAST_DRAWS:  # as many of each chain, and no fewer in all
        max_draws = max(max_draws, n_chains * ceil(LEAST_DRAWS / n_chains))
    coef, intercept = predict.flat_draws(model, max_draws)
    n_draws, left_out = predict.n_draws_of(model, intercept), "rows" if rows.codes is None else "groups"
    n = rows.X.shape[0] if rows.codes is None else int(rows.codes.max()) + 1
    if n_draws < LEAST_DRAWS:
        raise ValueError(f"PSIS-LOO needs {LEAST_DRAWS} draws, not {n_draws}: take a larger n_iter or max_draws.")
    r_eff = relative_efficiency(model, max_draws)
    n_tail = tail_length(n_draws, r_eff)
    elpd, k, all_given = np.empty((3, n))

    def use(loglik, block):
        elpd[block], k[block], all_given[block] = without_each(loglik, n_tail)

    if rows.codes is None:
        predict.each_log_likelihood(model, rows, place, weight, coef, intercept, use)
    else:
        use(group_logliks(model, rows, place, weight, max_draws), slice(None))
    if not np.isfinite(elpd).all():
        raise ValueError(
            f"{left_out[:-1].capitalize()} {int(np.argmin(np.isfinite(elpd)))} of X is so far on the wrong side that "
            "its log-likelihood is beyond float64. Are its columns on the scale that they had in fit?"
        )
    good_k = highest_good_k(n_draws)
    total, n_high = float(elpd.sum()), int((k > good_k).sum())
    counted = elpd if weight is None or rows.codes is not None else elpd[weight > 0]
    if n_high:
        warn(
            f"Pareto k (pareto_k) is above {good_k:.2g} for {n_high} of {len(counted)} {left_out}: the posterior "
            f"without such a {left_out[:-1]} is too far from the draws, and its term of elpd_loo is not to be trusted. "
            "Cross-validate instead if they are more than a few."
        )
    return LeaveOneOut(
        elpd_loo=total,
        se=float(np.sqrt(len(counted) * counted.var(ddof=1))) if len(counted) > 1 else np.nan,
        p_loo=float(all_given.sum()) - total,
        elpd_i=elpd,
        pareto_k=k,
        good_k=good_k,
        n_high_k=n_high,
        n_draws=n_draws,
        r_eff=r_eff,
        n_rows=len(counted),
        left_out=left_out,
    )


def relative_efficiency(model, max_draws):
    """Mean of the bulk effective sample sizes of quantities that vary, as a share of the draws; 1 if unknown."""
    shares = []
    for draws in (model.coef_draws_, model.intercept_draws_, model.global_scale_draws_):
        draws = evenly(draws, max_draws)
        flat = draws.reshape(*draws.shape[:2], -1)
        varies = (flat != flat[0, 0]).any(axis=(0, 1))
        shares.append(ess_bulk(flat)[varies] / flat[..., 0].size)
    mean = np.concatenate(shares).mean()
    return float(mean) if np.isfinite(mean) else 1.0


def highest_good_k(n_draws):
    """The highest Pareto k of weights of so many draws that are to be trusted."""
    return min(1 - 1 / log10(n_draws), 0.7)


def smoothed_weights(log_ratio, n_tail):
    """Importance weights (n_draws,) that sum to 1, the largest smoothed; and the shape k of their Pareto law."""
    order = np.argsort(log_ratio, kind="stable")
    cutoff, tail = log_ratio[order[-n_tail - 1]], order[-n_tail:]
    with np.errstate(all="ignore"):
        smooth, k = _smoothed(log_ratio[None, tail], np.maximum(cutoff, log_ratio[order[-1]] - _WIDEST)[None, None])
    log_weight = log_ratio.copy()
    log_weight[tail] = smooth[0]
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum(), 0.0 if np.ptp(log_ratio) < _EQUAL else float(k[0])


def tail_length(n_draws, r_eff):
    """How many of the largest ratios are smoothed. r_eff : effective draws, as a share of all."""
    return int(np.ceil(min(n_draws / 5, 3 * (n_draws / r_eff) ** 0.5)))


def without_each(loglik, n_tail):
    """From log-likelihoods (n, n_draws), which are overwritten: the log predictive density of each row given the
    others, the shape k of its Pareto distribution, and its log predictive density given all rows; (n,) each.

    k is infinite if no distribution can be fitted, so that nothing is smoothed, and 0 if ratios are nearly equal.
    """
    n_draws = loglik.shape[1]
    log_ratio = np.negative(loglik, out=loglik)
    log_ratio.partition(n_draws - n_tail - 1, axis=1)
    body, tail = log_ratio[:, :-n_tail], np.sort(log_ratio[:, -n_tail:], axis=1)
    least, most = body.min(axis=1, keepdims=True), tail[:, -1:]
    with np.errstate(all="ignore"):  # rows that cannot be fitted are handled below
        smooth, k = _smoothed(tail, np.maximum(body[:, -1:], most - _WIDEST))
    # Weight times likelihood is the same for all draws that are not smoothed.
    top = n_draws - n_tail + np.exp(smooth - tail).sum(axis=1)
    total = np.exp(body - most).sum(axis=1) + np.exp(smooth - most).sum(axis=1)
    elpd = np.log(top) - np.log(total) - most[:, 0]
    likelihood = np.exp(least - body).sum(axis=1) + np.exp(least - tail).sum(axis=1)
    k[(most - least)[:, 0] < _EQUAL] = 0.0
    return elpd, k, np.log(likelihood / n_draws) - least[:, 0]


def _smoothed(tail, cutoff):
    """Log ratios above a cutoff (n, 1), ascending, replaced by quantiles of a Pareto distribution; and its k."""
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
