"""The log score of new rows, from the rows of the fit: each is left out in turn, by reweighting the draws."""

from dataclasses import dataclass
from math import log10

import numpy as np

from .._utils.warn import warn
from ..diagnostics import ess_bulk
from . import predict, psis

_LEAST_DRAWS = 100  # with fewer, no k is low enough


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """What `loo` returns. To compare two models of the same rows, compare ``elpd_i`` row by row.

    Parameters
    ----------
    elpd_loo : float
        Expected log predictive density: the sum of ``elpd_i``, an estimate of the log score of as many new rows.
    se : float
        Standard error of ``elpd_loo``, as a sum over rows that might have been others; nan of a single row.
    p_loo : float
        Effective number of parameters: by how much the log score of these rows, given all of them, is better.
    elpd_i : ndarray of shape (n_samples,), float64
        Log predictive density of each row given the others, times its weight.
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

    def __repr__(self):
        n, high = len(self.elpd_i), self.n_high_k
        k = f"Pareto k is at most {self.good_k:.2g} for all rows: the estimate is to be trusted."
        if high:
            k = f"Pareto k is above {self.good_k:.2g} for {high} rows: these terms are not to be trusted."
        return (
            f"PSIS-LOO of {n} rows, {self.n_draws} draws\n"
            f"elpd_loo {self.elpd_loo:12.2f}   standard error {self.se:.2f}\n"
            f"p_loo    {self.p_loo:12.2f}\n{k}"
        )


def leave_one_out(model, X, positive, weight, max_draws):
    """``LeaveOneOut`` of rows; positive (n,) bool, whether each is of the second class; weight (n,) or None."""
    coef, intercept = predict.flat(model, max_draws)
    n, n_draws = X.shape[0], len(coef)
    if n_draws < _LEAST_DRAWS:
        raise ValueError(
            f"PSIS-LOO needs {_LEAST_DRAWS} draws or more, and there are {n_draws}: fit with a larger n_iter, or use a "
            "larger max_draws."
        )
    r_eff = _relative_efficiency(model, max_draws)
    n_tail = psis.tail_length(n_draws, r_eff)
    elpd, k, all_given = np.empty((3, n))

    def use(loglik, rows):
        elpd[rows], k[rows], all_given[rows] = psis.leave_one_out(loglik, n_tail)

    predict.each_log_likelihood(model, X, positive, weight, coef, intercept, use)
    if not np.isfinite(elpd).all():
        raise ValueError(
            f"Row {int(np.argmin(np.isfinite(elpd)))} of X is so far on the wrong side that its log-likelihood is "
            "beyond float64. Are its columns on the scale that they had in fit?"
        )
    good_k = min(1 - 1 / log10(n_draws), 0.7)
    total, n_high = float(elpd.sum()), int((k > good_k).sum())
    if n_high:
        warn(
            f"{n_high} of {n} rows have a Pareto k above {good_k:.2g} (pareto_k): the posterior without such a row is "
            "too far from the draws, and its term of elpd_loo is not to be trusted. Cross-validate instead if they are "
            "more than a few."
        )
    return LeaveOneOut(
        elpd_loo=total,
        se=float(np.sqrt(n * elpd.var(ddof=1))) if n > 1 else np.nan,
        p_loo=float(all_given.sum()) - total,
        elpd_i=elpd,
        pareto_k=k,
        good_k=good_k,
        n_high_k=n_high,
        n_draws=n_draws,
        r_eff=r_eff,
    )


def _relative_efficiency(model, max_draws):
    """Mean of the bulk effective sample sizes of what varies, as a share of the draws; 1 if there is no telling."""
    found = []
    for draws in (model.coef_draws_, model.intercept_draws_, model.global_scale_draws_):
        draws = predict.evenly(draws, max_draws)
        flat = draws.reshape(*draws.shape[:2], -1)
        varies = (flat != flat[0, 0]).any(axis=(0, 1))
        found.append(ess_bulk(flat)[varies] / flat[..., 0].size)
    mean = np.concatenate(found).mean()
    return float(mean) if np.isfinite(mean) else 1.0
