"""Moves along directions in which the likelihood is flat, or nearly so.

Where a weighted sum of columns is the same in every row, as that of the levels of a category or of a column and its
copy, their coefficients can shift together, against the intercept, and no row notices. Along such a direction the
posterior is the prior, which has a mode wherever one of the coefficients is near zero. Trajectories, which hold the
lambda_j, hardly pass from one to another. The same is so if the sum hardly varies.

A coefficient of the set, chosen at random, is drawn from its law given tau, and the others shift with it. With lambda
integrated out, and h the density of a coefficient given tau, a shift of beta_j by c d_j, j in the set, is accepted with
probability (Hastings 1970)

    min(1, g(beta') / g(beta)),   g(beta) = prod_j h(beta_j) N(beta_j; 0, slab) / sum_j |d_j| h(beta_j)

A test of the log-likelihood follows, and then lambda | beta, tau. Where it is flat rounding alone changes it, so one
test is for all sets; those that share columns, such as the levels of a region and of its hospitals, move one after the
other. Sets along which it is nearly flat come one at a time.
"""

import numpy as np

from .._backends import FLAT_PURPOSE, FLAT_TEST
from .._backends.line_moves import CHEAP_LINE_ROWS
from .._model.horseshoe import log_marginal

_SMALL, _SMALL_INTERVAL = 2**16, 4  # rows times coefficients of two classes below which sweeps take little time
_NEAR_INTERVAL = 4  # sweeps from one move that is nearly flat to the next
_MOST_ROUNDS = 8  # one after the other


class FlatDirections:
    """The directions of a ``Problem``, and when it is their turn.

    sets : ``CollinearSets``, by numbers of columns. One with a column that is not shrunk is left out.
    """

    def __init__(self, sets, problem):
        self.flat = Moves((*sets.levels, *sets.dependent), problem)
        self.near = [moves for each in sets.near if (moves := Moves([each], problem))]

    def __bool__(self):
        return bool(self.flat) or bool(self.near)

    def sweep(self, state, law, problem):
        """The state after ``law``, a sweep of the coefficients and their scales, and after the moves that are due.

        state : of any sampler that asks rows for the score.
        """
        rows, _, _, key = problem
        t, ops = state.sweep, rows.ops
        moves, state = self._due(t, rows, state.beta.shape[1]), law(state)
        if not moves:
            return state
        proposed = ops.to_device(moves.shifted(*map(ops.to_host, (state.beta, state.tau_sq_inv)), ops, key, t))
        loglik, score = rows.score(proposed)
        change, old, t = state.loglik - loglik, (state.beta, state.loglik, state.score), t + FLAT_TEST
        beta, loglik, score, _ = ops.metropolis(change, (proposed, loglik, score), old, key, t)
        state = state._replace(beta=beta, loglik=loglik, score=score)
        if "lambda_sq_inv" not in state._fields:
            return state
        shrunk = beta[:, : state.lambda_sq_inv.shape[1]]
        drawn = ops.draw_lambda_given_beta(shrunk, state.tau_sq_inv, key, t, moves.d, rows.threads)
        return state._replace(lambda_sq_inv=drawn)

    def _due(self, t, rows, q):
        """The ``Moves`` of sweep t, or (). They are rarer where they would take much of the time."""
        turn, offset = divmod(t, _NEAR_INTERVAL)
        if self.near and offset == _NEAR_INTERVAL // 2:
            return self.near[turn % len(self.near)]
        interval = 2 if rows.n > CHEAP_LINE_ROWS else 1
        if self.flat.d == 1 and rows.n * q < _SMALL:
            interval = _SMALL_INTERVAL
        return () if t % interval else self.flat


