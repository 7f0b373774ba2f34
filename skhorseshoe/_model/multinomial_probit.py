"""The symmetric multinomial probit likelihood: y is the largest of K utilities z_k ~ N(eta_k, 1), k from 0 to K - 1.

Its other half is ``core/likelihoods/multinomial_probit.hpp``. Linear predictors are d = K - 1 contrasts (..., d), and
those of the classes are their products with the simplex C. P(y = k) is the integral of
    phi(t) prod_l Phi(t + eta_k - eta_l)
over the other classes l; and that of phi(t - eta_k) prod_l Phi(t - eta_l), where t is the largest utility: all classes
share the nodes.
"""

import numpy as np
from scipy import special
from scipy.linalg import helmert

from .._utils.threads import cached_property
from .probit import Probit

_LEAST_SHARE = 1e-6
_LEAST = 1e-14  # of a probability that divides: below, slopes by nodes of the largest utility are rounding errors
_LEAST_PROBABILITY = 1e-300
_SMALL = 1e-6  # probability below which that integral loses digits
_ROWS_AT_A_TIME = 2**11
# As in the core: nodes of the trapezoidal rule by class.
_NEAR, _MOST_STEPS, _SKEW, _STEP, _LEFT, _RIGHT = 1e-3, 100, 0.2, 0.6, -7.0, 8.5


def simplex(n_classes):
    """The contrasts C (K - 1, K), a regular simplex: its rows are orthonormal and orthogonal to ones.

    With two classes the contrast is (eta_1 - eta_0) / sqrt(2), so that P(y = 1) is that of probit.
    """
    return -helmert(n_classes)


