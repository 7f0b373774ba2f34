"""Pandas frames that print a header above themselves, and numbers with as many digits as are known."""

from html import escape
from itertools import count, product, zip_longest
from math import floor, inf, log10
from numbers import Real
from shutil import get_terminal_size
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_scalar

from .._utils.names import printable, printables, shorten
from . import markup

_WIDTH = 79  # letters of a line, unless pandas or the terminal has another width
_LONGEST, _LETTERS = 100, (30, 24, 20, 17, 14)  # most letters of a name, and limits to try for narrow terminals
_FORMATS = {"n_columns": "{:.0f}", "m_eff": "{:.1f}", "shrinkage": "{:.2f}", "ess": "{:.0f}", "rhat": "{:.3f}"}
_FORMATS |= {"value": "{:z.4g}", "reference": "{:z.4g}", "weight": "{:z.4g}"}
_FORMATS |= {"observed": "{:.3f}", "predicted": "{:.3f}"}
_FORMATS |= {"lfsr": "{:.2g}", "probability": "{:.4f}", "mcse": "{:.4f}", "purity": "{:.2f}"}
for _name in ("prior", "likelihood"):  # of ``inspection.sensitivity``
    _FORMATS |= {_name: "{:.2f}", f"{_name}_shift": "{:z.2f}", f"{_name}_error": "{:.2f}"}
_OWN = "value", "reference"  # columns that may hold the user's values
_ESTIMATES = "median", "estimate", "net_benefit", "treat_all"  # beside an interval, with digits as a mean has
_WIDTH_IN_SD = 3.3  # of an interval of 90 %, where a table has no sd
_USUAL_ESS, _FEW_ESS = 1000.0, 4.0  # sample size to assume for tables without a column "ess", and for a missing value
_MOST_DECIMALS, _LARGEST_PLAIN = 6, 1e7  # limits beyond which a number is written with a power of ten
_LONG, _ABOVE, _BELOW = "prob_positive", "prob_", "positive"  # a long heading, and its two lines
_PROBABILITIES = _LONG, "prob_above_1", "prob_useful"
MEANS_BY_CLASS = "means_by_class"  # in attrs: columns of means that have as many digits as the mean of their row


