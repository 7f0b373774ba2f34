"""The results of a run: draws, moments of all draws where some are not kept, and the mean shrinkage."""

from math import isqrt
from types import MappingProxyType

import numpy as np

from ..diagnostics import MAX_RHAT, ess_bulk, rhat

NOISE = 0.95  # least shrinkage of a column that is noise to the model
# Largest R-hat and least effective sample size of a column where the quantities that users act on are judged instead.
ROUGH_RHAT, ROUGH_ESS_PER_CHAIN = 1.05, 50
STORED = "coef", "intercept", "global_scale", "acceptance"  # arrays (n_chains, room, ...) of ``Draws``
_COLUMNS_AT_A_TIME = 32  # number of columns whose convergence is computed at a time


class Draws:
    """All draws, or evenly spaced ones: coefficients and intercept of X's own columns, tau, acceptance.

    columns : ``Columns``, which translate the sampler's coefficients; those of several classes have draws by class,
    (n_chains, room, K, p) and (n_chains, room, K). room : the most draws of a chain that are kept.
    Where it is full, every second draw is given up, and from then on half as many are kept; ``moments`` are of all.
    dtype : of the coefficients. blocks : each a ``Block``, whose draws are kept too.
    """

    def __init__(self, n_chains, n_draws, columns, room=None, dtype=np.float64, blocks=()):
        self.room = n_draws if room is None else min(n_draws, room)
        self.columns = columns
        of_classes = (columns.n_classes,) if columns.n_contrasts > 1 else ()
        self.n_coefficients = columns.n_contrasts * (len(columns.order) + columns.fit_intercept)  # of the sampler
        self.coef = np.empty((n_chains, self.room, *of_classes, len(columns.order)), dtype)
        self.intercept = np.zeros((n_chains, self.room, *of_classes))
        self.global_scale = np.empty((n_chains, self.room))
        self.acceptance = np.ones((n_chains, self.room))
        self.of_blocks = [block.draws_of(n_chains, self.room) for block in blocks]
        self.n_offered = 0  # number of draws that ``add`` was called with
        self.stride = 1  # each ``stride``-th draw is kept
        self.torn = False  # whether draws are being given up, so that arrays do not agree
        self.moments = None  # ``Moments`` of coefficients, intercept (0 without one) and tau, once draws were given up
        self.largest = np.finfo(dtype).max / 4  # bound of what is kept, so that no number or difference is infinite
        self.kappa = MeanShrinkage(columns.n_shrunk)
        self.failed = {}  # indices of the first quantities that did not suffice, by kind
        self.times_longer = None  # factor by which the number of draws must grow to suffice; None before it is known

    @property
    def n(self):
        """Number of draws of a chain that are kept."""
        return self.n_offered // self.stride

    def add(self, beta, tau_sq_inv, acceptance, *of_blocks):
        """Take the next draw: the sampler's beta (n_chains, q), tau^-2 and acceptance of each chain, and ``values`` of
        each block.

        ``n_offered`` grows last, so that an interrupt never leaves half a draw.
        """
        fit_intercept, is_due = self.columns.fit_intercept, self._is_due()
        coef, intercept = self.columns.coefficients(beta[:, : self.n_coefficients])
        tau = tau_sq_inv**-0.5
        if is_due and self.n == self.room:
            self._halve()
            is_due = self._is_due()
        if self.moments is not None:
            self.moments.add(_in_a_row(coef, intercept, tau))
        for draws, values in zip(self.of_blocks, of_blocks, strict=True):
            self.torn = draws.will_halve(self.n_offered)
            draws.add(self.n_offered, self.n if is_due else None, *values)
            self.torn = False
        if is_due:
            at, largest = self.n, self.largest
            rounded = self.coef[:, at]
            np.minimum(np.maximum(coef, -largest), largest, out=rounded, casting="same_kind")
            if fit_intercept and rounded.dtype != coef.dtype:  # corrected for rounding, at the mean of the columns
                intercept = intercept + (coef - rounded) @ self.columns.mean_of_X
            np.minimum(np.maximum(intercept, -largest), largest, out=self.intercept[:, at])
            self.global_scale[:, at] = tau
            self.acceptance[:, at] = acceptance
        self.n_offered += 1

    def _is_due(self):
        return (self.n_offered + 1) % self.stride == 0

    def _halve(self):
        if self.moments is None:  # all draws so far are kept
            moments = Moments((len(self.coef), self.coef[0, 0].size + self.intercept[0, 0].size + 1))
            for i in range(self.n):
                moments.add(_in_a_row(self.coef[:, i], self.intercept[:, i], self.global_scale[:, i]))
            self.moments = moments
        self.torn = True
        for name in STORED:
            keep_every_second(getattr(self, name), self.n)
        for draws in self.of_blocks:
            draws.halve(self.n, self.stride)
        self.stride, self.torn = 2 * self.stride, False

    def shrinkage(self):
        """Posterior mean of kappa_j, in X's order; (p,), in [0, 1], 0 for unpenalised columns."""
        mean = self.kappa.total / self.kappa.weight
        return self.columns.by_column(np.clip(mean, np.finfo(float).tiny, 1.0))  # 0 means unpenalised

    def suffice(self, target_ess, unbounded=MappingProxyType({}), watched=None):
        """Whether every coefficient of a column that is not constant, the intercept and tau have this bulk effective
        sample size and an R-hat of at most 1.01.

        unbounded : the value that most rows have, or NaN, in columns that the data do not bound, by number. Unless they
        are noise to the model, they are not waited for, nor is tau, which goes with them, and the intercept is that of
        rows with these values. watched : has draws (n_chains, n, k) of quantities that must suffice too, as a function
        of this object, and may let single columns be rough; or None.
        """
        least, max_rhat = target_ess, MAX_RHAT  # of single columns
        columns, numbers, intercept = self.columns.informative.copy(), np.fromiter(unbounded, int), None
        if len(numbers):
            numbers = numbers[self.shrinkage()[numbers] < NOISE]
            columns[numbers] = False
        usual = np.array([unbounded[number] for number in numbers])
        if self.columns.fit_intercept and np.isfinite(usual).all():
            intercept = self.intercept[:, : self.n] + self.coef[:, : self.n, ..., numbers] @ usual
        others = [draws.judged(self.n, intercept) for draws in self.of_blocks]
        others += [] if len(numbers) else [self.global_scale[:, : self.n]]
        others += [] if intercept is None else [intercept]
        if not all(self._suffices(values, target_ess, MAX_RHAT) for values in others):
            return False
        if watched is not None:
            values = watched.draws(self)
            if not self._all_suffice("watched", values, np.flatnonzero(moving(values)), target_ess, MAX_RHAT):
                return False
            if watched.is_rough:
                least, max_rhat = ROUGH_ESS_PER_CHAIN * len(self.coef), ROUGH_RHAT
        by_class = self.coef[:, : self.n].reshape(len(self.coef), self.n, -1)
        columns = np.flatnonzero(np.tile(columns, by_class.shape[-1] // len(columns)))
        return self._all_suffice("columns", by_class, columns, least, max_rhat)

    def _all_suffice(self, kind, values, columns, target_ess, max_rhat):
        # The columns that failed the last time come first, since they will most often fail again.
        begin = self.failed.get(kind, 0)
        columns = np.roll(columns, -begin)
        for first in range(0, len(columns), _COLUMNS_AT_A_TIME):
            if not self._suffices(values[..., columns[first : first + _COLUMNS_AT_A_TIME]], target_ess, max_rhat):
                self.failed[kind] = (begin + first) % len(columns)
                return False
        return True

    def _suffices(self, draws, target_ess, max_rhat):
        ess = ess_bulk(draws)
        if not (ess >= target_ess).all():
            self.times_longer = _largest(target_ess / ess)
            return False
        if not ((ratio := rhat(draws)) <= max_rhat).all():
            self.times_longer = _largest((ratio - 1) / (max_rhat - 1))
            return False
        return True

    def trim(self):
        if self.n < self.room:
            for name in STORED:
                setattr(self, name, getattr(self, name)[:, : self.n].copy())
            self.room = self.n
        for draws in self.of_blocks:
            draws.trim(self.n, self.n_offered)

    def arrays(self):
        """The argument of ``restore`` but for the draws that are kept."""
        out = {"seen": self.n_offered, "stride": self.stride, **self.kappa.arrays()}
        out |= {} if self.moments is None else self.moments.arrays()
        for draws in self.of_blocks:
            out |= draws.arrays(self.n, self.n_offered)
        return out

    def restore(self, arrays):
        """Return to the state in which ``arrays`` gave these, with the draws that were kept then."""
        self.n_offered, self.stride = int(arrays["seen"]), int(arrays["stride"])
        if self.n:
            for name in STORED:
                getattr(self, name)[:, : self.n] = arrays[name]
        self.kappa.restore(arrays)
        self.moments = Moments.restored(arrays)
        for draws in self.of_blocks:
            draws.restore(arrays)


def _in_a_row(coef, intercept, tau):
    """A draw of each chain in one row; (n_chains, k)."""
    return np.column_stack([coef.reshape(len(coef), -1), intercept, tau])


def keep_every_second(values, n):
    """Give up the first, the third, ... of n draws (n_chains, room, ...), draw by draw: a copy would need memory."""
    for i in range(n // 2):
        values[:, i] = values[:, 2 * i + 1]


def moving(values):
    """Which quantities (n_chains, n, k) differ between draws, so that they have an R-hat; (k,) bool."""
    return values.max(axis=(0, 1)) > values.min(axis=(0, 1))


def _largest(values):
    return float(np.nan_to_num(values, nan=np.inf).max())


class MeanShrinkage:
    """The mean of kappa_j = var(beta_j | y, scales) / var(beta_j | scales) over a subset of the states.

    For orthogonal columns this is the shrinkage factor 1 / (1 + h_j / d_j) of Carvalho, Polson & Scott (2010);
    correlated columns share the information of the data.
    """

    def __init__(self, p):
        self.total, self.weight, self.due = np.zeros(p), 0, 1  # weighted sum, sum of weights, next draw to add

    def add(self, n, chains):
        """Add the state of the chains after n draws, if it is due.

        These states are ever further apart and weighted by the distance, since the number of draws is not known in
        advance: of n draws some 4 sqrt(n), which are worth 3 sqrt(n).
        """
        if n >= self.due:
            weight = max(1, isqrt(n) // 2)
            total = self.total + weight * chains.shrinkage().mean(axis=0)
            self.total, self.weight, self.due = total, self.weight + weight, n + weight

    def arrays(self):
        return {"next_kappa": self.due, "kappa_sum": self.total, "kappa_weight": self.weight}

    def restore(self, arrays):
        self.due, self.weight = int(arrays["next_kappa"]), int(arrays["kappa_weight"])
        self.total = np.array(arrays["kappa_sum"])


class Moments:
    """Moments of all draws of each chain: mean, sum of squared deviations from it, and number of draws above zero; a
    zero, of a constant column, counts by half.

    Updates are those of Welford (1962), which do not cancel digits. shape : (n_chains, q) of a draw.
    """

    def __init__(self, shape):
        self.n_draws = 0
        self.mean, self.squares, self.positive = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def add(self, draw):
        """Add one draw of each chain, (n_chains, q); if an interrupt comes, as a whole or not at all."""
        n = self.n_draws + 1
        deviation = draw - self.mean
        mean = self.mean + deviation / n
        squares = self.squares + deviation * (draw - mean)
        positive = self.positive + np.heaviside(draw, 0.5)
        self.n_draws, self.mean, self.squares, self.positive = n, mean, squares, positive

    def pooled(self):
        """Over all chains, by name: ``n_draws`` of a chain; ``mean``, ``sd`` and ``prob_positive``, each (q,)."""
        mean, n_all = self.mean.mean(axis=0), len(self.mean) * self.n_draws
        squares = self.squares.sum(axis=0) + self.n_draws * ((self.mean - mean) ** 2).sum(axis=0)
        sd, positive = np.sqrt(squares / (n_all - 1)), self.positive.sum(axis=0) / n_all
        return {"n_draws": self.n_draws, "mean": mean, "sd": sd, "prob_positive": positive}

    def arrays(self, prefix="all_"):
        """The arguments of ``restored``."""
        return {prefix + name: value for name, value in vars(self).items()}

    @classmethod
    def restored(cls, arrays, prefix="all_"):
        """The moments that ``arrays`` gave, or None if there are none."""
        if f"{prefix}mean" not in arrays:
            return None
        moments = cls(arrays[f"{prefix}mean"].shape)
        moments.n_draws = int(arrays[f"{prefix}n_draws"])
        for name in ("mean", "squares", "positive"):
            setattr(moments, name, np.array(arrays[prefix + name]))
        return moments
