"""The estimator: its parameters, ``fit`` and ``score``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score

from ._data.input_table import is_dask, refuse_dask, warn_if_reordered
from ._data.labels import check_labels, is_second
from ._data.weights import check_weights
from ._fit import fit as _fit
from ._fit.data import RowArguments
from ._fit.parameters import CONSTRAINTS, validated
from ._posterior.predictions import PredictionsMixin
from ._posterior.saved import OF_SOME_FITS, SavedMixin
from ._utils.sklearn_compat import CallbackSupportMixin, _fit_context

if TYPE_CHECKING:
    from ._types import ArrayLike, Device, Labels, Mapping, NewGroups, Offsets, Path, RowsLike, Sampler, Seed, Weights


class HorseshoeProbitClassifier(SavedMixin, CallbackSupportMixin, ClassifierMixin, PredictionsMixin, BaseEstimator):
    """Bayesian probit classification with the horseshoe prior.

    The model is P(y = 1 | x, beta) = Phi(b0 + x beta), beta_j ~ N(0, lambda_j^2 tau^2) with half-Cauchy local
    scales lambda_j and a half-Cauchy global scale tau: coefficients without support in the data are shrunk
    to nearly zero; large ones are hardly shrunk. ``fit`` draws from the posterior with several chains;
    predicted probabilities are averages over the draws. The length adapts to the data.

    Parameters
    ----------
    standardize : bool, default=False
        Whether the prior, ``slab_scale`` and ``global_scale`` apply to columns scaled to unit variance: set it if
        columns have different units. Coefficients and probabilities are for the columns as given.
    slab_scale : float, "auto", "per_contrast" or None, default="auto"
        Standard deviation c of a Gaussian slab that bounds large coefficients: beta_j is also N(0, c^2), as in
        Nishimura & Suchard (2023). If columns may separate the classes, the data do not bound the coefficients;
        "per_contrast" does, whatever the unit of a column: c_j = 4 / contrast, which is the difference of the values of
        a two-valued column and 2.5 standard deviations of a normal one, in general 2 E d^2 / E|d|, d the deviations
        from the mean. None is the horseshoe itself. "auto" is "per_contrast" if X has more columns than rows. Else it
        is None, but ten times "per_contrast" for several classes without an order, of which some are often separated.
    expected_nonzero : float or None, default=None
        A guess p0, below p, of how many of the p shrunk coefficients are away from zero, in place of ``global_scale``:
        tau_0 = p0 / (p - p0) s / sqrt(n), s^2 = r (1 - r) / phi(Phi^-1(r))^2, n the rows and r the share of the second
        class, by weight (Piironen & Vehtari 2017).
    random_state : int, RandomState, Generator or None, default=None
        Seed. An int gives the same draws in every process, for any number of threads; None takes a fresh seed.
    n_iter : int or "auto", default="auto"
        Sweeps (iterations) of each chain after burn-in. "auto" goes on until the chains have converged, for at most
        10,000, and keeps at most 1 GiB of draws, but no fewer than 200 of each chain.
    burn_in : int or "auto", default="auto"
        Sweeps of each chain that are discarded. "auto" goes on until halves of the chains agree, for at most 3200.
    n_chains : int, default=4
        Number of chains, 1 to 256. They share every pass over X; comparing them shows whether they have converged.
    thin : int, default=1
        Keep every ``thin``-th sweep after burn-in.
    max_draws : int or None, default=None
        Maximum number of draws of each chain to keep, evenly spaced; at least half as many are kept. Means and standard
        deviations are of all draws (``moments_``), all else, group scales and sizes of terms, of those kept. None: all.
    draws_dtype : {"float64", "float32"}, default="float64"
        Type of the coefficient draws. float32 takes half the memory, rounds to 7 digits and has a maximum of 8.5e37.
    fit_intercept : bool, default=True
        Add an intercept, which is not shrunk. Its prior is N(0, 100^2) at the mean of the columns. Without one,
        "per_contrast" and the wide prior of ``unpenalized`` are by deviations from 0, not from the mean.
    global_scale : float or None, default=None
        Scale tau_0 of the prior tau ~ C+(0, tau_0), from 1e-100 to 1e100. A smaller value means fewer coefficients away
        from zero. None means 1, unless ``expected_nonzero`` is given.
    group_scale : float or dict, default=1
        With ``groups`` in ``fit``, the scale of the prior s ~ C+(0, group_scale) of the standard deviation s of the
        groups' effects, from 1e-100 to 1e100; the noise of a row has standard deviation 1. With several factors it is
        that of each, or a dict has one for each by name. Of a factor with slopes it is that of all its half-t priors.
    group_slopes : dict or None, default=None
        With ``groups`` by name in ``fit`` (a table, a dict, or a Series with a name), columns whose effects differ
        between the groups of a factor: {"patient": ["time"]}. What a group adds to the score at the means of these
        columns, and to their coefficients, is normal with one covariance matrix. Its prior is that of Huang & Wand
        (2013): uniform correlations, and half-t standard deviations of 2 degrees of freedom, by unit of the column.
    unpenalized : array-like of names, indices or bool, or None, default=None
        Columns that are not shrunk, such as age and sex: their coefficients have the wide prior N(0, (100 / standard
        deviation of the column)^2). Columns of an array are called "x0", "x1", ...; a mask has n_features entries. With
        all columns this is plain probit regression, and tau keeps its prior.
    prior_scale : array-like of floats, mapping of columns to floats, or None, default=None
        The unit s_j in which the prior of coefficient j holds, from 1e-100 to 1e100: beta_j / s_j has the prior that
        beta_j has without it, as if the column were multiplied by s_j; the inverse of glmnet's ``penalty.factor``
        (Friedman, Hastie & Tibshirani 2010). A number as ``slab_scale`` is in this unit too; "per_contrast" bounds the
        same effect whatever s_j is. With ``standardize`` it is a unit of the scaled columns. An unpenalised column has
        the prior N(0, s_j^2); inf is the wide one. A number for each column, or for some by name or index, where others
        stay as they are; a Series goes by its labels.
    ordered : bool or list, default=False
        Whether the classes of y have an order, which fits one model to all of them: z = x beta + e, e ~ N(0, 1), and y
        is the class between whose cut points z is. True takes the order of numbers, booleans, an ordered pandas
        Categorical or a polars Enum; a list has the classes from the lowest. Positive coefficients favour higher. False
        takes more than two classes as alike: each has a utility, and y is the class whose utility is the largest. On
        the CPU, of a Dask cluster too (dense rows), without "pxda"; in an order without "gibbs", else without groups.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply ``sample_weight``. Rare events do not need them. They change what the
        probabilities mean, and weights above 1 make intervals too narrow and let noise be selected.
    coef_summary : {"mean", "median", "selected"}, default="mean"
        What ``coef_`` holds: the posterior mean, the posterior median, or the mean where the credible interval of
        level ``credible_level`` excludes zero, and zero elsewhere; for a level of a category the interval of its
        effect relative to the mean over rows, since no single coefficient is known.
    credible_level : float, default=0.9
        In (0, 1): of these intervals, ``summary`` and displays; of ``predict_interval`` only if its ``level`` is None.
    sampler : {"auto", "hmc", "pxda", "gibbs"}, default="auto"
        Algorithm; the posterior is the same. "hmc" is split Hamiltonian Monte Carlo within Gibbs; with more than 1.2
        times as many columns as rows and a slab its paths are in coordinates of the prior. "gibbs" is the data
        augmentation of Terenin, Dong & Draper (2019); "pxda" adds moves of all latent variables and of single
        coefficients. "auto" is "hmc", but of two classes "pxda" for more than 8000 columns, unless they are sparse in
        memory or these coordinates are taken, or for a burn-in below 100. With an offset, or groups of one factor,
        "gibbs" stands in for "pxda"; several factors, slopes, and groups with more than 8000 columns always take "hmc".
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where to fit. "cuda" is the first NVIDIA GPU; if it cannot be used, ``fit`` raises an error. "auto" is a GPU if
        a working one is found and X is dense with more than about four million elements, else the CPU, as always for
        groups, an offset, and more columns than rows with a slab. A CuPy array X is read on the GPU that it is on. The
        kernels are tested on an emulator and by the compiler, not yet on a card; "cpu" stays off it.
    n_jobs : int or None, default=None
        Number of threads; the draws do not depend on it. None uses all cores that the process may use, a negative
        number all but ``-n_jobs - 1``; inside a joblib task at most the task's share, and at most what memory allows.
    target_ess : float or None, default=None
        Stop, at the latest after ``n_iter`` sweeps, when every coefficient that the data bound, the intercept and the
        scales have this bulk effective sample size over all chains and an R-hat of at most 1.01 (but tau only if the
        data bound all); with more columns than rows probabilities and correlated columns' sums too. None is 100 a chain
        with ``n_iter="auto"``, else no target.
    max_time : float or None, default=None
        Seconds from the call of ``fit`` on after which sampling ends as by Ctrl-C: with the draws made so far and a
        warning, or before the first draw with a ``TimeoutError``. What follows, as diagnostics, takes its time. With 0
        and a ``checkpoint`` nothing is sampled or written: the model has the draws that the folder holds, also while
        another process goes on with it. None is no limit.
    checkpoint : path-like or None, default=None
        Folder in which the running fit is saved, created if needed. After a run was killed, the same call continues it,
        and ends with the draws of an uninterrupted run; a larger ``n_iter`` continues a run that has ended.
    checkpoint_interval : float, default=60
        Seconds between two saves.
    warm_start : bool, default=False
        If True, another ``fit`` on the same data adds ``n_iter`` sweeps to the draws, without burn-in: k and then m
        sweeps give the draws of k + m. "auto" adds none to chains that have converged.
    verbose : int, default=0
        If positive, log the memory forecast and the progress to the logger "skhorseshoe".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; of two the probability of the second rises with x beta, of ordered classes that of the
        highest, the last of ``ordered_classes_``.
    coef_ : ndarray of shape (1, n_features), of several classes (n_classes, n_features)
        Coefficients on the scale of the columns as given, summarised according to ``coef_summary``. Those of several
        classes without an order are beside the mean of all classes, and sum to 0 in each column. Predictions average
        over draws instead: what explains ``coef_``, as SHAP's LinearExplainer does, explains another model, and
        `skhorseshoe.inspection.contributions` explains this one.
    intercept_ : ndarray of shape (1,), of several classes (n_classes,)
        Posterior mean (median, if ``coef_summary="median"``) of the intercept; 0 without one.
    coef_draws_, intercept_draws_, global_scale_draws_ : ndarray of shape (n_chains, n_draws, ...)
        Posterior draws of the coefficients (..., n_features), the intercept and tau; of several classes coefficients
        (..., n_classes, n_features) and intercepts (..., n_classes).
    groups_, group_scale_draws_, group_effect_draws_, group_effect_moments_
        With ``groups``: labels, sorted (n_groups,); draws of s (n_chains, n_draws); float32 draws of the effects
        (n_chains, n_kept, n_groups), as many as fit in 256 MiB; and "mean" and "sd" of all. With several factors these
        are dicts by factor; "mean" and "sd" too. With slopes they have these by "factor:column", in the unit of the
        column, and ``group_correlation_draws_`` has those of "factor, factor:column".
    ordered_classes_, cut_points_, cut_points_draws_
        Of more than two classes with ``ordered``: the classes from lowest to highest (n_classes,); posterior means of
        the cut points between them (n_classes - 1,), and their draws (n_chains, n_draws, n_classes - 1). Draws of the
        intercept are minus those of the first cut point.
    acceptance_draws_ : ndarray of shape (n_chains, n_draws)
        Probability with which the sweep's proposal was accepted; 1 for samplers without proposals.
    moments_ : dict or None
        If ``max_draws`` has discarded draws, of all: "mean", "sd" and "prob_positive", (n_features + 2,) each, of
        coefficients, intercept and tau, or of several classes those of one after the other; and "n_draws" of a chain.
    shrinkage_, inclusion_score_ : ndarray of shape (n_features,)
        Posterior mean of kappa_j, in [0, 1], and 1 less that: the variance of coefficient j given the data and the
        scales, as a share of its variance given the scales alone. Near 1 the coefficient is shrunk to zero, near 0 the
        data dominate; 0 for unpenalised columns. `HorseshoeSelector` has rules with stated rates of errors.
    rhat_, ess_ : ndarray of shape (n_features,), of several classes (n_classes, n_features)
        Rank-normalised split R-hat of each coefficient, and its bulk effective sample size over all chains; nan with
        fewer than four draws per chain, and R-hat for a constant column.
    n_iter_, burn_in_ : int
        Sweeps of each chain after burn-in, with those of earlier fits that were continued; and before.
    stopped_by_ : {"n_iter", "target_ess", "max_time", "interrupt", "callback"}
        Why sampling ended.
    sampler_, device_ : str
        What was used. For rows on a cluster the device is "cpu", where the sampler ran.
    tuning_ : dict
        What burn-in has chosen, such as "step" and "n_steps" of a path, and "acceptance" since.
    prior_ : dict
        The prior as it was used: "tau_0"; "slab_scale", an array where each column has its own; "tau_median"; and
        "m_eff", the prior mean of the effective number of nonzero coefficients, with "m_eff_at_tau_0" given tau = tau_0
        (Piironen & Vehtari 2017); before any data, "share_certain", the share of rows whose probability by the shrunk
        columns is beyond 0.01 and 0.99, and "n_relevant", the median number of effects above 0.1 for one standard
        deviation, of several classes those of one against another; with groups "group_scale"; with ``prior_scale`` that
        of each column, inf for a wide prior. Both before any data are of 400 draws: an error of the share up to 0.025.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of columns of X, and their names, if X was a table with string names.

    Notes
    -----
    One Ctrl-C during sampling (not during burn-in) ends ``fit`` with the draws made so far and a warning.

    References
    ----------
    Terenin, A., Dong, S. & Draper, D. (2019). GPU-accelerated Gibbs sampling: a case study of the Horseshoe Probit
    model. Statistics and Computing 29, 301-310.

    Nishimura, A. & Suchard, M. A. (2023). Shrinkage with shrunken shoulders. Bayesian Analysis 18, 367-390.

    Piironen, J. & Vehtari, A. (2017). On the hyperprior choice for the global shrinkage parameter. PMLR 54, 905-913.

    Friedman, J., Hastie, T. & Tibshirani, R. (2010). Regularization paths for generalized linear models via coordinate
    descent. Journal of Statistical Software 33(1).

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.datasets import make_sparse_probit
    >>> X, y, coef = make_sparse_probit(2000, 60, random_state=0)
    >>> clf = HorseshoeProbitClassifier(coef_summary="selected", random_state=0).fit(X, y)
    >>> bool((clf.coef_[0, :6] != 0).all())  # the six columns that matter
    True
    >>> clf.summary().shape
    (62, 9)
    """

    _parameter_constraints: dict[str, Any] = CONSTRAINTS

    def __init__(
        self,
        *,
        standardize: bool = False,
        slab_scale: float | Literal["auto", "per_contrast"] | None = "auto",
        expected_nonzero: float | None = None,
        random_state: Seed = None,
        n_iter: int | Literal["auto"] = "auto",
        burn_in: int | Literal["auto"] = "auto",
        n_chains: int = 4,
        thin: int = 1,
        max_draws: int | None = None,
        draws_dtype: Literal["float64", "float32"] = "float64",
        fit_intercept: bool = True,
        global_scale: float | None = None,
        group_scale: float | Mapping[str, float] = 1.0,
        group_slopes: Mapping[str, Any] | None = None,
        unpenalized: ArrayLike | None = None,
        prior_scale: ArrayLike | Mapping[Any, float] | None = None,
        ordered: bool | ArrayLike = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        coef_summary: Literal["mean", "median", "selected"] = "mean",
        credible_level: float = 0.9,
        sampler: Sampler = "auto",
        device: Device = "auto",
        n_jobs: int | None = None,
        target_ess: float | None = None,
        max_time: float | None = None,
        checkpoint: Path | None = None,
        checkpoint_interval: float = 60.0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.standardize = standardize
        self.slab_scale = slab_scale
        self.expected_nonzero = expected_nonzero
        self.random_state = random_state
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.thin = thin
        self.max_draws = max_draws
        self.draws_dtype = draws_dtype
        self.fit_intercept = fit_intercept
        self.global_scale = global_scale
        self.group_scale = group_scale
        self.group_slopes = group_slopes
        self.unpenalized = unpenalized
        self.prior_scale = prior_scale
        self.ordered = ordered
        self.class_weight = class_weight
        self.coef_summary = coef_summary
        self.credible_level = credible_level
        self.sampler = sampler
        self.device = device
        self.n_jobs = n_jobs
        self.target_ess = target_ess
        self.max_time = max_time
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: RowsLike, y: Labels, sample_weight: Weights = None, groups: Labels = None, offset: Offsets = None
    ) -> Self:
        """Draw from the posterior.

        Parameters
        ----------
        X : array-like, table, sparse matrix, CuPy array or Dask collection of shape (n_samples, n_features)
            Numeric columns. C-contiguous or CSR float32 and float64 arrays are used as they are; float32 keeps the
            passes over X in float32. Sparse columns are made dense only where they outnumber the rows and an array
            takes little more memory. Dense float16 is kept in 16 bits on a GPU and computed in float32. The rows of a
            Dask array or frame stay with the workers of its cluster.
        y : array-like of shape (n_samples,)
            Labels of two to 255 classes: numbers, booleans or strings.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Not negative. A row of weight w counts as w rows: its term of the log-likelihood is multiplied by w, and a
            row of weight 0 is left out before anything else. Weights of a survey are to be divided first (user guide,
            "Weights"). Only the sampler "hmc" accepts weights that are not integers. Rows of Dask collections need
            weights above 0.
        groups : array-like of shape (n_samples,) or None, default=None
            Labels of the groups of rows that belong together, such as a patient's visits: numbers, booleans, strings or
            dates, in any order of rows. Every group g has an effect u_g ~ N(0, s^2) on the score of its rows, and
            coefficients are given the group; averaged over groups they are beta / sqrt(1 + s^2). On the CPU alone. A
            table or a dict has a column for each of several factors, nested or crossed, such as patient and doctor;
            each has effects and an s of its own, and a row has the sum of the effects of its labels.
        offset : array-like of shape (n_samples,) or None, default=None
            Finite numbers that are added to the scores as they are, such as those of an earlier model with
            probabilities p: ``scipy.stats.norm.ppf(p)``. Predictions then need an offset too. On the CPU alone. Of more
            than two classes without an order (n_samples, n_classes), added to the utilities of the classes in sorted
            order; only their differences matter.

        Returns
        -------
        self : HorseshoeProbitClassifier

        Raises
        ------
        ValueError
            If X or y cannot be used, or parameters contradict one another; the message says why.
        TypeError
            If the type of X is not supported, such as a Polars LazyFrame.
        MemoryError
            If the draws and the working memory do not fit, before anything is computed; or if a GPU runs out of memory.
        RuntimeError
            If ``device`` names a GPU that cannot be used, another fit writes to the folder of ``checkpoint``, or a
            cluster is lost.
        TimeoutError
            If ``max_time`` has passed before the first draw; a checkpoint holds the sweeps that were made.
        numpy.linalg.LinAlgError
            If in any sweep a matrix cannot be factorised, or conjugate gradients on sparse columns do not converge; the
            message says what to do.

        Warns
        -----
        ConvergenceWarning
            At most one, at the end: if R-hat is above 1.01 or the effective sample size below 100 per chain, for any
            coefficient, the intercept or tau (coefficients of constant columns do not count; with more columns than
            rows, predictions and sums over sets of columns do, and without ``target_ess`` 1.05 and 50 are enough for a
            column); if ``target_ess`` has not been reached; or, whatever R-hat says, if columns separate the classes,
            alone or together, and no slab bounds their coefficients. It names all causes, first what to cure first: the
            scale of the columns, then separation, then the length of the chains.
        UserWarning
            Before sampling, for all that is known by then, such as columns of which a weighted sum never varies, more
            columns than rows without a slab, weights that make the fit slow or intervals too narrow, few groups, groups
            of which y tells nothing, or rows that look like groups where none are given. After it, if there is no
            ConvergenceWarning, for columns on very different scales, with values far out, too far from zero for their
            precision, or whose means in groups matter by themselves. At any time, if ``fit`` was interrupted, by
            ``max_time`` too, will take hours, or cannot write its checkpoint.
        """
        with _fit.Lease() as lease, np.errstate(all="ignore"):
            fitted = _fit.fit(self, validated(self), X, RowArguments(y, sample_weight, groups, offset), lease)
        for name in OF_SOME_FITS:  # of an earlier fit
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted.attributes)
        fitted.warn_of_all()  # last, so that the model stays fitted if a warning is an error
        return self

    def score(
        self,
        X: RowsLike,
        y: Labels,
        sample_weight: Weights = None,
        groups: Labels = None,
        offset: Offsets = None,
        new_groups: NewGroups = None,
    ) -> float:
        """Share of the rows whose class is the most probable one.

        Parameters
        ----------
        X, y, sample_weight, groups, offset, new_groups : see ``fit`` and ``predict_proba``
            The rows, their labels, what they weigh, and what predictions of them take.

        Returns
        -------
        accuracy : float
        """
        if not is_dask(X, y, sample_weight):
            warn_if_reordered(X, y=y, sample_weight=sample_weight)
            labels = is_second(y, X, self) if hasattr(self, "_outcomes") else check_labels(y)
            weight = None if sample_weight is None else check_weights(sample_weight, labels)
            return accuracy_score(labels, self.predict(X, groups, offset, new_groups), sample_weight=weight)
        refuse_dask(X, groups=groups, offset=offset)
        from ._data.dask_input import accuracy  # fetches predictions, whose number may be unknown

        return accuracy(self, X, y, sample_weight)
