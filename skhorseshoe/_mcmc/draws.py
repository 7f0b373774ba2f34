"""What is kept of a run: draws, and moments of those that are not kept."""

from functools import partial
from math import isqrt
from weakref import proxy

import numpy as np

from ..diagnostics import MAX_RHAT, convergence

STORED = "coef", "intercept", "global_scale", "acceptance"


class Draws:
    """Of the ``thin``-th states after burn-in all, or evenly spaced ones: coefficients and intercept of X's own
    columns, tau, the acceptance rate; and the mean shrinkage.

    columns : ``Columns``, that translate what the sampler has. outbox : that of a back end, through which states come
    to the host; whoever looks at the draws waits for those under way. room : the most draws of a chain that are kept.
    Where it is full, every second one is given up and from then on half as many are kept; ``moments`` are of all, from
    then on. dtype : of the coefficients.
    """

    coef, intercept, global_scale, acceptance = (property(lambda self, name=name: self._all(name)) for name in STORED)

    def __init__(self, n_chains, n_draws, columns, outbox, room=None, dtype=np.float64):
        room = n_draws if room is None else min(n_draws, room)
        self._arrays = {
            "coef": np.empty((n_chains, room, len(columns.order)), dtype),
            "intercept": np.zeros((n_chains, room)),
            "global_scale": np.empty((n_chains, room)),
            "acceptance": np.ones((n_chains, room)),
        }
        self.outbox = outbox
        self.room = room
        self.columns = columns
        self.next_kappa = 1
        self.kappa = np.zeros(columns.n_shrunk), 0  # sum and weight of the states
        self.seen = self.n = 0  # draws that were offered, and kept
        self.torn = False  # whether half of the draws is being given up, so that chains and arrays are not in step
        self.stride = 1  # of the draws that were offered, from one that is kept to the next
        self._moments = None  # while all draws are kept

    def _all(self, name):
        self.outbox.flush()
        return self._arrays[name]

    def add(self, chains):
        """Take the state of the chains; ``seen`` grows last, so that an interrupt never leaves half a draw."""
        self._add_shrinkage(chains)
        if self._is_due() and self.n == self.room:
            self._halve()
        due = self._is_due()
        if due or self._moments is not None:
            state = chains.state
            acceptance = getattr(state, "acceptance", 1.0)  # of a sampler without proposals
            # The outbox is ours: a cycle would keep what is on its way from a GPU there, after an error.
            take = partial(Draws._take, proxy(self), self.n if due else None)
            self.outbox.put(take, (state.beta, state.tau_sq_inv, acceptance))
            self.n += due
        self.seen += 1

    def _is_due(self):
        """Whether the next draw is one to keep."""
        return (self.seen + 1) % self.stride == 0

    def _take(self, at, beta, tau_sq_inv, acceptance):
        """A draw that has arrived on the host; at : its place among those that are kept, or None."""
        arrays, p = self._arrays, len(self.columns.order)
        beta, tau = self.columns.of_X(beta), tau_sq_inv**-0.5
        intercept = beta[:, p] if self.columns.fit_intercept else np.zeros(len(beta))
        if self._moments is not None:
            self._count(beta[:, :p], intercept, tau)
        if at is not None:
            largest = np.finfo(arrays["coef"].dtype).max / 4  # so that no number of float32 or difference is infinite
            coef = arrays["coef"][:, at] = np.clip(beta[:, :p], -largest, largest).astype(arrays["coef"].dtype)
            if self.columns.fit_intercept:  # which takes up what is rounded off, for a row at the mean of the columns
                intercept = intercept + (beta[:, :p] - coef) @ self.columns.mean_of_X
            arrays["intercept"][:, at] = np.clip(intercept, -largest, largest)
            arrays["global_scale"][:, at] = tau
            arrays["acceptance"][:, at] = acceptance

    def _count(self, coef, intercept, tau):
        self._moments.add(np.column_stack([coef, intercept, tau]))

    @property
    def moments(self):
        """``Moments`` of coefficients, intercept (0 without one) and tau; None while all draws are kept."""
        self.outbox.flush()
        return self._moments

    def _halve(self):
        # Draw by draw, for a copy of all would take as much again as the limit allows.
        if self.moments is None:  # so far, all draws are here
            n_chains, _, p = self.coef.shape
            self._moments = Moments((n_chains, p + 2))
            for i in range(self.n):
                self._count(self.coef[:, i], self.intercept[:, i], self.global_scale[:, i])
        half, self.torn = self.n // 2, True
        for values in self._arrays.values():
            for i in range(half):
                values[:, i] = values[:, 2 * i + 1]
        self.n, self.stride, self.torn = half, 2 * self.stride, False

    def _add_shrinkage(self, chains):
        """Average in kappa_j = var(beta_j | y, scales) / var(beta_j | scales), over a subset of the states.

        For orthogonal columns this is the shrinkage factor 1 / (1 + h_j / d_j) of Carvalho, Polson & Scott (2010);
        columns that stand in for one another share what the data know instead of each claiming it.
        """
        now = self.seen + 1
        if now < self.next_kappa:
            return
        # Ever further apart and weighted by the distance, since nobody knows how many draws there will be: of n draws
        # some 4 sqrt(n), which take little time beside the others, and are worth 3 sqrt(n).
        weight = max(1, isqrt(now) // 2)
        self.next_kappa = now + weight
        total, count = self.kappa
        self.kappa = total + weight * chains.shrinkage().mean(axis=0), count + weight

    def shrinkage(self):
        """Posterior mean of kappa_j, in X's order; (p,), in [0, 1], 0 for unpenalised columns."""
        total, count = self.kappa
        return self.columns.by_column(np.clip(total / count, np.finfo(float).tiny, 1.0))  # 0 means unpenalised

    def suffice(self, target_ess):
        """Whether every coefficient of a column that is not constant, the intercept and tau have this bulk effective
        sample size and an R-hat of at most 1.01."""
        judged = {"coef": self.columns.informative, "intercept": self.columns.fit_intercept, "global_scale": True}
        for name, which in judged.items():
            checks = convergence(getattr(self, name)[:, : self.n])
            if (which & ~((checks.ess_bulk >= target_ess) & (checks.rhat <= MAX_RHAT))).any():
                return False
        return True

    def trim(self):
        """Give up the room of draws that were not made."""
        self.outbox.flush()
        if self.n < self.room:
            for name, values in self._arrays.items():
                self._arrays[name] = values[:, : self.n].copy()
            self.room = self.n

    def arrays(self):
        """What ``restore`` takes; views of what is there."""
        return {
            **{name: getattr(self, name)[:, : self.n] for name in STORED},
            "seen": self.seen,
            "stride": self.stride,
            "next_kappa": self.next_kappa,
            "kappa_sum": self.kappa[0],
            "kappa_weight": self.kappa[1],
            **(self.moments.arrays() if self.moments is not None else {}),
        }

    def restore(self, arrays):
        """Put back what ``arrays`` gave, and go on from there."""
        self.n = arrays["coef"].shape[1] if "coef" in arrays else 0
        for name in STORED:
            if self.n:
                getattr(self, name)[:, : self.n] = arrays[name]
        self.seen, self.stride, self.next_kappa = (int(arrays[name]) for name in ("seen", "stride", "next_kappa"))
        self.kappa = np.array(arrays["kappa_sum"]), int(arrays["kappa_weight"])
        self._moments = Moments.restored(arrays)


_NAMES = "n_draws", "mean", "squares", "positive"


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
        return {f"all_{name}": getattr(self, name) for name in _NAMES}

    @classmethod
    def restored(cls, arrays):
        """As it was when ``arrays`` gave these; None if there are none among them."""
        if "all_mean" not in arrays:
            return None
        moments = cls.__new__(cls)
        for name in _NAMES:
            setattr(moments, name, np.array(arrays[f"all_{name}"]))
        moments.n_draws = int(moments.n_draws)
        return moments