class Summary(pd.DataFrame):
    """A frame that prints ``attrs["header"]`` above itself, numbers with the digits that Monte Carlo error leaves, and
    names that a terminal can show. It holds unrounded numbers and full names.

    pandas passes ``attrs`` and the class on to frames that are sliced, sorted or rounded.
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

    def to_markdown(self, buf=None, *, index=True):
        """The table in Markdown as it is printed, its header above it; no other package is needed.

        Parameters
        ----------
        buf : str, path or file, default=None
            Where to write it; None returns it.
        index : bool, default=True
            Whether to show the names of the rows.

        Returns
        -------
        text : str or None
        """
        shown, header = _as_texts(self), self.attrs.get("header")
        return markup.given_to(buf, markup.markdown(shown, header, self._are_numbers(), index))

    def to_latex(self, buf=None, *, index=True, caption=None, label=None):
        """The table in LaTeX as it is printed; no other package of Python is needed, and of LaTeX booktabs.

        Parameters
        ----------
        buf : str, path or file, default=None
            Where to write it; None returns it.
        index : bool, default=True
            Whether to show the names of the rows.
        caption : str or None, default=None
            In LaTeX. None says what the table is, and "" is no caption.
        label : str or None, default=None
            What ``\\ref`` calls it.

        Returns
        -------
        text : str or None
        """
        shown, about = _as_texts(self), self.attrs.get("caption", self.attrs.get("header"))
        return markup.given_to(buf, markup.latex(shown, about, self._are_numbers(), index, caption, label))

    def _are_numbers(self):
        return [_is_number(self.iloc[:, j]) for j in range(self.shape[1])]


class TableOfDraws(Summary):
    """A table whose rows may be cut and sorted, with the ``draws`` that they describe."""

    _metadata = ["_draws"]  # noqa: RUF012 (pandas passes on what it names)
    _draws: Any = None  # the names of all rows, and (n_chains, n_draws, k)

    @property
    def _constructor(self):
        return TableOfDraws

    @property
    def draws(self):
        """The draws, a frame with a column for each row of the table, indexed by chain and draw."""
        labels, values = self._draws or ([], np.empty((0, 0, 0)))
        at = {label: k for k, label in enumerate(labels)}
        if len(at) < len(labels) or not all(label in at for label in self.index):
            raise ValueError(
                "The rows of this table do not have the names that they were computed with, each once, by which their "
                "draws are found: ask the table as it was computed, or some of its rows."
            )
        n_chains, n_draws, _ = values.shape
        index = pd.MultiIndex.from_product([range(n_chains), range(n_draws)], names=["chain", "draw"])
        chosen = values.reshape(len(index), -1)[:, [at[label] for label in self.index]]
        return pd.DataFrame(chosen, index=index, columns=self.index)


def interval_ends(frame):
    """The names of the columns of a frame that are ends of an interval; none of what is no frame."""
    return [name for name in getattr(frame, "columns", ()) if str(name).endswith("%")]


def is_heading(text):
    """Whether a column of this name has a meaning for a table."""
    return text in {"mean", "sd", *_FORMATS, *_ESTIMATES, *_PROBABILITIES} or text.endswith("%")


def _as_texts(frame):
    """A plain frame with texts in place of names and of numbers whose format is known."""
    shown = pd.DataFrame(frame).copy()
    shown.attrs = {}
    if frame.columns.is_unique:
        _write_numbers(frame, shown)
        for name in [name for name in shown if shown[name].dtype.kind == "O"]:  # for example names from an index
            is_value = name in _OWN
            texts = [
                value_text(v) if is_value else printable(v, _LONGEST) if isinstance(v, str | tuple) else v
                for v in shown[name]
            ]
            shown[name] = texts
    return shown.set_axis(_printed(shown.index)).set_axis(_printed(shown.columns), axis=1)


def _is_number(column):
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def value_text(value):
    """A user's value as text: "71", "2.35", "b", or "missing"."""
    if is_scalar(value) and pd.isna(value):
        return "missing"
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        return f"{value:.0f}" if 1000 <= abs(value) < 1e9 else f"{value:z.4g}"
    return printable(value, _LONGEST)


def _printed(labels):
    """An index with texts that a terminal can show."""
    if isinstance(labels, pd.MultiIndex):
        return labels.set_levels([_printed(level) for level in labels.levels], verify_integrity=False)
    return labels if labels.dtype.kind != "O" else pd.Index(printables(labels, _LONGEST), name=labels.name)


def _write_numbers(frame, shown):
    """Put texts for the numbers of a frame into ``shown``. Columns "x: mean", "x: sd", ... are of another estimate."""
    for prefix in [str(name).removesuffix("mean") for name in frame if str(name).endswith(": mean")]:
        own = frame[[name for name in frame if str(name).startswith(prefix)]]
        texts, frame = {}, frame.drop(columns=own.columns)
        _write_numbers(own.rename(columns=lambda name, prefix=prefix: name.removeprefix(prefix)), texts)
        for name, values in texts.items():
            shown[prefix + name] = values
    numbers = [name for name in frame if _is_number(frame[name])]
    for name in _FORMATS.keys() & set(numbers):
        shown[name] = [_formatted(value, _FORMATS[name]) for value in frame[name]]
    ends = frame[[name for name in interval_ends(frame) if name in numbers]].astype(float)
    if "observed" in numbers:  # shares and their bands
        for name in ends:
            shown[name] = [_formatted(value, "{:.3f}") for value in frame[name]]
        return
    if "sd" not in numbers and ends.shape[1] != 2:
        return
    ess = frame["ess"].fillna(_FEW_ESS).to_numpy(float) if "ess" in numbers else _USUAL_ESS
    sd = frame["sd"] if "sd" in numbers else (ends.iloc[:, 1] - ends.iloc[:, 0]) / _WIDTH_IN_SD
    with np.errstate(all="ignore"):  # in tables of sums and differences, sd may be negative
        errors = sd.to_numpy(float) / np.sqrt(ess)
    signed = ((ends.min(axis=1) > 0) | (ends.max(axis=1) < 0)).to_numpy()
    by_class = frame.attrs.get(MEANS_BY_CLASS, ())
    for name in ("mean", *_ESTIMATES, *by_class, *ends, "sd"):
        if name in numbers:
            shown[name] = list(map(_number_text, frame[name], errors, signed & (name not in ("sd", *by_class))))
    for name in (name for name in _PROBABILITIES if name in numbers):
        p = frame[name].to_numpy(float)
        with np.errstate(all="ignore"):
            errors = np.sqrt(p * (1 - p) / ess)
        shown[name] = list(map(_probability_text, p, errors))


