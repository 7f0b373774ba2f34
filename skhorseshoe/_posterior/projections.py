"""Projections of draws on some of the columns: what predicts most like the model of all columns.

The projection of a draw beta is the gamma, zero outside the columns, with the smallest Kullback-Leibler divergence of
Phi(x gamma) from Phi(x beta), summed over the rows of the fit (Goutis & Robert 1998). Least squares is a good start: of
latent variables with law N(x beta, 1), the nearest N(x gamma, s^2) has the gamma of least squares and s^2 = 1 + the
mean squared residual, so Phi(x gamma / s) is the projection for Gaussian columns (the latent projection of Catalina,
Buerkner & Vehtari 2021). A few steps with the Fisher information, averaged over the draws, lead from there to the
projection. With all columns it is the draw itself.

More than two classes have several predictors of a row: without an order d contrasts, each of them linear in the
columns; in an order one of these, and cut points, which are predictors without columns. s is that of all contrasts, and
divides cut points too. A projected draw (m, c) has the coefficients of one predictor after those of another, each with
its intercept last, and then the cut points.
"""

import numpy as np
from sklearn.utils import gen_batches

from .._backends import device
from .._utils.arrays import dense
from .classes import own_draws
from .dss import predictor_draws, root_or_one, weighted_root

# Draws to project: at least, at most, and times rows between. A row may be in the tails of all but a few draws, more so
# where nothing bounds them, as with separated classes.
_FEWEST_DRAWS, _MOST_DRAWS, _MOST_UNBOUNDED, _DRAWS_OF_ROWS = 100, 400, 1600, 400_000
_PROJECTION_STEPS = 4  # steps towards the smallest divergence
_LEAST_GAIN = 0.01  # nats; steps end if none gains more for any draw
_PREDICTORS_AT_A_TIME = 2**20  # linear predictors to compute at a time
_FAR_PREDICTOR = 12.0  # linear predictor beyond which Phi is 0 or 1
_LEAST = 1e-14  # of a probability that divides


