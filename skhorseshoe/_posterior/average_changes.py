"""Average probabilities of rows under each draw, as the rows are and with one column changed."""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from .._utils.arrays import dense
from . import predict
from .column_changes import ColumnChanger
from .grouped_prediction import offset_factors
from .input_rows import blocks_behind, check_steps_by_row

_NUMBERS_HELD = 2**21  # numbers of column changes of these rows to hold at a time


class Parts(NamedTuple):
    """Rows that are averaged over apart: those of each level of a column, or all."""

    codes: np.ndarray  # (n,) the part of each row, -1 for none
    weight: np.ndarray | None  # (n,)

    @property
    def counted(self):
        """Which rows have a part and a weight; (n,)."""
        return (self.codes >= 0) & (True if self.weight is None else self.weight > 0)

    def sizes(self, of=None):
        """The weight of each part, or of those of its rows where ``of`` (n,) holds."""
        counted = self.codes >= 0 if of is None else (self.codes >= 0) & of
        weight, number = None if self.weight is None else self.weight[counted], self.codes.max() + 1
        return np.bincount(self.codes[counted], weight, number)


def average_changes(model, steps, X, changes, parts, offset, max_draws, with_base):
    """For each change the changes of average probabilities, (parts, states, draws), relative to the rows as they are,
    and the averages of these, (parts, draws), or None; and the numbers of the changes that have changed a column of the
    classifier.

    X : ``InputRows``. parts : ``Parts``. with_base : whether to have the averages of the rows as they are. All are sums
    over the rows of a part that have a value, divided by the weight of all its rows.
    """
    check_steps_by_row(model, steps, X)
    has_value = [item.codes >= 0 for item in changes] if with_base else []
    sets = {has.tobytes(): has for has in has_value}  # few: most columns have a value in the same rows
    known = np.array([*sets.values()]) if with_base else None
    coef, intercept = predict.flat_draws(model, max_draws)
    changer = ColumnChanger(model, steps, X, changes, np.abs(coef).max(axis=0).astype(np.float64))
    first, sizes = np.cumsum([0, *(len(item.states) for item in changes)]), parts.sizes()
    n_draws = predict.n_draws_of(model, intercept)
    scale = np.repeat(offset_factors(model, max_draws), predict.predictors_of_row(model))
    sums = np.zeros((len(sizes), first[-1] + len(sets), n_draws))  # those of the sets behind the states
    for rows, block, base in blocks_behind(model, steps, X):
        for k, held in enumerate(_batches(changer.column_changes(rows, block, base))):
            for part, size in enumerate(sizes):
                inside = np.flatnonzero(parts.codes[rows] == part)
                places = rows.start + inside
                if not len(places):
                    continue
                inside = slice(None) if len(inside) == base.shape[0] else inside  # without a copy
                share = (len(places) if parts.weight is None else parts.weight[places]) / size
                of_part = [column_change.of_rows(inside) for column_change in held]
                fixed = partial(_fixed, intercept, None if offset is None else offset[places], scale)
                of_sets = known[:, places] if with_base and k == 0 else None  # once for all batches
                _add_effects(model, dense(base[inside]), of_part, first, share, coef, fixed, sums[part], of_sets)
    if not np.isfinite(sums).all():
        raise ValueError(
            "X is too large to predict, or holds NaN, as it is or changed: are its columns on the scale of the fit?"
        )
    states = np.split(sums[:, : first[-1]], first[1:-1], axis=1)
    places = {key: k for k, key in enumerate(sets, first[-1])}
    averages = [sums[:, places[has.tobytes()]] for has in has_value] or [None] * len(changes)
    return [*zip(states, averages, strict=True)], changer.moved


def _batches(column_changes):
    """Lists of these, each of about ``_NUMBERS_HELD`` numbers at most; one at least, which may be empty."""
    held, numbers = [], 0
    for column_change in column_changes:
        held.append(column_change)
        groups, values = column_change.groups, column_change.values
        numbers += values.size + (0 if groups is None or len(values) == 1 else len(groups))
        if numbers > _NUMBERS_HELD:
            yield held
            held, numbers = [], 0
    yield held


def _fixed(intercept, offset, scale, at):
    """Intercept plus offset of rows under some draws, (k, n) or (k, 1)."""
    if offset is None:
        return intercept[at, None]
    by_draw = predict.offsets_under_draws(offset, len(scale[at])) * scale[at]
    return intercept[at, None] + by_draw.T