def _number_text(value, error, signed):
    """A number with the digits that its Monte Carlo error leaves, or three if that is unknown. A ``signed`` number, as
    of an interval that excludes zero, has at least so many digits that it is not zero."""
    if pd.isna(value) or not 0 < error < inf:
        return _formatted(value, "{:z.3g}")
    places = max(0, -floor(log10(error)))  # up to the first digit of the error
    if signed and 0 < abs(value) < 1:
        places = max(places, next(k for k in count() if round(abs(value), k)))
    if places <= _MOST_DECIMALS and abs(value) < _LARGEST_PLAIN:
        return f"{value:z.{places}f}"
    digits = floor(log10(abs(value))) - floor(log10(error)) if value else 0
    return f"{value:z.{max(2, min(digits, 15))}e}"


def _probability_text(value, error):
    """A probability as text; 0 or 1 only if it is exactly that."""
    if pd.isna(value):
        return ""
    places = min(max(-floor(log10(error)), 2), 3) if 0 < error < inf else 3
    text = f"{value:.{places}f}"
    if 0 < value < 1 and float(text) in (0.0, 1.0):
        return f"<{10.0**-places:.{places}f}" if value < 0.5 else f">{1 - 10.0**-places:.{places}f}"
    return text


def _formatted(value, form):
    return "" if pd.isna(value) else form.format(value)


def _in_lines(shown):
    """The text of a table. If its rows are longer than a line of the terminal, names are shortened, lfsr (known from
    prob_positive) is left out, columns are moved closer, or the sd of terms is left out, provided that rows then fit
    and names still differ. Otherwise columns continue below; pandas would leave some out."""
    width = max(pd.get_option("display.width") or 0, get_terminal_size((_WIDTH, 24)).columns)
    tables = [*product((str, _closer), (shown, shown.drop(columns="lfsr", errors="ignore")))]
    tables += [(_closer, shown.drop(columns="sd", errors="ignore"))] if "prior" in shown else []
    for (spaced, table), letters in product(tables, (None, *_LETTERS)):
        with pd.option_context("display.max_columns", None, "display.width", 10**6):
            text = spaced(repr(table) if letters is None else _narrow(table, letters))
        if text and max(map(len, text.split("\n"))) <= width:
            return text
    with pd.option_context("display.max_columns", None, "display.width", width):
        return repr(shown)


def _closer(text):
    """The lines, with one blank in places where all of them have several."""
    letters = list(zip_longest(*text.split("\n"), fillvalue=" "))  # of all lines, by place
    columns = [a for a, b in zip_longest(letters, letters[1:], fillvalue=".") if {*a, *b} != {" "}]
    return "\n".join("".join(line).rstrip() for line in zip(*columns, strict=True))


def _narrow(shown, letters):
    """The text of a table with shortened names and the longest heading in two lines; empty if names become the same."""

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