class Projection:
    """Projections of the draws of a fitted model. X, weight : the rows of the fit, and (n,) or (0,) for none."""

    def __init__(self, model, X, weight):
        self._likelihood = likelihood = model._likelihood_of_fit
        self._rows = _RowsOfTwo(likelihood) if likelihood.n_classes == 2 else _RowsOfMore(likelihood)
        self._X, self._weight = X, weight if len(weight) else np.ones(X.shape[0])
        self._root, self._centre = weighted_root(model, X, weight, informed=False)
        self._has_intercept = self._root.shape[1] > X.shape[1]
        most = min(_DRAWS_OF_ROWS // X.shape[0], _MOST_UNBOUNDED if model._separated else _MOST_DRAWS)
        most = max(most, _FEWEST_DRAWS, len(model.coef_draws_))  # one of each chain
        coef, intercept = predictor_draws(model, most)
        coef = coef.astype(np.float64)  # (m d, q), about the centre
        if self._has_intercept:
            coef = np.column_stack([coef, intercept + coef @ self._centre])
        m, own = len(coef) // likelihood.n_predictors, own_draws(model, most)
        self._own = np.empty((m, 0)) if own is None else own
        self.draws = np.hstack([coef.reshape(m, -1), self._own])
        self._scores = self._root @ coef.T
        self._target = np.empty((X.shape[0], m, *self._rows.answers), np.float32)
        for rows in self._batches(X):
            block = self._block(X, rows, np.arange(X.shape[1]))
            self._target[rows] = self._rows.target(self._predictors(block, self.draws))

    def onto(self, columns):
        """Coefficients (m, c) of these columns, an array of numbers, and of the intercept if there is one."""
        point = self._latent(columns)
        direction, best, remaining = np.zeros_like(point), np.full(len(point), -np.inf), np.full(len(point), np.inf)
        for _ in range(_PROJECTION_STEPS + 1):
            trial = point + direction
            value, gain, steps = self._step(columns, trial)
            better = value >= best
            point[better], best[better], remaining[better] = trial[better], value[better], gain[better]
            if (remaining < _LEAST_GAIN).all():
                break
            direction = np.where(better[:, None], steps, direction / 4)
        return point

    def log_score(self, X, place, columns, coef):
        """Log of the probability of the label of each row, averaged over draws (m, c) from ``onto``; (n,). place : (n,)
        of the labels among the classes in order."""
        out = np.empty(X.shape[0])
        for rows in self._batches(X):
            eta = self._predictors(self._block(X, rows, columns), coef)
            out[rows] = self._rows.probability(eta, place[rows]).mean(axis=1)
        return np.log(np.maximum(out, np.finfo(float).tiny))  # as ``predict_log_proba``

    def _latent(self, columns):
        """The latent projection: least squares, in units of the latent variable's standard deviation."""
        columns, m = np.append(columns, self._X.shape[1]) if self._has_intercept else columns, len(self.draws)
        inside = self._root[:, columns]
        gamma = _solved(inside.T @ inside, inside.T @ self._scores)
        mean_square = ((self._scores - inside @ gamma) ** 2).sum(axis=0) / self._weight.sum()
        s = self._likelihood.shrunk_by(mean_square.reshape(m, -1).mean(axis=1))
        gamma = gamma.reshape(len(columns), m, self._likelihood.n_predictors) / s[:, None]
        return np.vstack([*gamma.transpose(2, 0, 1), (self._own / s[:, None]).T]).T

    def _step(self, columns, coef):
        """Minus the divergence at coef (m, c) up to a constant, the gain that a step promises, and the steps."""
        m, c = coef.shape
        value, total, gradient, inner = np.zeros(m), np.zeros(m), np.zeros_like(coef), np.zeros((c, c))
        for rows in self._batches(self._X):
            block = self._block(self._X, rows, columns)
            designs, eta = self._designs(block), self._predictors(block, coef)
            near, slopes, information, traces = self._rows.nearness(self._target[rows], eta, self._weight[rows])
            value += near
            total += traces
            gradient += np.hstack([slopes[..., a].T @ design for a, design in enumerate(designs)])
            inner += np.block(
                [
                    [(one * information[:, a, b, None]).T @ other for b, other in enumerate(designs)]
                    for a, one in enumerate(designs)
                ]
            )
        steps = _solved(inner, gradient.T).T
        steps *= (total.mean() / np.maximum(total, np.finfo(float).tiny))[:, None]  # from mean to own information
        return value, np.einsum("ij,ij->i", gradient, steps) / 2, steps

    def _block(self, X, rows, columns):
        """Rows of these columns minus their centre, with a column of ones for the intercept."""
        block = dense(X[rows][:, columns]) - self._centre[columns]
        return np.column_stack([block, np.ones(len(block))]) if self._has_intercept else block

    def _designs(self, block):
        """What each predictor of a row is linear in."""
        return [block] * self._likelihood.n_predictors + [np.ones((len(block), 1))] * self._likelihood.n_own

    def _predictors(self, block, coef):
        """The predictors of rows under each draw; (n, m, d), and of ordered classes cut points with these."""
        designs = self._designs(block)
        parts = np.split(coef, np.cumsum([design.shape[1] for design in designs[:-1]]), axis=1)
        return np.stack([design @ part.T for design, part in zip(designs, parts, strict=True)], axis=-1)

    def _batches(self, X):
        times = (self._likelihood.n_predictors + self._likelihood.n_own) ** 2
        return gen_batches(X.shape[0], max(1, _PREDICTORS_AT_A_TIME // (max(self.draws.shape) * times)))


class _RowsOfTwo:
    """What a row of two classes says of its predictor (n, m, 1)."""

    answers = ()  # shape of the target of a row

    def __init__(self, likelihood):
        self._likelihood = likelihood

    def target(self, eta):
        """The probabilities to come near to; (n, m)."""
        return self._likelihood.probability(eta[..., 0])

    def probability(self, eta, place):
        """The probability of the label of each row (n,), under each draw; (n, m)."""
        return self._likelihood.probability(np.where(place, 1.0, -1.0)[:, None] * eta[..., 0])

    def nearness(self, target, eta, weight):
        """Minus the divergence from the target, summed over the rows, up to a constant (m,); its derivatives in each
        row (n, m, c); the Fisher information of each row, averaged over draws (n, c, c), and its trace, summed over the
        rows (m,). All with weights (n,)."""
        eta = np.clip(eta[..., 0], -_FAR_PREDICTOR, _FAR_PREDICTOR)
        above, below = self._likelihood.probability(eta), self._likelihood.probability(-eta)
        density = self._likelihood.density(eta)
        near = weight @ (target * np.log(above) + (1 - target) * np.log(below))
        ratio = weight[:, None] * density / (above * below)
        slopes = (ratio * (target - above))[..., None]
        ratio *= density  # the Fisher information
        return near, slopes, ratio.mean(axis=1)[:, None, None], ratio.sum(axis=0)


class _RowsOfMore:
    """The same of K classes, with predictors (n, m, c) and targets (n, m, K)."""

    def __init__(self, likelihood):
        self._likelihood, self.answers = likelihood, (likelihood.n_classes,)

    def target(self, eta):
        """As of two."""
        if self._likelihood.n_own:
            return self._likelihood.probabilities(*self._parts(eta))
        ops = device.resolve("cpu", sparse=False).ops  # whose core is quicker
        return np.moveaxis(ops.class_probabilities(eta.reshape(len(eta), -1), self._likelihood), 1, 2)

    def probability(self, eta, place):
        """As of two."""
        return np.take_along_axis(self.target(eta), place[:, None, None], 2)[..., 0]

    def nearness(self, target, eta, weight):
        """As of two; -inf where cut points are out of order."""
        _, *own = parts = self._parts(eta)
        p, slopes = self._likelihood.slopes(*parts)
        p = np.maximum(p, _LEAST)
        near = weight @ (target * np.log(p)).sum(axis=2)
        for cuts in own:  # which are those of every row
            near[(np.diff(cuts[0], prepend=0.0) < 0).any(axis=1)] = -np.inf
        of_rows = np.einsum("nmk,nmkc->nmc", weight[:, None, None] * target / p, slopes)
        scaled = slopes * np.sqrt(weight[:, None, None] / p)[..., None]
        traces = np.einsum("nmkc,nmkc->m", scaled, scaled)
        scaled = scaled.reshape(len(eta), -1, eta.shape[2])  # of all draws and classes
        return near, of_rows, np.swapaxes(scaled, 1, 2) @ scaled / eta.shape[1], traces

    def _parts(self, eta):
        """The predictors that the likelihood takes, and its own parameters if it has any."""
        return (eta[..., 0], eta[..., 1:]) if self._likelihood.n_own else (eta,)


def _solved(S, rhs):
    """The least-squares solution x (k, m) of S x = rhs of smallest norm, in units in which S has a unit diagonal."""
    scale = root_or_one(S.diagonal())[:, None]
    return np.linalg.lstsq(S / scale / scale.T, rhs / scale, rcond=None)[0] / scale
