"""Tables as Markdown and as LaTeX, which pandas writes with the help of other packages."""

import re
from itertools import pairwise
from pathlib import Path

import pandas as pd

_DETAIL = re.compile(r"\w+: ")  # how a new sentence of a header begins, where it begins on a line of its own
_MARKDOWN = {letter: f"\\{letter}" for letter in "\\`*_{}[]<>|$~#&"}
_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def markdown(shown, header, is_number, index):
    """A pipe table below the sentences of a header, each a paragraph.

    shown : a frame of texts, and of numbers that pandas writes. is_number : of its columns, which stand on the right.
    index : whether it is shown.
    """
    left, rows = _cells(shown, index, _MARKDOWN)
    rule = ["---"] * left + ["---:" if right else "---" for right in is_number]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])]
    return "\n\n".join([*(_escaped(one, _MARKDOWN) for one in _sentences(header)), "\n".join(lines)]) + "\n"


def latex(shown, header, is_number, index, caption, label):
    """A tabular with the rules of the LaTeX package booktabs; in a table, if there is a caption or a label. The caption
    is the header where it is None."""
    left, rows = _cells(shown, index, _LATEX)
    first, *rest = [rf"{' & '.join(row)} \\" for row in rows]
    columns = "l" * left + "".join("r" if right else "l" for right in is_number)
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        first,
        r"\midrule",
        *rest,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if caption is None:
        caption = " ".join(f"{_escaped(one, _LATEX)}." for one in _sentences(header))
    above = [rf"\caption{{{caption}}}"] * bool(caption) + [rf"\label{{{label}}}"] * bool(label)
    if above:
        lines = [r"\begin{table}", r"\centering", *above, *lines, r"\end{table}"]
    return "\n".join(lines) + "\n"


def given_to(buf, text):
    """The text, or None where it is written to a path or a file."""
    if buf is None:
        return text
    if hasattr(buf, "write"):
        buf.write(text)
    else:
        Path(buf).write_text(text, encoding="utf-8")
    return None


def _sentences(header):
    """Those of a header, whose lines are as long as a terminal is wide."""
    found = []
    for line in (header or "").split("\n"):
        if found and not _DETAIL.match(line):
            found[-1] += f" {line.strip()}"
        else:
            found.append(re.sub(" +", " ", line))
    return [one for one in found if one]


def _cells(shown, index, letters):
    """How many columns the index has, and all rows of texts, the headings first; names of the index are as printed."""
    columns = [_texts(shown.iloc[:, [j]]) for j in range(shown.shape[1])]
    headings = list(shown.columns)
    before = []
    if index:
        levels = [shown.index.get_level_values(k) for k in range(shown.index.nlevels)]
        before = [["" if v is None else v for v in level] for level in levels]
        for level in before[:-1]:  # the rows of one patient are named once
            level[1:] = ["" if one == two else two for one, two in pairwise(level)]
        headings = ["" if name is None else name for name in shown.index.names] + headings
    rows = [headings, *zip(*before, *columns, strict=True)]
    return len(before), [[_escaped(each, letters) for each in row] for row in rows]


def _texts(column):
    """The texts of a frame of one column as pandas prints them."""
    if column.empty or column.iloc[:, 0].dtype.kind == "O":
        return ["" if pd.api.types.is_scalar(v) and pd.isna(v) else str(v) for v in column.iloc[:, 0]]
    return [text.strip() for text in column.to_string(index=False, header=False).split("\n")]


def _escaped(text, letters):
    return "".join(letters.get(letter, letter) for letter in str(text))
