"""What is kept of a run: draws, moments of those that are not kept, and the mean shrinkage."""

from math import isqrt

import numpy as np

from ..diagnostics import MAX_RHAT, ess_bulk, rhat

NOISE = 0.95  # shrinkage from where a column is noise to the model
ROUGH_RHAT, ROUGH_ESS_PER_CHAIN = 1.05, 50  # of single columns, where what people act on is judged for itself
STORED = "coef", "intercept", "global_scale", "acceptance"
_AT_ONCE = 32  # columns that are judged before the next ones are


class Draws:
    """All draws that were offered, or evenly spaced ones: coefficients and intercept of X's own columns, tau, the
    acceptance rate.

    columns : ``Columns``, that translate what the sampler has. room : the most draws of a chain that are kept. Where it
    is full, every second one is given up and from then on half as many are kept; ``moments`` are of all, from then on.
    dtype : of the coefficients. of_groups : function of the chains and the room that gives ``GroupDraws``, or None.
    """

    def __init__(self, n_chains, n_draws, columns, room=None, dtype=np.float64, of_groups=None):
        self.room = n_draws if room is None else min(n_draws, room)
        self.columns = columns
        self.coef = np.empty((n_chains, self.room, len(columns.order)), dtype)
        self.intercept = np.zeros((n_chains, self.room))
        self.global_scale = np.empty((n_chains, self.room))
        self.acceptance = np.ones((n_chains, self.room))
        self.groups = None if of_groups is None else of_groups(n_chains, self.room)
        self.seen = 0  # draws that were offered
        self.stride = 1  # of them, from one that is kept to the next
        self.torn = False  # whether half of the draws is being given up, so that not all arrays have done so
        self.moments = None  # ``Moments`` of coefficients, intercept (0 without one) and tau, once draws are given up
        self.largest = np.finfo(dtype).max / 4  # so that no number of float32 or difference is infinite
        self.kappa = MeanShrinkage(columns.n_shrunk)
        self.failed = {}  # places, among those of columns and of what is watched that move, of what did not suffice
        self.fold = None  # how many times as many draws those need that did not suffice; None before that is known

    @property
    def n(self):
        """The draws that are kept."""
        return self.seen // self.stride

    @property
    def group_scale(self):
        """s of the draws that are kept (n_chains, n), or None."""
        return None if self.groups is None else self.groups.scale[:, : self.n]

    def add(self, beta, tau_sq_inv, acceptance, *of_groups):
        """Take the next draw: the sampler's beta (n_chains, q), and tau^-2 and the acceptance rate of each chain; and u
        and s where rows have groups.

        ``seen`` grows last, so that an interrupt never leaves half a draw.
        """
        p, fit_intercept = len(self.columns.order), self.columns.fit_intercept
        beta, tau = self.columns.of_X(beta), tau_sq_inv**-0.5
        coef, intercept = beta[:, :p], beta[:, p] if fit_intercept else np.zeros(len(beta))
        if self._is_due() and self.n == self.room:
            self._halve()
        if self.moments is not None:
            self.moments.add(np.column_stack([coef, intercept, tau]))
        if self.groups is not None:
            self.torn = self.groups.are_full(self.seen)
            self.groups.add(self.seen, self.n if self._is_due() else None, *of_groups)
            self.torn = False
        if self._is_due():
            at, largest = self.n, self.largest
            kept = self.coef[:, at] = np.minimum(np.maximum(coef, -largest), largest).astype(self.coef.dtype)
            if fit_intercept:  # which takes up what is rounded off, for a row at the mean of the columns
                intercept = intercept + (coef - kept) @ self.columns.mean_of_X
            self.intercept[:, at] = np.minimum(np.maximum(intercept, -largest), largest)
            self.global_scale[:, at] = tau
            self.acceptance[:, at] = acceptance
        self.seen += 1

    def _is_due(self):
        """Whether the next draw is one to keep."""
        return (self.seen + 1) % self.stride == 0

    def _halve(self):
        if self.moments is None:  # so far, all draws are here
            n_chains, _, p = self.coef.shape
            moments = Moments((n_chains, p + 2))
            for i in range(self.n):
                moments.add(np.column_stack([self.coef[:, i], self.intercept[:, i], self.global_scale[:, i]]))
            self.moments = moments
        self.torn = True
        for name in STORED:
            keep_every_second(getattr(self, name), self.n)
        if self.groups is not None:
            self.groups.halve(self.n, self.stride)
        self.stride, self.torn = 2 * self.stride, False

    def shrinkage(self):
        """Posterior mean of kappa_j, in X's order; (p,), in [0, 1], 0 for unpenalised columns."""
        mean = self.kappa.total / self.kappa.weight
        return self.columns.by_column(np.clip(mean, np.finfo(float).tiny, 1.0))  # 0 means unpenalised

    def suffice(self, target_ess, unbounded=(), watched=None):
        """Whether every coefficient of a column that is not constant, the intercept and tau have this bulk effective
        sample size and an R-hat of at most 1.01.

        unbounded : numbers of columns that the data do not bound, whose chains no length may suffice. Those that are
        not noise to the model are not asked. watched : has draws (n_chains, n, k) of quantities that have to be as
        good, as a function of this object, and may say that single columns are rough; or None.
        """
        strict = of_columns = target_ess, MAX_RHAT
        others = [self.global_scale, *([self.intercept] if self.columns.fit_intercept else [])]
        others += [] if self.groups is None else [self.groups.scale]
        if not all(self._do(values[:, : self.n], *strict) for values in others):
            return False
        if watched is not None:
            values = watched.draws(self)
            if not self._all_do("watched", values, np.flatnonzero(moving(values)), *strict):
                return False
            if watched.is_rough:
                of_columns = ROUGH_ESS_PER_CHAIN * len(self.coef), ROUGH_RHAT
        columns = self.columns.informative.copy()
        if len(unbounded):
            columns[unbounded] &= self.shrinkage()[unbounded] >= NOISE
        return self._all_do("columns", self.coef[:, : self.n], np.flatnonzero(columns), *of_columns)

    def _all_do(self, what, values, places, target_ess, max_rhat):
        # First those among which one has failed the last time, as it will most often do again.
        begin = self.failed.get(what, 0)
        places = np.roll(places, -begin)
        for first in range(0, len(places), _AT_ONCE):
            if not self._do(values[..., places[first : first + _AT_ONCE]], target_ess, max_rhat):
                self.failed[what] = (begin + first) % len(places)
                return False
        return True

    def _do(self, draws, target_ess, max_rhat):
        ess = ess_bulk(draws)
        if not (ess >= target_ess).all():
            self.fold = _largest(target_ess / ess)
            return False
        if not ((far := rhat(draws)) <= max_rhat).all():
            self.fold = _largest((far - 1) / (max_rhat - 1))
            return False
        return True

    def trim(self):
        """Give up the room of draws that were not made."""
        if self.n < self.room:
            for name in STORED:
                setattr(self, name, getattr(self, name)[:, : self.n].copy())
            self.room = self.n
        if self.groups is not None:
            self.groups.trim(self.n, self.seen)

    def arrays(self):
        """What ``restore`` takes beside the draws that are kept."""
        return {
            "seen": self.seen,
            "stride": self.stride,
            **self.kappa.arrays(),
            **(self.moments.arrays() if self.moments is not None else {}),
            **(self.groups.arrays(self.n, self.seen) if self.groups is not None else {}),
        }

    def restore(self, arrays):
        """Go on from what ``arrays`` gave and the draws that were kept then."""
        self.seen, self.stride = int(arrays["seen"]), int(arrays["stride"])
        if self.n:
            for name in STORED:
                getattr(self, name)[:, : self.n] = arrays[name]
        self.kappa.restore(arrays)
        self.moments = Moments.restored(arrays)
        if self.groups is not None:
            self.groups.restore(arrays)


