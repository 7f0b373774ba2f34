"""Sets of correlated columns, for the posterior of their sums, and credible sets of columns."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from ._backends import device
from ._data import validation
from ._posterior.claim_errors import EFFECT, check_bounds, check_draws, check_share
from ._posterior.classes import refuse_several
from ._posterior.column_sets import checked_sets
from ._posterior.correlations import ROUNDING, among, central, clusters, correlations_of, trees
from ._posterior.credible_sets import CredibleSetSearch, choose_sets, set_frames
from ._posterior.grouped_prediction import population
from ._posterior.input_rows import input_names
from ._posterior.mixin import level_of
from ._posterior.pipeline import named, prepared, unwrap
from ._posterior.terms import distinct_titles, judged_terms, keys_of, root_of, with_roots, without_rows
from ._utils.errstate import guarded
from ._utils.names import names_of, title_of
from ._utils.sklearn_compat import Interval

if TYPE_CHECKING:
    from ._types import ArrayLike, DataFrame, Missing, Model, RowsLike

__all__ = ["CredibleSets", "correlated_sets", "credible_sets"]

_THRESHOLDS, _EFFECTS = Interval(Real, 0, 1, closed="right"), Interval(Real, 0, None, closed="left")
_UNEVEN = 1e-6  # largest asymmetry of a matrix of correlations that was computed in float32


class CredibleSets(NamedTuple):
    """What `skhorseshoe.sets.credible_sets` returns.

    Parameters
    ----------
    sets : pandas.DataFrame
        A row for each set, the most probable first, indexed by its name: that of yours, or of its central column, which
        is the most correlated with the others and has a positive weight ("x5 and 3 more"), so that it is the same for
        all seeds. Columns: n_columns; probability, that it holds a signal; mcse, the Monte Carlo error of that; mean,
        sd and the ends of the equal-tailed interval of its effect, the weighted sum of coefficients; purity, the least
        absolute correlation between two of its columns (nan where it is not known). ``sets.attrs["header"]`` says what
        was asked, and the share of false sets to expect; "classes" has the labels, of which positive effects favour the
        second one, or with ``ordered`` higher ones, or "favours", where ``inspection.one_vs_rest`` or ``at_least`` has
        made the model (else None).
    members : pandas.DataFrame
        A row for each column of each set, indexed by both names: weight; probability, that the column alone has an
        effect beyond ``effect`` on the side of its set; mean, sd and interval of its part of the sum.
    """

    sets: DataFrame
    members: DataFrame

    def __repr__(self):
        return f"{self.sets}\n\n{self.members}"


@guarded
def correlated_sets(X: RowsLike, threshold: float = 0.7, *, model: Model | None = None) -> dict[str, dict[Any, float]]:
    """Disjoint sets of columns that are correlated, by average linkage of one minus the absolute correlation.

    If columns are strongly correlated, the posterior often cannot say which of them matters, but may well be sure that
    the set does: ``HorseshoeProbitClassifier.summary_of_sets`` takes what this returns. Weights are in the units of the
    columns, so X has to be as the classifier has it: where steps are before it, such as a scaler, give ``model`` too.

    Parameters
    ----------
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        Numbers without missing values; the columns as the classifier was fitted on them, or, with ``model``, rows as
        that takes them. Sparse ones are not made dense.
    threshold : float, default=0.7
        Two sets become one while the mean absolute correlation of their columns is at least this, in (0, 1].
    model : HorseshoeProbitClassifier, Pipeline, search or None, default=None
        Fitted. X passes through the steps before its classifier, and the sets are of the columns behind them, as
        ``inspection.summary_of_sets(model, sets)`` takes them.

    Returns
    -------
    sets : dict
        For each set the weights of its columns, by name (by number, where X has no names, or several columns one). A
        weight is the column's standard deviation, with a sign as the column is correlated with the central one: the
        weighted sum of the coefficients is what all columns do to the score that move together, each by one standard
        deviation. A set has the name of its central column, whose weight is positive. A column on its own is a set;
        constant columns are in none.

    Raises
    ------
    TypeError
        If X, behind the steps before the classifier, is a Dask collection.
    ValueError
        If X is not finite, has one row or other columns than the model, or the threshold is not in (0, 1].
    MemoryError
        If a copy of a sparse X does not fit, or columns of which each is correlated with another one by the threshold
        are so many that three matrices of their correlations, of 8 bytes an entry, do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe.sets import correlated_sets
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 4))
    >>> X[:, 2] = 0.1 * X[:, 2] - X[:, 0]
    >>> [list(columns) for columns in correlated_sets(X).values()]
    [[0, 2], [1], [3]]
    """
    _check("threshold", threshold, _THRESHOLDS)
    if model is None:
        learner = type("correlated_sets", (BaseEstimator,), {})()  # errors name it, and names go to it
        X = _checked_rows(learner, X, reset=True)
        names = getattr(learner, "feature_names_in_", getattr(learner, "_column_labels", None))
    else:
        steps, classifier = unwrap(model)
        classifier = population(classifier)
        X = _checked_rows(classifier, prepared(steps, X))
        names = names_of(named(steps, classifier))
    r, sd = correlations_of(X)
    numbers, varies = range(len(sd)), np.flatnonzero(sd)
    keys = numbers if names is None else keys_of(names)
    titles = [f"x{j}" for j in numbers] if names is None else distinct_titles(names, numbers)
    r = r if len(varies) == len(sd) else among(r, varies)
    sets = {}
    for members, signs, centre in clusters(r, len(varies), threshold, "correlated_sets"):
        columns = varies[members]
        title, weights = title_of(titles[columns[centre]], len(columns)), signs * sd[columns]
        sets[title] = dict(zip([keys[j] for j in columns], weights.tolist(), strict=True))
    return sets


@guarded
def credible_sets(
    model: Model,
    X: RowsLike = None,
    *,
    correlations: ArrayLike | None = None,
    sets: Mapping[str, Any] | None = None,
    terms: Mapping[str, Any] | Literal["auto"] | None = "auto",
    level: float = 0.95,
    effect: float = EFFECT,
    q: float = 0.1,
    threshold: float = 0.5,
    missing: Missing = "raise",
) -> CredibleSets:
    """Disjoint sets of columns, as small as possible, each of which has an effect that the posterior is sure of.

    Candidates are single columns, sets of correlated columns at every height of their tree, and sets of yours.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted. Columns are those behind the steps before the classifier.
    X : array-like, table or sparse matrix of shape (n_samples, n_features), default=None
        Rows that the model was fitted on, all or a sample: they say which columns are correlated.
    correlations : array-like of shape (n_features, n_features), default=None
        The correlations of the classifier's columns, in place of X.
    sets : dict or None, default=None
        Further candidates, as for ``summary_of_sets``: the name of each set with a list of columns or a dict of columns
        and their weights. They may overlap, as gene sets do: no column is in two of the sets that are chosen. Columns
        of a list are added per standard deviation, each with the sign of its correlation with the central one where
        correlations are known, and weights are taken as they are.
    terms : dict, "auto" or None, default="auto"
        Columns that are judged together and are no candidates by themselves, as for ``HorseshoeSelector``: a set that
        is a term holds a signal if the size of its effect is above ``effect``. "auto" takes those of several columns
        that ``skhorseshoe.terms.find`` finds.
    level : float, default=0.95
        Least probability, in (0, 1), with which each set holds a signal.
    effect : float, default=0.1
        The least effect that counts, as for the selector's rule "fsr": what all columns of the set do to the score if
        they move together, each by one standard deviation and in the direction in which they are correlated. Of a rare
        level that is little of its difference from the others, which ``sets`` with weights of 1 ask for.
    q : float, default=0.1
        Largest expected share, in (0, 1), of false sets. It matters where it is below 1 - ``level``.
    threshold : float, default=0.5
        Two sets in the tree become one while the mean absolute correlation of their columns is at least this, in
        (0, 1].
    missing : {"raise", "ignore"}, default="raise"
        What becomes of names in ``sets`` and ``terms`` that are none of the columns: an error, or they are left out,
        which the header tells.

    Returns
    -------
    CredibleSets
        Named tuple of two frames: ``sets``, with a row for each set, and ``members``, with a row for each of their
        columns. Intervals are of the model's ``credible_level``.

    Raises
    ------
    TypeError
        If ``model`` does not end with a HorseshoeProbitClassifier, X behind its steps is a Dask collection, or
        ``sets`` or ``terms`` are none of those above.
    NotFittedError
        If it is not fitted.
    ValueError
        If X, correlations and sets are all None or cannot be used, sets or terms have unknown columns, ``level``,
        ``q``, ``threshold`` or ``effect`` is out of range, the draws are too few to tell errors as rare as ``level``
        or ``q`` asks for, or the model has several classes without an order.
    MemoryError
        As for `correlated_sets`.

    Notes
    -----
    A set holds a signal in a draw if the sum of its weighted coefficients is beyond ``effect``, on the side on which it
    is more often. The sum is what the data know of columns that stand in for one another. That any member is beyond
    ``effect`` is another question: draws of twins with opposite signs cancel in all probabilities, and their size is
    the prior's; and of many columns of noise, one often is. Columns with opposite effects cancel in the sum: they are
    found alone, in smaller sets, or by weights of yours. A probability is at most 1 - 1 / ESS of sum or column, and
    that of a term that the prior takes for likely is by the evidence, as if its prior odds had been even. Of a model
    with groups of rows the coefficients are averaged over these: divided by sqrt(1 + s^2), draw by draw.

    Among all choices of disjoint candidates with an expected share of false sets of at most ``q`` it is the one with
    the largest sum of probabilities divided by sizes (Spector & Janson 2024), by ``scipy.optimize.milp``. Columns that
    are not shrunk (``unpenalized``) are no candidates, unless they are in ``sets``.

    References
    ----------
    Spector, A. & Janson, L. (2024). Controlled discovery and localization of signals via Bayesian linear programming.
    Journal of the American Statistical Association.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.sets import credible_sets
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 6))
    >>> X[:, 5] = X[:, 0] + 0.1 * rng.standard_normal(400)
    >>> y = X[:, 0] + X[:, 1] + rng.standard_normal(400) > 0
    >>> found = credible_sets(HorseshoeProbitClassifier(random_state=0).fit(X, y), X)
    >>> {title: list(found.members.loc[title].sort_index().index) for title in sorted(found.sets.index)}
    {'x0 and 1 more': ['x0', 'x5'], 'x1': ['x1']}
    """
    steps, classifier = unwrap(model)
    refuse_several(classifier, "credible_sets")
    classifier = population(classifier)
    check_share("level", level)
    check_share("q", q)
    _check("effect", effect, _EFFECTS)
    check_draws(classifier, f"level={level}", 1 - level)
    check_draws(classifier, f"q={q}", q)
    check_bounds(classifier, "credible_sets")
    _check("threshold", threshold, _THRESHOLDS)
    scale, inputs = classifier._column_sd, None if X is None else input_names(X)
    r = _given_correlations(classifier, None if X is None else prepared(steps, X), correlations, scale)
    classifier = named(steps, classifier)
    several, left_out = _several(terms, steps, classifier, inputs, r, scale, missing)
    is_empty = all(c is None for c in (X, correlations, sets)) and not several
    if is_empty or (X is not None and correlations is not None):
        raise ValueError("Give X, the rows of the fit, or correlations, not both; with sets neither is needed.")
    if sets is None and not (classifier.shrinkage_ > 0).any():
        raise ValueError(
            "All columns of this model are unpenalized, and such columns are no candidates by themselves: give sets "
            "of them, as sets={'age': ['age']}, or ask summary(), whose intervals are theirs."
        )
    search = CredibleSetSearch(classifier, level, effect)
    is_shrunk = (scale > 0) & (classifier.shrinkage_ > 0)
    candidates = [c for term in several if is_shrunk[term.columns].all() for c in search.of_term(term)]
    for term in several:  # their columns are no candidates
        is_shrunk[term.columns] = False
    shrunk = np.flatnonzero(is_shrunk)
    candidates += search.of_columns(shrunk)
    if r is not None:
        # With all columns, slices need no copy.
        within = r if len(shrunk) == len(scale) else among(r, shrunk)
        for members, merges in trees(within, len(shrunk), threshold, "credible_sets"):
            if len(merges := merges[merges[:, 2] <= 1 - threshold + ROUNDING]):
                candidates += search.of_tree(shrunk[members], r(shrunk[members], shrunk[members]), merges)
    if sets is not None:
        given, unknown = _given_sets(classifier, sets, scale, r, missing)
        candidates += [candidate for columns in given for candidate in search.of_given(*columns)]
        left_out += unknown
    chosen = choose_sets(candidates, q)
    return CredibleSets(*set_frames(search, chosen, r, q, level_of(classifier, None), left_out))


def _several(terms, steps, classifier, inputs, r, scale, missing):
    """The terms with several columns, with roots; and in words what is left out. inputs : names of the input columns,
    or None. r : function that returns correlations, or None."""
    if terms is None:
        return [], ""
    asked, left_out = judged_terms(terms, steps, classifier, inputs, missing)
    several = []
    for term in (term for term in asked if len(term.columns) > 1):
        is_open = without_rows([term], classifier)
        if r is not None and is_open:
            sd = scale[term.columns]
            several.append(term._replace(root=root_of(r(term.columns, term.columns) * sd * sd[:, None])))
        elif not isinstance(terms, str) or not is_open:  # else its size is unknown
            several += with_roots([term], classifier)
    return several, left_out


def _check(name, value, interval):
    """Raise a ValueError if a value is not in an interval; nan is in none."""
    if not interval.is_satisfied_by(value):
        raise ValueError(f"{name} must be {interval}; got {value!r}.")


def _given_correlations(model, X, correlations, scale):
    """A function of two sets of columns that returns their correlations, 0 for a constant column; or None."""
    if correlations is not None:
        R, p = np.asarray(correlations, dtype=np.float64), len(scale)
        if R.shape != (p, p):
            raise ValueError(f"correlations must be of shape {(p, p)}, for the columns of the model; got {R.shape}.")
        R = np.where((scale > 0) & (scale > 0)[:, None], R, 0.0)
        if not (np.abs(R - R.T) <= _UNEVEN).all() or not (np.abs(R.diagonal() - (scale > 0)) <= _UNEVEN).all():
            raise ValueError(
                "correlations must be symmetric, finite, and 1 on the diagonal, as numpy.corrcoef(X, rowvar=False)."
            )
        return lambda a, b: R[a][:, b]
    if X is None:
        return None
    return correlations_of(_checked_rows(model, X))[0]


def _checked_rows(estimator, X, reset=False):
    """X as ``check_X`` returns it, on the host; a ValueError if it has a single row."""
    X = device.to_host(validation.check_X(estimator, X, reset=reset))
    if X.shape[0] < 2:
        raise ValueError(f"X must have two rows or more, to tell correlations; got {X.shape[0]}.")
    return X


def _given_sets(model, sets, scale, r, missing):
    """Columns, weights and title of each set of the user; and in words what is left out."""
    sets, weights, left_out = checked_sets(sets, model, missing)
    members = []
    for k, (title, given) in enumerate(sets.items()):
        entries = slice(weights.indptr[k], weights.indptr[k + 1])
        columns, own_weights = weights.indices[entries], weights.data[entries]
        if not isinstance(given, Mapping):
            own_weights = scale[columns]
            if r is not None:
                correlation = r(columns, columns)
                own_weights = own_weights * np.where(correlation[central(correlation)] < 0, -1.0, 1.0)
        members.append((columns, own_weights, title))
    return members, left_out