class MultinomialProbit(Probit):
    """For K classes without an order."""

    name = "multinomial probit"
    averages_exactly = False
    # The largest eigenvalue of the information of a row is hardly above that of probit, where two classes alone compete
    # (numerical optimisation gave 0.63674 for K = 6).
    largest_information = 0.64
    series = None  # type: ignore[assignment]

    def __init__(self, n_classes, by_laplace=False):
        # The core's approximation of log P and its derivatives, for what a test corrects.
        self.number = 4 if by_laplace else 3
        self.n_classes, self.n_predictors = n_classes, n_classes - 1
        # The mean over contrasts m ~ N(0, 2.7^2 I), for which that of probit is 1/4, to 6 % for K up to 30.
        self.typical_information = 0.25 * (2 / n_classes) ** 0.7

    @cached_property
    def contrasts(self):
        """The simplex C (d, K): class k has the utility sum_a m_a C[a, k] + N(0, 1)."""
        return simplex(self.n_classes)

    def utilities(self, eta):
        """The utilities of the classes (n, m, K), by contrasts (n, m d)."""
        return eta.reshape(len(eta), -1, self.n_predictors) @ self.contrasts

    def of_utilities(self, eta):
        """Contrasts (n, m d) of the utilities of classes (n, m K), those of the first of m draws first."""
        return (eta.reshape(len(eta), -1, self.n_classes) @ self.contrasts.T).reshape(len(eta), -1)

    def probabilities(self, eta):
        """P(y = k) (..., K), never 0; eta (..., d)."""
        rows, shape = self._by_row(eta)
        p = np.concatenate([self._at_largest(part)[0] for part in self._parts(rows)])
        for k in range(self.n_classes):
            few = np.flatnonzero(p[:, k] < _SMALL)
            if len(few):
                own = np.exp(self.log_density_of_class(rows[few], np.full(len(few), k)))
                p[few, k] = np.maximum(own, _LEAST_PROBABILITY)
        return p.reshape(*shape, self.n_classes)

    def log_density_of_class(self, eta, y):
        """log P(y), y (...) from 0 on; eta (..., d)."""
        rows, shape = self._by_row(eta)
        labels = np.broadcast_to(y, shape).reshape(-1)
        parts = zip(self._parts(rows), self._parts(labels), strict=True)
        return np.concatenate([self._log_density(part, k) for part, k in parts]).reshape(shape)

    def slopes(self, eta):
        """P(y = k) (..., K) and its derivatives by eta, (..., K, d); eta (..., d). By coarse nodes."""
        rows, shape = self._by_row(eta)
        coarse = 1.5 * self._step(), np.arange(-5.0, 6.5, 1.5 * self._step())  # P to 2e-6, slopes to 2e-5
        parts = [self._at_largest(part, True, coarse) for part in self._parts(rows)]
        p, slopes = map(np.concatenate, zip(*parts, strict=True))
        return p.reshape(*shape, self.n_classes), (slopes @ self.contrasts.T).reshape(*shape, self.n_classes, -1)

    def fisher_information(self, eta):
        """The Fisher information of rows about eta (n, d); (n, d, d)."""
        C, H = self.contrasts, np.empty((len(eta), self.n_predictors, self.n_predictors))
        for first, part in enumerate(self._parts(eta)):
            p, slopes = self._at_largest(part, True)
            of_contrasts = slopes @ C.T  # (n, K, d)
            scaled = of_contrasts / np.sqrt(np.maximum(p, _LEAST))[..., None]
            H[first * _ROWS_AT_A_TIME :][: len(part)] = np.swapaxes(scaled, 1, 2) @ scaled
        return H

    def information_at(self, shares):
        """The mean over contrasts of the information of a row whose classes have these probabilities (K,)."""
        return float(np.trace(self.fisher_information(self.first_predictors(shares)[None])[0]) / self.n_predictors)

    def first_predictors(self, shares):
        """The linear predictors (d,) with which the classes have these shares (K,), by Fisher scoring."""
        C, shares = self.contrasts, np.maximum(shares, _LEAST_SHARE)
        shares, eta = shares / shares.sum(), np.zeros(self.n_predictors)
        for _ in range(_MOST_STEPS):
            p, slopes = (values[0] for values in self._at_largest(eta[None], True))
            by_contrasts = slopes @ C.T
            step = np.linalg.solve((by_contrasts.T / p) @ by_contrasts, (shares / p) @ by_contrasts)
            eta = eta + step / max(1.0, abs(step).max())
            if abs(step).max() < 1e-10:
                break
        return eta

    def _by_row(self, eta):
        eta = np.asarray(eta, float)
        return eta.reshape(-1, self.n_predictors), eta.shape[:-1]

    @staticmethod
    def _parts(rows):
        return [rows[at : at + _ROWS_AT_A_TIME] for at in range(0, max(1, len(rows)), _ROWS_AT_A_TIME)]

    @property
    def nodes(self):
        """Where the largest utility lies, from the largest eta on, in the rule that all classes share."""
        return np.arange(_LEFT, _RIGHT, self._step())

    def _step(self):
        return _STEP * (2 / self.n_classes) ** 0.25

    def _at_largest(self, rows, with_slopes=False, rule=None):
        """Probabilities (n, K) by nodes of the largest utility; and the derivatives of each by all eta (n, K, K).

        rule : the distance of the nodes, and these; by default ``nodes``.
        """
        eta = rows @ self.contrasts
        step, nodes = rule or (self._step(), self.nodes)
        t = nodes - eta[..., None] + eta.max(axis=1)[:, None, None]  # (n, K, nodes)
        below, density = special.ndtr(t), self.density(t)
        ratio, all_below = density / below, step * below.prod(axis=1)
        p = (ratio @ all_below[..., None])[..., 0]
        p /= p.sum(axis=1, keepdims=True)
        if not with_slopes:
            return p, None
        slopes = -(ratio * all_below[:, None]) @ np.swapaxes(ratio, 1, 2)
        each = np.arange(self.n_classes)
        slopes[:, each, each] = 0.0
        slopes[:, each, each] = -slopes.sum(axis=2)
        return p, slopes

    def _log_density(self, rows, y):
        """log P(y) for rows (n, d) and y (n,), with nodes about the mode of the integrand, as in the core."""
        eta = rows @ self.contrasts
        others = np.arange(self.n_classes) != y[:, None]
        above = np.take_along_axis(eta, y[:, None], 1) - eta[others].reshape(len(rows), -1)  # eta_y - eta_l
        lowest = np.minimum(above / 2, 0).min(axis=1, initial=0.0)
        mode = np.maximum(-lowest, -above.sum(axis=1) / self.n_classes)
        for _ in range(_MOST_STEPS):
            t = mode[:, None] + above
            m = np.exp(-0.5 * t**2 - 0.5 * np.log(2 * np.pi) - special.log_ndtr(t))  # phi(t) / Phi(t)
            second = np.clip(m * (m + t), 0.0, 1.0)
            curvature = 1 + second.sum(axis=1)
            step = (m.sum(axis=1) - mode) / curvature
            mode = mode + step
            if not (step**2 * curvature > _NEAR**2).any():
                break
        s, h = 1 / np.sqrt(curvature), self._step()
        third = np.where(t < -30, 0.0, second * (t + 2 * m) - m).sum(axis=1)
        skew = np.maximum(_SKEW * third * s**3, 1e-4)[:, None]
        x = h * np.arange(np.floor(_LEFT / h), np.ceil(_RIGHT / h) + 1)
        nodes = mode[:, None] + s[:, None] * np.expm1(skew * x) / skew
        logs = skew * x - 0.5 * nodes**2
        for other in range(self.n_predictors):
            logs += special.log_ndtr(nodes + above[:, other : other + 1])
        return special.logsumexp(logs, axis=1) + np.log(s * h / np.sqrt(2 * np.pi))