def keep_every_second(values, n):
    """Give up the first, the third, ... of n draws (n_chains, room, ...), in place: draw by draw, for a copy of all
    would take as much again as the limit allows."""
    for i in range(n // 2):
        values[:, i] = values[:, 2 * i + 1]


def moving(values):
    """Which quantities of draws (n_chains, n, k) are not the same in all of them, so that they have an R-hat; (k,)
    bool."""
    return values.max(axis=(0, 1)) > values.min(axis=(0, 1))


def _largest(values):
    return float(np.nan_to_num(values, nan=np.inf).max())


class MeanShrinkage:
    """The mean of kappa_j = var(beta_j | y, scales) / var(beta_j | scales) over a subset of the states.

    For orthogonal columns this is the shrinkage factor 1 / (1 + h_j / d_j) of Carvalho, Polson & Scott (2010);
    columns that stand in for one another share what the data know instead of each claiming it.
    """

    def __init__(self, p):
        self.total, self.weight, self.due = np.zeros(p), 0, 1  # sum, weight, and the number of the next draw to take

    def add(self, n, chains):
        """Take the state of the chains if the n-th draw is one to take.

        These are ever further apart and weighted by the distance, since nobody knows how many draws there will be: of n
        draws some 4 sqrt(n), which take little time beside the others, and are worth 3 sqrt(n).
        """
        if n >= self.due:
            weight = max(1, isqrt(n) // 2)
            total = self.total + weight * chains.shrinkage().mean(axis=0)
            self.total, self.weight, self.due = total, self.weight + weight, n + weight

    def arrays(self):
        """What ``restore`` takes."""
        return {"next_kappa": self.due, "kappa_sum": self.total, "kappa_weight": self.weight}

    def restore(self, arrays):
        """As it was when ``arrays`` gave these."""
        self.due, self.weight = int(arrays["next_kappa"]), int(arrays["kappa_weight"])
        self.total = np.array(arrays["kappa_sum"])


class Moments:
    """Of all draws of each chain: the mean, the sum of squared deviations from it, and how many are above zero, draws
    that are zero (of constant columns) counted by half.

    The updates are those of Welford (1962), which do not cancel digits. shape : (n_chains, q) of a draw.
    """

    def __init__(self, shape):
        self.n_draws = 0
        self.mean, self.squares, self.positive = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def add(self, draw):
        """Take one draw of each chain, (n_chains, q); as a whole or, where an interrupt comes, not at all."""
        n = self.n_draws + 1
        off = draw - self.mean
        mean = self.mean + off / n
        squares = self.squares + off * (draw - mean)
        positive = self.positive + np.heaviside(draw, 0.5)
        self.n_draws, self.mean, self.squares, self.positive = n, mean, squares, positive

    def pooled(self):
        """Over all chains, by name: ``n_draws`` of a chain; ``mean``, ``sd`` and ``prob_positive``, each (q,)."""
        mean, n_all = self.mean.mean(axis=0), len(self.mean) * self.n_draws
        squares = self.squares.sum(axis=0) + self.n_draws * ((self.mean - mean) ** 2).sum(axis=0)
        return {
            "n_draws": self.n_draws,
            "mean": mean,
            "sd": np.sqrt(squares / (n_all - 1)),
            "prob_positive": self.positive.sum(axis=0) / n_all,
        }

    def arrays(self):
        """What ``restored`` takes."""
        return {f"all_{name}": value for name, value in vars(self).items()}

    @classmethod
    def restored(cls, arrays):
        """As it was when ``arrays`` gave these; None if there are none among them."""
        if "all_mean" not in arrays:
            return None
        moments = cls(arrays["all_mean"].shape)
        moments.n_draws = int(arrays["all_n_draws"])
        for name in ("mean", "squares", "positive"):
            setattr(moments, name, np.array(arrays[f"all_{name}"]))
        return moments
