"""Probabilities of rows under the draws, in blocks of rows with one matrix product each."""

from contextlib import nullcontext

import numpy as np
import sklearn

from .._backends import device
from .._data.labels import places_of
from .._data.weights import check_weights
from .._utils.arrays import first_not_finite
from .._utils.memmap import cut
from .._utils.memory import check_result
from .._utils.threads import Threads, count_threads, open_threads
from . import grouped_prediction as grouped
from .classes import has_classes, log_density_of_class, own_draws
from .fitted_rows import check_fitted_on

_ROWS_SUMMED = 2**13  # rows whose blocks have sums of their own at a time


def values_by_row(model, rows, width, values_of, draws=None, of_one=None):
    """The values of values_of(eta, ops, own) for the blocks of rows; (n, width), on the host.

    rows : ``GivenRows``. draws : ``DrawsForRows``; by default all draws. of_one : function of eta on the host and the
    variance (m,) of what new groups add to it, for rows that have any; None averages over new groups.
    """
    draws, out = draws or draws_for_rows(model, rows), np.empty((rows.X.shape[0], width))

    values = grouped.values_in_rows(model, rows.X)

    def use(eta, block, ops):
        for places, scores, variance, own in _new_and_known(eta, rows.codes, values, block, draws, ops):
            if variance is not None and of_one is not None:
                out[block][places] = of_one(ops.to_host(scores), variance)
                continue
            if variance is not None:
                root = model._likelihood.shrunk_by(variance)
                scores, own = scores / ops.to_device(root), None if own is None else own / root[..., None]
            out[block][places] = ops.to_host(values_of(scores, ops, own))

    each_predictor(model, rows, draws.coef, draws.intercept, use)
    return out


def _new_and_known(eta, codes, values, block, draws, ops):
    """Yields places and linear predictors of the rows of a block whose groups are new, and of those that are of known
    groups in the same factors, with the variance of the effects of new ones, (m,) or with slopes (rows, m), or None,
    and the draws of parameters of the likelihood's own; those of all rows, if the model has no groups. codes : of all
    rows. values : of ``values_in_rows``."""
    if draws.variances is None:
        yield slice(None), eta, None, draws.own
        return
    codes, x = (None if of_all is None else of_all[block] for of_all in (codes, values))
    of = draws.factors
    is_known = np.zeros((len(eta), of[-1] + 1), bool) if codes is None else codes >= 0
    for pattern in np.unique(is_known, axis=0):
        places = np.flatnonzero((is_known == pattern).all(axis=1))
        scores = eta if len(places) == len(eta) else eta[ops.to_device(places)]
        variances, own = draws.variances, draws.own
        if pattern.any() and draws.places is not None:
            scores, variances = scores[:, ops.to_device(draws.places)], variances[:, draws.places]
            own = None if own is None else own[draws.places]
        for k in np.flatnonzero(pattern[of]):
            effects = draws.effects[k][:, codes[places, of[k]]].T.astype(np.float64)
            scores = scores + ops.to_device(effects if x is None else effects * x[places, k][:, None])
        yield places, scores, None if pattern.all() else _variance(variances, draws, ~pattern[of], x, places), own


def _variance(variances, draws, is_new, x, places):
    """The variance of the effects that are new, (m,) or with slopes (rows, m). x : as in ``values_in_rows``."""
    if x is None:
        return variances[is_new].sum(axis=0)
    a, b = draws.terms[is_new[draws.terms[:, 0]]].T
    return np.maximum((x[places][:, a] * x[places][:, b]) @ variances[is_new[draws.terms[:, 0]]], 0.0)


