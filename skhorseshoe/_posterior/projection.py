"""Draws projected on some of the columns: what predicts as nearly as these columns can as the draw does with all.

For a draw beta the projection is the gamma, zero outside the columns, of the least Kullback-Leibler divergence of
Phi(x gamma) from Phi(x beta), summed over the rows of the fit (Goutis & Robert 1998). Least squares is near: for scores
of the law N(x beta, 1) the nearest N(x gamma, s^2) has the gamma of least squares and s^2 = 1 + the mean squared
residual, so Phi(x gamma / s) is the projection where columns are Gaussian (the latent projection of Catalina, Buerkner
& Vehtari 2021). From there a few steps with the Fisher information, averaged over the draws, lead to the projection.
With all columns it is the draw itself.
"""

import numpy as np
from scipy.special import ndtr
from sklearn.utils import gen_batches

from .._utils.arrays import dense
from .dss import form_of, root_or_one
from .predict import flat

_DRAWS = 100  # that are projected
_STEPS = 4  # towards the least divergence
_ENOUGH = 0.01  # nats, that a step has to gain for any draw
_NUMBERS = 2**20  # predictors that are held together
_FAR = 12.0  # score, beyond which Phi has no digits that matter


class Projection:
    """The draws of a fitted model with its rows, and their projections.

    X, weight : the rows of the fit, and (n,) or (0,) for none.
    """

    def __init__(self, model, X, weight):
        self._X, self._weight = X, weight if len(weight) else np.ones(X.shape[0])
        self._form, self._centre = form_of(model, X, weight, informed=False)
        self._has_intercept = len(self._form.diagonal) > X.shape[1]
        coef, intercept = flat(model, max(_DRAWS, len(model.coef_draws_)))
        self.draws = coef = coef.astype(np.float64)  # (m, q), about the centre
        if self._has_intercept:
            self.draws = np.column_stack([coef, intercept + coef @ self._centre])
        self._products = self._form.times(self.draws)
        self._squares = np.einsum("ij,ij->i", self._products, self.draws)
        self._target = np.empty((X.shape[0], len(coef)), np.float32)
        for rows in self._batches(X):
            self._target[rows] = ndtr(self._block(X, rows, np.arange(X.shape[1])) @ self.draws.T)

    def onto(self, columns):
        """Coefficients (m, k) of these columns, an array of numbers, and of the intercept, if there is one."""
        point = self._latent(columns)
        direction, best = np.zeros_like(point), np.full(len(point), -np.inf)
        for _ in range(_STEPS + 1):
            trial = point + direction
            value, gain, steps = self._step(columns, trial)
            better = value >= best
            point[better], best[better] = trial[better], value[better]
            if (gain[better] < _ENOUGH).all():
                break
            direction = np.where(better[:, None], steps, direction / 4)
        return point

    def log_score(self, X, positive, columns, coef):
        """Log of the probability of the label of each row, averaged over draws (m, k) as ``onto`` has them; (n,)."""
        out, sign = np.empty(X.shape[0]), np.where(positive, 1.0, -1.0)
        for rows in self._batches(X):
            out[rows] = ndtr(sign[rows, None] * (self._block(X, rows, columns) @ coef.T)).mean(axis=1)
        return np.log(np.maximum(out, np.finfo(float).tiny))  # as ``predict_log_proba``

    def _latent(self, columns):
        """Least squares of the score, in units of its noise."""
        columns = np.append(columns, self._X.shape[1]) if self._has_intercept else columns
        right = self._products[:, columns]
        gamma = _solved(self._form.block(columns), right.T)
        # What cancels here is added to 1.
        left = np.maximum(self._squares - np.einsum("ij,ji->i", right, gamma), 0.0) / self._weight.sum()
        return (gamma / np.sqrt(1 + left)).T

    def _step(self, columns, coef):
        """Minus the divergence at coef (m, k) but for a constant, the gain that a step promises, and the steps."""
        k = coef.shape[1]
        value, total, gradient, inner = np.zeros(len(coef)), np.zeros(len(coef)), np.zeros_like(coef), np.zeros((k, k))
        for rows in self._batches(self._X):
            block, weight, target = self._block(self._X, rows, columns), self._weight[rows], self._target[rows]
            eta = np.clip(block @ coef.T, -_FAR, _FAR)
            above, below, density = ndtr(eta), ndtr(-eta), np.exp(-0.5 * eta**2) / np.sqrt(2 * np.pi)
            value += weight @ (target * np.log(above) + (1 - target) * np.log(below))
            ratio = weight[:, None] * density / (above * below)
            gradient += (ratio * (target - above)).T @ block
            ratio *= density  # the Fisher information
            total += ratio.sum(axis=0)
            inner += (block * ratio.mean(axis=1)[:, None]).T @ block
        steps = _solved(inner, gradient.T).T
        steps *= (total.mean() / np.maximum(total, np.finfo(float).tiny))[:, None]  # a draw of other size has its own
        return value, np.einsum("ij,ij->i", gradient, steps) / 2, steps

    def _block(self, X, rows, columns):
        """Rows of these columns about their centre, and the one of the intercept."""
        block = dense(X[rows][:, columns]) - self._centre[columns]
        return np.column_stack([block, np.ones(len(block))]) if self._has_intercept else block

    def _batches(self, X):
        return gen_batches(X.shape[0], max(1, _NUMBERS // max(self.draws.shape)))


def _solved(S, right):
    """The x (k, m) of least norm with S x nearest to the right side, in units in which S has ones on its diagonal."""
    scale = root_or_one(S.diagonal())[:, None]
    return np.linalg.lstsq(S / scale / scale.T, right / scale, rcond=None)[0] / scale
