"""Texts of a picture: names and labels, literally and on one line."""

import re
from textwrap import fill

from .._utils import names as _names

LONGEST, SHORT = 30, 20  # most letters of a name next to the axes, and within a sentence
_LISTED, _LINE = 8, 48  # names in a legend, and letters of a line there


def drawable(names, places=None, letters=LONGEST):
    """The names at these places, or all, as texts to draw: literal, on one line, and shortened if long. Different names
    whose texts would be the same are followed by their places."""
    places = range(len(names)) if places is None else places
    return [_literal(text) for text in _names.printables([_on_one_line(names[j]) for j in places], letters, places)]


def class_names(labels):
    """Labels of classes as texts to draw."""
    return [_literal(text) for text in _names.class_texts(list(map(_on_one_line, labels)), SHORT)]


def _on_one_line(name):
    if not isinstance(name, str):
        return name
    on_one_line = re.sub(r"\s", " ", name)
    return _names.Outcome(on_one_line) if isinstance(name, _names.Outcome) else on_one_line


def _literal(text):
    """A text in which dollars are escaped, since Matplotlib reads a formula between two. A backslash works in every
    version, also in ticks that are made later; the option parse_math would have to be set on each."""
    return text.replace("$", r"\$")


def favoured_line(classes, favours=None):
    """What a positive coefficient favours, on a line of its own; empty if the classes are not known. favours : where
    that is not the second of two classes or higher ones."""
    if classes is None:
        return ""
    which = "higher classes" if len(classes) > 2 else class_names(classes)[1]
    return f"\n(positive favours {which if favours is None else _literal(favours)})"


def known_line(known_groups):
    """How many groups the fit has seen, on a line of its own; empty without groups."""
    return "" if known_groups is None else "\n({} of {} groups are known from fit)".format(*known_groups)


def listing(names, places):
    """The first of the names at these places, in parentheses on lines of their own; empty for no names."""
    if not len(places):
        return ""
    more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return "\n" + fill(f"({', '.join(drawable(names, places[:_LISTED], SHORT))}{more})", _LINE, break_on_hyphens=False)


def percent(level):
    """A level as a text: a number in (0, 1), or a text already."""
    return level if isinstance(level, str) else f"{100 * level:g} %"


def columns(n):
    return f"{n} column{'' if n == 1 else 's'}"
