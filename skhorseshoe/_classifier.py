"""The estimator: its parameters, and ``fit``. It sees all that a fit and its answers need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score

from ._data.labels import check_labels
from ._data.row_groups import refuse_dask
from ._data.validation import is_dask
from ._fit import fit as _fit
from ._fit.parameters import CONSTRAINTS
from ._posterior.mixin import PosteriorMixin
from ._posterior.saved import OF_SOME_FITS, SavedMixin
from ._utils.sklearn_compat import CallbackSupportMixin, _fit_context

if TYPE_CHECKING:
    from ._types import ArrayLike, Device, Labels, Offsets, Path, Rows, Sampler, Seed, Weights


class HorseshoeProbitClassifier(SavedMixin, CallbackSupportMixin, ClassifierMixin, PosteriorMixin, BaseEstimator):
    """Bayesian probit classification with the horseshoe prior.

    The model is P(y = 1 | x, beta) = Phi(b0 + x beta), beta_j ~ N(0, lambda_j^2 tau^2) with half-Cauchy local
    scales lambda_j and a half-Cauchy global scale tau: coefficients without support in the data are shrunk
    to nearly zero; large ones are hardly shrunk. ``fit`` draws from the posterior with several chains;
    predicted probabilities are averages over the draws.

    Four parameters are what most fits need: ``standardize=True`` if the columns have different units; ``slab_scale=2``
    (with standardised columns) if columns may separate the classes, which is the default for more columns than rows;
    ``expected_nonzero``, if there is a guess of how many columns matter; and ``random_state``, for the same draws
    again. The length adapts to the data.

    Parameters
    ----------
    n_iter : int or "auto", default="auto"
        Number of sweeps (iterations of the sampler) of each chain after burn-in. "auto" goes on until the chains have
        converged: as ``target_ess=100 * n_chains`` with at most 10,000 sweeps. With more columns than rows single
        columns are then enough with an R-hat of 1.05 and 50 effective draws a chain. Of draws that take more than 1 GiB
        it keeps fewer, as ``max_draws`` does.
    burn_in : int or "auto", default="auto"
        Number of sweeps at the start of each chain that are discarded. "auto" goes on until halves of the chains agree:
        240, 360, 600, 1080 or 2040 sweeps with "hmc", else 200, 400, 800, 1600 or 3200.
    n_chains : int, default=4
        Number of chains, 1 to 256. They share every pass over X; comparing them shows whether they have converged.
    thin : int, default=1
        Keep every ``thin``-th sweep after burn-in: ``n_iter // thin`` draws of each chain.
    max_draws : int or None, default=None
        Maximum number of draws of each chain to keep, evenly spaced: memory does not grow with ``n_iter``. Means and
        standard deviations are still those of all draws (``moments_``); intervals, probabilities, R-hat and effective
        sample sizes are computed from the draws kept, at least half of ``max_draws``. None means no limit.
    draws_dtype : {"float64", "float32"}, default="float64"
        Type of the coefficient draws. float32 takes half the memory, rounds to 7 digits and has a maximum of 8.5e37.
    fit_intercept : bool, default=True
        Add an intercept, which is not shrunk. Its prior is N(0, 100^2) at the mean of the columns.
    global_scale : float or None, default=None
        Scale tau_0 of the prior tau ~ C+(0, tau_0), from 1e-100 to 1e100. A smaller value means fewer coefficients away
        from zero. None means 1, unless ``expected_nonzero`` is given.
    expected_nonzero : float or None, default=None
        Instead of ``global_scale``: a guess p0, below p, of how many of the p shrunk coefficients are away from zero.
        It gives tau_0 = p0 / (p - p0) s / sqrt(n), n being the rows or the sum of their weights, and
        s^2 = r (1 - r) / phi(Phi^-1(r))^2 with r the share of the second class, by weight (Piironen & Vehtari 2017).
        With columns of unit variance and no slab, ``prior_["m_eff_at_tau_0"]`` is then p0.
    slab_scale : float, "auto" or None, default="auto"
        Standard deviation c of a Gaussian slab that bounds large coefficients: beta_j is also N(0, c^2), as in the
        regularised horseshoe of Nishimura & Suchard (2023), where the slab also makes the prior of tau smaller, more so
        with more columns. None is the horseshoe itself. If the classes can be separated completely, the data do not
        bound the coefficients; a slab of about 2 does. "auto" is None, but with more columns than rows (n_features >
        n_samples, whatever the rows weigh) c is 2 / standard deviation of the column, whatever ``standardize`` is;
        without an intercept and ``standardize``, the root mean square replaces the standard deviation.
    group_scale : float, default=1
        With ``groups`` in ``fit``, the scale of the prior s ~ C+(0, group_scale) of the standard deviation s of the
        groups' effects, from 1e-100 to 1e100, beside the noise of a row, which has standard deviation 1.
    unpenalized : array-like of names, indices or bool, or None, default=None
        Columns that are not shrunk, such as age and sex or the design of a study: their coefficients have a wide prior,
        N(0, (100 / standard deviation of the column)^2); without an intercept, the root mean square replaces the
        standard deviation. Names need a table with string names; a mask has n_features entries.
    standardize : bool, default=False
        If True, the prior applies to columns scaled to unit variance, and so do ``slab_scale`` and ``global_scale``.
        X is not copied, and coefficients and probabilities are for the columns as given.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply ``sample_weight``; "balanced" gives both the same total. Rare events do
        not need them. They change what the probabilities mean, and weights above 1 make intervals too narrow and let
        noise be selected, by every rule.
    coef_summary : {"mean", "median", "selected"}, default="mean"
        What ``coef_`` holds: the posterior mean, the posterior median, or the mean where the credible interval of
        level ``credible_level`` excludes zero, and zero elsewhere. Probabilities do not depend on it.
    credible_level : float, default=0.9
        Level, in (0, 1), of the equal-tailed credible intervals of ``coef_summary="selected"`` and, by default, of
        ``summary`` and the displays. ``predict_interval`` and ``HorseshoeSelector`` have their own levels.
    sampler : {"auto", "hmc", "pxda", "gibbs"}, default="auto"
        Algorithm; the posterior is the same. "hmc" is split Hamiltonian Monte Carlo within Gibbs, which tunes itself
        during burn-in; with more than 1.2 times as many columns as rows and a slab, but not on a cluster, its paths are
        in coordinates of the prior, lambda integrated out. "gibbs" is the data augmentation of Terenin, Dong & Draper
        (2019), cheaper per sweep but strongly autocorrelated; "pxda" adds a move of the scale of its latent variables.
        "auto" takes the first that applies: "hmc" for weights that are not integers, or in the coordinates of the
        prior where they apply; "pxda" for more than 8000 columns (it solves by conjugate gradients where "hmc" would
        factorise several n_features x n_features matrices in every sweep), or for ``burn_in`` below 100 (too short for
        tuning) if the weights, by which "pxda" would repeat rows, sum to at most ten times the number of rows; "hmc".
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where to fit. "cuda" is the first NVIDIA GPU; if it cannot be used, ``fit`` raises an error and never falls back
        to the CPU. "auto" is a GPU if a working one is found and X is dense with more than about four million elements,
        else the CPU, and always the CPU for the coordinates of the prior; ``skhorseshoe.show_versions()`` says what was
        found. Sparse X is for the CPU. A CuPy array X is read on the GPU that it is on. A model that a GPU has fitted
        predicts there, or on the CPU where there is none.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores that the process may use (the environment variable OMP_NUM_THREADS limits
        it), a negative number all but ``-n_jobs - 1``; inside a joblib task never more than the task's share. The draws
        do not depend on it.
    target_ess : float or None, default=None
        Stop when every coefficient of a column that is not constant, the intercept and tau have this bulk effective
        sample size over all chains and an R-hat of at most 1.01; with more columns than rows, also the probabilities of
        at most 1000 rows and the sums over groups of correlated columns. ``n_iter`` is then the maximum. Checked after
        100 kept draws of each chain, then each time the number of draws has grown by a quarter. None means 100 a chain
        with ``n_iter="auto"``, and else to make all ``n_iter`` sweeps.
    checkpoint : path-like or None, default=None
        Folder in which the running fit is saved, created if needed. After a run was killed, the same call continues
        it, and ends with the draws of an uninterrupted run; a larger ``n_iter`` continues a run that has ended. A
        folder of other data, other parameters or another version raises an error.
    checkpoint_interval : float, default=60
        Seconds between two saves. ``fit`` also saves at its end, unless that interrupts a sweep, as a second Ctrl-C
        does. A SIGTERM handler of the program is called after the sweep, and so may end the run.
    warm_start : bool, default=False
        If True, ``fit`` keeps what it needs to continue, and another ``fit`` on the same data adds ``n_iter`` sweeps to
        the draws, without burn-in: k and then m sweeps give the draws of k + m; with "auto" it goes on only if
        ``target_ess`` has not been reached. ``n_iter``, ``target_ess``, ``n_jobs``,
        ``coef_summary``, ``credible_level`` and ``verbose`` may change between the two.
    random_state : int, RandomState, Generator or None, default=None
        Seed. An int gives the same draws in every process, for any number of threads. None takes a fresh seed from
        the operating system, not from NumPy's global generator. Chains that ``warm_start`` continues keep their seed.
    verbose : int, default=0
        If positive, log the memory forecast and the progress to the logger "skhorseshoe".

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the probability of the second rises with x beta.
    coef_ : ndarray of shape (1, n_features)
        Coefficients on the scale of the columns as given, summarised according to ``coef_summary``.
    intercept_ : ndarray of shape (1,)
        Posterior mean (median, if ``coef_summary="median"``) of the intercept; 0 without one.
    coef_draws_ : ndarray of shape (n_chains, n_draws, n_features)
        Posterior draws of the coefficients.
    intercept_draws_ : ndarray of shape (n_chains, n_draws)
        Posterior draws of the intercept; 0 without one.
    global_scale_draws_ : ndarray of shape (n_chains, n_draws)
        Posterior draws of tau.
    groups_ : ndarray of shape (n_groups,)
        With ``groups``, like all that begins so: their labels, sorted.
    group_scale_draws_ : ndarray of shape (n_chains, n_draws)
        Posterior draws of s, the standard deviation of the groups' effects.
    group_effect_draws_ : ndarray of shape (n_chains, n_kept, n_groups), float32
        Draws of the groups' effects: all, or as many, evenly spaced, as fit in 256 MiB.
    group_effect_moments_ : dict
        "mean" and "sd" of all draws of the groups' effects, each of shape (n_groups,).
    acceptance_draws_ : ndarray of shape (n_chains, n_draws)
        Probability with which the sweep's proposal was accepted; 1 for samplers without proposals.
    moments_ : dict or None
        If ``max_draws`` has discarded draws, moments of all draws of all chains: "mean", "sd" and "prob_positive"
        (share above zero), each of shape (n_features + 2,): coefficients, intercept, tau. "n_draws" is the number of
        draws of each chain. None if ``coef_draws_`` has them all.
    shrinkage_ : ndarray of shape (n_features,)
        Posterior mean of kappa_j, in [0, 1]: the variance of coefficient j given the data and the scales, as a share
        of its variance given the scales alone. Near 1 the data add nothing to the prior, and the coefficient is shrunk
        to zero; near 0 the data dominate. For orthogonal columns it is 1 / (1 + information_j lambda_j^2 tau^2); for
        unpenalised columns it is 0.
    inclusion_score_ : ndarray of shape (n_features,)
        ``1 - shrinkage_``. Above 0.5 the data outweigh the prior (Carvalho, Polson & Scott 2010): a screen where few of
        many columns matter, without a stated rate of errors, for
        ``SelectFromModel(clf, importance_getter="inclusion_score_", threshold=0.5)``. The prior is learnt from all
        columns: if a large share of them matters, noise is let in. `HorseshoeSelector` has rules that do better.
    rhat_ : ndarray of shape (n_features,)
        Rank-normalised split R-hat of each coefficient; nan with fewer than four draws per chain, and if all draws are
        equal, as for a constant column.
    ess_ : ndarray of shape (n_features,)
        Bulk effective sample size of each coefficient, over all chains; nan with fewer than four draws per chain. If
        all draws are equal, the number of draws.
    n_iter_ : int
        Sweeps of each chain after burn-in, including those of earlier fits that ``warm_start`` or ``checkpoint``
        continued; fewer than ``n_iter`` if ``fit`` stopped early.
    burn_in_ : int
        Sweeps of each chain before those.
    stopped_by_ : {"n_iter", "target_ess", "interrupt", "callback"}
        Why sampling ended.
    sampler_ : str
        The sampler that was used.
    tuning_ : dict
        What burn-in has chosen: "step" (angle of a rotation), "n_steps" (rotations per sweep), "tau_moves" (moves of
        the global scale along the trajectory, or after one of several rotations) and their size "tau_step" (standard
        deviation, in log tau); and "acceptance", the share of proposals accepted since. The local scales of the
        slowest coefficients move with the global one. In the coordinates of the prior: "step", "n_steps" (their mean),
        "acceptance" of paths, and "exchanged", that of exchanges of coefficients. Empty for samplers without tuning.
    prior_ : dict
        The prior as it was used: "tau_0", the scale of tau; "slab_scale", None without a slab, and an array of shape
        (n_features,) where "auto" gives each column its own, infinite for columns that have none; "tau_median", the
        prior median of tau, which is tau_0 without a slab and smaller with one; "m_eff", the prior mean of the
        effective number of nonzero coefficients, and "m_eff_at_tau_0", its mean given that tau is tau_0 (Piironen &
        Vehtari 2017); with groups "group_scale".
    device_ : str
        Where the model was fitted: "cpu", "cuda:0", ... For rows on a cluster, where the sampler ran: "cpu".
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X was a table with string names.

    Notes
    -----
    One Ctrl-C during sampling (not during burn-in) ends ``fit`` with the draws made so far and a warning.

    References
    ----------
    Terenin, A., Dong, S. & Draper, D. (2019). GPU-accelerated Gibbs sampling: a case study of the Horseshoe Probit
    model. Statistics and Computing 29, 301-310.

    Nishimura, A. & Suchard, M. A. (2023). Shrinkage with shrunken shoulders. Bayesian Analysis 18, 367-390.

    Piironen, J. & Vehtari, A. (2017). On the hyperprior choice for the global shrinkage parameter. PMLR 54, 905-913.

    Carvalho, C. M., Polson, N. G. & Scott, J. G. (2010). The horseshoe estimator. Biometrika 97, 465-480.

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
        n_iter: int | Literal["auto"] = "auto",
        burn_in: int | Literal["auto"] = "auto",
        n_chains: int = 4,
        thin: int = 1,
        max_draws: int | None = None,
        draws_dtype: Literal["float64", "float32"] = "float64",
        fit_intercept: bool = True,
        global_scale: float | None = None,
        expected_nonzero: float | None = None,
        slab_scale: float | Literal["auto"] | None = "auto",
        group_scale: float = 1.0,
        unpenalized: ArrayLike | None = None,
        standardize: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        coef_summary: Literal["mean", "median", "selected"] = "mean",
        credible_level: float = 0.9,
        sampler: Sampler = "auto",
        device: Device = "auto",
        n_jobs: int | None = None,
        target_ess: float | None = None,
        checkpoint: Path | None = None,
        checkpoint_interval: float = 60.0,
        warm_start: bool = False,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.thin = thin
        self.max_draws = max_draws
        self.draws_dtype = draws_dtype
        self.fit_intercept = fit_intercept
        self.global_scale = global_scale
        self.expected_nonzero = expected_nonzero
        self.slab_scale = slab_scale
        self.group_scale = group_scale
        self.unpenalized = unpenalized
        self.standardize = standardize
        self.class_weight = class_weight
        self.coef_summary = coef_summary
        self.credible_level = credible_level
        self.sampler = sampler
        self.device = device
        self.n_jobs = n_jobs
        self.target_ess = target_ess
        self.checkpoint = checkpoint
        self.checkpoint_interval = checkpoint_interval
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Rows, y: Labels, sample_weight: Weights = None, groups: Labels = None, offset: Offsets = None
    ) -> Self:
        """Draw from the posterior.

        Parameters
        ----------
        X : array-like, table, sparse matrix, CuPy array or Dask collection of shape (n_samples, n_features)
            Numeric columns. C-contiguous or CSR float32 and float64 arrays are used as they are; float32 keeps the
            passes over X in float32. Sparse columns are never made dense. Dense float16 is kept in 16 bits on a GPU and
            computed in float32. The rows of a Dask array or frame stay with the workers of its cluster.
        y : array-like of shape (n_samples,)
            Labels of two classes: numbers, booleans or strings.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Not negative. A row of weight w counts as w rows: its term of the log-likelihood is multiplied by w. Only
            the sampler "hmc" accepts weights that are not integers. With more columns than rows it is far slower than
            integer weights, such as ``class_weight={0: 1, 1: 3}``. Rows of Dask collections need weights
            above 0.
        groups : array-like of shape (n_samples,) or None, default=None
            Labels of the groups of rows that belong together, such as a patient's visits: numbers, booleans or strings,
            in any order of rows. Every group g has an effect u_g ~ N(0, s^2) on the score of its rows, and coefficients
            are given the group; averaged over groups they are beta / sqrt(1 + s^2). On the CPU alone.
        offset : array-like of shape (n_samples,) or None, default=None
            Finite numbers that are added to the scores as they are, such as those of an earlier model with
            probabilities p: ``scipy.stats.norm.ppf(p)``. Predictions then need an offset too. On the CPU alone.

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
        numpy.linalg.LinAlgError
            If in any sweep a matrix cannot be factorised, or conjugate gradients on sparse columns do not converge; the
            message says what to do.

        Warns
        -----
        ConvergenceWarning
            At most one, at the end: if R-hat is above 1.01 or the effective sample size below 100 per chain, for any
            coefficient, the intercept or tau (coefficients of constant columns do not count; with more columns than
            rows, predictions and groups do, and without ``target_ess`` 1.05 and 50 are enough for a column); if
            ``target_ess`` has not been reached; or, whatever R-hat says, if one column separates the classes by itself
            or unpenalized ones do, so that the data do not bound their coefficients. It names all causes, first what to
            cure first: the scale of the columns, then separation, then the length of the chains. Where columns separate
            the classes together and the chains have converged all the same, ``summary()`` says so, and what states
            rates of false claims warns.
        UserWarning
            If there is no ConvergenceWarning, for columns on very different scales, with values far out, too far from
            zero for their precision, or whose means in groups matter by themselves. Apart from that, if weights make
            the fit slow; if groups are few, or rows look like groups where none are given; or if ``fit`` was
            interrupted, will take hours, or cannot write its checkpoint.
        """
        with _fit.Lease() as lease, np.errstate(all="ignore"):
            of_rows = {"sample_weight": sample_weight, "groups": groups, "offset": offset}
            fitted = _fit.fit(self, X, y, of_rows, lease)
        for name in OF_SOME_FITS:  # those of an earlier fit
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted.attributes)
        fitted.say()  # where a warning is made an error, the model stays fitted
        return self

    def score(
        self, X: Rows, y: Labels, sample_weight: Weights = None, groups: Labels = None, offset: Offsets = None
    ) -> float:
        """Share of the rows whose class is the more probable one.

        Parameters
        ----------
        X, y, sample_weight : see ``fit``
            The rows, their labels and what they weigh.
        groups, offset : see ``predict_proba``
            As for that.

        Returns
        -------
        accuracy : float
        """
        if not is_dask(X, y, sample_weight):
            labels, predicted = check_labels(y), self.predict(X, groups, offset)
            return accuracy_score(labels, predicted, sample_weight=sample_weight)
        refuse_dask(X, groups=groups, offset=offset)
        from ._data.dask_input import accuracy  # which gathers predictions, whose number is unknown before

        return accuracy(self, X, y, sample_weight)
