"""Disjoint sets of columns, each with a credible effect."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from .._utils.names import names_of, title_of
from ..diagnostics import ess_bulk
from .claim_errors import at_least_one_in_ess, indicator_sets_of, prob_columns_wrong, prob_term_wrong, size_of
from .correlations import central
from .grouped_prediction import on_average
from .summary import described, favoured, in_lines, interval_headings
from .table import Summary
from .terms import distinct_titles


class CandidateSet(NamedTuple):
    """A set of columns (k,), the weights (k,) of their coefficients in its effect, its probability of being false."""

    columns: np.ndarray
    weights: np.ndarray
    error: float
    title: str | None = None  # of a user's set, or of a term
    root: Any = None  # of a term: its effect is a size instead of a weighted sum


class CredibleSetSearch:
    """Finds the credible sets of a model, with a signal of size ``effect`` by a probability of ``level`` at least."""

    def __init__(self, model, level, effect):
        self.model, self.scale, self.level, self.effect = model, model._column_sd, level, effect
        self.n_chains, self.n_draws, p = model.coef_draws_.shape
        self.raw = self.flat = model.coef_draws_.reshape(-1, p)
        for indicators in indicator_sets_of(model):  # the data know their effects relative to the other levels
            self.flat = self.flat.copy() if self.flat is self.raw else self.flat
            self.flat[:, indicators.columns] = indicators.effects(self.raw) / self.scale[indicators.columns]

    def of_columns(self, allowed):
        """The single columns, among those allowed (k,), that are credible."""
        error = prob_columns_wrong(self.model, self.effect)
        return [CandidateSet(np.array([j]), self.scale[[j]], error[j]) for j in allowed if error[j] <= self._most]

    def of_tree(self, members, r, merges):
        """Yields the credible nodes of a tree of columns (m,) with correlations r (m, m), by merges as from SciPy's
        ``linkage``. Signs are such that the two children of a node are correlated positively, on average."""
        m, nodes = len(members), {}
        for i, (first, second) in enumerate(merges[:, :2].astype(int)):
            (a, a_signs, a_sum), (b, b_signs, b_sum) = (
                nodes.pop(k) if k >= m else (np.array([k]), np.ones(1), self._effect(members[k]))
                for k in (first, second)
            )
            sign = -1.0 if a_signs @ r[np.ix_(a, b)] @ b_signs < 0 else 1.0
            joined = np.append(a, b), np.append(a_signs, sign * b_signs), a_sum + sign * b_sum
            nodes[m + i] = joined
            yield from self._credible(members[joined[0]], joined[1] * self.scale[members[joined[0]]], joined[2])

    def of_given(self, columns, weights, title):
        """A list with the user's set, if it is credible."""
        return list(self._credible(columns, weights, self.raw[:, columns].astype(np.float64) @ weights, title))

    def of_term(self, term):
        """A list with the term, which has a root, if it is credible."""
        error, weights = prob_term_wrong(self.model, term, self.effect), self.scale[term.columns]
        return [CandidateSet(term.columns, weights, error, term.name, term.root)] if error <= self._most else []

    def draws_of(self, candidate):
        """Draws of the contributions (m, k) of the columns to the effect of a set, and of the effect (m,)."""
        columns, weights, _, title, root = candidate
        draws = (self.flat if title is None or root is not None else self.raw)[:, columns].astype(np.float64)
        if root is not None:
            return draws * weights, size_of(self.model.coef_draws_, candidate).ravel()
        return draws * weights, draws @ weights

    def _effect(self, j):
        return self.flat[:, j].astype(np.float64) * self.scale[j]

    def _credible(self, columns, weights, total, title=None):
        error = 1 - max((total > self.effect).mean(), (total < -self.effect).mean())
        if error <= self._most:
            ess = ess_bulk(total.reshape(self.n_chains, self.n_draws))
            error = float(at_least_one_in_ess(error, ess, len(total), most=1.0))
            if error <= self._most:
                yield CandidateSet(columns, weights, error, title)

    @property
    def _most(self):
        return (1 - self.level) * (1 + 1e-9)


