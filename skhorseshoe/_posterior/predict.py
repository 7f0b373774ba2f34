"""Probabilities of rows under the draws, in blocks of rows: one matrix product a block."""

from numbers import Integral

import numpy as np
import sklearn
from scipy.special import log_ndtr

from .._backends import device
from .._data.labels import is_second
from .._data.weights import check_weights
from .._utils.arrays import first_not_finite
from .._utils.memory import check_result
from .._utils.threads import count_threads, open_threads
from .fitted_rows import check_fitted_on


def evenly(draws, max_draws):
    """At most ``max_draws`` of draws (n_chains, n_draws, ...), evenly spaced, as many from each chain; None is all."""
    n_chains, n_draws = draws.shape[:2]
    if max_draws is not None and (not isinstance(max_draws, Integral) or max_draws < 1):
        raise ValueError(f"max_draws must be a positive integer or None; got {max_draws!r}.")
    if max_draws is None or max_draws >= n_chains * n_draws:
        return draws
    m = max_draws // n_chains
    if m < 1:
        raise ValueError(f"max_draws={max_draws} must be at least 1 for each of the {n_chains} chains.")
    places = (2 * np.arange(m, dtype=np.int64) + 1) * n_draws // (2 * m)  # NumPy 1 on Windows would take 32 bits
    return draws[:, places]


def answers(model, X, width, answer, max_draws=None):
    """What answer(eta, ops) gives for the blocks of rows; (n, width), on the host."""
    out = np.empty((X.shape[0], width))

    def use(eta, rows, ops):
        out[rows] = ops.to_host(answer(eta, ops))

    _each_predictor(model, X, *flat(model, max_draws), use)
    return out


def log_likelihood(model, X, positive, weight, max_draws):
    """w_i log P(y_i | x_i) for every draw and row; positive (n,) bool, weight (n,) or None -> (n_chains, m, n)."""
    coef, intercept = flat(model, max_draws)
    check_result(X.shape[0], len(coef))
    out = np.empty((len(coef), X.shape[0]))

    def use(values, rows):
        out[:, rows] = values.T

    each_log_likelihood(model, X, positive, weight, coef, intercept, use)
    return out.reshape(len(model.intercept_draws_), -1, X.shape[0])


def labelled(model, X, y, sample_weight):
    """The rows of the fit as users give them, checked: X, whether each label is the second class (n,), and weights (n,)
    or None."""
    X = model._check_rows(X)
    positive = is_second(y, X, model.classes_)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, X)
    check_fitted_on(model, X, positive, sample_weight)
    return X, positive, sample_weight


def each_log_likelihood(model, X, positive, weight, coef, intercept, use):
    """Call use(values, rows) with blocks of w_i log P(y_i | x_i), (rows, m) on the host, which may be overwritten."""
    sign = np.where(positive, 1.0, -1.0)[:, None]

    def of_rows(eta, rows, ops):
        values = ops.to_host(eta)
        values *= sign[rows]
        log_ndtr(values, out=values)
        if weight is not None:
            values *= weight[rows, None]
        use(values, rows)

    _each_predictor(model, X, coef, intercept, of_rows)


def flat(model, max_draws=None):
    """The draws of coefficients (m, p), in the dtype that they are kept in, and intercept (m,), chain after chain."""
    coef, intercept = (evenly(draws, max_draws) for draws in (model.coef_draws_, model.intercept_draws_))
    return coef.reshape(-1, coef.shape[2]), intercept.ravel().astype(np.float64, copy=False)


def _each_predictor(model, X, coef, intercept, use):
    """``each_block`` of the linear predictor, (rows, m); a ValueError where it is not finite, and perhaps on the
    wrong side."""

    def shifted(eta, rows, ops):
        eta += ops.to_device(intercept)
        if not np.isfinite(float(eta.sum())) and (first := first_not_finite(ops.to_host(eta))):
            raise ValueError(
                f"Row {rows.start + first[0]} of X is too large to predict, or holds NaN: its products with the "
                "coefficients are not finite. Are its columns on the scale that they had in fit?"
            )
        use(eta, rows, ops)

    each_block(model, X, coef, shifted)


def each_block(model, left, right, use):
    """Call use(product, rows, ops) with blocks of the product left right', which may be overwritten, and the slice of
    the rows of ``left`` that each is of. They are on the device of the back end ``ops``."""
    ops, name, _ = device.for_answers(model.device, model.device_, left)
    budget = int(sklearn.get_config()["working_memory"] * 2**20)
    n_threads = 1 if left.shape[0] == 1 else count_threads(model.n_jobs)  # which takes a while, for one row
    with open_threads(n_threads) as threads, ops.using(name):
        ops.each_block(left, right, threads, budget, lambda product, rows: use(product, rows, ops))
