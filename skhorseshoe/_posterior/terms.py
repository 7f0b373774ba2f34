"""Terms: columns that belong together, and the effect of all of them.

The effect of a term on a row is what its columns do to the score together, beside the mean over rows:
f_i = sum_l (x_il - mean_l) beta_l. Its size is the standard deviation of f over the rows: of a single column
|beta_j| sd_j, as in the selector's rule "fsr". Where columns of a term sum to a constant, no single coefficient is
known, but f is.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from .._utils.arrays import dense
from .._utils.memmap import ahead, cut
from .._utils.names import finder, name_of_levels, names_of, printable
from .origins import walked
from .signals import factors_of

_BLOCK = 2**20  # elements of X looked at together
_NONE = 1e-10  # of the largest variance of a term, up to which a direction has none


class Term(NamedTuple):
    """Columns that are judged together."""

    name: str
    columns: np.ndarray  # their numbers, ascending


def found_terms(before, classifier, inputs=None):
    """A ``Term`` for each input column of a fitted Pipeline, for what several of them make together, for each category
    whose level columns a fit has found, and for each other column.

    before : the steps before the classifier, or None. inputs : names of the input columns where a table tells them.
    """
    names, (made_of, inputs) = names_of(classifier), sources(before, classifier, inputs)
    places, titles = {}, {}
    for j, name in enumerate(names):
        key = made_of[j] if before is not None and made_of[j] else j  # what is of no known origin stands alone
        places.setdefault(key, []).append(j)
        titles[key] = name if key is j else " x ".join(str(inputs[i]) for i in key)
    alone = {columns[0]: key for key, columns in places.items() if len(columns) == 1}
    for factor in factors_of(classifier):
        if alone.keys() >= {*factor.columns.tolist()}:  # else its columns are a term already, or parts of some
            first, *others = (alone[j] for j in factor.columns.tolist())
            places[first] = factor.columns
            titles[first] = name_of_levels([names[j] for j in factor.columns])
            for key in others:
                del places[key]
    return _with_own_names([Term(titles[key], np.asarray(columns)) for key, columns in places.items()], names)


def asked_terms(terms, before, classifier, inputs=None):
    """The terms that a user asks for: "auto", or a mapping as ``given_terms`` takes it."""
    if isinstance(terms, str) and terms == "auto":
        return found_terms(before, classifier, inputs)
    return given_terms(terms, before, classifier, inputs)


def factors_by_columns(classifier):
    """The ``Factor``s of a fit by their columns, a tuple."""
    return {tuple(factor.columns.tolist()): factor for factor in factors_of(classifier)}


def sources(before, classifier, inputs):
    """For each column the places of the input columns that it is made of, and the names of these; see
    ``origins.walked``."""
    if before is None:
        return [], []
    (found, inputs), p = walked(before, inputs), classifier.n_features_in_
    if len(found) != p:
        raise ValueError(
            f"The steps before the classifier make {len(found)} columns as far as their names tell, and the classifier "
            f"has {p}: give terms as a dict of names and columns of the classifier."
        )
    return [origin.inputs for origin in found], inputs


def _with_own_names(terms, names):
    """The terms with names that differ."""
    times = {}
    for term in terms:
        times[term.name] = times.get(term.name, 0) + 1
    own = [f"{t.name} ({names[t.columns[0]]})" if times[t.name] > 1 else t.name for t in terms]
    return [term._replace(name=name) for term, name in zip(terms, own, strict=True)]


def given_terms(terms, before, classifier, inputs=None):
    """The terms of a user's mapping of names to columns, behind the steps or before them; and those that are found
    among the other columns."""
    if not isinstance(terms, Mapping) or not terms:
        raise TypeError(
            "terms must be a dict of names and lists of columns, as terms.find gives it, 'auto' or None; got "
            f"{terms!r:.60}."
        )
    names, p = names_of(classifier), classifier.n_features_in_
    origins_of_all = sources(before, classifier, inputs)
    find = finder(names, "columns of this model", f" Give names, or numbers below {p}.", numbered=True)
    found, owner = [], {}
    for title, members in terms.items():
        if isinstance(members, str) or not np.iterable(members) or not len(list(members)):
            raise ValueError(f"The term {title!r} must be a list of columns, one at least; got {members!r:.80}.")
        columns = _columns(list(members), names, origins_of_all, partial(find, where=f"The term {title!r}"))
        for j in columns:
            if owner.setdefault(j, title) != title:
                raise ValueError(
                    f"terms must not overlap: {printable(repr(names[j]))} is in {owner[j]!r} and in {title!r}. Leave "
                    "it out of one, or make one term of both."
                )
        if not (classifier._column_sd[columns] > 0).any():
            raise ValueError(
                f"The term {title!r} has the same value in all rows of the fit, so it has no effect: leave it out."
            )
        found.append(Term(str(title), np.array(columns)))
    others = found_terms(before, classifier, inputs)
    whole = [term for term in others if not owner.keys() & {*term.columns.tolist()}]
    left = {*range(p)} - owner.keys() - {j for term in whole for j in term.columns.tolist()}
    return found + whole + [Term(str(names[j]), np.array([j])) for j in sorted(left)]


def _columns(members, names, origins_of_all, find):
    """The columns that names mean: those of the classifier, or all that are made of these input columns alone."""
    made_of, inputs = origins_of_all
    asked = {i for i, name in enumerate(inputs) if name in members and name not in names}
    columns = {find(one) for one in members if one not in [inputs[i] for i in asked]}
    return sorted(columns | {j for j, own in enumerate(made_of) if own and {*own} <= asked})


def without_rows(terms, classifier):
    """The first term of which only rows can tell how its columns vary together, or None."""
    known = factors_by_columns(classifier)
    return next((t for t in terms if len(t.columns) > 1 and tuple(t.columns) not in known), None)


def roots(terms, classifier, rows=None):
    """For each term R (r, k) with R'R = the covariance of its columns over the rows, so that the size of its effect is
    the norm of R beta; None for those of single columns.

    rows : X as the classifier has it, of the host, and the weights of its rows or None; not needed for single columns
    and complete sets of levels.
    """
    if rows is None and (term := without_rows(terms, classifier)):
        raise ValueError(
            f"The term {term.name!r} has several columns: give X, the rows of the fit, which tell how these vary "
            "together."
        )
    known = factors_by_columns(classifier)
    open_groups = [t.columns for t in terms if len(t.columns) > 1 and tuple(t.columns) not in known]
    covariances = iter(_covariances(*rows, open_groups, classifier._column_means) if open_groups else ())
    found = []
    for term in terms:
        if len(term.columns) == 1:
            found.append(None)
        elif (factor := known.get(tuple(term.columns))) is not None:
            share = np.diag(factor.share) - np.outer(factor.share, factor.share)
            found.append(root_of(share * factor.step * factor.step[:, None]))
        else:
            found.append(root_of(next(covariances)))
    return found


def _covariances(X, weight, groups, centre):
    """The weighted covariances (k, k) of groups of columns, in one pass over the rows."""
    sums = [(np.zeros(len(g)), np.zeros((len(g), len(g)))) for g in groups]
    columns = np.concatenate(groups)
    starts = np.cumsum([0, *map(len, groups)])
    n, total = X.shape[0], 0.0
    for rows in ahead(X, cut(0, n, max(1, _BLOCK // max(1, X.shape[1]))), n):
        block = np.asarray(dense(X[rows][:, columns]), np.float64) - centre[columns]
        w = weight[rows] if weight is not None and len(weight) else np.ones(len(block))
        total += w.sum()
        for (first, second), start, stop in zip(sums, starts[:-1], starts[1:], strict=True):
            part = block[:, start:stop]
            first += w @ part
            second += (part * w[:, None]).T @ part
    return [second / total - np.outer(first, first) / total**2 for first, second in sums]


def root_of(covariance):
    """R (r, k) with R'R = the covariance: its principal components, the largest first, without those that are none."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NONE * max(values.max(), np.finfo(float).tiny)
    return (vectors[:, kept] * np.sqrt(values[kept])).T[::-1]
