"""Methods of a fitted model: tables of its coefficients and of the effects of groups, and its draws for ArviZ."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from .._data import validation
from .._data.input_table import warn_if_reordered
from .._model import PROBIT, likelihood_of
from .._model.one_class import one_class
from .._model.resampled import Resampled
from .._utils.errstate import guarded
from . import predict as _predict
from .arviz import from_model
from .claim_errors import check_share
from .classes import cut_points, is_ordered
from .grouped_prediction import given_rows
from .summary import effects_frame, sets_frame, summary_frame

if TYPE_CHECKING:
    from .._types import DataFrame, Floats, Labels, Mapping, Missing, NDArray, Offsets, RowsLike, Weights


class PosteriorMixin:
    """The methods of a fitted classifier that read its draws and never change them."""

    classes_: NDArray[Any]
    coef_: Floats
    intercept_: Floats
    coef_draws_: NDArray[Any]
    intercept_draws_: Floats
    global_scale_draws_: Floats
    groups_: Any  # arrays, and of several factors dicts of them
    group_scale_draws_: Any
    group_effect_draws_: Any
    group_effect_moments_: dict[str, Any]
    group_correlation_draws_: dict[str, Any]
    acceptance_draws_: Floats
    moments_: dict[str, Any] | None
    shrinkage_: Floats
    inclusion_score_: Floats
    rhat_: Floats
    ess_: Floats
    n_iter_: int
    burn_in_: int
    stopped_by_: str
    sampler_: str
    tuning_: dict[str, Any]
    prior_: dict[str, Any]
    device_: str
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    ordered_classes_: NDArray[Any]
    _of_two_classes = PROBIT  # the likelihood of two classes

    @property
    def _likelihood_of_fit(self):
        """The likelihood of the rows of the fit."""
        return likelihood_of(self._of_two_classes, len(self.classes_), is_ordered(self))

    @property
    def _likelihood(self):
        """The likelihood of new rows: of another population by ``with_prevalence``, of one class by ``one_vs_rest``."""
        if hasattr(self, "_predictors"):
            return one_class(self._predictors["place"], self._predictors["intercept"].shape[2])
        return Resampled(self._odds_factor) if hasattr(self, "_odds_factor") else self._likelihood_of_fit

    @property
    def cut_points_draws_(self) -> Floats:
        """Of a model of ordered classes, the draws of the cut points; (n_chains, n_draws, n_classes - 1)."""
        return cut_points(self)

    @property
    def cut_points_(self) -> Floats:
        """Of a model of ordered classes, the posterior means of the cut points; (n_classes - 1,)."""
        return self.cut_points_draws_.mean(axis=(0, 1))

    @guarded
    def summary(self, level: float | None = None, sort_by: str | None = None, *, of: Any = None) -> DataFrame:
        """The posterior of every coefficient, the intercept and the global scale, as a frame.

        The text above it says whether the chains have converged, how many columns clearly matter, which is how many
        intervals exclude zero (of a level of a category, that of its effect relative to the mean over rows), and which
        class positive coefficients favour; then the prior, the sampler, the draws, the worst convergence and the
        effective number of nonzero coefficients, m_eff = sum_j (1 - kappa_j), beside its prior mean (Piironen & Vehtari
        2017).

        Parameters
        ----------
        level : float or None, default=None
            Level of the credible interval, in (0, 1); None takes ``credible_level``.
        sort_by : str or None, default=None
            Name of a column, such as "mean": sorts features by its absolute value, descending ("shrinkage":
            ascending). None keeps the order of the columns of X.
        of : object, default=None
            Of a model of several classes, one of these: the table is then of its coefficients, beside the mean of all
            classes. None gives the sizes of the columns. ``inspection.against`` has one class beside another.

        Returns
        -------
        frame : pandas.DataFrame
            Indexed by feature name, ``(intercept)``, ``(global scale)`` and, with groups, ``(group scale)`` last, or
            ``(name scale)`` of each factor. Columns: mean, sd, the ends of the equal-tailed interval, prob_positive
            (posterior probability that the coefficient is above zero), lfsr (local false sign rate: min(P(beta > 0),
            P(beta < 0)), and at least 1 / ess, since the draws cannot tell smaller ones; 0.5 for a constant column),
            shrinkage (kappa_j), ess (bulk) and rhat. ``frame.attrs["header"]`` holds the text,
            ``frame.attrs["classes"]`` the labels. It prints numbers with the digits that Monte Carlo error allows, and
            names as a terminal can show them, and holds them in full; ``to_markdown`` and ``to_latex`` write it so.

            Of several classes without ``of``: mean, sd and the ends of the interval of the size of a column, the root
            of the sum of its squared coefficients over the classes; means of the coefficients by class, of up to 12,
            under their labels as text (with quotes if one is the name of another column, such as "mean");
            probability (that one standard deviation of the column has an effect above 0.1 in its most probable
            direction, that of its posterior mean; at most 1 - 1 / ess), shrinkage, and the smallest ess and the largest
            rhat over the classes. Intercepts are in the tables of one class.

        Raises
        ------
        ValueError
            If ``level`` is not between 0 and 1, or ``sort_by`` not the name of a column.
        """
        check_is_fitted(self)
        return summary_frame(self, level_of(self, level), sort_by, of)

    @guarded
    def group_effects(self, factor: str | float | None = None, level: float | None = None) -> DataFrame:
        """What each group of a model that was fitted with groups adds to the score of its rows.

        Parameters
        ----------
        factor : str or None, default=None
            Name of the factor, of a model that was fitted with several. A number in its place is taken for ``level``.
        level : float or None, default=None
            Level of the credible interval, in (0, 1); None takes ``credible_level``.

        Returns
        -------
        frame : pandas.DataFrame
            Indexed by group, as in ``groups_``. Columns: mean, sd, and the ends of the equal-tailed interval, those of
            the draws in ``group_effect_draws_``. ``frame.attrs["header"]`` has the intraclass correlation
            s^2 / (1 + s^2): the share of the variance of the score, given x, that groups have; of several factors the
            denominator is 1 and the s^2 of all.

        Raises
        ------
        ValueError
            If the model was fitted without groups or without this factor, or ``level`` is not in (0, 1).
        """
        check_is_fitted(self)
        if isinstance(factor, Real):
            factor, level = None, factor
        return effects_frame(self, factor, level_of(self, level))

    @guarded
    def summary_of_sets(
        self, sets: Mapping[str, Any], level: float | None = None, *, missing: Missing = "raise"
    ) -> DataFrame:
        """The posterior of sums of coefficients: of sets of correlated columns, or of contrasts between columns.

        Of strongly correlated columns each interval is wide, but that of their sum may be narrow.

        Parameters
        ----------
        sets : dict
            Maps the name of each set to a list of columns, whose coefficients are summed, or to a dict of columns and
            their weights. Columns are given by name or number. `skhorseshoe.sets.correlated_sets` finds sets;
            ``{"Oslo - Rome": {"site_Oslo": 1, "site_Rome": -1}}`` is a contrast. Sets may overlap.
        level : float or None, default=None
            Level of the credible interval, in (0, 1); None takes ``credible_level``.
        missing : {"raise", "ignore"}, default="raise"
            What becomes of names that are none of the columns: an error, or they are left out, which the header tells.

        Returns
        -------
        frame : pandas.DataFrame
            Indexed by the names of the sets. Columns: n_columns, mean, sd, the ends of the equal-tailed interval,
            prob_positive (posterior probability that the sum is above zero), m_eff (how many of the columns are
            effectively nonzero, the sum of their inclusion scores), ess (bulk) and rhat; with ``max_draws``, all but
            m_eff of the draws that are kept. ``frame.attrs`` has the header and the labels ("classes").

        Raises
        ------
        TypeError
            If ``sets`` is not a dict.
        ValueError
            If a set is empty, has a column twice or one that is not of this model, ``level`` is not in (0, 1), or the
            model has several classes without an order.
        """
        check_is_fitted(self)
        return sets_frame(self, sets, level_of(self, level), missing)

    @guarded
    def to_arviz(
        self,
        X: RowsLike = None,
        y: Labels = None,
        sample_weight: Weights = None,
        *,
        offset: Offsets = None,
        max_draws: int | None = None,
    ) -> Any:
        """The draws for ArviZ, with the names of the features as coordinates.

        Parameters
        ----------
        X : array-like, table or sparse matrix of shape (n_samples, n_features), default=None
            The rows of ``fit``, to add their log-likelihood for ``arviz.loo``, ``arviz.psense_summary`` and, in ArviZ
            0.x, ``arviz.waic``. ``skhorseshoe.inspection.loo`` is for many rows.
        y : array-like of shape (n_samples,), default=None
            Their labels. X and y are given together or not at all.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The weights of the fit, times the class weights if there was a ``class_weight``. The log-likelihood of a row
            is then ``w[i]`` times that of one observation, and ``arviz.loo`` leaves out the row with all its weight.
        offset : array-like of shape (n_samples,) or None, default=None
            The offsets of the fit, if it had any.
        max_draws : int or None, default=None
            Maximum number of draws to keep, evenly spaced, equally many from each chain; at least ``n_chains``. The
            log-likelihood takes 8 bytes for each row and draw.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The former with ArviZ 0.x, the latter with ArviZ 1.x. Group "posterior": coef (chain, draw, feature),
            intercept and global_scale (chain, draw), with groups also group_scale (chain, draw) and, where effects are
            kept of every draw, group_effect (chain, draw, group), of ordered classes cut_points (chain, draw, cut);
            group "sample_stats": acceptance_rate (chain, draw); group "log_prior", logarithms of prior densities: of
            global_scale (chain, draw), with the factor of a slab; of intercept (chain, draw), if there is one; of
            group_scale, with groups; and of the coefficients of columns that are not shrunk, if any: unpenalized
            (chain, draw, unpenalized_feature). With X and y also "log_likelihood": y (chain, draw, row), and
            "observed_data": y (row), 1 for the second class, else 0, or of ordered classes the place from the lowest,
            0, on. Of several classes without an order coef (chain, draw, class, feature) and intercept (chain, draw,
            class), the log prior of which is "intercepts", of all together. With several factors or slopes the name
            follows, group_scale_p, group_effect_p and with slopes group_scale_p:time and group_correlation_p, p:time;
            the log prior group_scale_p is then of all scales and correlations of p.

        Raises
        ------
        ImportError
            If ArviZ is not installed.
        ValueError
            If the model is one of two classes that was made of one of more, the rows are not those of the fit, with the
            labels, weights and offsets that they had there, or X and y are given, and the model was fitted with groups.
        MemoryError
            If the log-likelihood does not fit in memory; before anything is computed.

        Notes
        -----
        ``arviz.psense_summary(data)`` of ArviZ 1.x, and ``arviz.psens`` of 0.x, scale the priors in "log_prior" by a
        power. The notes of ``inspection.sensitivity`` say why those of shrunk coefficients are not among them.
        """
        check_is_fitted(self)
        if (X is None) != (y is None) or (X is None and (sample_weight is not None or offset is not None)):
            raise ValueError("X and y are needed together: the log-likelihood is that of the labels y of the rows X.")
        rows = None if X is None else _predict.labelled_rows(self, X, y, sample_weight, offset)
        return from_model(self, rows, max_draws)

    def _given_rows(self, X, groups, offset, new_groups):
        warn_if_reordered(X, groups=groups, offset=offset)
        return given_rows(self, self._check_rows(X), groups, offset, new_groups)

    def _check_rows(self, X):
        check_is_fitted(self)
        return validation.check_X(self, X, reset=False)


def level_of(model, level):
    """The level of an interval: None is that of the model."""
    return check_share("level", model.credible_level if level is None else level)
