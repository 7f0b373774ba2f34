"""Terms: columns that belong together, and their joint effect.

The effect of a term on a row is the sum over its columns relative to the mean over rows, f_i = sum_l (x_il - mean_l)
beta_l. Its size is the standard deviation of f over the rows; for a single column it is |beta_j| sd_j, as in the
selector's rule "fsr". If the columns of a term sum to a constant, no single coefficient is known, but f is.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._utils.arrays import dense
from .._utils.memmap import blocks
from .._utils.names import finder, name_of_levels, names_of, printable
from .claim_errors import indicator_sets_of, level_points
from .column_sets import LEAVE_OUT, left_out
from .origins import column_origins

_NO_VARIANCE = 1e-10  # variance of a direction, relative to the largest, below which it counts as 0


class Term(NamedTuple):
    """Columns that are judged together.

    The root of several is R (r, k) with R'R = their covariance over the rows, so that the size of their effect is the
    norm of R beta; or ``LevelPoints``, if all of them have levels.
    """

    name: str
    columns: np.ndarray  # their numbers, ascending
    root: Any = None  # by ``with_roots``


def found_terms(steps, classifier, inputs=None):
    """A ``Term`` for each input column of a fitted Pipeline, for each combination of them, for each category whose
    level columns a fit has found, and for each other column.

    steps : those before the classifier, or None. inputs : names of the input columns in a table, or None.
    """
    names, (origins, inputs) = names_of(classifier), column_origins(classifier, steps, inputs)
    places, titles = {}, {}
    for j, name in enumerate(names):
        key = origins[j].inputs if steps is not None and origins[j].inputs else j  # j : of unknown origin
        places.setdefault(key, []).append(j)
        titles[key] = name if key is j else " x ".join(str(inputs[i]) for i in key)
    alone = {columns[0]: key for key, columns in places.items() if len(columns) == 1}
    for indicators in indicator_sets_of(classifier):
        if alone.keys() >= {*indicators.columns.tolist()}:  # else its columns belong to other terms already
            first, *other_keys = (alone[j] for j in indicators.columns.tolist())
            places[first] = indicators.columns
            titles[first] = name_of_levels(names_before(indicators.columns, origins, inputs, names))
            for key in other_keys:
                del places[key]
    distinct = distinct_titles([titles[key] for key in places], [names[columns[0]] for columns in places.values()])
    return [Term(title, np.asarray(columns)) for title, columns in zip(distinct, places.values(), strict=True)]


def names_before(columns, origins, inputs, names):
    """The names of level columns of the classifier; before the steps, if each is made of an input column of its own."""
    own = {origins[j].inputs for j in columns if len(origins[j].inputs) == 1}
    return [inputs[origins[j].inputs[0]] if len(own) == len(columns) else names[j] for j in columns]


def owners(terms):
    """The place of the term that has each column; (p,)."""
    columns = np.concatenate([term.columns for term in terms])
    places = np.empty(len(columns), int)
    places[columns] = np.repeat(np.arange(len(terms)), [len(term.columns) for term in terms])
    return places


def asked_terms(terms, steps, classifier, inputs=None):
    """As ``judged_terms``, where each column is in one term."""
    choice = f" skhorseshoe.terms.find(model, terms=...) with{LEAVE_OUT}"
    asked, _ = judged_terms(terms, steps, classifier, inputs, choice=choice)
    _check_disjoint(asked, names_of(classifier))
    return asked


def indicator_sets_by_columns(classifier):
    """The ``IndicatorSet``s of a fit, by the tuple of their columns."""
    return {tuple(indicators.columns.tolist()): indicators for indicators in indicator_sets_of(classifier)}


def distinct_titles(titles, firsts):
    """Titles of sets of columns, those that are alike with the names of their first columns, or else numbers, behind
    them."""
    times = Counter(titles)
    named = [f"{title} ({first})" if times[title] > 1 else title for title, first in zip(titles, firsts, strict=True)]
    times = Counter(named)
    return [f"{title} [{k}]" if times[title] > 1 else title for k, title in enumerate(named)]


def keys_of(names):
    """What columns are asked for by: their names, or numbers where several have the same, as encoders may make them."""
    times = Counter(names)
    return [name if times[name] == 1 else j for j, name in enumerate(names)]


def judged_terms(terms, steps, classifier, inputs=None, missing="raise", choice=LEAVE_OUT):
    """The terms, which may overlap, for the user's argument, "auto" or a mapping of names to columns, behind the steps
    or before them, with those found among other columns; and in words what is left out. missing, choice : as for
    ``finder``."""
    if isinstance(terms, str) and terms == "auto":
        return found_terms(steps, classifier, inputs), ""
    if not isinstance(terms, Mapping) or not terms:
        raise TypeError(
            "terms must be a dict of names and lists of columns, as terms.find gives it, 'auto' or None; got "
            f"{terms!r:.60}."
        )
    names, p = names_of(classifier), classifier.n_features_in_
    (origins, known_inputs), known = column_origins(classifier, steps, inputs), {*names}
    cure = f" Give names, or numbers below {p}."
    find = finder(names, "columns of this model", cure, numbered=True, missing=missing, choice=choice)
    asked, n_unknown = [], 0
    for title, members in terms.items():
        if isinstance(members, str) or not np.iterable(members) or not len(list(members)):
            raise ValueError(f"The term {title!r} must be a list of columns, one at least; got {members!r:.80}.")
        columns, n = _columns(title, list(members), known, origins, known_inputs, find)
        n_unknown += n
        varies = (classifier._column_sd[columns] > 0).any()
        if columns and not varies and missing == "raise":
            raise ValueError(
                f"The term {title!r} has the same value in all rows of the fit, so it has no effect: leave it out."
            )
        asked += [Term(str(title), np.array(columns))] if varies else []
    words = left_out(n_unknown, len(terms) - len(asked), len(terms), "terms", names)
    taken = Counter(j for term in asked for j in term.columns.tolist())
    if n_shared := sum(times > 1 for times in taken.values()):
        words += f". {n_shared} columns are in several terms, and count in each"
    taken = taken.keys()
    default_terms = found_terms(steps, classifier, inputs)
    untouched = [term for term in default_terms if not taken & {*term.columns.tolist()}]
    columns_left = {*range(p)} - taken - {j for term in untouched for j in term.columns.tolist()}
    return asked + untouched + [Term(str(names[j]), np.array([j])) for j in sorted(columns_left)], words


def _check_disjoint(terms, names):
    """Raise a ValueError if two terms have a column in common."""
    owner = {}
    for title, columns, _ in terms:
        for j in columns.tolist():
            if owner.setdefault(j, title) != title:
                raise ValueError(
                    f"Terms must not overlap here: {printable(repr(names[j]))} is in {owner[j]!r} and in {title!r}. "
                    "Leave it out of one, or make one term of both. Each by itself is judged by terms.summary and "
                    "credible_sets, where terms may overlap."
                )


def _columns(title, members, names, origins, inputs, find):
    """The columns for names, those of the classifier or all that are made only of the named input columns; and the
    number of names that ``find`` leaves out. names : of the classifier, a set."""
    labels, where = {member for member in members if isinstance(member, Hashable)} - names, f"The term {title!r}"
    asked = {i for i, name in enumerate(inputs) if name in labels}
    first = {name: i for i, name in reversed([*enumerate(inputs)])}  # place of the first column of a name
    labels &= {inputs[i] for i in asked}
    members = [member for member in members if not (isinstance(member, Hashable) and member in labels)]
    found = [find(member, where) for member in members]
    for name, j in zip(members, found, strict=True):
        if j is None or name not in first or not origins[j].inputs:
            continue
        facts = f"{where}: {name!r} is an input column, and the name of another behind the steps"
        if origins[j].inputs != (first[name],):
            others = " and ".join(repr(inputs[i]) for i in origins[j].inputs)
            raise ValueError(
                f"{facts} that is made of {others}. Give columns behind the steps by number: {j} is the latter."
            )
        all_of_it = {k for k, origin in enumerate(origins) if origin.inputs == (first[name],)}
        if not all_of_it <= {*found}:
            raise ValueError(
                f"{facts}. Give columns behind the steps by number: {j} is the latter, and {sorted(all_of_it)} are all "
                f"that are made of {name!r} alone."
            )
    made = {j for j, origin in enumerate(origins) if origin.inputs and {*origin.inputs} <= asked}
    return sorted({*found} - {None} | made), found.count(None)


def without_rows(terms, classifier):
    """The first term for which rows are needed to compute the covariance of its columns, or None."""
    known = indicator_sets_by_columns(classifier)
    return next((t for t in terms if len(t.columns) > 1 and tuple(t.columns) not in known), None)


def with_roots(terms, classifier, rows=None, has_levels=None):
    """The terms with their roots.

    rows : X as the classifier has it, on the host, and the weights of its rows or None; not needed for single columns
    and complete sets of levels. has_levels : (p,) bool, as in ``LeastEffects``; None for none.
    """
    if rows is None and (term := without_rows(terms, classifier)):
        raise ValueError(
            f"The term {term.name!r} has several columns: give X, the rows of the fit, which tell how these vary "
            "together."
        )
    known, roots, open_sets = indicator_sets_by_columns(classifier), {}, {}
    for key, columns in {tuple(term.columns): term.columns for term in terms if len(term.columns) > 1}.items():
        if has_levels is not None and has_levels[columns].all():
            roots[key] = level_points(rows[0], columns)
        elif key in known:
            share, step = known[key].share, known[key].step
            roots[key] = root_of((np.diag(share) - np.outer(share, share)) * step * step[:, None])
        else:
            open_sets[key] = columns
    if open_sets:
        covariances = _covariances(rows, [*open_sets.values()], classifier._column_means)
        roots |= zip(open_sets, map(root_of, covariances), strict=True)
    return [term._replace(root=roots.get(tuple(term.columns))) for term in terms]


def _covariances(rows, sets, centre):
    """The weighted covariances (k, k) of sets of columns, in one pass over the rows."""
    X, weight = rows
    sums = [(np.zeros(len(each)), np.zeros((len(each), len(each)))) for each in sets]
    columns = np.concatenate(sets)
    starts = np.cumsum([0, *map(len, sets)])
    total = 0.0
    for part in blocks(X):
        block = np.asarray(dense(X[part][:, columns]), np.float64) - centre[columns]
        w = weight[part] if weight is not None and len(weight) else np.ones(len(block))
        total += w.sum()
        for (first, second), start, stop in zip(sums, starts[:-1], starts[1:], strict=True):
            values = block[:, start:stop]
            first += w @ values
            second += (values * w[:, None]).T @ values
    return [second / total - np.outer(first, first) / total**2 for first, second in sums]


def root_of(covariance):
    """R (r, k) with R'R = the covariance: its principal components, the largest first, without those of variance 0."""
    values, vectors = np.linalg.eigh(covariance)
    is_used = values > _NO_VARIANCE * max(values.max(), np.finfo(float).tiny)
    return (vectors[:, is_used] * np.sqrt(values[is_used])).T[::-1]
