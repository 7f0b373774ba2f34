"""Cross-validation of summaries: how well those of each size predict rows that were held out.

A summary on some columns predicts with the draws projected on these columns, as the model predicts with its draws. So
only the columns that are left out make a difference. The coefficients by which the search judges a support would not
do: they are one point, while the model's probability is a mean over the posterior.

The projection of a draw beta is the gamma, zero outside the columns, with the smallest Kullback-Leibler divergence of
Phi(x gamma) from Phi(x beta), summed over the rows of the fit (Goutis & Robert 1998). Least squares is a good start: of
latent variables with law N(x beta, 1), the nearest N(x gamma, s^2) has the gamma of least squares and s^2 = 1 + the
mean squared residual, so Phi(x gamma / s) is the projection for Gaussian columns (the latent projection of Catalina,
Buerkner & Vehtari 2021). A few steps with the Fisher information, averaged over the draws, lead from there to the
projection. With all columns it is the draw itself.
"""

from warnings import catch_warnings

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, gen_batches, indexable
from sklearn.utils.multiclass import check_classification_targets

from .._backends import device
from .._data import labels, validation
from .._data.factors import check_factors, labels_of_rows
from .._data.weights import check_weights, rows_that_count, weigh
from .._utils.arrays import dense
from .._utils.warn import warn
from .classes import refuse_classes
from .dss import follow, root_or_one, weighted_root
from .grouped_prediction import population
from .ordered import is_ordered
from .pipeline import unfrozen
from .predict import flat_draws

_EVERY_SIZE, _STEPS_OF_A_FIFTH = 20, 200  # numbers of columns up to which every size is judged, and steps of a fifth
SMALL = 4.0  # nats, below which a difference is small and its standard error says little (Sivula et al. 2020)
_PROJECTED_DRAWS = 100  # draws to project
_PROJECTION_STEPS = 4  # steps towards the smallest divergence
_LEAST_GAIN = 0.01  # nats; steps end if none gains more for any draw
_PREDICTORS_AT_A_TIME = 2**20  # linear predictors to compute at a time
_FAR_PREDICTOR = 12.0  # linear predictor beyond which Phi is 0 or 1


def splits_of(cv, X, y, groups=None):
    """A list of pairs: the rows to fit and those to hold out. groups : of the rows, or None."""
    if y is None:
        raise ValueError("This HorseshoeSelector requires y to be passed, but the target y is None (for cv).")
    y = labels.check_labels(y)
    check_classification_targets(y)
    if groups is not None:
        groups, *others = check_factors(groups, len(y)).values()
        groups = None if others else groups  # no splitter takes several factors
    try:
        splits = list(check_cv(cv, y, classifier=True).split(X, y, groups))
    except ValueError as error:
        if "'groups'" not in str(error):
            raise
        raise ValueError(
            f"cv={cv!r} splits by groups: give the pairs that it makes, cv=list(splitter.split(X, y, groups))."
        ) from error
    if not splits:
        raise ValueError(f"cv={cv!r} has no folds. An iterator has them once: give a list of its pairs.")
    return splits