class Moves:
    """A move along each of some directions, in rounds of those that share no column."""

    def __init__(self, sets, problem):
        columns = problem.rows.columns
        self.d, self.n, self.rounds = columns.n_contrasts, 0, []
        for disjoint in _rounds(sets, columns.of_one):
            own = slice(self.n, self.n + len(disjoint))
            self.rounds.append(Round(disjoint, columns, problem.fixed, own))
            self.n = own.stop

    def __len__(self):
        return self.n

    def shifted(self, beta, tau_sq_inv, ops, key, t):
        """beta (n_chains, q) after a move along each direction.

        The rounds come in one order or in the other, by chance: only then is a shift as likely as its reverse, which
        the test of the log-likelihood needs.
        """
        n_chains = len(beta)
        uniform = ops.to_host(ops.uniform((n_chains, 3 * self.n + 1), key, t, FLAT_PURPOSE))
        normal = ops.to_host(ops.normal((n_chains, self.d * self.n), key, t, FLAT_PURPOSE, attempt=1))
        numbers = uniform[:, :-1].reshape(n_chains, 3, self.n), normal.reshape(n_chains, self.n, self.d)
        for each in self.rounds if uniform[0, -1] < 0.5 else self.rounds[::-1]:
            beta = each.shifted(beta, tau_sq_inv, numbers[0][:, :, each.own], numbers[1][:, each.own])
        return beta


def _rounds(sets, columns):
    """Lists of the sets with shrunk columns alone, (set, places of its coefficients), that share no column."""
    rounds = []
    for levels in sets:
        places = columns.place[levels.columns].tolist()
        if max(places) >= columns.n_shrunk:
            continue
        for taken, disjoint in rounds:
            if taken.isdisjoint(places):
                taken.update(places)
                disjoint.append((levels, places))
                break
        else:
            if len(rounds) < _MOST_ROUNDS:
                rounds.append((set(places), [(levels, places)]))
    return [disjoint for _, disjoint in rounds]


class Round:
    """Directions that share no column, so that one step has a move along each. own : their random numbers."""

    def __init__(self, sets, columns, fixed, own):
        self.own, c, d = own, columns.of_one, columns.n_contrasts
        places = np.concatenate([places for _, places in sets])
        self.places = d * places[:, None] + np.arange(d)  # of the coefficients (columns, d)
        self.intercept = d * len(c.place) + np.arange(d)
        self.sizes = np.array([len(places) for _, places in sets])
        self.firsts, self.of_set = np.cumsum(self.sizes) - self.sizes, np.repeat(np.arange(len(sets)), self.sizes)
        self.units = np.concatenate([c.unit[levels.columns] / levels.step for levels, _ in sets])  # d_j
        self.log_units, self.d = d * np.log(abs(self.units)), d
        # By how much the intercept falls for a shift of 1: the sum over a set, at the centres of its columns.
        above = [(levels.base - c.centre[levels.columns]) / levels.step for levels, _ in sets]
        self.falls = np.array([levels.share.sum() + at.sum() for at, (levels, _) in zip(above, sets, strict=True)])
        self.slab = fixed.diagonal[self.places[:, 0]]

    def shifted(self, beta, tau_sq_inv, uniform, normal):
        """beta (n_chains, q) after a move along each. uniform : (n_chains, 3, sets). normal : (n_chains, sets, d)."""
        old = beta[:, self.places]  # (n_chains, columns, d)
        chosen = self.firsts + (self.sizes * uniform[:, 0]).astype(int)
        with np.errstate(all="ignore"):  # a draw too large to square is not accepted
            size = np.tan(np.pi / 2 * uniform[:, 1]) / np.sqrt(tau_sq_inv)[:, None]  # lambda tau
            drawn = size[:, :, None] * normal
            shift = (drawn - old[np.arange(len(beta))[:, None], chosen]) / self.units[chosen][:, :, None]
            new = old + shift[:, self.of_set] * self.units[:, None]
            before, after = self._log_target(np.stack([old, new]), tau_sq_inv)
            shift[~(np.log(uniform[:, 2]) < after - before)] = 0.0
        out = beta.copy()
        out[:, self.places] = old + shift[:, self.of_set] * self.units[:, None]
        if self.falls.any():
            out[:, self.intercept] -= (shift * self.falls[:, None]).sum(axis=1)
        return out

    def _log_target(self, beta, tau_sq_inv):
        """log g of each set, (2, n_chains, sets). beta : (2, n_chains, columns, d)."""
        square = (beta**2).sum(axis=3)
        log_h = log_marginal(square * tau_sq_inv[:, None], self.d)
        target = np.add.reduceat(log_h - self.slab * square / 2, self.firsts, axis=2)
        return target - np.logaddexp.reduceat(log_h + self.log_units, self.firsts, axis=2)
