"""What is kept of a run."""

import numpy as np

from ._gibbs import prior_precision

_SHRINKAGE_STATES = 50  # states, of all chains, over which the shrinkage is averaged


class Draws:
    """Every ``thin``-th state after burn-in: coefficients, intercept, tau; and the mean shrinkage.

    informative : (p,) bool, False for the columns that are constant.
    """

    def __init__(self, n_chains, n_draws, informative, fit_intercept):
        p = len(informative)
        self.coef = np.empty((n_chains, n_draws, p))
        self.intercept = np.zeros((n_chains, n_draws))
        self.global_scale = np.empty((n_chains, n_draws))
        self.informative = informative
        self.fit_intercept = fit_intercept
        self.kappa = np.zeros(p), 0  # sum and number of states, in one so that an interrupt cannot part them
        self.n = 0

    def add(self, state):
        """Append a state; ``n`` grows last, so that an interrupt never leaves half a draw."""
        p = self.coef.shape[2]
        self.coef[:, self.n] = state.beta[:, :p]
        if self.fit_intercept:
            self.intercept[:, self.n] = state.beta[:, p]
        self.global_scale[:, self.n] = state.tau_sq_inv**-0.5
        self.n += 1

    def add_shrinkage(self, state, precision, ops):
        """Average in kappa_j = var(beta_j | y, scales) / var(beta_j | scales), at a spread-out subset of the states.

        precision : of the Fisher information H of the data, so that kappa_j = d_j [(H + D)^-1]_jj. For orthogonal
        columns this is the shrinkage factor 1 / (1 + h_j / d_j) of Carvalho, Polson & Scott (2010); columns that
        stand in for one another share what the data know instead of each claiming it.
        """
        if (self.n - 1) % -(-self.coef.shape[1] // _SHRINKAGE_STATES):
            return
        p = self.coef.shape[2]
        d = prior_precision(state, ops)
        kappa = np.clip((d * precision.inverse_diagonal(d))[:, :p], 0.0, 1.0)
        total, count = self.kappa
        self.kappa = total + kappa.mean(axis=0), count + 1

    def shrinkage(self):
        """Posterior mean of kappa_j; (p,), in [0, 1]."""
        total, count = self.kappa
        return total / count

    def trim(self):
        """Give up the room of draws that were not made."""
        if self.n < self.coef.shape[1]:
            self.coef = self.coef[:, : self.n].copy()
            self.intercept = self.intercept[:, : self.n].copy()
            self.global_scale = self.global_scale[:, : self.n].copy()
