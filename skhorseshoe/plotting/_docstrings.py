"""Docstrings of displays: each describes what is its own, and gets here what it shares with others.

A class gets descriptions of those fields that are in ``_FIELDS``, and inherits those of attributes. Its example starts
with the model of ``_EXAMPLE`` unless it has one of its own. A class method that makes a display gets descriptions of
those arguments that are in ``_ARGUMENTS``, and ``plot`` a reference to that method.
"""

import re
from dataclasses import fields
from inspect import cleandoc, signature

_ARGUMENTS = """\
estimator : HorseshoeProbitClassifier, Pipeline or search
    A fitted classifier, or a fitted Pipeline or search (GridSearchCV) that ends with one.
level : float or None, default=None
    Level of the intervals, in (0, 1). None is the classifier's ``credible_level``.
ax : matplotlib.axes.Axes or None, default=None
    Axes to draw on. None makes a figure."""
_FIELDS = """\
names : sequence of str of length n_features
    Names of the features.
interval : ndarray of shape (2, len(names))
    Lower and upper ends of the credible intervals.
level : float
    Level of the intervals, in (0, 1).
classes : sequence or None, default=None
    The labels; positive means favour the second one, or of ordered classes higher ones, as the axis then says.
label : object
    Label of the second class.
favours : str or None, default=None
    What positive means favour, in words, of a model that ``inspection.one_vs_rest`` or ``at_least`` has made.
known_groups : tuple of two int or None, default=None
    How many of the groups of the rows the fit has seen, and how many there are."""
_EXAMPLE = """\
>>> from skhorseshoe import HorseshoeProbitClassifier, datasets, plotting
>>> X, y, coef = datasets.make_sparse_probit(1000, 30, random_state=0)
>>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
"""
_ORDER = "Parameters", "Attributes", "Returns", "Notes", "References", "Examples"


def complete(cls):
    """Add to the docstrings of a display what it shares with others."""
    makers = {name: method.__func__ for name, method in vars(cls).items() if isinstance(method, classmethod)}
    for make in makers.values():
        text = _sections(make.__doc__)
        text["Parameters"] = _entries_of(signature(make).parameters, _ARGUMENTS, text["Parameters"])
        make.__doc__ = _as_docstring(text | {"Returns": f"display : {cls.__name__}"})

    text, inherited = _sections(cls.__doc__), _sections(cls.__base__.__doc__)
    text["Parameters"] = _entries_of([field.name for field in fields(cls)], _FIELDS, text["Parameters"])
    both = _entries(text["Attributes"]) | _entries(inherited["Attributes"])
    text["Attributes"] = _entries_of(both, inherited["Attributes"], text["Attributes"])
    if makers:
        text[""] += f"\n\nMake it with {' or '.join(f'`{name}`' for name in makers)}."
    if text["Examples"] and "Classifier(" not in text["Examples"]:
        text["Examples"] = _EXAMPLE + text["Examples"]
    cls.__doc__ = _as_docstring(text)

    plot = vars(cls).get("plot")
    if plot and not plot.__doc__:
        names = ", ".join(list(signature(plot).parameters)[1:])
        asked = f"{names} : see `{next(iter(makers), 'from_estimator')}`\n    How and where to draw."
        plot.__doc__ = _as_docstring({"": "Draw.", "Parameters": asked, "Returns": f"self : {cls.__name__}"})


def _sections(docstring):
    """The sections of a docstring by their titles; what comes before them has no title."""
    first, *others = re.split(rf"\n\n({'|'.join(_ORDER)})\n-+\n", cleandoc(docstring or ""))
    return dict.fromkeys(_ORDER, "") | {"": first} | dict(zip(others[::2], others[1::2], strict=True))


def _entries_of(names, shared, own):
    """The entries of these names, in their order, each once: own ones, or else shared ones."""
    entries = _entries(shared) | _entries(own)
    return "\n".join(dict.fromkeys(entries[name] for name in names if name in entries))


def _entries(section):
    """The descriptions in a section by the names of what they describe, which can be several things."""
    entries = re.split(r"\n(?=\S)", section) if section else []
    return {name: entry for entry in entries for name in entry.partition(" :")[0].replace("*", "").split(", ")}


def _as_docstring(sections):
    """A docstring of these sections, without empty ones."""
    titled = [f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in _ORDER if sections.get(title)]
    return "\n\n".join([sections[""], *titled]) + "\n"