def draws_for_rows(model, rows, max_draws=None, alike=False):
    """The ``DrawsForRows`` for ``GivenRows``. alike : whether every row must have the same draws, with groups those for
    which effects are kept."""
    if not grouped.is_grouped(model):
        coef, intercept = flat_draws(model, max_draws)
        return grouped.DrawsForRows(coef, intercept, own_draws(model, max_draws))
    selected = grouped.draws_with_effects(model) if alike and rows.codes is not None else slice(None)
    terms = grouped.variance_terms(model)
    draws = *_draws(model), *(term.draws for term in terms)
    coef, intercept, *squares = (grouped.evenly(values[:, selected], max_draws) for values in draws)
    shape, q, effects, places = squares[0].shape, predictors_of_row(model), None, None
    if rows.codes is not None and (rows.codes >= 0).any():
        effects = [
            grouped.evenly(values, max_draws) for values in grouped.by_factor(model, "group_effect_draws_").values()
        ]
        if effects[0].shape[:2] != shape:
            kept = np.arange(np.prod(shape)).reshape(shape)[:, grouped.draws_with_effects(model)]
            places = (kept.reshape(-1, 1) * q + np.arange(q)).ravel()
        effects = [values.reshape(-1, values.shape[2]).repeat(q, axis=0) for values in effects]
    variances = np.stack([square.ravel().repeat(q) for square in squares])
    own = own_draws(model, max_draws, selected)
    of, pairs = grouped.factors_of_effects(model), np.array([term[:2] for term in terms])
    coef = coef.reshape(-1, coef.shape[-1])
    return grouped.DrawsForRows(coef, intercept.ravel(), own, variances, pairs, of, effects, places)


def log_likelihood(model, rows, place, weight, max_draws):
    """w_i log P(y_i | x_i) for every draw and row; place (n,), weight (n,) or None -> (n_chains, m, n)."""
    coef, intercept = flat_draws(model, max_draws)
    n, n_draws = rows.X.shape[0], n_draws_of(model, intercept)
    check_result(n, n_draws)
    out = np.empty((n_draws, n))

    def use(values, block):
        out[:, block] = values.T

    each_log_likelihood(model, rows, place, weight, coef, intercept, use)
    return out.reshape(len(model.intercept_draws_), -1, n)


def labelled_rows(model, X, y, sample_weight, offset, groups=None):
    """The user's rows of the fit, checked: ``GivenRows``, places (n,) of the labels among the classes in order, and
    weights (n,) or None. groups : of the rows, or None where each row is to be scored."""
    if hasattr(model, "_derived"):
        raise ValueError(
            f"This is the model {model._derived}, and the log score of a row of the fit is that of the model that was "
            "fitted: ask that."
        )
    several = grouped.is_grouped(model) and len(grouped.by_factor(model, "groups_")) > 1
    if grouped.is_grouped(model) and (groups is None or several):
        what, folds = "by several factors" if several else "with groups", "GroupKFold()"
        if isinstance(model.groups_, dict):  # whose labels are a table, which splitters do not take
            folds = "list(GroupKFold().split(X, y, groups_of_one_factor))"
        raise ValueError(
            f"This model was fitted {what}, and the log score of a row is asked for: leaving one row out says "
            "little of new groups, since the others of its group stay. Hold out whole groups: "
            f"{'' if several else 'loo(..., groups=groups), or '}cross_validate(model, X, "
            f'y, params={{"groups": groups}}, cv={folds}, scoring="neg_log_loss"), groups being an array, a Series or '
            'a table (user guide, "Rows that belong together").'
        )
    return rows_of_fit(model, X, y, sample_weight, offset, groups)


def rows_of_fit(model, X, y, sample_weight, offset, groups=None):
    """The same, with their groups."""
    X = model._check_rows(X)
    rows = grouped.given_rows(model, X, groups, offset, new_groups=False)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, X)
    place = places_of(y, X, model, sample_weight)
    check_fitted_on(model, rows, place, sample_weight)
    if groups is not None:  # rows of weight 0 may be of groups that fit has not seen
        rows = rows._replace(codes=np.maximum(rows.codes, 0))
    return rows, place, sample_weight


def each_log_likelihood(model, rows, place, weight, coef, intercept, use):
    """Call use(values, rows) with blocks of w_i log P(y_i | x_i), (rows, m) on the host, which may be overwritten."""
    own = own_draws(model, n_draws_of(model, intercept))

    def use_predictors(eta, block, ops):
        use(_log_densities(model, ops.to_host(eta), block, place, weight, own), block)

    each_predictor(model, rows, coef, intercept, use_predictors)


