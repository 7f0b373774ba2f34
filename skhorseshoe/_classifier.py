"""The estimator: its parameters, and ``fit``. It sees all that a fit and its answers need."""

from numbers import Integral, Real
from os import PathLike

from sklearn.base import BaseEstimator, ClassifierMixin

from . import _fitting, _saved
from ._compat import CallbackSupportMixin, Interval, StrOptions, _fit_context
from ._lazy import in_client
from ._ops import MAX_CHAINS
from ._posterior import PosteriorMixin
from ._prior import LARGEST_SCALE, LEAST_SCALE


class _Devices(StrOptions):
    def __str__(self):
        return "'auto', 'cpu', 'cuda' or 'cuda:N' with N from 0 to 15"


class HorseshoeProbitClassifier(CallbackSupportMixin, ClassifierMixin, PosteriorMixin, BaseEstimator):
    """Bayesian probit classification with the horseshoe prior.

    The model is P(y = 1 | x, beta) = Phi(b0 + x beta), beta_j ~ N(0, lambda_j^2 tau^2) with half-Cauchy local
    scales lambda_j and a half-Cauchy global scale tau: coefficients that the data do not ask for are shrunk to
    nearly nothing, the others are left almost alone. ``fit`` draws from the posterior with several chains;
    predicted probabilities are averages over the draws.

    Parameters
    ----------
    n_iter : int, default=1000
        Sweeps of each chain after burn-in.
    burn_in : int, default=1000
        Sweeps of each chain that are run first and thrown away.
    n_chains : int, default=4
        Chains, 1 to 256. They share every pass over X; comparing them tells whether they have converged.
    thin : int, default=1
        Keep every ``thin``-th sweep after burn-in: ``n_iter // thin`` draws of each chain.
    max_draws : int or None, default=None
        At most so many draws of each chain are kept, evenly spaced: memory does not grow with ``n_iter``. Means and
        standard deviations are still those of all draws (``moments_``); intervals, probabilities, R-hat and effective
        sample sizes are of the draws kept, at least half of ``max_draws``. None is no limit.
    draws_dtype : {"float64", "float32"}, default="float64"
        Of the coefficients that are kept. float32 takes half the memory, rounds them to 7 digits, and ends at 8.5e37.
    fit_intercept : bool, default=True
        Add an intercept, which is not shrunk. Its prior is N(0, 100^2) at the mean of the columns.
    global_scale : float or None, default=None
        Scale tau_0 of the prior tau ~ C+(0, tau_0), from 1e-100 to 1e100. Smaller means fewer coefficients away from
        zero. None is 1, unless ``expected_nonzero`` is given.
    expected_nonzero : float or None, default=None
        Instead of ``global_scale``: a guess p0 of how many of the p coefficients that are shrunk are away from zero,
        below p. It gives tau_0 = p0 / (p - p0) s / sqrt(n), n being the rows or the sum of their weights, and
        s^2 = r (1 - r) / phi(Phi^-1(r))^2 with r the share of the second class, by weight (Piironen & Vehtari 2017).
        With columns of unit variance and no slab, ``prior_["m_eff_at_tau_0"]`` is then p0.
    slab_scale : float or None, default=None
        Standard deviation c of a Gaussian slab that bounds large coefficients: beta_j is also N(0, c^2), as in the
        regularised horseshoe of Nishimura & Suchard (2023), where the slab makes the prior of tau smaller too, the more
        so the more columns there are. None is the horseshoe itself. With classes that can be separated completely the
        data place no limit on the coefficients, and a slab of 2 or so does.
    unpenalized : array-like of names, indices or bool, or None, default=None
        Columns that are not shrunk, such as age and sex or the design of a study: their coefficients have a wide prior,
        N(0, (100 / standard deviation of the column)^2), without an intercept with the root mean square in its place.
        Names need a table with string names; a mask has n_features entries.
    standardize : bool, default=False
        If True, the prior is one for columns of unit variance: ``slab_scale`` and ``global_scale`` are on their scale.
        X is not copied, and coefficients and probabilities are for the columns as given.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply ``sample_weight``; "balanced" gives both the same total. With few events
        none are needed. They change what the probabilities mean, and a class whose rows count as more than they are
        makes intervals too narrow and lets noise be selected, by every rule.
    coef_summary : {"mean", "median", "selected"}, default="mean"
        What ``coef_`` holds: the posterior mean, the posterior median, or the mean where the credible interval of
        level ``credible_level`` excludes zero, and zero elsewhere. Probabilities do not depend on it.
    credible_level : float, default=0.9
        Level of the equal-tailed credible intervals, in (0, 1), of ``summary`` and the displays unless they are given
        another, and of ``coef_summary="selected"``. ``predict_interval`` and ``HorseshoeSelector`` have their own.
    sampler : {"auto", "hmc", "collapsed", "pxda", "gibbs"}, default="auto"
        How to draw; the posterior is the same. "hmc" is split Hamiltonian Monte Carlo within Gibbs, which tunes itself
        during burn-in. "gibbs" is the data augmentation of Terenin, Dong & Draper (2019), whose draws are cheaper and
        very much more alike; "pxda" adds a move of the scale of its hidden scores. "collapsed" integrates the
        coefficients out of the laws of all else, with matrices over the rows: it is for more columns than rows, in
        dense X. "auto" takes "hmc" for weights that are not whole numbers; else "collapsed" for dense X with more than
        1.2 times as many columns as rows that is not on a cluster; else "pxda" where columns are more than 8000, for it
        solves by conjugate gradients where "hmc" would factorise matrices of their number squared, several in every
        sweep, or where ``burn_in`` is below 100, too short for tuning, and weights do not sum to more than ten times
        the rows, which "pxda" would repeat; else "hmc".
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where to fit. "cuda" is the first NVIDIA GPU, an error where it cannot be used, never a fallback. "auto" is a
        GPU if there is one that works and X is dense and has more than about four million elements, else the CPU, and
        always the CPU for "collapsed"; ``skhorseshoe.show_versions()`` says what was found. A CuPy array or CSR matrix
        X is read on the GPU that it is on. A model that was fitted on a GPU answers there, or on the CPU where there
        is none.
    n_jobs : int or None, default=None
        Threads. None uses all cores that the process may use (the environment variables NUMBA_NUM_THREADS and
        OMP_NUM_THREADS limit it), a negative number all but ``-n_jobs - 1``; inside a task of joblib's never more
        than the task's share. The draws do not depend on it.
    target_ess : float or None, default=None
        Stop when every coefficient of a column that is not constant, the intercept and tau have this bulk effective
        sample size over all chains and an R-hat of at most 1.01; ``n_iter`` is then the maximum. It is looked at after
        100 kept draws of each chain, and then whenever they are a quarter more.
    checkpoint : path-like or None, default=None
        Folder to save the run in while it goes on, made if there is none. The same call goes on where a run that was
        killed has stopped, and ends with the draws of an uninterrupted one; a larger ``n_iter`` goes on with one that
        has ended. A folder of other data, parameters or another version is an error.
    checkpoint_interval : float, default=60
        Seconds between two savings. The end of ``fit`` is one too, unless it cuts a sweep in two, as a second Ctrl-C
        does. A handler that the program has for SIGTERM is called after the sweep, and so may end it.
    warm_start : bool, default=False
        If True, ``fit`` keeps what is needed to go on, and a further ``fit`` on the same data adds ``n_iter`` sweeps to
        the draws, without burn-in: k and then m sweeps give the draws of k + m. ``n_iter``, ``target_ess``, ``n_jobs``,
        ``coef_summary``, ``credible_level`` and ``verbose`` may change between the two.
    random_state : int, RandomState instance or None, default=None
        Seed. An int gives the same draws in every process, for any number of threads. None takes a fresh seed from
        the operating system, not from NumPy's global generator.
    verbose : int, default=0
        If positive, log the memory forecast and the progress to the logger "skhorseshoe".

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the probability of the second rises with x beta.
    coef_ : ndarray of shape (1, n_features)
        Coefficients on the scale of the columns as given, summarised as ``coef_summary`` says.
    intercept_ : ndarray of shape (1,)
        Posterior mean (median, if ``coef_summary="median"``) of the intercept; 0 without one.
    coef_draws_ : ndarray of shape (n_chains, n_draws, n_features)
        Posterior draws of the coefficients.
    intercept_draws_ : ndarray of shape (n_chains, n_draws)
        Posterior draws of the intercept; 0 without one.
    global_scale_draws_ : ndarray of shape (n_chains, n_draws)
        Posterior draws of tau.
    acceptance_draws_ : ndarray of shape (n_chains, n_draws)
        Probability with which the sweep's proposal was accepted; 1 for samplers without proposals.
    moments_ : dict or None
        Where ``max_draws`` has given up draws, of every draw of every chain: "mean", "sd" and "prob_positive" (share
        above zero), each of shape (n_features + 2,): coefficients, intercept, tau. "n_draws" is their number in each
        chain. None where ``coef_draws_`` has them all.
    shrinkage_ : ndarray of shape (n_features,)
        Posterior mean of kappa_j, in [0, 1]: the variance of coefficient j given the data and the scales, as a share
        of its variance given the scales alone. Near 1 the data say nothing that the prior does not, and it is shrunk
        to zero; near 0 the data speak alone. For orthogonal columns it is 1 / (1 + information_j lambda_j^2 tau^2); for
        unpenalised columns it is 0.
    inclusion_score_ : ndarray of shape (n_features,)
        ``1 - shrinkage_``. Above 0.5 the data outweigh the prior: the rule of Carvalho, Polson & Scott (2010), for
        ``SelectFromModel(clf, importance_getter="inclusion_score_", threshold=0.5)``. It compares the data with a
        prior that is learnt from all columns: where a large share of the columns matters it lets noise in, and the
        credible interval is the rule to use.
    rhat_ : ndarray of shape (n_features,)
        Rank-normalised split R-hat of each coefficient; nan with fewer than four draws a chain, and where the draws are
        all the same, as those of a constant column are.
    ess_ : ndarray of shape (n_features,)
        Bulk effective sample size of each coefficient, over all chains; nan with fewer than four draws a chain. Of
        draws that are all the same it is their number.
    n_iter_ : int
        Sweeps of each chain after burn-in, with those that ``warm_start`` or ``checkpoint`` brought from earlier fits;
        fewer than ``n_iter`` if ``fit`` stopped before.
    stopped_by_ : {"n_iter", "target_ess", "interrupt", "callback"}
        Why sampling ended.
    sampler_ : str
        The sampler that was used.
    tuning_ : dict
        What burn-in has chosen: "step" (angle of a turn), "n_steps" (gradients in a sweep) and "tau_moves" (moves of
        the global scale on the way) of the size "tau_step" (standard deviation, in log tau); and "acceptance", the
        share of accepted proposals since. Where "n_steps" is 1, the local scales of the slowest coefficients move too.
        Empty for samplers without tuning.
    prior_ : dict
        The prior as it was used: "tau_0", the scale of tau; "slab_scale", or None; "tau_median", the prior median of
        tau, which is tau_0 without a slab and smaller with one; "m_eff", the prior mean of the effective number of
        nonzero coefficients, and "m_eff_at_tau_0", its mean given that tau is tau_0 (Piironen & Vehtari 2017).
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
    >>> (clf.coef_[0, :6] != 0).all()  # the six columns that matter
    np.True_
    >>> clf.summary().shape
    (62, 8)
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left")],
        "n_chains": [Interval(Integral, 1, MAX_CHAINS, closed="both")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "max_draws": [Interval(Integral, 2, None, closed="left"), None],
        "draws_dtype": [StrOptions({"float64", "float32"})],
        "fit_intercept": ["boolean"],
        "global_scale": [Interval(Real, LEAST_SCALE, LARGEST_SCALE, closed="both"), None],
        "expected_nonzero": [Interval(Real, 0, None, closed="neither"), None],
        "slab_scale": [Interval(Real, LEAST_SCALE, LARGEST_SCALE, closed="both"), None],
        "unpenalized": ["array-like", None],
        "standardize": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "checkpoint": [str, PathLike, None],
        "checkpoint_interval": [Interval(Real, 0, None, closed="left")],
        "target_ess": [Interval(Real, 0, None, closed="neither"), None],
        "coef_summary": [StrOptions({"mean", "median", "selected"})],
        "credible_level": [Interval(Real, 0, 1, closed="neither")],
        "sampler": [StrOptions({"auto", "hmc", "collapsed", "pxda", "gibbs"})],
        "device": [_Devices(set(_fitting.DEVICES))],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _doc_link_module = "skhorseshoe"
    _doc_link_template = "https://skhorseshoe.readthedocs.io/en/latest/generated/skhorseshoe.{estimator_name}.html"

    def __init__(
        self,
        *,
        n_iter=1000,
        burn_in=1000,
        n_chains=4,
        thin=1,
        max_draws=None,
        draws_dtype="float64",
        fit_intercept=True,
        global_scale=None,
        expected_nonzero=None,
        slab_scale=None,
        unpenalized=None,
        standardize=False,
        class_weight=None,
        coef_summary="mean",
        credible_level=0.9,
        sampler="auto",
        device="auto",
        n_jobs=None,
        target_ess=None,
        checkpoint=None,
        checkpoint_interval=60.0,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
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
        tags.input_tags.sparse = self.sampler != "collapsed"
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
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
            the sampler "hmc" can have weights that are not whole numbers. With more columns than rows that is far
            slower than whole weights, such as ``class_weight={0: 1, 1: 3}``. Rows of Dask collections need weights
            above 0.

        Returns
        -------
        self : HorseshoeProbitClassifier

        Raises
        ------
        ValueError
            If X or y cannot be used, or parameters contradict one another; the message says why.
        TypeError
            If X is of a kind that is not read, such as a lazy frame of Polars.
        MemoryError
            If the draws and the working set cannot fit, before anything is computed; or if a GPU runs out of memory.
        RuntimeError
            If ``device`` names a GPU that cannot be used, another fit writes to the folder of ``checkpoint``, or a
            cluster is lost.
        numpy.linalg.LinAlgError
            If a matrix cannot be factorised, or conjugate gradients on sparse columns do not converge, in whatever
            sweep that is; the message says what to do.

        Warns
        -----
        ConvergenceWarning
            If R-hat is above 1.01 or the effective sample size below 100 a chain, for any coefficient, the intercept
            or tau (coefficients of constant columns do not count); if ``target_ess`` has not been reached; or if the
            data place no limit on coefficients, because columns separate the classes or all values of one in one class
            lie on one side of those in the other, however the chains look.
        UserWarning
            If columns are on very different scales, have values far out, or lie too far from zero for their digits; if
            weights make the fit of a wide table slow; or if ``fit`` was interrupted, or cannot write its checkpoint.
        """
        before = vars(self).copy()
        try:
            warn = _fitting.fit(self, X, y, sample_weight)
            _fitting.release(self)
        except BaseException as error:
            _fitting.release(self, error)
            # Neither half a model nor half of it new: what was there before the call stays, and what scikit-learn needs
            # to end its callbacks.
            kept = {name: value for name, value in vars(self).items() if "callback" in name}
            vars(self).clear()
            vars(self).update(before | kept)
            raise
        warn()  # where that is made an error, the model stays fitted
        return self

    score = in_client(ClassifierMixin.score)

    def __getstate__(self):
        return _saved.stamp(super().__getstate__())

    def __setstate__(self, state):
        super().__setstate__(_saved.check(state, "n_iter"))
