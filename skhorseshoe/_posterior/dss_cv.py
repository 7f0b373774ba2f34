"""Cross-validation of summaries: how well those of each size predict rows that were held out.

A summary on some columns predicts with the draws projected on these columns, as the model predicts with its draws. So
only the columns that are left out make a difference. The coefficients by which the search judges a support would not
do: they are one point, while the model's probability is a mean over the posterior. ``projections.py`` has them.
"""

from numbers import Integral
from warnings import catch_warnings

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.multiclass import check_classification_targets

from .._backends import device
from .._data import labels, validation
from .._data.factors import check_factors, labels_of_rows
from .._data.weights import check_weights, rows_that_count, weigh
from .._utils.warn import warn
from .classes import is_ordered
from .dss import follow, predictor_draws, weighted_root
from .grouped_prediction import population
from .pipeline import unfrozen
from .projections import Projection

_EVERY_SIZE, _STEPS_OF_A_FIFTH = 20, 200  # numbers of columns up to which every size is judged, and steps of a fifth
_MUCH_WORSE = 4.0  # standard errors by which chance does not explain that all columns predict worse than none
SMALL = 4.0  # nats, below which a difference is small and its standard error says little (Sivula et al. 2020)


def splits_of(cv, X, y, groups=None):
    """A list of pairs: the rows to fit and those to hold out. groups : of the rows, or None."""
    if y is None:
        raise ValueError("This HorseshoeSelector requires y to be passed, but the target y is None (for cv).")
    y = labels.check_labels(y)
    check_classification_targets(y)
    if groups is not None:
        groups, *others = check_factors(groups, len(y)).values()
        groups = None if others else groups  # no splitter takes several factors
        if isinstance(cv, Integral):
            whole, groups = f"cv=GroupKFold({cv})", None
            whole = f"cv=list(GroupKFold({cv}).split(X, y, labels)), of one factor," if others else whole
            warn(
                f"cv={cv} splits rows, whatever groups they are of, so that rows of a group are fitted while others of "
                f"it are held out. {whole} holds out whole groups."
            )
    try:
        splits = list(check_cv(cv, y, classifier=True).split(X, y, groups))
    except ValueError as error:
        if "'groups'" not in str(error):
            raise
        raise ValueError(
            f"cv={cv!r} splits by groups: give the pairs that it makes, cv=list(splitter.split(X, y, groups))."
        ) from error
    classes = np.unique(y)
    for number, (train, _) in enumerate(splits):
        if len(classes) > 2 and len(without := np.setdiff1d(classes, y[train])):
            raise ValueError(
                f"Fold {number} of cv leaves no row of the class {without.tolist()[0]!r} to fit, and each class "
                "needs one: take fewer folds, folds that are stratified by y, or put rare classes together."
            )
    if not splits:
        raise ValueError(f"cv={cv!r} has no folds. An iterator has them once: give a list of its pairs.")
    return splits


def compare(model, supports, splits, task, X, y, owners, sample_weight=None, groups=None):
    """The columns of the smallest size that predicts as well as the full model, and the comparison for ``sizes_``.

    supports : (k, p) bool, on the path of the model. splits : pairs of rows to fit and to hold out. task : gives the
    context of the fit of a classifier. owners : as in ``follow``. groups : for the fits; rows that are held out have
    new ones.
    """
    X, y, sizes = indexable(X)[0], labels.check_labels(y), sizes_of(model)
    factors = None if groups is None else check_factors(groups, len(y), of_series=True)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, y)
    weight = _row_weights(model, y, sample_weight)
    scores, times = np.zeros((len(y), len(sizes))), np.zeros(len(y))  # a row may be held out more than once
    messages = []
    for train, test in splits:
        train_weight = None if sample_weight is None else sample_weight[train]
        train_groups = None if factors is None else labels_of_rows(factors, train)
        with task(fold := _of_fold(model)), catch_warnings(record=True) as caught:
            fold.fit(X_train := _safe_indexing(X, train), y[train], train_weight, train_groups)
        messages += caught
        fold = population(fold)
        X_fit, weight_fit = weighted(fold, X_train, y[train], train_weight)
        held_out = device.to_host(validation.check_X(fold, _safe_indexing(X, test), reset=False))
        place = labels.places_of(y[test], held_out, fold)
        np.add.at(scores, test, _fold_scores(fold, X_fit, weight_fit, sizes[:-1], held_out, place, owners))
        np.add.at(times, test, 1)
    _warn(messages, len(splits))
    counts = (times > 0) & (weight > 0)
    differences = _loss_differences(scores[counts] * (weight[counts] / times[counts])[:, None])
    if differences["difference"][0] > _MUCH_WORSE * max(differences["se"][0], SMALL):
        warn(
            f"Fits without a fold predict its rows worse than the {sizes[0]} columns of the smallest size do, by "
            f"{differences['difference'][0]:.0f} nats: folds differ, as where rows are sorted. Shuffle them, for "
            "example cv=StratifiedKFold(5, shuffle=True, random_state=0), or hold out whole groups."
        )
    suggested = _suggested(sizes, differences["difference"], differences["se"])
    if suggested == sizes[-1]:
        support = _movable(model)
    else:
        (support,) = _supports_of(supports, model.shrinkage_ == 0, [suggested])
    return support, {"sizes": sizes, **differences, "suggested": int(suggested)}


