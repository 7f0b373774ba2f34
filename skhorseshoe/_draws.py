"""What is kept of a run."""

import numpy as np

from ._running import Moments
from .diagnostics import MAX_RHAT, convergence

_SHRINKAGE_SPACING = 25  # the next state to average the shrinkage over is n / 25 draws on
STORED = "coef", "intercept", "global_scale", "acceptance"


class Draws:
    """Of the ``thin``-th states after burn-in all, or evenly spaced ones: coefficients and intercept of X's own
    columns, tau, the acceptance rate; and the mean shrinkage.

    columns : ``Columns``, that translate what the sampler has. room : the most draws of a chain that are kept. Where it
    is full, every second one is given up and from then on half as many are kept; ``moments`` are of all, from then on.
    dtype : of the coefficients.
    """

    def __init__(self, n_chains, n_draws, columns, room=None, dtype=np.float64):
        room = n_draws if room is None else min(n_draws, room)
        self.coef = np.empty((n_chains, room, len(columns.order)), dtype)
        self.intercept = np.zeros((n_chains, room), dtype)
        self.global_scale = np.empty((n_chains, room))
        self.acceptance = np.ones((n_chains, room))
        self.columns = columns
        self.next_kappa = 1
        self.kappa = np.zeros(columns.n_shrunk), 0  # sum and weight of the states
        self.seen = self.n = 0  # draws that were offered, and kept
        self.stride = 1  # of the draws that were offered, from one that is kept to the next
        self.moments = None  # while all draws are kept

    def add(self, chains, to_host=lambda values: values):
        """Take the state of the chains; ``seen`` grows last, so that an interrupt never leaves half a draw.

        to_host : that of their back end.
        """
        self._add_shrinkage(chains)
        if self._is_due() and self.n == self.coef.shape[1]:
            self._halve()
        if self._is_due() or self.moments is not None:
            state = chains.state
            acceptance = getattr(state, "acceptance", 1.0)  # of a sampler without proposals
            beta, tau_sq_inv, acceptance = to_host((state.beta, state.tau_sq_inv, acceptance))
            draw = self.columns.of_X(beta), tau_sq_inv**-0.5
            if self.moments is not None:
                self.moments.add(self._in_a_row(*draw))
            if self._is_due():
                self._keep(*draw, acceptance)
        self.seen += 1

    def _is_due(self):
        """Whether the next draw is one to keep."""
        return (self.seen + 1) % self.stride == 0

    def _in_a_row(self, beta, tau):
        """Coefficients, intercept (0 without one) and tau; (n_chains, p + 2)."""
        missing = np.zeros((len(beta), self.coef.shape[2] + 1 - beta.shape[1]))
        return np.concatenate([beta, missing, tau[:, None]], axis=1)

    def _keep(self, beta, tau, acceptance):
        p = self.coef.shape[2]
        self.coef[:, self.n] = beta[:, :p]
        if self.columns.fit_intercept:
            self.intercept[:, self.n] = beta[:, p]
        self.global_scale[:, self.n] = tau
        self.acceptance[:, self.n] = acceptance
        self.n += 1

    def _halve(self):
        if self.moments is None:  # so far, all draws are here
            others = np.stack([self.intercept, self.global_scale], axis=-1)
            self.moments = Moments(np.concatenate([self.coef, others], axis=-1))
        half = self.n // 2
        for name in STORED:
            values = getattr(self, name)
            values[:, :half] = values[:, 1 : 2 * half : 2].copy()
        self.n, self.stride = half, 2 * self.stride

    def _add_shrinkage(self, chains):
        """Average in kappa_j = var(beta_j | y, scales) / var(beta_j | scales), over a subset of the states.

        For orthogonal columns this is the shrinkage factor 1 / (1 + h_j / d_j) of Carvalho, Polson & Scott (2010);
        columns that stand in for one another share what the data know instead of each claiming it.
        """
        now = self.seen + 1
        if now < self.next_kappa:
            return
        # Ever further apart and weighted by the distance, since nobody knows how many draws there will be.
        weight = max(1, now // _SHRINKAGE_SPACING)
        self.next_kappa = now + weight
        total, count = self.kappa
        self.kappa = total + weight * np.clip(chains.shrinkage(), 0.0, 1.0).mean(axis=0), count + weight

    def shrinkage(self):
        """Posterior mean of kappa_j, in X's order; (p,), in [0, 1], 0 for unpenalised columns."""
        total, count = self.kappa
        return self.columns.by_column(total / count, 0.0)

    def suffice(self, target_ess):
        """Whether every coefficient of a column that is not constant, the intercept and tau have this bulk effective
        sample size and an R-hat of at most 1.01."""
        others = [self.global_scale, self.intercept] if self.columns.fit_intercept else [self.global_scale]
        for draws in (self.coef[..., self.columns.informative], np.stack(others, axis=-1)):
            checks = convergence(draws[:, : self.n])
            if not ((checks.ess_bulk >= target_ess) & (checks.rhat <= MAX_RHAT)).all():
                return False
        return True

    def trim(self):
        """Give up the room of draws that were not made."""
        if self.n < self.coef.shape[1]:
            for name in STORED:
                setattr(self, name, getattr(self, name)[:, : self.n].copy())

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
        self.moments = Moments.restored(arrays)
