"""The texts of a fit's warning: a template for each kind of finding, in the order in which to cure them.

A cure, the field {cure} of a template, depends on what is found, so its sentence is where that is: in ``findings.py``,
``input_findings.py``, ``group_findings.py`` and ``plan.py``. What parameters to change is told by ``recipe.py``.
"""

from string import Formatter
from types import MappingProxyType
from typing import NamedTuple

from sklearn.exceptions import ConvergenceWarning

from .._data.input_table import REORDERED
from .._utils.names import Unnamed, first_of, printable
from .._utils.warn import fold_of, warn, warn_once

_NAMED = 3  # columns that a warning names
_ONE_SIDED = (
    "{columns}: all values in one class lie on one side of those in the next (separation), for example because "
    "{example}a column gives the answer away, so the data do not bound the coefficient"
)
SUMS = (
    "But sums over sets of correlated columns have, and so have all other quantities: "
    "summary_of_sets(skhorseshoe.sets.correlated_sets(X)), or of a Pipeline inspection.summary_of_sets(model, "
    "correlated_sets(X, model=model)), can be trusted. Single columns need longer chains. "
)

# In this order: rows and weights, scales of columns, what nothing bounds, length of the chains.
TEMPLATES = {
    "repeated rows": (
        "sampler={sampler!r} repeats each row as often as its weight says: {rows} rows become {repeated:.0f}. {cure}"
    ),
    "order of rows": f"{REORDERED} {{cure}}",
    "order of classes": (
        "y is ordered, {low!r} < {high!r}, but classes_ is {classes}, sorted as scikit-learn's scorers need it: a "
        "positive coefficient favours {low!r}. {cure}"
    ),
    "order not used": (
        "y is ordered, {order}, and the fit does not use the order: it takes each class for one of several that are "
        "all alike. {cure}"
    ),
    "repeats": (
        "Rows are the same in all columns in blocks of about {size:.0f}, with labels that differ, as rows of one "
        "patient may be. If they belong together, intervals are too narrow and noise is let in. {cure}"
    ),
    "identifier": (
        "{columns} looks like a label of what rows belong to: whole numbers, about {size:.0f} rows for each. {cure}"
    ),
    "blocks": (
        "{columns} keeps its value for about {size:.0f} rows, one after another, while others change, as the age of a "
        "patient does in the rows of that patient. If rows belong together, intervals are too narrow and noise is let "
        "in. {cure}"
    ),
    "few groups": (
        "{called} has {labels} how much groups differ, and the answer depends on the prior of the group scale "
        "(group_scale). {cure}"
    ),
    "copied outcome": (
        "y is the same in all rows of {which} groups{of} of several rows, as an outcome of a patient that is copied to "
        "the patient's rows. They tell no more than one row does, and hardly anything but the prior bounds the group "
        "scale and the coefficients. {cure}"
    ),
    "matched sets": (
        "{groups} groups{of} {verb} {number}, as matched sets have (cases with their controls, choices from a list). A "
        "design that fixes these numbers hides how groups differ, and coefficients are wrong: too near zero if sets "
        "are matched on something that goes with a column, and up to twice too large with group means in X. Use "
        "conditional logistic regression (ConditionalLogit of statsmodels), or fit the differences within pairs, as "
        "the guide shows (Rows that belong together). If rows are periods up to an event, leave groups out instead."
    ),
    "light weights": (
        "By {by} the {rows} rows count as {size:.3g}: a row of weight w counts as w rows, and so few say little beside "
        "the prior. If only the ratios of the weights matter, give w * len(w) / w.sum()."
    ),
    "heavy weights": (
        "By {by} rows count as more than were observed: a row of weight w is w independent rows to the likelihood. So "
        "intervals are about {times:.2g} times too narrow, and noise looks certain. {cure}"
    ),
    "missing codes": (
        "{columns}: some values are far from all others of the column, as codes for missing values are ({values} in "
        "{first!r}), and count as amounts. {cure}"
    ),
    "missing genotypes": (
        "{columns}: beside 0, 1 and 2 some values ({values} in {first!r}) are where codes for missing genotypes would "
        "be rather than one more step of a score, and count as amounts. {cure}"
    ),
    "components": (
        "{columns}: not shrunk, and a principal component or a sum of the shrunk columns, so it may take from them "
        "what they tell together, and fewer of them are found. Let it be shrunk, or give it a prior_scale. {cure}"
    ),
    "many unpenalized": (
        "{free} columns are not shrunk, and the rarest class has {rows:.0f} rows, fewer than 5 for each: they explain "
        "the classes by chance. Let them be shrunk, or give them a prior_scale. {cure}"
    ),
    "dependent": (
        "{columns}: a weighted sum of these shrunk columns is the same in every row{more}, so the data tell no "
        "coefficient of them alone. Drop one of them, or ask what they do together (skhorseshoe.terms)."
    ),
    "wide": (
        "X has more columns ({p}) than rows ({n}), and no slab bounds the coefficients. Some plane then nearly always "
        "separates the classes, and the coefficients have no mean. {cure}"
    ),
    "one-sided first": (
        "{columns}: one class has no value beyond those of the next (separation), so the data do not bound the "
        "coefficient, and its chains converge slowly if at all. Sampling ends when the other quantities have "
        "converged. {cure}"
    ),
    "far from zero": (
        "{columns} {lie} up to {distance:.1g} standard deviations from zero, so rounding to {dtype} removes much or "
        "all of their variation. {cure}"
    ),
    "far out": (
        "{columns} {have} values far out: the standard deviation of {worst!r} is {spread:.2g}, but nine in ten of its "
        "values lie within {usual:.2g}. A few such values (often data-entry errors) can determine the coefficient, and "
        "scaling does not help. {cure}"
    ),
    "scales": (
        "The columns are on very different scales: the standard deviation of {large!r}{times} is {most:.2g}, that of "
        "{small!r} {least:.2g}. The prior is the same for all coefficients, so those of columns with a small standard "
        "deviation are shrunk more."
    ),
    "group means": (
        "{columns}: the means of groups{of} go together with the effects of groups (the correlation is {worst:.2f}), "
        "so the coefficient mixes what differs between groups with what changes within one. Add to X, before any "
        "Pipeline, the mean of such a column in each row's group as another column; with pandas it is "
        "X.groupby(groups)[name].transform('mean')."
    ),
    "undetermined": (
        "{columns}: unpenalized columns are collinear with each other or with the intercept ({example}), so only the "
        "prior bounds their coefficients. {cure}"
    ),
    "separated": (
        "The columns separate the classes ({how} separation), so the data do not bound the coefficients, which have no "
        "mean. slab_scale bounds those that are shrunk, and chains converge much faster."
    ),
    "separated in groups": (
        "The columns separate the classes ({how} separation{more}), so coefficients and effects of groups can grow "
        "together, and only their priors bound them. slab_scale bounds those that are shrunk, and chains converge much "
        "faster; more rows of each group would help too."
    ),
    "separated, unpenalized": (
        "{columns}: unpenalized columns separate the classes ({how} separation{more}), so only their wide prior bounds "
        "the coefficients, and slab_scale does not. {cure}"
    ),
    "one-sided": _ONE_SIDED + ". {cure}",
    "one-sided, unpenalized": _ONE_SIDED + ", and slab_scale does not bound an unpenalized one. {cure}",
    "too few draws": "{draws} too few to tell whether the chains have converged. {cure}",
    "not converged": (
        "The chains have not converged for {failed} of {judged} quantities. The worst is {worst!r} with R-hat "
        "{rhat} (at most {max_rhat} is wanted) and a bulk effective sample size of {ess:.0f} (at least {wanted}, "
        "{per_chain} a chain). {sums}{cure}"
    ),
    "short of target": (
        "target_ess={target} has not been reached: after {sweeps} sweeps the smallest bulk effective sample size is "
        "{ess:.0f} ({worst!r}). {cure}"
    ),
}
_ORDER = {kind: place for place, kind in enumerate(TEMPLATES)}


