"""What is kept of a run."""

import numpy as np

from ._gibbs import prior_precision
from .diagnostics import MAX_RHAT, convergence

_SHRINKAGE_SPACING = 25  # the next state to average the shrinkage over is n / 25 draws on


class Draws:
    """Every ``thin``-th state after burn-in: coefficients, intercept, tau; and the mean shrinkage.

    informative : (p,) bool, False for the columns that are constant. slab_precision : 1 / c^2, 0 without a slab.
    """

    def __init__(self, n_chains, n_draws, informative, fit_intercept, slab_precision):
        p = len(informative)
        self.coef = np.empty((n_chains, n_draws, p))
        self.intercept = np.zeros((n_chains, n_draws))
        self.global_scale = np.empty((n_chains, n_draws))
        self.informative = informative
        self.fit_intercept = fit_intercept
        self.slab_precision = slab_precision
        self.next_kappa = 1
        self.kappa = np.zeros(p), 0  # sum and weight of the states, in one so that an interrupt cannot part them
        self.n = 0
        self.separated = False

    def add(self, state):
        """Append a state of the host; ``n`` grows last, so that an interrupt never leaves half a draw."""
        p = self.coef.shape[2]
        self.coef[:, self.n] = state.beta[:, :p]
        if self.fit_intercept:
            self.intercept[:, self.n] = state.beta[:, p]
        self.global_scale[:, self.n] = state.tau_sq_inv**-0.5
        self.n += 1

    def add_shrinkage(self, state, precision, ops):
        """Average in kappa_j = var(beta_j | y, scales) / var(beta_j | scales), over a subset of the states.

        precision : of the Fisher information H of the data, so that kappa_j = d_j [(H + D)^-1]_jj; with a slab,
        1 / c^2 is part of both. For orthogonal columns this is the shrinkage factor 1 / (1 + h_j / d_j) of Carvalho,
        Polson & Scott (2010); columns that stand in for one another share what the data know instead of each claiming
        it.
        """
        if self.n < self.next_kappa:
            return
        # Ever further apart and weighted by the distance, since nobody knows how many draws there will be.
        weight = max(1, self.n // _SHRINKAGE_SPACING)
        self.next_kappa = self.n + weight
        p = self.coef.shape[2]
        d = prior_precision(state, ops)
        kappa = ops.to_host((d + self.slab_precision) * precision.inverse_diagonal(d))[:, :p].clip(0.0, 1.0)
        total, count = self.kappa
        self.kappa = total + weight * kappa.mean(axis=0), count + weight

    def shrinkage(self):
        """Posterior mean of kappa_j; (p,), in [0, 1]."""
        total, count = self.kappa
        return total / count

    def suffice(self, target_ess):
        """Whether every coefficient of a column that is not constant, the intercept and tau have this bulk effective
        sample size and an R-hat of at most 1.01."""
        others = [self.global_scale, self.intercept] if self.fit_intercept else [self.global_scale]
        for draws in (self.coef[..., self.informative], np.stack(others, axis=-1)):
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
