"""Whether what columns do together has converged where what each does alone has not."""

import numpy as np

from .._posterior.correlated import clusters
from .._utils.memmap import is_on_disk
from ..diagnostics import MAX_RHAT, MIN_ESS_PER_CHAIN, convergence

_THRESHOLD = 0.7  # of ``groups.correlated_groups``
_MOST_COLUMNS, _MOST_NUMBERS = 4096, 2**23  # of X: correlations take less time than the fit, and copies less room


def have_converged(fitted, rows, failed, informative):
    """Whether only coefficients of single columns have not converged: neither another quantity, nor the sum of effects
    over any group of correlated columns. Unknown, and so False, where rows are not dense in memory or are many.

    fitted : attributes of a model. rows : X (n, p), y and the weights or None; None on a cluster. failed : of the
    informative columns and of other quantities, bool. informative : (p,) bool.
    """
    alone = np.zeros(len(informative), bool)
    alone[informative] = failed[: informative.sum()]
    if failed.sum() > alone.sum() or not alone.any() or fitted.coef_draws_.shape[1] < MIN_ESS_PER_CHAIN:
        return False
    X, _, weight = rows or (None, None, None)
    if not isinstance(X, np.ndarray) or is_on_disk(X) or X.shape[1] > _MOST_COLUMNS or X.size > _MOST_NUMBERS:
        return False
    try:
        sums = _sums(fitted, X, weight, alone)
    except (MemoryError, KeyboardInterrupt):  # the draws stay
        return False
    if sums is None:
        return False
    checks = convergence(sums)
    return bool((checks.rhat <= MAX_RHAT).all() and (checks.ess_bulk >= MIN_ESS_PER_CHAIN * len(sums)).all())


def _sums(fitted, X, weight, alone):
    """The draws (n_chains, n_draws, k) of the sums over the groups that have a column of ``alone``, or None if one of
    these is in no group."""
    sd = fitted._column_sd
    varies = np.flatnonzero(sd > 0)
    Z = (X[:, varies] - fitted._column_means[varies]) / sd[varies]
    if weight is not None:
        Z *= np.sqrt(weight)[:, None]
    Z /= np.sqrt(np.einsum("ij,ij->j", Z, Z))
    found = []
    for members, signs, _ in clusters(Z, _THRESHOLD, "fit"):
        columns = varies[members]
        if alone[columns].any():
            if len(columns) == 1:
                return None
            found.append(fitted.coef_draws_[..., columns] @ (signs * sd[columns]))
            alone[columns] = False
    return None if alone.any() else np.stack(found, axis=-1)