class Finding(NamedTuple):
    """Something to cure."""

    kind: str  # a key of ``TEMPLATES``
    columns: object  # names of the columns concerned, if any
    cure: str  # in words, if a change of parameters is no cure
    facts: dict  # the other fields of the template
    changes: dict = MappingProxyType({})  # values of parameters that cure it, by name


def warn_of(findings, recipe=""):
    """Warn once, of all findings, most urgent first, with the recipe; a ConvergenceWarning if for one of them the draws
    cannot be trusted. In a search, warn once for each kind of finding, of the first fit that has it."""
    ordered = sorted(findings, key=lambda finding: _ORDER[finding.kind])
    if fold := fold_of():
        for finding in ordered:
            changes = ", ".join(f"{name}={value!r}" for name, value in finding.changes.items())
            words = text_of([finding], changes and f"Fit again with {changes}.")
            warn_once(f"In {fold} of this search or cross-validation: {words}", _class_of(finding.kind), finding.kind)
    elif ordered:
        warn(text_of(ordered, recipe), _class_of(ordered[-1].kind))


def _class_of(kind):
    return ConvergenceWarning if _ORDER[kind] >= _ORDER["separated"] else UserWarning


def text_of(findings, recipe=""):
    """The findings as sentences, most urgent first, and the recipe."""
    ordered = sorted(findings, key=lambda finding: _ORDER[finding.kind])
    return " ".join(filter(None, [*map(_sentence, ordered), _whose_name(ordered), recipe]))


def _whose_name(findings):
    """Where the name is of the first column that the findings know by its number alone, or ""."""
    words = (word for one in findings for word in (*one.columns[:_NAMED], *one.facts.values()))
    name = next((word for word in words if isinstance(word, Unnamed)), None)
    return name and (
        f"({name} is column {name[1:]}, counted from 0. Behind the steps of a Pipeline, "
        f"skhorseshoe.inspection.summary(pipeline).index[{name[1:]}] is its name.)"
    )


def _sentence(finding):
    kind, columns, cure, facts, _ = finding
    is_plural, names = len(columns) > 1, first_of(columns, _NAMED, lambda name: printable(repr(name)))
    words = {"have": "have" if is_plural else "has", "lie": "lie" if is_plural else "lies"}
    words["columns"] = f"{'Columns' if is_plural else 'Column'} {names}"
    return _NameFormatter().vformat(TEMPLATES[kind], (), {**words, "cure": cure, **facts}).strip()


class _NameFormatter(Formatter):
    """Shortens long names: in templates, {name!r} is the name of a column."""

    def convert_field(self, value, conversion):
        return printable(repr(value)) if conversion == "r" else super().convert_field(value, conversion)
