"""The rows. A sampler asks them for X'X or the information once, and in each sweep for X'z or the score.

Passes compute in the columns of X, and answers are translated to the coefficients of the sampler.
"""

import zlib
from copy import copy

import numpy as np
from scipy.sparse import issparse

from .._backends.device import on_gpu
from .._backends.line_moves import choose
from .._model import PROBIT
from .._utils.memmap import cut, is_on_disk
from .._utils.threads import Threads, cached_property
from .column_checks import OneSidedColumns, evidence, far_out, find_one_sided, sample, step_of, two_valued, usual_values
from .columns import Columns
from .contrasts import contrast_of
from .indicator_sets import confirmed
from .row_blocks import ADD, LEAST_INFORMATION, Segment, block_bounds, collapse
from .row_pairs import facts_beside
from .separation import COMPLETE, WITHIN, separates_within, separation

_ROUNDING = 4 * np.finfo(np.float64).eps  # rounding error of a standard deviation relative to the mean
# Questions that are answered in one pass over all rows; for others, threads share the segments.
_IN_ONE_PASS = Segment.latent, Segment.score, Segment.line, Segment.extremes, Segment.sample, Segment.level_sums

_ROWS_AT_A_TIME = 2**14  # rows whose information is computed at a time
_POINTS_AT_A_TIME = 4  # points whose linear predictors are computed at a time
_MOST_NUMBERS_READ_AGAIN = 2**25  # largest X on a GPU or on disk, in numbers, that is read again to test for separation


