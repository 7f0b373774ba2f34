"""Methods of a fitted model that predict: probabilities, their intervals and samples, and classes."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._backends import device
from .._data.dask_lazy import by_blocks
from .._utils.memory import check_result
from . import classes
from . import predict as _predict
from .estimates import ends_of, mixture_quantiles
from .grouped_prediction import is_grouped
from .mixin import PosteriorMixin, level_of

if TYPE_CHECKING:
    from .._types import Floats, Labels, NDArray, NewGroups, Offsets, RowsLike


class PredictionsMixin(PosteriorMixin):
    """The methods of a fitted classifier that predict. They read its draws and never change them."""

    @by_blocks
    def predict_proba(
        self, X: RowsLike, groups: Labels = None, offset: Offsets = None, new_groups: NewGroups = None
    ) -> Floats:
        """Posterior predictive probabilities: the averages over the draws of Phi(-eta) and Phi(eta); of ordered classes
        of differences of Phi at neighbouring cut points; of several without an order those that a utility is the
        largest.

        Deterministic; the result for a row does not depend on the other rows of X.

        Parameters
        ----------
        X : array-like, table or sparse matrix of shape (n_samples, n_features)
            The columns of ``fit``, in the same order.
        groups : array-like of shape (n_samples,) or None, default=None
            Of a model that was fitted with groups, the labels of the groups. A row of a group that the fit has seen has
            the probability Phi(eta + u_g); one of another group, and every row without ``groups``, has that of a new
            group, Phi(eta / sqrt(1 + s^2)). Of a model with several factors a table or a dict with some or all of them;
            each factor that is left out has a new level.
        offset : array-like of shape (n_samples,) or None, default=None
            Of a model that was fitted with an offset, that of these rows.
        new_groups : bool or None, default=None
            Whether all ``groups`` are new, as those of another hospital, whose labels may be of any kind and equal to
            those of the fit. False: a label of the fit is that group. None: the same, and a warning says how many of
            the labels the fit has seen.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If the columns of X are not those of the fit, or values are missing.
        """
        return self._from_probabilities(lambda proba: proba, X, groups, offset, new_groups)

    @by_blocks
    def predict_proba_samples(
        self,
        X: RowsLike,
        max_draws: int | None = None,
        groups: Labels = None,
        offset: Offsets = None,
        new_groups: NewGroups = None,
    ) -> Floats:
        """The probability of the second class, or of each of more than two, under every draw: a sample of its posterior
        for each row.

        Its average over all draws is ``predict_proba``. With ``groups`` whose effects, above 256 MiB, were kept for
        some draws only, rows of new groups use these too, and their average is only near it. The result for a row does
        not depend on the other rows of X.

        Parameters
        ----------
        X : see ``predict_proba``
            The rows.
        max_draws : int or None, default=None
            Maximum number of draws to use, evenly spaced, equally many from each chain; at least ``n_chains``. None
            uses all. With ``groups``, of those that effects of groups are kept of.
        groups, offset, new_groups : see ``predict_proba``
            The groups of the rows, and their offsets.

        Returns
        -------
        samples : ndarray of shape (n_samples, n_draws_used), float64
            Probabilities of ``classes_[1]``, or of more than two classes of each, (n_samples, n_draws_used, n_classes);
            the draws of the first chain come first. Every row uses the same draws, so columns can be compared and
            summed over rows.

        Raises
        ------
        ValueError
            If ``max_draws`` is less than one draw for each chain.
        MemoryError
            If the result does not fit in memory; before anything is computed.
        """
        rows = self._given_rows(X, groups, offset, new_groups)
        draws = _predict.draws_for_rows(self, rows, max_draws, alike=True)
        n_draws = _predict.n_draws_of(self, draws.intercept)
        of_classes = (len(self.classes_),) if classes.has_classes(self) else ()
        check_result(rows.X.shape[0], n_draws * prod(of_classes))

        def probabilities(eta, ops, own):
            if classes.has_classes(self):
                return classes.each_probability(self, eta, ops, own).reshape(len(eta), -1)
            return self._likelihood.probability(eta, ops, out=eta)

        samples = _predict.values_by_row(self, rows, n_draws * prod(of_classes), probabilities, draws)
        return device.put_on_device_of(rows.X, samples.reshape(len(samples), n_draws, *of_classes))

    @by_blocks
    def predict_interval(
        self,
        X: RowsLike,
        level: float | None = 0.9,
        groups: Labels = None,
        offset: Offsets = None,
        new_groups: NewGroups = None,
        *,
        of_one: bool = False,
    ) -> Floats:
        """Equal-tailed posterior interval of the probability of the second class, or of each of more than two.

        It says how precisely P(y = 1 | x) is known if the model is right; it is not an interval for y. The result for
        a row does not depend on the other rows of X.

        Parameters
        ----------
        X : see ``predict_proba``
            The rows.
        level : float or None, default=0.9
            Posterior probability of the interval, in (0, 1); None takes ``credible_level``.
        groups, offset, new_groups : see ``predict_proba``
            The groups of the rows, and their offsets.
        of_one : bool, default=False
            Of a new group: whether the interval is for the probability of one such group, as of the next patient, which
            is the wider the more groups differ; False is for the average over new groups.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2), float64
            Lower and upper end, in [0, 1]: quantiles of the row of ``predict_proba_samples``, of a new group of all
            draws. Of more than two classes of shape (n_samples, n_classes, 2), for each class in the order of
            ``classes_``.

        Raises
        ------
        ValueError
            If ``level`` is not between 0 and 1, or ``of_one`` is True of a model without groups, or of ordered
            classes, where it is asked of the model that `inspection.at_least` gives.
        """
        rows, level = self._given_rows(X, groups, offset, new_groups), level_of(self, level)
        if of_one and not is_grouped(self):
            raise ValueError("of_one=True is for new groups, and this model was fitted without groups: leave it out.")
        if of_one:
            classes.refuse_classes(self, "of_one=True", one_score=True)
            classes.needs_one_score(self, "of_one=True")

        def ends_of_one(eta, variance):
            return self._likelihood.probability(mixture_quantiles(eta, np.sqrt(variance), ends_of(level)))

        shape = (len(self.classes_), 2) if classes.has_classes(self) else (2,)
        ends = partial(classes.ends_of_probabilities, self, levels=ends_of(level))
        interval = _predict.values_by_row(self, rows, prod(shape), ends, of_one=ends_of_one if of_one else None)
        return device.put_on_device_of(rows.X, interval.reshape(-1, *shape))

    @by_blocks
    def predict_log_proba(
        self, X: RowsLike, groups: Labels = None, offset: Offsets = None, new_groups: NewGroups = None
    ) -> Floats:
        """Logarithm of ``predict_proba``.

        Parameters
        ----------
        X, groups, offset, new_groups : see ``predict_proba``
            The rows, their groups and their offsets.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes), float64
        """
        return self._from_probabilities(lambda proba: np.log(_positive(proba)), X, groups, offset, new_groups)

    @by_blocks
    def decision_function(
        self, X: RowsLike, groups: Labels = None, offset: Offsets = None, new_groups: NewGroups = None
    ) -> Floats:
        """Phi^-1 of the posterior predictive probability of the second class, computed from the smaller tail.

        It is not x ``coef_.T`` + ``intercept_``: the average of Phi over the draws is not Phi of the average.

        Parameters
        ----------
        X, groups, offset, new_groups : see ``predict_proba``
            The rows, their groups and their offsets.

        Returns
        -------
        decision : ndarray of shape (n_samples,), float64
            Positive where the second class is the more probable; in [-37.6, 37.6]. Of more than two classes of
            shape (n_samples, n_classes): that of the probability of each class, in the order of ``classes_``.
        """

        def quantile(proba):
            predictor = self._of_two_classes.predictor
            others, proba = _positive(_of_others(proba)), _positive(proba)
            decision = np.where(proba > others, -predictor(others), predictor(proba))
            return decision if classes.has_classes(self) else decision[:, 1]

        return self._from_probabilities(quantile, X, groups, offset, new_groups)

    @by_blocks
    def predict(
        self, X: RowsLike, groups: Labels = None, offset: Offsets = None, new_groups: NewGroups = None
    ) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X, groups, offset, new_groups : see ``predict_proba``
            The rows, their groups and their offsets.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self._from_probabilities(
            lambda proba: self.classes_[proba.argmax(axis=1)], X, groups, offset, new_groups
        )

    def _from_probabilities(self, answer, *given):
        """answer(probabilities (n, K)), computed on the host, as an array on the device of X. given : X, groups, ..."""
        rows, average = self._given_rows(*given), partial(classes.average_probabilities, self)
        return device.put_on_device_of(rows.X, answer(_predict.values_by_row(self, rows, len(self.classes_), average)))


def _positive(proba):
    return np.maximum(proba, np.finfo(float).tiny)


def _of_others(proba):
    """The probabilities that it is another class (n, K), as sums in a fixed order: 1 - proba would lose small ones."""
    none = np.zeros((len(proba), 1))
    before, after = np.cumsum(proba, axis=1)[:, :-1], np.cumsum(proba[:, ::-1], axis=1)[:, -2::-1]
    return np.hstack([none, before]) + np.hstack([after, none])
