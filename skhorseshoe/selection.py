"""Selection of columns: a scikit-learn selector with four rules for a posterior."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self
from warnings import catch_warnings, filterwarnings

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, validate_data

from ._classifier import HorseshoeProbitClassifier
from ._data.input_table import is_dask, warn_if_reordered
from ._data.validation import check_column_labels, with_names
from ._fit.callbacks import selection_task
from ._posterior import dss_cv, rules, terms
from ._posterior.claim_errors import EFFECT
from ._posterior.grouped_prediction import is_grouped, population
from ._posterior.pipeline import unfrozen
from ._utils.errstate import guarded
from ._utils.names import names_of
from ._utils.sklearn_compat import CallbackSupportMixin, Interval, StrOptions, _fit_context
from ._utils.warn import warn_once

if TYPE_CHECKING:
    from ._types import ArrayLike, Labels, Mapping, NDArray, Offsets, RowsLike, Rule, Weights

__all__ = ["HorseshoeSelector"]


class HorseshoeSelector(CallbackSupportMixin, SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select columns by the posterior of a `HorseshoeProbitClassifier`.

    Columns that the classifier is told not to shrink (``unpenalized``) are always kept. The user guide, "Which columns
    matter", gives the error rates of the rules. With metadata routing, ``sample_weight`` is requested on the
    classifier, as with scikit-learn's ``SelectFromModel``.

    Parameters
    ----------
    estimator : HorseshoeProbitClassifier or None, default=None
        The classifier to fit, or a fitted one with ``prefit=True``. None means default parameters, which a grid search
        then cannot change.
    rule : {"dss", "interval", "fsr", "shrinkage"}, default="dss"
        Which columns to keep. "dss", decoupled shrinkage and selection: the fewest that predict as well as the
        whole posterior, within its own uncertainty. "interval": those whose equal-tailed credible interval excludes
        zero. "fsr": as many as have an expected share of false ones of at most ``q``; a column is false if its effect
        has the other sign than the more probable one, or is below ``effect``. "shrinkage": those with kappa_j below
        1/2, for which the data outweigh the prior: a screen where few of many columns matter, without a stated rate of
        errors. Of several classes without an order a column is kept or dropped for all of them.
    level : float or None, default=None
        Level, in (0, 1), of the credible interval, or for "dss" of the credible region of the predictions. A higher
        level keeps fewer columns. None is 0.9 for "interval", as in the paper of Terenin, Dong & Draper (2019), and
        0.5 for "dss": the summary is then as near to the posterior mean as the median draw. The others have no level.
    q : float, default=0.1
        For "fsr", the largest expected share, in (0, 1), of false columns among those kept, under the posterior.
    effect : float or dict, default=0.1
        For "fsr", the least effect that counts, 0 or more: what a change of the column by its standard deviation does
        to the score, whose noise has standard deviation 1. An effect of 0.1 moves a probability by 0.04 at most. With
        0 any effect counts whose sign is right. A rare level changes by less of itself: ``{"levels": 0.3}`` counts the
        difference between the two values of a column, or any two levels of a term, as ``skhorseshoe.terms.summary``.
    prefit : bool, default=False
        Whether ``estimator`` is already fitted and used as it is. ``fit`` then takes X as the classifier saw it, behind
        every scaler, with its weights; of a Pipeline ask ``inspection.select(model, X)``. "dss" reads these rows:
        another X gives another answer, and a warning. y is needed only with a ``class_weight`` or a ``cv``.
    cv : int, cross-validation splitter, iterable or None, default=None
        For "dss" (the other rules ignore it): choose the number of columns by how well it predicts rows that were held
        out. The posterior is drawn and its path searched anew without each fold, with the parameters of the classifier
        (but its ``checkpoint``), one fold after another; the rows are copied. An int, at least 2, is the number of
        folds, stratified by y and not shuffled; an iterable has pairs of numbers of rows, to fit and to hold out;
        ``GroupKFold(5)`` splits by the ``groups`` of ``fit``, an int does not. None is the choice by ``level``.
    min_features : int, default=0
        Keep at least so many columns, those that are not shrunk included; all, where there are fewer. Where the rule
        keeps less, those that it ranks next come with them, although they have not passed it: for "dss" the next on its
        path, for "interval" those with the surest signs, for "fsr" the least probable to be false, for "shrinkage" the
        least shrunk. 1 lets a Pipeline go on where nothing matters.
    terms : dict, "auto" or None, default=None
        Columns that are kept or dropped together, such as the levels of a category or the columns of a spline: the name
        of each term with a list of its columns, by name or number. "auto" takes the categories of which X has a column
        for every level; ``skhorseshoe.terms.find`` finds those of a Pipeline, and ``inspection.select`` uses them. The
        effect of a term is the standard deviation over the rows of what its columns do to the score together. "fsr"
        bounds the share of terms whose effect is not above ``effect``, and judges one that the prior takes for likely
        by the evidence, as if its prior odds had been even; "interval" keeps a term if an interval of one of its
        principal components over the rows excludes zero, with levels such that the probability of a wrong sign is that
        of a column; "dss" shrinks the columns of a term by one factor along its path; "shrinkage" keeps a term with one
        column below 1/2. None judges each column, as does a term of one; a level of a category that has a column for
        every level is judged by its effect beside the other levels, in a term of its own too.

    Attributes
    ----------
    estimator_ : HorseshoeProbitClassifier
        The fitted classifier.
    support_ : ndarray of shape (n_features,), bool
        Which columns are selected.
    path_ : dict or None
        With ``rule="dss"``, the basis of the choice: "supports" (n_supports, n_features), bool, the columns of ever
        larger summaries, the first with only unpenalised ones; "distances" (n_supports,) of each from the posterior
        mean, the Kullback-Leibler divergence summed over the (weighted) rows; "radius", within which the summary has to
        be; "chosen", the number of the first that is and, without ``cv`` and ``min_features``, is ``support_``;
        "level", the share of the draws within the radius. `SelectionPathDisplay
        <skhorseshoe.plotting.SelectionPathDisplay>` draws it.
    suggested_size_ : int or None
        With ``cv``, the smallest number of columns whose log score on rows held out is at most one standard error, or 4
        nats, below that of all columns; ``support_`` is the first summary with that many on the path of all rows.
        Columns that are not shrunk do not count and are always kept: 0 is the model with these and the intercept alone.
    sizes_ : dict or None
        With ``cv``, what the suggestion is based on. For each size: "sizes", the numbers of columns judged, all up to
        20, then some up to 200, and all columns; "difference", the log score of its summaries less that of the full
        model, in nats, summed over the (weighted) rows held out; "se", its standard error, each row being one
        observation. Of all: "log_score", that of the full model; "n_rows", the number of rows held out.
        `ModelSizeDisplay <skhorseshoe.plotting.ModelSizeDisplay>` draws it.
    error_ : ndarray of shape (n_features,) or None
        With ``rule="fsr"``, the probability of each column to be false. The mean over the kept columns that are
        shrunk is the expected share. It is at least 1 / ``ess_``: the draws cannot tell smaller ones.
    terms_ : dict or None
        With ``terms``, the name of each term, those of single columns included, with the numbers of its columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X was a table with string names.

    Notes
    -----
    "dss" follows Hahn & Carvalho (2015), with two changes. The loss is the Kullback-Leibler divergence of
    the probabilities, to second order in the linear predictor: least squares weighted by the Fisher information. Each
    support on the adaptive-lasso path is judged by its best coefficients, not by those that the penalty has shrunk, and
    taken if these lie in the credible region about the posterior mean in that loss (Bondell & Reich 2012).

    With ``cv`` a summary predicts with draws of the fold, 100 of 4000 rows or more and up to 400 of fewer, each
    projected on its columns: on what predicts most like the draw with all columns (Goutis & Robert 1998). The rule for
    the size is that of projpred's ``suggest_size`` with ``thres_elpd=-4``: of a difference below 4 nats the standard
    error says little (Sivula, Magnusson, Matamoros & Vehtari 2020), and with it alone one in about fifteen data sets of
    pure noise would keep columns.

    "fsr" puts the columns in order of their probability of being false and takes them as long as its mean is at most
    ``q``: the Bayesian false discovery rate (Mueller et al. 2004) of signs (Stephens 2017).

    References
    ----------
    Hahn, P. R. & Carvalho, C. M. (2015). Decoupling shrinkage and selection in Bayesian linear models: a posterior
    summary perspective. Journal of the American Statistical Association 110, 435-448.

    Bondell, H. D. & Reich, B. J. (2012). Consistent high-dimensional Bayesian variable selection via penalized credible
    regions. Journal of the American Statistical Association 107, 1610-1624.

    Goutis, C. & Robert, C. P. (1998). Model choice in generalised linear models: a Bayesian approach via
    Kullback-Leibler projections. Biometrika 85, 29-37.

    Sivula, T., Magnusson, M., Matamoros, A. A. & Vehtari, A. (2020). Uncertainty in Bayesian leave-one-out
    cross-validation based model comparison. arXiv:2008.10296.

    Carvalho, C. M., Polson, N. G. & Scott, J. G. (2010). The horseshoe estimator. Biometrika 97, 465-480.

    Mueller, P., Parmigiani, G., Robert, C. & Rousseau, J. (2004). Optimal sample size for multiple testing: the case of
    gene expression microarrays. Journal of the American Statistical Association 99, 990-1001.

    Stephens, M. (2017). False discovery rates: a new deal. Biostatistics 18, 275-294.

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier; from skhorseshoe import HorseshoeSelector
    >>> from skhorseshoe.datasets import make_sparse_probit
    >>> X, y, coef = make_sparse_probit(2000, 60, random_state=0)
    >>> selector = HorseshoeSelector(HorseshoeProbitClassifier(random_state=0)).fit(X, y)
    >>> selector.get_support(indices=True)
    array([0, 1, 2, 3, 4, 5])
    >>> selector.transform(X).shape
    (2000, 6)
    """

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012
        "estimator": "no_validation",  # ``fit`` checks it
        "rule": [StrOptions({"dss", "interval", "shrinkage", "fsr"})],
        "level": [Interval(Real, 0, 1, closed="neither"), None],
        "q": [Interval(Real, 0, 1, closed="neither")],
        "effect": [Interval(Real, 0, None, closed="left"), dict],
        "prefit": ["boolean"],
        "cv": ["cv_object"],
        "terms": [dict, StrOptions({"auto"}), None],
        "min_features": [Interval(Integral, 0, None, closed="left")],
    }

    # The classifier requests them.
    __metadata_request__fit = dict.fromkeys(("sample_weight", "groups", "offset"), UNUSED)

    def __init__(
        self,
        estimator: HorseshoeProbitClassifier | None = None,
        *,
        rule: Rule = "dss",
        level: float | None = None,
        q: float = 0.1,
        effect: float | Mapping[str, float] = EFFECT,
        prefit: bool = False,
        cv: Any = None,
        min_features: int = 0,
        terms: Mapping[str, Any] | Literal["auto"] | None = None,
    ) -> None:
        self.estimator = estimator
        self.rule = rule
        self.level = level
        self.q = q
        self.effect = effect
        self.prefit = prefit
        self.cv = cv
        self.min_features = min_features
        self.terms = terms

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = not self.prefit or self._has_folds()
        tags.input_tags.sparse = self.estimator is None or get_tags(self.estimator).input_tags.sparse
        return tags

    def get_metadata_routing(self) -> Any:
        """Weights go where the classifier's ``fit`` requests them.

        Returns
        -------
        routing : sklearn.utils.metadata_routing.MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping.add(caller="fit_transform", callee="fit")  # a Pipeline of scikit-learn 1.7 calls it
        return MetadataRouter(owner=self).add(estimator=unfrozen(self._classifier()), method_mapping=mapping)

    @_fit_context(prefer_skip_nested_validation=False)
    @guarded
    def fit(
        self,
        X: RowsLike,
        y: Labels = None,
        sample_weight: Weights = None,
        groups: Labels = None,
        offset: Offsets = None,
        **aliases: Any,
    ) -> Self:
        """Fit the classifier, unless ``prefit``, and select columns.

        Parameters
        ----------
        X : array-like, table or sparse matrix of shape (n_samples, n_features)
            As for the classifier.
        y : array-like of shape (n_samples,), default=None
            Labels, as for the classifier. Not needed with ``prefit=True``, no ``class_weight`` and no ``cv``.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows, as for the classifier. "dss" judges predictions on the weighted rows (weights by
            ``class_weight`` included); the other rules read the posterior alone.
        groups : array-like of shape (n_samples,) or None, default=None
            Groups of the rows, as for the classifier; with ``prefit=True`` only a ``cv`` needs them. All rules judge
            coefficients as they are averaged over groups: divided by sqrt(1 + s^2), draw by draw.
        offset : array-like of shape (n_samples,) or None, default=None
            Offsets of the rows, as for the classifier; not with a ``cv``.
        **aliases : array-like
            The same by other names, under which the classifier requests them, with metadata routing.

        Returns
        -------
        self : HorseshoeSelector

        Raises
        ------
        TypeError
            If ``estimator`` is not a HorseshoeProbitClassifier.
        NotFittedError
            If it is not fitted and ``prefit=True``.
        ValueError
            If X or y cannot be used (with ``prefit=True`` all rules but "dss" look at the columns alone), ``cv`` cannot
            split the rows, ``rule="fsr"`` is to reach a ``q`` that the draws are too few for, or "dss" is to select
            from more than 8000 sparse columns of as many rows, or from probabilities that are 0 or 1 under every draw.

        Warns
        -----
        ConvergenceWarning, UserWarning
            Those of the classifier, with ``cv`` one more of each for all folds together; of other rows than the fit's.
        """
        model = self._classifier()
        given = ("sample_weight", sample_weight), ("groups", groups), ("offset", offset)
        metadata = {name: values for name, values in given if values is not None}
        if get_config()["enable_metadata_routing"] and (aliases or not self.prefit):
            metadata = process_routing(self, "fit", **metadata, **aliases).estimator.fit
        elif aliases:
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(aliases))!r}")
        rules.check_rule(self.rule, X, self.effect, None if self.prefit or "sample_weight" in metadata else y, model)
        if self.prefit:
            check_is_fitted(model)
            warn_if_reordered(X, y=y, **metadata)
        weight, groups, offset = map(metadata.get, ("sample_weight", "groups", "offset"))
        if self._has_folds() and offset is not None:
            raise ValueError("cv takes no offset: leave cv out, or of two classes make it an unpenalized column of X.")
        splits = dss_cv.splits_of(self.cv, X, y, groups) if self._has_folds() else []  # before a long fit
        with selection_task(self, X, y, len(splits)) as task:
            if not self.prefit:
                with task(model := clone(model)):
                    model.fit(X, y, **metadata)
            judged = self._judged(averaged := population(model), X, y, weight)
            support, rank, facts = self._select(averaged, judged, X, y, weight, offset)
            if splits:
                if groups is None and is_grouped(model):
                    raise ValueError("cv fits anew: give the groups of the model's rows too, groups=...")
                support, facts["sizes"] = dss_cv.compare(
                    model, facts["path"]["supports"], splits, task, X, y, judged.owners, weight, groups
                )
        support = support | (model.shrinkage_ == 0)  # unpenalised columns
        support[np.lexsort((rank, ~support))[: self.min_features]] = True
        self._take_names(model, X)
        self.estimator_, self.support_ = model, judged.as_a_whole(support)
        self.path_, self.error_, self.sizes_ = map(facts.get, ("path", "error", "sizes"))
        self.terms_ = self.terms and {term.name: term.columns.tolist() for term in judged.terms}
        self.suggested_size_ = None if self.sizes_ is None else self.sizes_.pop("suggested")
        return self

    def transform(self, X: RowsLike) -> Any:
        """The selected columns.

        Parameters
        ----------
        X : array-like, table or sparse matrix of shape (n_samples, n_features)
            The columns of ``fit``, in the same order.

        Returns
        -------
        X_selected : array, table or sparse matrix of shape (n_samples, n_selected_features)
            Of a table an array, unless ``set_output`` asks for one.
        """
        check_is_fitted(self)
        check_column_labels(self, X, reset=False)
        if self.support_.any():
            return super().transform(X)
        cure = "; the next step of a Pipeline needs one: min_features=1 keeps the first by the rule."
        warn_once(f"rule={self.rule!r} keeps no column{cure}", UserWarning, "no column")
        with catch_warnings():
            filterwarnings("ignore", "No features were selected")  # that warning names no cure
            return super().transform(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the selected columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of all columns. None takes those of ``fit``: the labels of a table, else x0, x1, ...

        Returns
        -------
        names : ndarray of str objects
        """
        if input_features is None and hasattr(self, "_column_labels"):
            input_features = np.array(list(map(str, self._column_labels)), dtype=object)
        return super().get_feature_names_out(input_features)

    def _take_names(self, model, X):
        """Remember the names and the number of columns; a ValueError if the classifier has others."""
        if is_dask(X):  # scikit-learn does not know its frames
            X = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
        X = with_names(X)
        validate_data(model, X, reset=False, skip_check_array=True)
        validate_data(self, X, skip_check_array=True)
        check_column_labels(model, X, reset=False)
        check_column_labels(self, X, reset=True)

    def _classifier(self):
        if self.estimator is None and not self.prefit:
            return HorseshoeProbitClassifier()
        if not isinstance(unfrozen(self.estimator), HorseshoeProbitClassifier):
            condition, cure = " or None", "To scale the columns, set its standardize=True."
            if self.prefit:
                condition, cure = " that is fitted", "inspection.select(model, X) takes a fitted Pipeline or search."
            raise TypeError(f"estimator must be a HorseshoeProbitClassifier{condition}; got {self.estimator!r}. {cure}")
        return self.estimator

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def _judged(self, model, X, y, sample_weight=None):
        """The terms, or the columns as terms, as ``Judged``."""
        if self.terms is None:
            asked = [terms.Term(name, np.array([j])) for j, name in enumerate(names_of(model))]
        else:
            asked = terms.asked_terms(self.terms, None, model)
        return rules.judged(model, asked, self.rule, self.effect, X, y, sample_weight)

    def _select(self, model, judged, X, y, sample_weight=None, offset=None):
        """The ``Choice`` of the rule."""
        if self.rule == "shrinkage":
            return rules.by_shrinkage(model, judged)
        if self.rule == "interval":
            return rules.by_interval(model, 0.9 if self.level is None else self.level, judged)
        if self.rule == "fsr":
            return rules.by_fsr(model, self.q, judged)
        sizes = [self.min_features, *([] if self.cv is None else dss_cv.sizes_of(model)[:-1])]
        level = 0.5 if self.level is None else self.level
        return rules.by_dss(model, (X, y, sample_weight, offset), level, int(max(sizes)), judged)

    def _has_folds(self):
        return self.cv is not None and self.rule == "dss"
