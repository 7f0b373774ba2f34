"""Frames of the posterior: pandas frames that print under words, each number with as many digits as are known."""

from html import escape
from itertools import product, zip_longest
from math import floor, inf, log10
from shutil import get_terminal_size

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from .._utils.names import shorten

_WIDTH = 79  # letters of a line, where neither pandas nor the terminal says more or less
_LETTERS = 30, 24, 20, 17, 14  # of a name, in ever less room
_FORMATS = {"n_columns": "{:.0f}", "m_eff": "{:.1f}", "shrinkage": "{:.2f}", "ess": "{:.0f}", "rhat": "{:.3f}"}
_FORMATS |= {"value": "{:.4g}", "reference": "{:.4g}", "weight": "{:.4g}"}
_FORMATS |= {"lfsr": "{:.2g}", "probability": "{:.4f}", "purity": "{:.2f}"}
_USUAL_ESS = 1000.0  # for tables that have none
_MOST_DECIMALS, _LARGE = 6, 1e7  # beyond which a number is written with a power of ten
_LONG, _ABOVE, _BELOW = "prob_positive", "prob_", "positive"  # a heading, and its two lines


class Summary(pd.DataFrame):
    """A frame that prints ``attrs["header"]`` above itself, and its numbers as far as Monte Carlo error lets them be
    known. The numbers that it holds are not rounded.

    pandas itself hands on ``attrs`` and the class to what is sliced, sorted or rounded, and leaves all else alone.
    """

    @property
    def _constructor(self):
        return Summary

    def __repr__(self):
        header, table = self.attrs.get("header"), _in_lines(_as_texts(self))
        return f"{header}\n\n{table}" if header else table

    def _repr_html_(self):
        header, table = self.attrs.get("header"), _as_texts(self)._repr_html_()
        return f"<pre>{escape(header)}</pre>\n{table}" if header and table else table


def _as_texts(frame):
    """A plain frame that has texts in place of the numbers of this package."""
    shown = pd.DataFrame(frame).copy()
    shown.attrs = {}
    if not frame.columns.is_unique:
        return shown
    numbers = [name for name in frame if is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name])]
    for name in _FORMATS.keys() & set(numbers):
        shown[name] = [_text(value, _FORMATS[name]) for value in frame[name]]
    if "sd" not in numbers:
        return shown
    ess = frame["ess"].fillna(_USUAL_ESS).to_numpy(float) if "ess" in numbers else _USUAL_ESS
    with np.errstate(all="ignore"):  # tables of sums and differences hold what is no standard deviation
        errors = frame["sd"].to_numpy(float) / np.sqrt(ess)
    for name in numbers:
        if name in ("mean", "sd") or str(name).endswith("%"):
            shown[name] = [_number(*each) for each in zip(frame[name], errors, strict=True)]
    if _LONG in numbers:
        p = frame[_LONG].to_numpy(float)
        with np.errstate(all="ignore"):
            errors = np.sqrt(p * (1 - p) / ess)
        shown[_LONG] = [_share(*each) for each in zip(p, errors, strict=True)]
    return shown


def _number(value, error):
    """A number with the digits that its Monte Carlo error leaves, three where that is not known."""
    if pd.isna(value) or not 0 < error < inf:
        return _text(value, "{:.3g}")
    places = max(0, -floor(log10(error)))  # up to the first digit of the error
    if places <= _MOST_DECIMALS and abs(value) < _LARGE:
        return f"{value:.{places}f}"
    digits = floor(log10(abs(value))) - floor(log10(error)) if value else 0
    return f"{value:.{max(2, min(digits, 15))}e}"


def _share(value, error):
    """A probability; never 0 or 1 unless all draws say so."""
    if pd.isna(value):
        return ""
    places = min(max(-floor(log10(error)), 2), 3) if 0 < error < inf else 3
    text = f"{value:.{places}f}"
    if 0 < value < 1 and float(text) in (0.0, 1.0):
        return f"<{10.0**-places:.{places}f}" if value < 0.5 else f">{1 - 10.0**-places:.{places}f}"
    return text


def _text(value, form):
    return "" if pd.isna(value) else form.format(value)


def _in_lines(shown):
    """The text of a table: as it is, or with names cut short, or without lfsr, which prob_positive tells, or with all
    columns closer together, where that brings each row into one line of the terminal and leaves the names different.
    Otherwise columns go on below; pandas would leave some out."""
    width = max(pd.get_option("display.width") or 0, get_terminal_size((_WIDTH, 24)).columns)
    tables = shown, shown.drop(columns="lfsr", errors="ignore")
    for spaced, table, letters in product((str, _closer), tables, (None, *_LETTERS)):
        with pd.option_context("display.max_columns", None, "display.width", 10**6):
            text = spaced(repr(table) if letters is None else _narrow(table, letters))
        if text and max(map(len, text.split("\n"))) <= width:
            return text
    with pd.option_context("display.max_columns", None, "display.width", width):
        return repr(shown)


def _closer(text):
    """The lines with one blank where all of them have several."""
    letters = list(zip_longest(*text.split("\n"), fillvalue=" "))  # of all lines, place by place
    kept = [here for here, after in zip_longest(letters, letters[1:], fillvalue=".") if {*here, *after} != {" "}]
    return "\n".join("".join(line).rstrip() for line in zip(*kept, strict=True))


def _narrow(shown, letters):
    """The text of a table with long names without their middle, and the longest heading in two lines; empty if names
    would become the same."""

    def fitting(name):
        return shorten(name, letters) if isinstance(name, str) else name

    renamed = shown.rename(columns={_LONG: _BELOW}, index=fitting)
    if renamed.index.nunique() < shown.index.nunique():
        return ""
    text = repr(renamed)
    first, second, *rest = text.split("\n")
    if _LONG not in shown or shown.empty or not any(shown.index.names):  # else the second line names the index
        return text
    at = first.index(_BELOW)
    second = f"{second:<{at}}"[:at] + _BELOW
    return "\n".join([first.replace(_BELOW, f"{_ABOVE:>{len(_BELOW)}}"), second, *rest])