def _add_effects(model, X, column_changes, first, share, coef, fixed, sums, known):
    """Add to the sums the effects of column changes on the sum of probabilities over the rows X, under each draw.

    first : number of the first state of each change. share : of these rows among all, or (n,) of each. fixed : of the
    rows of coef, as ``_fixed``. known : (k, n) sets of rows, whose sums as they are stand behind those of the states;
    or None.
    """
    likelihood, shares = model._likelihood, share / len(X) * np.ones(len(X)) if np.ndim(share) == 0 else share
    q, roots = predict.predictors_of_row(model), getattr(model, "_roots_by_row", None)
    share = share if q == 1 else shares
    one_by_one = [c for c in column_changes if c.groups is None or roots is not None]
    alike = _AlikeRows([] if roots is not None else column_changes, shares, coef.shape[1], likelihood)
    share_of_sets = share if known is None or (len(known) == 1 and known.all()) else (known * shares).T

    def use(eta, places, ops):
        def divided(eta, *changes):
            if roots is None:
                return eta
            return eta / ops.to_device(roots.of(X, draws, *changes).repeat(q, axis=0))

        def average(eta, share=share):
            if q > 1:  # those of a draw side by side: of the draws as if they were rows, and of the rows as draws
                eta = np.moveaxis(eta.reshape(-1, q, len(X)), 1, 2).reshape(-1, len(X) * q)
            if np.ndim(share) == 0:
                return share * ops.average_probabilities(eta, likelihood)[:, 1]
            return likelihood.probability(eta, ops) @ ops.to_device(share)

        # Blocks of draws with all rows, not of rows with all draws, so that each sum over rows is made in one place.
        eta += ops.to_device(fixed(places))
        draws = slice(places.start // q, places.stop // q)
        block_coef, remaining = coef[places].astype(np.float64), [*one_by_one]
        for column_change, total in alike.effects(eta, block_coef, ops):
            if total is None:
                remaining.append(column_change)
            else:
                total = total if q == 1 else likelihood.of_each(total)
                sums[first[column_change.feature_change] + column_change.state, draws] += total
        unchanged = average(divided(eta)) if remaining else None
        for column_change in remaining:
            by_column = np.ascontiguousarray(column_change.by_row().T)
            shift = ops.to_device(block_coef[:, column_change.columns]) @ ops.to_device(by_column)
            state = first[column_change.feature_change] + column_change.state
            changed = divided(eta + shift, column_change.columns, column_change.by_row())
            sums[state, draws] += ops.to_host(average(changed) - unchanged)
        if known is not None:
            sums[first[-1] :, draws] += np.atleast_2d(ops.to_host(average(divided(eta), share_of_sets)).T)

    if column_changes or known is not None:
        predict.each_product(model, coef, X, use, together=q)


class _AlikeRows:
    """``ColumnChange``s of groups of rows that change alike, whose effects take one pass over the rows. weight : (n,)
    of the rows in sums. p : number of columns of the classifier."""

    def __init__(self, changes, weight, p, likelihood):
        self._likelihood = likelihood
        self._changes = [c for c in changes if c.groups is not None and c.values.size]
        self._weights, offsets = _weights_by_group(self._changes, weight)
        sizes = [len(c.values) for c in self._changes]
        self._starts = np.cumsum([0, *sizes])[:-1]
        self._number = np.repeat(np.arange(len(sizes)), sizes)  # by shift, which is of a group of rows in one state
        firsts = [offsets[c.feature_change] for c in self._changes]
        self._group = np.concatenate([first + np.arange(m) for first, m in zip(firsts, sizes, strict=True)] or [[]])
        self._shifts = _matrix(self._changes, p)

    def effects(self, eta, coef, ops):
        """Yields each change with its effect (m,) on the sum over rows of P(y = 1) under these draws, on the host; or
        with None, if it is too large for a series. eta : (m, n) on the device of the back end ``ops``. coef : (m,
        p)."""
        if not self._changes:
            return
        series, shifts = self._likelihood.series, (self._shifts @ coef.T).T
        furthest = np.abs(shifts).max(axis=0)
        is_near = np.maximum.reduceat(furthest, self._starts) <= (series.FURTHEST if series else -1.0)
        for k in np.flatnonzero(~is_near):
            yield self._changes[k], None
        if not is_near.any():
            return
        of_group = np.zeros(self._weights.shape[1])
        near = is_near[self._number]
        np.maximum.at(of_group, self._group[near], furthest[near])
        order = np.argsort(-of_group, kind="stable")
        place = np.argsort(order)
        weights = np.ascontiguousarray(self._weights[:, order])
        sums = series.term_sums(eta, ops.to_device(weights), series.n_terms(of_group[order]), ops)
        shift_effects = series.changes([ops.to_host(array) for array in sums], place[self._group], shifts)
        for k, total in enumerate(np.add.reduceat(shift_effects, self._starts, axis=1).T):
            if is_near[k]:
                yield self._changes[k], total


def _weights_by_group(changes, weight):
    """The weights of rows (n, g) in each group, and the place of the first group of each change."""
    columns, offsets, all_rows = [], {}, None
    for change in changes:
        if change.feature_change in offsets:
            continue
        number = len(change.values)
        if number > 1 or (change.groups < 0).any():
            offsets[change.feature_change] = len(columns)
            columns += [np.where(change.groups == group, weight, 0.0) for group in range(number)]
        else:  # the same for all such changes
            if all_rows is None:
                all_rows = len(columns)
                columns.append(weight)
            offsets[change.feature_change] = all_rows
    return np.ascontiguousarray(np.array(columns).T), offsets


def _matrix(changes, p):
    """The matrix (number of shifts, p) whose products with coefficients are the shifts."""
    values = [change.values.ravel() for change in changes]
    columns = [np.tile(change.columns, len(change.values)) for change in changes]
    lengths = [len(change.columns) for change in changes for _ in change.values]
    csr = np.concatenate([*values, []]), np.concatenate([*columns, []]).astype(np.int64), np.cumsum([0, *lengths])
    return csr_array(csr, shape=(len(lengths), p))