def _of_fold(model):
    """The classifier to fit without a fold, with the order of the classes, which checked labels do not tell."""
    order = {"ordered": model.ordered_classes_.tolist()} if is_ordered(model) else {}
    return clone(unfrozen(model)).set_params(checkpoint=None, **order)


def _warn(messages, n_folds):
    """Warn once of each category, instead of once a fold."""
    for category in dict.fromkeys(message.category for message in messages):
        texts = [str(message.message) for message in messages if message.category is category]
        warn(
            f"Fits without a fold gave {len(texts)} warnings in {n_folds} folds, of which the first: {texts[0]}",
            category,
        )


def _suggested(sizes, difference, se):
    """The smallest size that loses at most one standard error, or ``SMALL``; the last size loses nothing."""
    return sizes[np.argmax(difference >= -np.maximum(se, SMALL))]


def _loss_differences(terms):
    """Losses of the sizes relative to the full model. terms : (n, k), weighted log scores, the full model's last.

    Each row is one observation whatever its weight, since a large weight makes the sum less certain, not more.
    """
    if len(terms) < 2:
        raise ValueError(f"cv holds out {len(terms)} rows of positive weight: at least 2 are needed.")
    lost = terms - terms[:, -1:]
    se = np.sqrt(len(terms)) * lost.std(axis=0, ddof=1)
    return {"difference": lost.sum(axis=0), "se": se, "log_score": terms[:, -1].sum(), "n_rows": len(terms)}


def weighted(model, X, y, sample_weight=None, more=()):
    """The rows of positive weight on the host, their weights with those of the classes, (0,) for none, and ``more``,
    arrays with an entry for each row, or None."""
    X = device.to_host(validation.check_X(model, X, reset=False))
    class_weight = model._fit_facts["class_weight"]
    if class_weight is not None:
        if y is None:
            raise ValueError(
                "fit needs y, also with prefit=True: the class_weight of the fit weights the rows by their labels."
            )
        levels = model.ordered_classes_.tolist() if is_ordered(model) else None
        counts, _, sample_weight, *_ = weigh(labels.check_labels(y), sample_weight, class_weight, levels)
        X, *more = rows_that_count(counts, X, *more)
    if sample_weight is None:
        return X, np.empty(0), *more
    return X, check_weights(sample_weight, X), *more


def _row_weights(model, y, sample_weight):
    """Weights of all rows, with those of the classes; (n,)."""
    counts, _, weight, *_ = weigh(y, sample_weight, model._fit_facts["class_weight"])
    out = np.zeros(len(y))
    out[... if counts is None else counts] = 1.0 if weight is None else weight
    return out


def _movable(model):
    """The columns that are shrunk and not constant; (p,) bool."""
    moves = (model.coef_draws_.mean(axis=(0, 1)) != 0).reshape(-1, len(model.shrinkage_))  # for each class
    return (model.shrinkage_ > 0) & moves.any(axis=0)


def sizes_of(model):
    """The sizes to judge: all up to 20, then steps of a fifth up to 200, and all columns; (k,) of int, ascending."""
    steps = np.rint(_EVERY_SIZE * 1.2 ** np.arange(1, 13)).astype(int)
    sizes, n = np.concatenate([np.arange(_EVERY_SIZE + 1), steps[steps <= _STEPS_OF_A_FIFTH]]), _movable(model).sum()
    return np.append(sizes[sizes < n], n)


def _supports_of(supports, always, sizes):
    """For each size, the first support with so many columns beside ``always``, or as with columns that join together
    with the next smaller number; (k, p) bool."""
    counts = (supports & ~always).sum(axis=1)
    return supports[[np.argmax(counts == counts[counts <= size].max()) for size in sizes]]


def search(model, X, weight, level, columns, owners, offset=None):
    """The ``Path`` of a fitted model. X, weight : its rows, and (n,) or (0,) for none. owners : as in ``follow``.
    offset : as in ``weighted_root``. The d contrasts of a column are in a summary together."""
    R, _ = weighted_root(model, X, weight, offset=offset)
    n_chains, d = len(model.coef_draws_), model._likelihood_of_fit.n_predictors
    coef = predictor_draws(model)[0].reshape(n_chains, -1, d, X.shape[1])
    draws = np.moveaxis(coef, 2, 3).reshape(n_chains, coef.shape[1], -1)
    path = follow(draws, R, level, (model.shrinkage_ == 0).repeat(d), owners.repeat(d), columns * d)
    return path._replace(supports=path.supports.reshape(len(path.supports), -1, d).any(axis=2))


def _fold_scores(model, X, weight, sizes, held_out, place, owners):
    """Log scores of rows that were held out, with the summaries of these sizes and, last, with the model; (n, k + 1).

    X, weight : the rows of the fit, and (n,) or (0,) for none. held_out, place : other rows, and the place of the label
    of each among the classes in their order, (n,).
    """
    path = search(model, X, weight, 0.5, int(sizes.max(initial=0)), owners)
    projection = Projection(model, X, weight)
    supports = map(np.flatnonzero, _supports_of(path.supports, model.shrinkage_ == 0, sizes))
    summaries = [(columns, projection.onto(columns)) for columns in supports]
    summaries.append((np.arange(X.shape[1]), projection.draws))
    return np.column_stack([projection.log_score(held_out, place, columns, coef) for columns, coef in summaries])