def compare(model, supports, splits, task, X, y, owners, sample_weight=None, groups=None):
    """The columns of the smallest size that predicts as well as the full model, and the comparison for ``sizes_``.

    supports : (k, p) bool, on the path of the fitted model. splits : pairs of rows to fit and rows to hold out. task :
    function of a classifier that returns the context of its fit. owners : as in ``follow``. groups : of
    the rows, for the fits; rows that are held out have new groups.
    """
    refuse_classes(model, 'cv of the rule "dss"')
    X, y, sizes = indexable(X)[0], labels.check_labels(y), sizes_of(model)
    factors = None if groups is None else check_factors(groups, len(y))
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, y)
    weight = _row_weights(model, y, sample_weight)
    scores, times = np.zeros((len(y), len(sizes))), np.zeros(len(y))  # a row may be held out more than once
    messages = []
    for train, test in splits:
        train_weight = None if sample_weight is None else sample_weight[train]
        train_groups = None if factors is None else labels_of_rows(factors, train)
        with task(fold := clone(unfrozen(model)).set_params(checkpoint=None)), catch_warnings(record=True) as caught:
            fold.fit(X_train := _safe_indexing(X, train), y[train], train_weight, train_groups)
        messages += caught
        fold = population(fold)
        X_fit, weight_fit = weighted(fold, X_train, y[train], train_weight)
        held_out = device.to_host(validation.check_X(fold, _safe_indexing(X, test), reset=False))
        positive = labels.is_second(y[test], held_out, fold)
        np.add.at(scores, test, _fold_scores(fold, X_fit, weight_fit, sizes[:-1], held_out, positive, owners))
        np.add.at(times, test, 1)
    _warn(messages, len(splits))
    counts = (times > 0) & (weight > 0)
    differences = _loss_differences(scores[counts] * (weight[counts] / times[counts])[:, None])
    suggested = _suggested(sizes, differences["difference"], differences["se"])
    if suggested == sizes[-1]:
        support = _movable(model)
    else:
        (support,) = _supports_of(supports, model.shrinkage_ == 0, [suggested])
    return support, {"sizes": sizes, **differences, "suggested": int(suggested)}


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
    """Losses of the sizes relative to the full model. terms : (n, k), weighted log scores of rows, the full model's
    last.

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
    return (model.shrinkage_ > 0) & (model.coef_draws_.mean(axis=(0, 1)) != 0)


def sizes_of(model):
    """The sizes to judge: all up to 20, then steps of a fifth up to 200, and all columns; (k,) of int, ascending."""
    steps = np.rint(_EVERY_SIZE * 1.2 ** np.arange(1, 13)).astype(int)
    sizes, n = np.concatenate([np.arange(_EVERY_SIZE + 1), steps[steps <= _STEPS_OF_A_FIFTH]]), _movable(model).sum()
    return np.append(sizes[sizes < n], n)


def _supports_of(supports, always, sizes):
    """For each size, the first of the supports with so many columns, not counting ``always``; (k, p) bool.

    If there is none, as with columns that join together, it has the next smaller number.
    """
    counts = (supports & ~always).sum(axis=1)
    return supports[[np.argmax(counts == counts[counts <= size].max()) for size in sizes]]


def search(model, X, weight, level, columns, owners, offset=None):
    """The ``Path`` of a fitted model. X, weight : its rows, and (n,) or (0,) for none. owners : as in ``follow``.
    offset : (n,) or None."""
    R, _ = weighted_root(model, X, weight, offset=offset)
    return follow(model.coef_draws_, R, level, model.shrinkage_ == 0, owners, columns)


def _fold_scores(model, X, weight, sizes, held_out, positive, owners):
    """Log scores of rows that were held out, with the summaries of these sizes and, last, with the model; (n, k + 1).

    X, weight : the rows of the fit, and (n,) or (0,) for none. held_out, positive : other rows, and whether each is of
    the second class, (n,) bool.
    """
    path = search(model, X, weight, 0.5, int(sizes.max(initial=0)), owners)
    projection = Projection(model, X, weight)
    supports = map(np.flatnonzero, _supports_of(path.supports, model.shrinkage_ == 0, sizes))
    summaries = [(columns, projection.onto(columns)) for columns in supports]
    summaries.append((np.arange(X.shape[1]), projection.draws))
    return np.column_stack([projection.log_score(held_out, positive, columns, coef) for columns, coef in summaries])


class Projection:
    """Projections of the draws of a fitted model.

    X, weight : the rows of the fit, and (n,) or (0,) for none.
    """

    def __init__(self, model, X, weight):
        self._likelihood = model._likelihood_of_fit
        self._X, self._weight = X, weight if len(weight) else np.ones(X.shape[0])
        self._root, self._centre = weighted_root(model, X, weight, informed=False)
        self._has_intercept = self._root.shape[1] > X.shape[1]
        coef, intercept = flat_draws(model, max(_PROJECTED_DRAWS, len(model.coef_draws_)))
        self.draws = coef = coef.astype(np.float64)  # (m, q), about the centre
        if self._has_intercept:
            self.draws = np.column_stack([coef, intercept + coef @ self._centre])
        self._scores = self._root @ self.draws.T
        self._target = np.empty((X.shape[0], len(coef)), np.float32)
        for rows in self._batches(X):
            eta = self._block(X, rows, np.arange(X.shape[1])) @ self.draws.T
            self._target[rows] = self._likelihood.probability(eta)

    def onto(self, columns):
        """Coefficients (m, k) of these columns, an array of numbers, and of the intercept if there is one."""
        point = self._latent(columns)
        direction, best, remaining = np.zeros_like(point), np.full(len(point), -np.inf), np.full(len(point), np.inf)
        for _ in range(_PROJECTION_STEPS + 1):
            trial = point + direction
            value, gain, steps = self._step(columns, trial)
            better = value >= best
            point[better], best[better], remaining[better] = trial[better], value[better], gain[better]
            if (remaining < _LEAST_GAIN).all():
                break
            direction = np.where(better[:, None], steps, direction / 4)
        return point

    def log_score(self, X, positive, columns, coef):
        """Log of the probability of the label of each row, averaged over draws (m, k) from ``onto``; (n,)."""
        out, sign = np.empty(X.shape[0]), np.where(positive, 1.0, -1.0)
        for rows in self._batches(X):
            t = sign[rows, None] * (self._block(X, rows, columns) @ coef.T)
            out[rows] = self._likelihood.probability(t).mean(axis=1)
        return np.log(np.maximum(out, np.finfo(float).tiny))  # as ``predict_log_proba``

    def _latent(self, columns):
        """The latent projection: least squares, in units of the latent variable's standard deviation."""
        columns = np.append(columns, self._X.shape[1]) if self._has_intercept else columns
        inside = self._root[:, columns]
        gamma = _solved(inside.T @ inside, inside.T @ self._scores)
        mean_square = ((self._scores - inside @ gamma) ** 2).sum(axis=0) / self._weight.sum()
        return (gamma / self._likelihood.shrunk_by(mean_square)).T

    def _step(self, columns, coef):
        """Minus the divergence at coef (m, k) up to a constant, the gain that a step promises, and the steps."""
        k = coef.shape[1]
        value, total, gradient, inner = np.zeros(len(coef)), np.zeros(len(coef)), np.zeros_like(coef), np.zeros((k, k))
        for rows in self._batches(self._X):
            block, weight, target = self._block(self._X, rows, columns), self._weight[rows], self._target[rows]
            eta = np.clip(block @ coef.T, -_FAR_PREDICTOR, _FAR_PREDICTOR)
            above, below = self._likelihood.probability(eta), self._likelihood.probability(-eta)
            density = self._likelihood.density(eta)
            value += weight @ (target * np.log(above) + (1 - target) * np.log(below))
            ratio = weight[:, None] * density / (above * below)
            gradient += (ratio * (target - above)).T @ block
            ratio *= density  # the Fisher information
            total += ratio.sum(axis=0)
            inner += (block * ratio.mean(axis=1)[:, None]).T @ block
        steps = _solved(inner, gradient.T).T
        steps *= (total.mean() / np.maximum(total, np.finfo(float).tiny))[:, None]  # from mean to own information
        return value, np.einsum("ij,ij->i", gradient, steps) / 2, steps

    def _block(self, X, rows, columns):
        """Rows of these columns minus their centre, with a column of ones for the intercept."""
        block = dense(X[rows][:, columns]) - self._centre[columns]
        return np.column_stack([block, np.ones(len(block))]) if self._has_intercept else block

    def _batches(self, X):
        return gen_batches(X.shape[0], max(1, _PREDICTORS_AT_A_TIME // max(self.draws.shape)))


def _solved(S, rhs):
    """The least-squares solution x (k, m) of S x = rhs of smallest norm, in units in which S has a unit diagonal."""
    scale = root_or_one(S.diagonal())[:, None]
    return np.linalg.lstsq(S / scale / scale.T, rhs / scale, rcond=None)[0] / scale
