"""What is kept of a run."""

import numpy as np

from .diagnostics import MAX_RHAT, convergence

_SHRINKAGE_SPACING = 25  # the next state to average the shrinkage over is n / 25 draws on


class Draws:
    """Every ``thin``-th state after burn-in: coefficients and intercept of X's own columns, tau; the mean shrinkage.

    columns : ``Columns``, that translate what the sampler has.
    """

    def __init__(self, n_chains, n_draws, columns):
        self.coef = np.empty((n_chains, n_draws, len(columns.order)))
        self.intercept = np.zeros((n_chains, n_draws))
        self.global_scale = np.empty((n_chains, n_draws))
        self.columns = columns
        self.next_kappa = 1
        self.kappa = np.zeros(columns.n_shrunk), 0  # sum and weight of the states
        self.n = 0

    def add(self, chains):
        """Append the state of the chains; ``n`` grows last, so that an interrupt never leaves half a draw."""
        p = self.coef.shape[2]
        beta = self.columns.of_X(chains.state.beta)
        self.coef[:, self.n] = beta[:, :p]
        if self.columns.fit_intercept:
            self.intercept[:, self.n] = beta[:, p]
        self.global_scale[:, self.n] = chains.state.tau_sq_inv**-0.5
        self._add_shrinkage(chains)
        self.n += 1

    def _add_shrinkage(self, chains):
        """Average in kappa_j = var(beta_j | y, scales) / var(beta_j | scales), over a subset of the states.

        For orthogonal columns this is the shrinkage factor 1 / (1 + h_j / d_j) of Carvalho, Polson & Scott (2010);
        columns that stand in for one another share what the data know instead of each claiming it.
        """
        if self.n + 1 < self.next_kappa:
            return
        # Ever further apart and weighted by the distance, since nobody knows how many draws there will be.
        weight = max(1, (self.n + 1) // _SHRINKAGE_SPACING)
        self.next_kappa = self.n + 1 + weight
        total, count = self.kappa
        self.kappa = total + weight * chains.shrinkage().mean(axis=0), count + weight

    def shrinkage(self):
        """Posterior mean of kappa_j, in X's order; (p,), in [0, 1], 0 for unpenalised columns."""
        total, count = self.kappa
        return self.columns.by_column(np.clip(total / count, 0.0, 1.0), 0.0)

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
            self.coef = self.coef[:, : self.n].copy()
            self.intercept = self.intercept[:, : self.n].copy()
            self.global_scale = self.global_scale[:, : self.n].copy()

    def arrays(self):
        """What ``restore`` takes; views of what is there."""
        n = self.n
        return {
            "coef": self.coef[:, :n],
            "intercept": self.intercept[:, :n],
            "global_scale": self.global_scale[:, :n],
            "next_kappa": self.next_kappa,
            "kappa_sum": self.kappa[0],
            "kappa_weight": self.kappa[1],
        }

    def restore(self, arrays):
        """Put back what ``arrays`` gave, and go on from there."""
        self.n = arrays["coef"].shape[1] if "coef" in arrays else 0
        for name in ("coef", "intercept", "global_scale"):
            if self.n:
                getattr(self, name)[:, : self.n] = arrays[name]
        self.next_kappa = int(arrays["next_kappa"])
        self.kappa = np.array(arrays["kappa_sum"]), int(arrays["kappa_weight"])
