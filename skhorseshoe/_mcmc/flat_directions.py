"""Moves along directions in which the likelihood is flat.

Where a weighted sum of columns is the same in every row, as that of the levels of a category or of a column and its
copy, their coefficients can shift together, against the intercept, and no row notices. Along such a direction the
posterior is the prior, which has a mode wherever one of the coefficients is near zero. Trajectories, which hold the
lambda_j, hardly pass from one to another.

A coefficient of the set, chosen at random, is drawn from its law given tau, and the others shift with it. With lambda
integrated out, and h the density of a coefficient given tau, a shift of beta_j by c d_j, j in the set, is accepted with
probability (Hastings 1970)

    min(1, g(beta') / g(beta)),   g(beta) = prod_j h(beta_j) N(beta_j; 0, slab) / sum_j |d_j| h(beta_j)

A test of the log-likelihood, which rounding alone changes, follows for all sets together, and then lambda | beta, tau.
"""

import numpy as np

from .._backends import FLAT_PURPOSE, FLAT_TEST
from .._backends.line_moves import CHEAP_LINE_ROWS
from .._model.horseshoe import log_marginal

_SMALL, _SMALL_INTERVAL = 2**16, 4  # rows times coefficients of two classes below which sweeps take little time


class FlatDirections:
    """The directions of a ``Problem``.

    sets : ``IndicatorSet``s, by numbers of columns. One with a column that is not shrunk, or that an earlier one has,
    is left out. Of several classes coefficients are vectors of d contrasts.
    """

    def __init__(self, sets, problem):
        columns, taken, kept = problem.rows.columns, set(), []
        c, self.d = columns.of_one, columns.n_contrasts
        for levels in sets:
            places = c.place[levels.columns].tolist()
            if max(places) < c.n_shrunk and taken.isdisjoint(places):
                taken.update(places)
                kept.append((levels, places))
        self.n = len(kept)
        if not kept:
            return
        places = np.concatenate([places for _, places in kept])
        self.places = self.d * places[:, None] + np.arange(self.d)  # of the coefficients (columns, d)
        self.intercept = self.d * len(c.place) + np.arange(self.d)
        self.sizes = np.array([len(places) for _, places in kept])
        self.firsts, self.of_set = np.cumsum(self.sizes) - self.sizes, np.repeat(np.arange(self.n), self.sizes)
        self.units = np.concatenate([c.unit[levels.columns] / levels.step for levels, _ in kept])  # d_j
        self.log_units = self.d * np.log(abs(self.units))
        # By how much the intercept falls for a shift of 1: the sum over a set, at the centres of its columns.
        above = [(levels.base - c.centre[levels.columns]) / levels.step for levels, _ in kept]
        self.falls = np.array([levels.share.sum() + at.sum() for at, (levels, _) in zip(above, kept, strict=True)])
        self.slab = problem.fixed.diagonal[self.places[:, 0]]

    def __len__(self):
        return self.n

    def sweep(self, state, law, problem):
        """The state after ``law``, a sweep of the coefficients and their scales, and after a move along each direction.

        state : of any sampler that asks rows for the score.
        """
        rows, _, _, key = problem
        t, ops = state.sweep, rows.ops
        state = law(state)
        if t % self._interval(rows, state.beta.shape[1]):
            return state
        proposed = ops.to_device(self._shifted(*map(ops.to_host, (state.beta, state.tau_sq_inv)), ops, key, t))
        loglik, score = rows.score(proposed)
        change, old, t = state.loglik - loglik, (state.beta, state.loglik, state.score), t + FLAT_TEST
        beta, loglik, score, _ = ops.metropolis(change, (proposed, loglik, score), old, key, t)
        state = state._replace(beta=beta, loglik=loglik, score=score)
        if "lambda_sq_inv" not in state._fields:
            return state
        shrunk = beta[:, : state.lambda_sq_inv.shape[1]]
        drawn = ops.draw_lambda_given_beta(shrunk, state.tau_sq_inv, key, t, self.d, rows.threads)
        return state._replace(lambda_sq_inv=drawn)

    def _interval(self, rows, q):
        """Sweeps from one with these moves to the next: more where the moves would take much of the time."""
        if self.d == 1 and rows.n * q < _SMALL:
            return _SMALL_INTERVAL
        return 2 if rows.n > CHEAP_LINE_ROWS else 1

    def _shifted(self, beta, tau_sq_inv, ops, key, t):
        """beta (n_chains, q) after a move along each direction."""
        n_chains, of_set = len(beta), self.of_set
        uniform = ops.to_host(ops.uniform((n_chains, 3 * self.n), key, t, FLAT_PURPOSE)).reshape(n_chains, 3, self.n)
        normal = ops.to_host(ops.normal((n_chains, self.d * self.n), key, t, FLAT_PURPOSE, attempt=1))
        old = beta[:, self.places]  # (n_chains, columns, d)
        chosen = self.firsts + (self.sizes * uniform[:, 0]).astype(int)
        with np.errstate(all="ignore"):  # a draw too large to square is not accepted
            size = np.tan(np.pi / 2 * uniform[:, 1]) / np.sqrt(tau_sq_inv)[:, None]  # lambda tau
            drawn = size[:, :, None] * normal.reshape(n_chains, self.n, self.d)
            shift = (drawn - old[np.arange(n_chains)[:, None], chosen]) / self.units[chosen][:, :, None]
            new = old + shift[:, of_set] * self.units[:, None]
            before, after = self._log_target(np.stack([old, new]), tau_sq_inv)
            shift[~(np.log(uniform[:, 2]) < after - before)] = 0.0
        out = beta.copy()
        out[:, self.places] = old + shift[:, of_set] * self.units[:, None]
        if self.falls.any():
            out[:, self.intercept] -= (shift * self.falls[:, None]).sum(axis=1)
        return out

    def _log_target(self, beta, tau_sq_inv):
        """log g of each set, (2, n_chains, sets). beta : (2, n_chains, columns, d)."""
        square = (beta**2).sum(axis=3)
        log_h = log_marginal(square * tau_sq_inv[:, None], self.d)
        target = np.add.reduceat(log_h - self.slab * square / 2, self.firsts, axis=2)
        return target - np.logaddexp.reduceat(log_h + self.log_units, self.firsts, axis=2)
