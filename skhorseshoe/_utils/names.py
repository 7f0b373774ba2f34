"""Names of features."""

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from operator import ne
from types import SimpleNamespace

import numpy as np
import pandas as pd

# Rows of tables that belong to no column.
RESERVED = "(intercept)", "(global scale)", "(group scale)", "(total)", "(probability)"
_BETWEEN = "_-=.: /|"  # letters that separate the name of a category from that of a level
_SEPARATOR = re.compile(r" ?(([_=.:/|])\2*|-) ?| ?")  # of names, where a level may be -1
_LABELS = "feature_names_in_", "_column_labels"  # attributes of a model that may hold the labels of its columns
_PLAIN = str | bool | int | float | None


def names_of(model):
    """Names of the features: the labels of the table's columns, or x0, x1, ... if the data had none."""
    labels = next((getattr(model, name) for name in _LABELS if hasattr(model, name)), None)
    return _numbered(model.n_features_in_) if labels is None else list(labels)


def _numbered(n):
    return [f"x{j}" for j in range(n)]


class Unnamed(str):
    """What a warning calls a column that has no name: x0, x1, ..."""


class Outcome(str):
    """What takes the place of a label where a class of a model stands for others of the fit: "y >= 2"."""


def names_to_warn_of(columns):
    """Names of the columns of a fit, ``Unnamed`` ones if they have none. columns : attributes of a model about them."""
    names = names_of(SimpleNamespace(**columns))
    return names if columns.keys() & {*_LABELS} else [*map(Unnamed, names)]


def plain(label):
    """A pandas label as a Python object that is safe to save; labels other than text and numbers, as dates, as text."""
    if isinstance(label, tuple):
        return tuple(map(plain, label))
    if isinstance(label, np.datetime64 | np.timedelta64):
        label = pd.Timestamp(label) if isinstance(label, np.datetime64) else pd.Timedelta(label)
    label = label.item() if isinstance(label, np.generic) else label
    return label if isinstance(label, _PLAIN) or not isinstance(label, Hashable) else str(label)


def are_names(values):
    """Whether these are several values as columns are given by: a list, an array, a pandas Index, ..."""
    return np.iterable(values) and hasattr(values, "__len__") and not isinstance(values, str | bytes | Mapping)


def shorten(name, letters):
    """A name, without its middle if it has more than ``letters`` letters; "x and 12 more" becomes "x +12" before."""
    name = name if len(name) <= letters else re.sub(r" and (\d+) more$", r" +\1", name)
    tail = (letters - 1) // 2
    return name if len(name) <= letters else f"{name[: letters - 1 - tail]}…{name[len(name) - tail :]}"


def printable(name, letters=60):
    """A name as a text for a terminal: unprintable letters, as in escape sequences or line breaks, are escaped as in
    Python, and a long name is shortened. With quotes, for a message: ``printable(repr(name))``."""
    return shorten(_unprintable_escaped(name), letters)


def printables(names, letters, places=None):
    """Several ``printable`` names. Different names that would look the same are followed by their places."""
    escaped = list(map(_unprintable_escaped, names))
    texts = [shorten(text, letters) for text in escaped]
    alike = Counter(text for text, _ in set(zip(texts, map(str, names), strict=True)))
    for i, j in enumerate(range(len(escaped)) if places is None else places):
        if alike[texts[i]] > 1:
            end = f" ({j})"
            texts[i] = shorten(escaped[i], letters - len(end)) + end
    return texts


def first_of(names, most=3, text=printable):
    """The first of some names as texts, and how many more there are: "a, b, c and 2 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(text, names[:most])) + more


def with_article(words):
    """The words after "a" or "an"."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def class_texts(labels, letters=20):
    """Labels of classes for print: texts in quotes, others after the word "class", and an ``Outcome`` as it is."""

    def quoted(label, text):
        return text if isinstance(label, Outcome) else f"'{text}'" if isinstance(label, str) else f"class {text}"

    return list(map(quoted, labels, printables(labels, letters)))


def _unprintable_escaped(name):
    text = str(name)
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def title_of(centre, n_columns):
    """The title of a set of columns: its central column, and the number of the others."""
    return centre if n_columns == 1 else f"{centre} and {n_columns - 1} more"