def choose_sets(candidates, q):
    """Disjoint candidates, of which an expected share of at most q is false, that maximise the sum of probabilities
    divided by sizes; the most probable first."""
    if not candidates:
        return []
    error = np.array([candidate.error for candidate in candidates])
    sizes = [len(candidate.columns) for candidate in candidates]
    rows = np.concatenate([candidate.columns for candidate in candidates])
    inside = csr_array((np.ones(len(rows)), (rows, np.repeat(np.arange(len(sizes)), sizes))))
    shared = inside[np.flatnonzero(np.diff(inside.indptr) > 1)]
    constraints = [LinearConstraint((error - q)[None], -np.inf, 0.0)]
    if shared.shape[0]:
        constraints.append(LinearConstraint(shared, -np.inf, 1.0))
    value = (1 - error) / sizes
    solution = milp(-value, integrality=np.ones(len(value)), bounds=Bounds(0, 1), constraints=constraints)
    chosen = np.flatnonzero(solution.x > 0.5)
    return [candidates[k] for k in chosen[np.argsort(error[chosen], kind="stable")]]


def set_frames(search, chosen, correlation, q, level, left_out=""):
    """The two frames of ``sets.CredibleSets``, of the chosen candidates. correlation : function of two sets of columns,
    or None. level : of the intervals. left_out : of sets and terms, in words."""
    names, sets, members = names_of(search.model), [], []
    titles = distinct_titles(names, range(len(names)))
    shape = search.n_chains, search.n_draws, -1
    for candidate in chosen:
        columns, weights, error, title, root = candidate
        if root is None:
            order = np.argsort(columns)
            candidate = candidate._replace(columns=(columns := columns[order]), weights=(weights := weights[order]))
        k = len(columns)
        purity = 1.0 if k == 1 else np.nan
        if k > 1 and correlation is not None and root is None:
            purity = np.abs(correlation(columns, columns)).min()
        contributions, total = search.draws_of(candidate)
        side = 1.0 if (total > search.effect).mean() >= (total < -search.effect).mean() else -1.0  # as for its error
        wrong = 1 - (side * contributions > search.effect).mean(axis=0)
        alone = 1 - at_least_one_in_ess(wrong, search.model.ess_[columns], len(contributions), most=1.0)
        if title is None:  # the central column, which is the same for all draws
            first = 0 if correlation is None else central(correlation(columns, columns))
            title = title_of(titles[columns[first]], k)
            weights, contributions, total = (np.sign(weights[first]) * each for each in (weights, contributions, total))
        independent = min(ess_bulk(total.reshape(shape[:2])), len(total))
        mcse = np.sqrt(error * (1 - error) / independent)
        effect = {name: values[0] for name, values in described(total.reshape(shape), level).items()}
        of_all = {"set": title, "n_columns": k, "probability": 1 - error, "mcse": mcse}
        sets.append({**of_all, **effect, "purity": purity})
        each = {"weight": weights, "probability": alone}
        each |= described(contributions.reshape(shape), level)
        del each["prob_positive"]
        index = pd.MultiIndex.from_product([[title], [names[j] for j in columns]], names=["set", "feature"])
        members.append(pd.DataFrame(each, index=index).sort_values("probability", ascending=False, kind="stable"))
    return _sets(search, sets, members, q, level, left_out), _members_summary(members, level)


def _sets(search, sets, members, q, level, left_out):
    columns = ["n_columns", "probability", "mcse", "mean", "sd", *interval_headings(level), "purity"]
    frame = Summary(sets, columns=["set", *columns]).set_index("set").astype({"n_columns": int})
    if not frame.index.is_unique:
        title = frame.index[frame.index.duplicated()][0]
        raise ValueError(f"sets: another set is called {title!r} too. Give yours a name of its own.")
    false = 0.0 if frame.empty else 1 - frame["probability"].mean()
    n_sets, n_columns = len(frame), sum(map(len, members))
    frame.attrs["classes"] = search.model.classes_.tolist()
    frame.attrs["favours"] = getattr(search.model, "_favours", None)
    frame.attrs["header"] = in_lines(
        f"{n_sets} set{'' if n_sets == 1 else 's'} of {n_columns} of {len(search.scale)} columns, expected share of "
        f"false ones {false:.2g} (at most {q:g}). Each has an effect beyond {search.effect:g} with a probability of at "
        f"least {search.level:g}; {favoured(search.model, 'effects')}{on_average(search.model)}"
        f"{left_out}"
    )
    return frame


def _members_summary(members, level):
    if members:
        return Summary(pd.concat(members))
    index = pd.MultiIndex.from_arrays([[], []], names=["set", "feature"])
    return Summary(columns=["weight", "probability", "mean", "sd", *interval_headings(level)], index=index, dtype=float)
