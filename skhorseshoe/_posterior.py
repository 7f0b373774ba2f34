"""What a fitted model answers: probabilities, classes, and a table of its coefficients."""

from numbers import Real

import numpy as np
import sklearn
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from . import _device, _input, _report
from ._threads import count_threads, open_threads

_PREDICT_ROWS = 64


class PosteriorMixin:
    """The methods of a fitted classifier that read its draws and never change them."""

    def predict_proba(self, X):
        """Posterior predictive probabilities: the averages over the draws of Phi(-eta) and Phi(eta).

        Deterministic, and the result for a row does not depend on the rows that come with it.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            The columns of ``fit``, in the same order.

        Returns
        -------
        proba : ndarray of shape (n_samples, 2), float64
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        X = _input.check_X(self, X, reset=False)
        ops = _device.resolve("cpu", X.size).ops
        coef = self.coef_draws_.reshape(-1, self.n_features_in_)
        budget = sklearn.get_config()["working_memory"] * 2**20
        block_rows = int(max(1, min(_PREDICT_ROWS, budget // (8 * len(coef)))))
        with open_threads(1 if len(X) <= block_rows else count_threads(self.n_jobs)) as threads:
            return ops.mean_probability(X, coef, self.intercept_draws_.ravel(), threads, block_rows)

    def predict_log_proba(self, X):
        """Logarithm of ``predict_proba``.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            The columns of ``fit``, in the same order.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, 2), float64
        """
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def decision_function(self, X):
        """Phi^-1 of the posterior predictive probability of the second class, from the smaller of the two tails.

        It is not x ``coef_.T`` + ``intercept_``: the average of Phi over the draws is not Phi of the average.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            The columns of ``fit``, in the same order.

        Returns
        -------
        decision : ndarray of shape (n_samples,), float64
            Positive where the second class is the more probable; in [-37.6, 37.6].
        """
        lower, upper = np.maximum(self.predict_proba(X), np.finfo(float).tiny).T
        return np.where(upper > lower, -ndtri(lower), ndtri(upper))

    def predict(self, X):
        """The more probable class of each row.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            The columns of ``fit``, in the same order.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        code = self.predict_proba(X).argmax(axis=1)
        return self.classes_[code]

    def summary(self, level=None):
        """The posterior of every coefficient, of the intercept and of the global scale, as a frame.

        Parameters
        ----------
        level : float or None, default=None
            Level of the credible interval, in (0, 1); None takes ``credible_level``.

        Returns
        -------
        frame : pandas.DataFrame
            Indexed by feature name, ``(intercept)`` and ``(global scale)`` last. Columns: mean, sd, the ends of the
            equal-tailed interval, prob_positive (posterior probability that the coefficient is above zero), shrinkage
            (kappa_j), ess (bulk) and rhat.
        """
        check_is_fitted(self)
        level = self.credible_level if level is None else level
        if not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, as in 0.9 for 90 %; got {level!r}.")
        return _report.summary_frame(self, level)