def name_of_levels(names):
    """The name of a category, from the names of its level columns."""
    texts = [*map(_one_text, names)]
    first, last = min(texts), max(texts)
    n = next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    prefix = first[:n]
    at = max(map(prefix.rfind, _BETWEEN))
    if at > 0:
        return prefix[:at].rstrip(_BETWEEN) or prefix[:at]
    if len(prefix) > 1 and all(text[len(prefix) :].isdigit() for text in texts) and not prefix[-1].isdigit():
        return prefix
    return title_of(texts[0], len(texts))


def beginnings_of(name):
    """The names that a category may have whose level column has this name, the shortest first."""
    text = _one_text(name)
    return [text[:at] for at in range(1, len(text)) if text[at] in _BETWEEN]


def levels_of_names(names, category):
    """The levels of level columns, from their names and that of their category: "b" from ward_b and ward."""
    texts = [*map(_one_text, names)]
    suffixes = [text.removeprefix(str(category)) for text in texts]
    start = min(_SEPARATOR.match(suffix).end() for suffix in suffixes) if all(map(ne, suffixes, texts)) else 0
    return [suffix[start:] or text for suffix, text in zip(suffixes, texts, strict=True)]


def _one_text(name):
    """A name, of which a tuple of names of several rows of headings is "sex_f"."""
    return "_".join(map(str, name)) if isinstance(name, tuple) else str(name)


def check_different(names, owner, cure="Rename them: each column needs a name of its own."):
    """Raise a ValueError if columns have the same name. owner : of the columns, in words."""
    name, n = Counter(names).most_common(1)[0] if len(names) else ("", 1)
    if n > 1:
        raise ValueError(f"{owner} has {n} columns named {printable(repr(name))}. {cure}")


def finder(known, things, otherwise="", numbered=False, missing="raise", choice=""):
    """A function (name, where) that returns the index of a name among the known ones, or raises a ValueError.

    things : what the names are of, in words; where : the source of the name, for the error. otherwise : the cure if no
    known name is similar. numbered : whether a number can also be an index, unless names are numbers themselves.
    missing : "raise", or "ignore" to return None for a name that is not known. choice : how to choose that, in words.
    """
    if missing not in ("raise", "ignore"):
        raise ValueError(f"missing={missing!r}: names that are none of the {things} can 'raise' or be 'ignore'd.")
    known = list(known)
    index, times, n = {name: j for j, name in enumerate(known)}, Counter(known), len(known)
    are_made_up = known == _numbered(n)
    if numbered and any(isinstance(name, Real) for name in known) and known != [*range(n)]:
        numbered, otherwise = False, " In a table whose labels are numbers, a number is a label."

    def find(name, where):
        name = plain(name)
        if not isinstance(name, Hashable) or name not in index:
            is_number = numbered and isinstance(name, Integral) and not isinstance(name, bool)
            if is_number and -n <= name < n:
                return int(name) % n
            if missing == "ignore" and isinstance(name, Hashable) and not is_number:
                return None
            near = get_close_matches(name, map(str, known), n=3) if isinstance(name, str) and not are_made_up else []
            hint = f" Did you mean {', '.join(map(repr, near))}?" if near else otherwise
            raise ValueError(
                f"{where}: there is no {name!r} among the {n} {things}.{hint}{'' if is_number else choice}"
            )
        if times[name] > 1:
            raise ValueError(f"{where}: {times[name]} {things} are called {name!r}. Rename them, or leave it out.")
        return index[name]

    return find


def numbers_in_fit(columns, names, where, cure, more=""):
    """The numbers of columns of the X of a fit; a ValueError where one is unknown, or given twice.

    where : what gives them. cure : the forms that are allowed, in words. more : the cure for one that is given twice.
    """
    if names == _numbered(len(names)):
        cure += (
            " Columns of an array have no names: behind steps of a Pipeline, set_output(transform='pandas') on these "
            "gives names, as 'standardscaler__age' for 'age'."
        )
    find = finder(names, "columns of X", cure, numbered=True)
    numbers = [find(column, where) for column in columns]
    if len({*numbers}) < len(numbers):
        raise ValueError(f"{where} has a column more than once: {[*columns][:9]}.{more}")
    return numbers