def _log_densities(model, values, rows, place, weight, own):
    """w_i log P(y_i) of some rows, given linear predictors, which are overwritten, and the likelihood's own
    parameters."""
    if has_classes(model):
        values = log_density_of_class(model, values, place[rows], own)
    else:
        values *= np.where(place[rows], 1.0, -1.0)[:, None]
        model._likelihood_of_fit.log_density(values, out=values)
    if weight is not None:
        values *= weight[rows, None]
    return values


def total_log_likelihood(model, rows, place, weight):
    """The log-likelihood of all rows under each draw, with groups under each for which their effects are kept; (m,)."""
    draws, x, total = draws_for_rows(model, rows, alike=True), grouped.values_in_rows(model, rows.X), 0.0
    for some in cut(0, len(place), _ROWS_SUMMED):
        sums = {}  # by the first row of a block: threads end in any order, and a sum has one

        def use(eta, block, ops, some=some, sums=sums):
            numbers = np.arange(some.start + block.start, some.start + block.stop)
            codes = None if rows.codes is None else rows.codes[some]
            of_some = None if x is None else x[some]
            sums[block.start] = sum(
                _log_densities(model, ops.to_host(scores), numbers[places], place, weight, own).sum(axis=0)
                for places, scores, _, own in _new_and_known(eta, codes, of_some, block, draws, ops)
            )

        part = rows._replace(X=rows.X[some], offset=None if rows.offset is None else rows.offset[some])
        each_predictor(model, part, draws.coef, draws.intercept, use)
        total = total + sum(sums[start] for start in sorted(sums))
    return total


def flat_draws(model, max_draws=None):
    """The draws of coefficients (m, p), in the dtype that they are kept in, and intercept (m,), chain after chain; of q
    linear predictors a row, as of several classes, those of the first draw come first, (m q, p) and (m q,)."""
    coef, intercept = (grouped.evenly(draws, max_draws) for draws in _draws(model))
    return coef.reshape(-1, coef.shape[-1]), intercept.ravel().astype(np.float64, copy=False)


def n_draws_of(model, intercept):
    """The number of draws of which ``flat_draws`` gave these intercepts."""
    return len(intercept) // predictors_of_row(model)


def predictors_of_row(model):
    """The number of linear predictors of a row under a draw."""
    return int(np.prod(_draws(model)[1].shape[2:]))


def _draws(model):
    """The draws of coefficients and intercepts that make the linear predictors."""
    own = getattr(model, "_predictors", None)
    return (model.coef_draws_, model.intercept_draws_) if own is None else (own["coef"], own["intercept"])


def each_predictor(model, rows, coef, intercept, use, scale=1.0):
    """``each_product`` for the linear predictor; a ValueError if it is not finite. scale : (m,) factors of offsets."""

    def shifted(eta, block, ops):
        eta += ops.to_device(intercept)
        if rows.offset is not None:
            eta += ops.to_device(offsets_under_draws(rows.offset[block], len(intercept)) * scale)
        if not np.isfinite(float(eta.sum())) and (first := first_not_finite(ops.to_host(eta))):
            raise ValueError(
                f"Row {block.start + first[0]} of X is too large to predict, or holds NaN: its products with the "
                "coefficients are not finite. Are its columns on the scale that they had in fit?"
            )
        use(eta, block, ops)

    alone = nullcontext(Threads(1)) if rows.X.shape[0] == 1 else None  # opening some takes long relative to one row
    each_product(model, rows.X, coef, shifted, alone)


def offsets_under_draws(offset, m):
    """Offsets (n,), or of q linear predictors a row (n, q), as those of m linear predictors under all draws."""
    return offset[:, None] if offset.ndim == 1 else np.tile(offset, m // offset.shape[1])


def each_product(model, a, b, use, threads=None, together=1):
    """Call use(product, rows, ops) with blocks of the product a b', which may be overwritten, and the slice of the rows
    of ``a``. Blocks are on the device of the back end ``ops``. threads : a context; by default those of ``n_jobs``.
    together : so many neighbouring rows of ``a`` are in one block."""
    ops, name, _ = device.for_answers(model.device, model.device_, a)
    budget = int(sklearn.get_config()["working_memory"] * 2**20)
    with threads or open_threads(count_threads(model.n_jobs)) as threads, ops.using(name):
        ops.each_block(a, b, threads, budget, lambda product, rows: use(product, rows, ops), together)