class Rows:
    """The contract of rows, and rows in memory or on disk, each read once per question.

    Every kind of rows has ``n``, ``shape``, ``columns``, ``likelihood``, ``ops``, ``threads``, ``groups`` and
    ``takes_fused_calls``, and answers ``size``, ``gram``, ``information``, ``score``, ``line``, ``lines`` and
    ``separated_by``. ``groups``, ``offset``, ``numbers`` may be None, ``weight`` empty, ``X`` on a GPU or in a file.

    - ``Rows``: all methods below. Offsets and groups are for rows of the host, as is ``shift``.
    - ``DaskRows``, on a cluster: the same, but X, y, the weights and ``held`` are None, ``separation`` gives None, and
      what needs a row here is absent (``shift``, ``row_information``, ``sums_by_group``, ...).
    - ``RowsGivenEffects`` of ``_mcmc``, for chains with groups: ``is_sparse``, and ``score``, ``line`` and
      ``information`` of beta with effects that follow it.
    - ``RowsForHostChains`` of ``_mcmc``, for chains on the host: what the wrapped rows have; ``ops`` is the host's.

    X : (n, p), C-contiguous or CSR, of floating-point numbers. y : (n,) uint8, 1 for the second class. ops : the back
    end for such an X. threads : the threads to use. weight : (n,) float64 that multiplies the rows' terms of the
    log-likelihood, or None. unpenalized : (p,) bool, or None. standardize : whether the coefficients are those of
    columns of unit variance. offset : (n,), or (n, d) of d contrasts of classes, float64 that is added to linear
    predictors, or None. groups : ``Groups`` of the rows, or None. numbers : (p,) of the columns in a wider X, whose
    others are empty, or None. prior_scale : as in ``Columns``.
    """

    offset, groups, numbers, likelihood, n_own, prior_of_own = None, None, None, PROBIT, 0, None
    fit_fused_calls = takes_fused_calls = fuses_scores = False

    def __init__(
        self, X, y, fit_intercept, ops, threads, *,
        weight=None, unpenalized=None, standardize=False, offset=None, groups=None, numbers=None, prior_scale=None,
        likelihood=PROBIT,
    ):  # fmt: skip
        self.X, self.y, self.offset, self.groups, self.numbers = X, y, offset, groups, numbers
        self.weight = np.empty(0) if weight is None else weight
        self.held = ops.hold(X, y, self.weight)
        self.ops, self.threads, self.likelihood = ops, threads, likelihood
        self.shape, self.dtype, self.is_sparse = X.shape, X.dtype, issparse(X)
        # The layout depends only on the size of X, so sums over rows have the same bits for any number of threads.
        self.bounds, self.edges = block_bounds(X.shape, X.size)
        self._all_rows = Segment(*self.held, self.bounds, 0, likelihood, offset)
        self.fit_fused_calls = len(y) <= ops.MOST_FUSED_ROWS and not is_on_disk(X)
        self.takes_fused_calls = self.fit_fused_calls and likelihood.n_classes == 2
        self.fuses_scores = self.takes_fused_calls or (self.is_sparse and likelihood.n_classes == 2)
        if not ops.SEGMENTED:
            self.edges = self.edges[[0, -1]]
        self._see_columns(fit_intercept, unpenalized, standardize, prior_scale)

    def _see_columns(self, fit_intercept, unpenalized, standardize, prior_scale):
        self.n, p = self.shape
        self._size, self._ones, mean, variance = self._total(Segment.moments)
        spread = np.sqrt(np.where(variance > (_ROUNDING * mean) ** 2, variance, 0.0))  # 0 for a constant
        digits = np.finfo(np.promote_types(self.dtype, np.float32)).eps  # precision of the passes
        sd = np.where(spread > 4 * digits * abs(mean), spread, 0.0)
        self.spread = spread
        self.distance = abs(mean) / np.where(spread > 0, spread, np.inf)  # of columns from zero, in standard deviations
        unpenalized = np.zeros(p, bool) if unpenalized is None else unpenalized
        centre_all = self.likelihood.n_predictors > 1
        self.columns = Columns(mean, sd, spread == 0, unpenalized, fit_intercept, standardize, prior_scale, centre_all)
        self._translate = self.ops.to_device(self.columns)

    @property
    def _input(self):
        """All rows as they were given, where the back end may hold others."""
        return Segment(self.X, self.y, self.weight, self.bounds, 0, self.likelihood)

    def _total(self, question, *args, rows=None, **options):
        """The answer of all rows to a question, a method of ``Segment``.

        options : further arguments, used only if the question is answered in one pass or there is one segment. rows :
        ``Segment`` of all rows to read; by default that which the back end holds.
        """
        n, rows = len(self.edges) - 1, self._all_rows if rows is None else rows
        if n == 1 or question in _IN_ONE_PASS:
            return question(rows, self.ops, self.threads, *args, **options)
        nodes = {}

        def ask_segments(first, last):
            range_nodes = {}
            for i in range(first, last):
                range_nodes[0, i] = question(self._segment(i, rows), self.ops, Threads(1), *args)
                collapse(range_nodes, n, ADD[question])
            nodes.update(range_nodes)

        self.threads.run(ask_segments, n)
        (total,) = collapse(nodes, n, ADD[question]).values()
        return total

    def _segment(self, i, rows):
        bounds = self.bounds[self.edges[i] : self.edges[i + 1] + 1]
        at = slice(bounds[0], bounds[-1])
        part = rows._replace(X=rows.X[at], y=rows.y[at], weight=rows.weight[at], start=int(bounds[0]))
        return part._replace(bounds=bounds - bounds[0], offset=None if rows.offset is None else rows.offset[at])

    def checksums(self):
        """The checksums of X, y and the weights, and, or None, of groups, levels, offset and ``numbers``; by name."""
        values = self._total(Segment.checksum, rows=self._input._replace(X=self.ops.to_host(self.X)))
        more = {"groups": self.groups and self.groups.codes, "levels": self.groups and self.groups.levels}
        more["offset"] = self.offset
        more["columns that are not empty"] = self.numbers
        checksums = {name: None if array is None else zlib.crc32(array) for name, array in more.items()}
        checksums |= zip(("X", "y", "the weights"), values, strict=True)
        return {name: None if value is None else f"{value:08x}" for name, value in checksums.items()}

    def share(self):
        """The weighted share of the classes but the lowest."""
        return self._ones / self._size

    def shares(self):
        """The weighted shares of the classes; (K,)."""
        if self.likelihood.n_classes == 2:
            return np.array([1 - self.share(), self.share()])
        return self._total(Segment.class_sizes)[0] / self._size

    def rate(self):
        """The share of the second class, or of more than two classes all shares: what ``information_at`` takes."""
        return self.share() if self.likelihood.n_classes == 2 else self.shares()

    def base_rate(self):
        """The share of the classes but the lowest, moved a little inwards so that it is never 0 or 1; of several
        classes all shares (K,)."""
        if self.likelihood.n_predictors > 1:
            return self.shares()
        return (self._ones + 0.5) / (self._size + 1)

    def size(self):
        """The number of rows, or the sum of their weights."""
        return self._size

    def pairs(self):
        """Facts that change where rows trade labels, weights, offsets or groups, and not with the order of the rows:
        the size, the share of the second class, means of the columns (p,), and those of ``facts_beside``; by name."""
        levels = None if self.groups is None else self.groups.levels_of_rows()
        facts, weight = facts_beside(self.y, self.weight, self.offset, levels)
        rows = None if weight is None else self._all_rows._replace(weight=weight)
        means = self._total(Segment.moments, True, rows=rows)[2]
        return {"size": float(self._size), "share": float(self.share()), "paired_means": means, **facts}

    def gram(self, beta=None, spare=(), weight=None):
        """X' diag(weight) X of the sampler's columns; (q, q). beta, spare : as in ``Segment.gram``. weight : (n,) in
        place of that of the rows, or None."""
        c, rows = self.columns, None if weight is None else self._all_rows._replace(weight=weight)
        (H,) = self._total(Segment.gram, c.centre, c.unit, c.fit_intercept, beta, spare=spare, rows=rows)
        return c.matrix(H)

    def information(self, beta, spare=(), effects=None):
        """The Fisher information of the likelihood, averaged over the rows of beta (m, q); (q, q).

        spare : matrices of that shape that may be overwritten. effects : as in ``row_information``.
        """
        if self.offset is None and effects is None:
            return self.gram(self.ops.to_host(beta)[:, self.columns.q_place], spare)
        return self.gram(spare=spare, weight=self.row_information(beta, effects))

    def information_diagonal(self, beta):
        """The diagonal (q,) of the same, with the intercept at the means of the columns that it has as weights; these
        means (q,), 0 for the intercept and without one; and the sum of the informations of the rows."""
        c = self.columns
        if self.offset is None:
            size, _, mean, variance = self._total(Segment.information_moments, *c.coefficients(self.ops.to_host(beta)))
        else:
            rows = self._all_rows._replace(weight=self.row_information(beta).clip(LEAST_INFORMATION))
            size, _, mean, variance = self._total(Segment.moments, rows=rows)
        away = (mean - c.centre) / c.unit
        if not c.fit_intercept:
            return (size * (variance / c.unit**2 + away**2))[c.order], np.zeros(len(away)), size
        return np.append((size * variance / c.unit**2)[c.order], size), np.append(away[c.order], 0.0), size

    def class_information(self, beta, terms):
        """As ``Segment.class_information``, for the sampler's columns: matrices, sums (b, q), totals. beta : (m, q)."""
        c = self.columns
        of_columns = c.centre, c.unit, c.fit_intercept, *c.coefficients(beta)
        squares, sums, totals = self._total(Segment.class_information, *of_columns, terms)
        return [c.matrix(H) for H in squares], c.gradient(sums[:, : self.shape[1] + c.fit_intercept]), totals

    def row_information(self, beta, effects=None):
        """The information of each row about eta, times its weight, averaged over the rows of beta; (n,).

        effects : of groups (n_groups, m), or None.
        """
        if effects is None and len(beta) > _POINTS_AT_A_TIME:
            parts = (beta[points] for points in cut(0, len(beta), _POINTS_AT_A_TIME))
            return sum(self.row_information(part) * (len(part) / len(beta)) for part in parts)
        weight = np.empty(self.n)
        for block, eta in self.linear_predictors(beta, _ROWS_AT_A_TIME, effects):
            weight[block] = self.likelihood.information(eta).mean(axis=1)
        return weight * (self.weight if len(self.weight) else 1.0)

    def linear_predictors(self, beta, n_at_a_time, effects=None):
        """Yields slices of rows, and their linear predictors at points beta (m d, q), float64; (rows, m d). effects :
        as in ``row_information``."""
        predictors, d = self.predictors(beta), self.likelihood.n_predictors
        for block in cut(0, self.n, n_at_a_time):
            eta = predictors[block].astype(np.float64)
            if self.offset is not None:
                by_point = eta.reshape(len(eta), -1, d)
                by_point += self.offset[block].reshape(len(eta), 1, -1)
            if effects is not None:
                eta += effects[self.groups.codes[block]]
            yield block, eta

    def information_by_rows(self, beta, effects=None):
        """These rows and beta (m, q), ``row_information`` where there is an offset or effects, and None: the first
        arguments of ``ShrinkageByRows``."""
        return self, beta, None if self.offset is effects is None else self.row_information(beta, effects), None

    def predictors(self, beta):
        """x beta of all rows, (n, m)."""
        shift, k = self.shift(len(beta)), self.likelihood.n_own
        any_own = np.tile(np.arange(1.0, k + 1), (len(beta), 1)) if k else None
        self.score(beta, shift, any_own)  # leaves x beta in shift.predictors
        return shift.predictors

    def sums_by_group(self, weight, codes, n_groups):
        """Sums of weight_i (x_i, 1) by group, in columns of X; (n_groups, p + 1). weight, codes : (n,)."""
        return self.ops.sums_by_group(self.held[0], codes, n_groups, weight)

    def sampler_sums(self, weight, codes, n_groups):
        """The same of the sampler's columns (n_groups, q), and of the weights (n_groups, 1)."""
        sums = self.sums_by_group(weight, codes, n_groups)
        of_columns = self.columns.gradient(sums[:, : self.shape[1] + self.columns.fit_intercept])
        return np.ascontiguousarray(of_columns), sums[:, -1:].copy()

    @cached_property
    def one_sided_columns(self):
        c = self.columns
        low, high = self._total(Segment.extremes, c.fit_intercept, rows=self._input)
        columns = find_one_sided(low, high) if self.likelihood.n_predictors == 1 else np.zeros(0, int)
        varies = high.max(axis=0) > low.min(axis=0)
        nats = self._size * evidence(low[:, columns], high[:, columns], c.mean_of_X[columns], self.shares())
        rounded = np.flatnonzero(varies & (self.spread == 0) & c.fit_intercept)  # else zero is among the extremes
        return OneSidedColumns(columns, nats, rounded)

    @cached_property
    def contrast(self):
        """The contrasts of the columns of X, see ``slabs_of``, in the unit of the prior; (p,). Without an intercept,
        which absorbs a mean, deviations are from zero."""
        c = self.columns
        centre, size = (c.mean_of_X, c.sd_of_X) if c.fit_intercept else (np.zeros(self.shape[1]), c.size)
        (total,) = self._total(Segment.deviations, centre, rows=self._input)
        return contrast_of(total / self._size, size) / c.scale

    def far_out(self):
        """Numbers of the columns whose spread comes from a few values, and the ranges of their other values."""
        rows, weight = self.weighted_sample()
        return far_out(rows, self.spread, weight)

    def two_valued(self, columns):
        """Which of the columns with these numbers hold two values, according to a sample of the rows; bool."""
        return two_valued(self.sampled()[:, columns]) if len(columns) else np.zeros(0, bool)

    def usual_values(self, columns):
        """The values that most rows of a sample have in the columns with these numbers, or NaN; by number."""
        values = usual_values(self.sampled()[:, columns]) if len(columns) else ()
        return dict(zip(columns.tolist(), values, strict=True))

    def confirmed(self, sets):
        """The sets of a sample that all rows confirm."""
        if not sets:
            return []
        low, high = self._total(Segment.level_sums, sets, rows=self._input)
        return confirmed(sets, low, high)

    def sampled(self, limit=None):
        """The rows that ``column_checks.sample`` takes, or at most ``limit`` evenly spaced ones, on the host."""
        return self._total(Segment.sample, self._step_of_sample(limit), rows=self._input)[0]

    def stood_for(self, sample, n_given):
        """How many of the n_given rows of the user a sample stands for: equal ones may be one row here."""
        return sample.shape[0] * n_given // self.n

    def weighted_sample(self, limit=None):
        """The same, and their weights, or None for none and on a cluster."""
        if self.weight is None or not len(self.weight):
            return self.sampled(limit), None
        return self.sampled(limit), sample(self.weight[:, None], 0, self._step_of_sample(limit))[:, 0]

    def _step_of_sample(self, limit):
        return step_of(self.shape) if limit is None else -(-self.shape[0] // limit)

    def separation(self, among=None, within=False):
        """How planes separate the classes, see ``separation.py``; None if not known. among : (p,) bool, the columns
        that a plane may use; None for all. within : whether one moving from group to group counts, of two classes."""
        c = self.columns
        informative = c.informative if among is None else c.informative & among
        spread = np.where(informative, self.spread if c.fit_intercept else c.size, 0.0)
        if (on_gpu(self.X) or is_on_disk(self.X)) and self.shape[0] * self.shape[1] > _MOST_NUMBERS_READ_AGAIN:
            return None
        X, y = self.ops.to_host(self.X), self.y
        try:
            found = separation(X, y, c.fit_intercept, c.mean_of_X, spread, self.likelihood.n_predictors == 1)
            if found != COMPLETE and within and self.groups is not None and self.likelihood.n_classes == 2:
                by_factor = (separates_within(X, y, codes, c.mean_of_X, spread) for codes, *_ in self.groups.factors())
                found = WITHIN if any(by_factor) else found
        except (MemoryError, np.linalg.LinAlgError):
            return None
        return found

    def separated_by(self, beta, which=np.any):
        """Whether a point of beta, or with np.all each, has every row on its class's side; not of ordered classes."""
        if self.likelihood.n_own:
            return False
        (misplaced,) = self._total(Segment.misplaced, *self.columns.coefficients(self.ops.to_host(beta)))
        return bool(which(misplaced == 0))

    def shift(self, n_chains, effects=None, slopes=None, kept=True, known=None, common=None):
        """``Shift`` by the offset and by effects of groups. kept : whether it has room for predictors and terms of
        rows. known : ``KnownPredictors`` of the first chains, or None. common : as in ``Shift``."""
        shift = self.ops.Shift(self.offset, None if effects is None else self.groups.codes, effects, slopes)
        if not kept:
            return shift
        shape, dtype = (self.n, n_chains), np.promote_types(self.dtype, np.float32)
        if known is None:
            return shift._replace(predictors=np.empty(shape, dtype), terms=np.empty(shape, dtype))
        return shift._replace(known=known.values, factor=known.factor, common=common, terms=np.empty(shape, dtype))

    def _shifted(self, shift):
        """``shift``; by default that of the offset, if there is one."""
        return self.ops.Shift(self.offset) if shift is None and self.offset is not None else shift

    def latent(self, beta, sweep, key, shift=None):
        """X'z (n_chains, q) and z'z (n_chains,) for z drawn given beta, minus the offset; without weights."""
        xtz, ztz = self._total(Segment.latent, self._translate.of_X(beta), sweep, key, shift=self._shifted(shift))
        return self._translate.gradient(xtz), ztz

    @property
    def quick(self):
        """Rows whose likelihood stands for this one where a test corrects it."""
        return self

    def score(self, beta, shift=None, own=None):
        """Log-likelihood (n_chains,) and its gradient (n_chains, q) at beta; with parameters of the likelihood's own
        (n_chains, k) that by these, too. With d linear predictors a row, beta and gradient are (n_chains d, q)."""
        if self.fuses_scores and shift is None and (answer := self.ops.fused_score(self, beta)) is not None:
            return answer
        of_X, shift = self._translate.of_X(beta), self._shifted(shift)
        loglik, score, *by_own = self._total(Segment.score, of_X, shift=shift, own=own)
        return loglik, self._translate.gradient(score), *by_own

    def with_likelihood(self, likelihood):
        """The same rows with another likelihood."""
        other = copy(self)
        other.likelihood, other._all_rows = likelihood, self._all_rows._replace(likelihood=likelihood)
        return other

    def lines(self, fixed, widths, n_splits=0, n_columns=None):
        """The ``Lines`` along which coefficients move. fixed : ``FixedPrior``. The others are as in ``Lines``."""
        c = self.columns
        unit, centre = c.q_unit[c.q_order], c.q_centre[c.q_order]
        for_fused = np.array([c.q_order, unit]), np.array([centre, fixed.anchor, fixed.diagonal])
        return choose(self, fixed, widths, for_fused, n_splits, n_columns)

    def line(self, beta, direction, steps, shift=None, own=None):
        """Log-likelihoods at beta + step direction, for steps (n_chains, k). beta, direction : of ``score``."""
        beta, direction = map(self._translate.of_X, (beta, direction))
        return self._total(Segment.line, beta, direction, steps, shift=self._shifted(shift), own=own)[0]
