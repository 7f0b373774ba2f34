"""Tables as Markdown and LaTeX, for which pandas needs other packages."""

import re
from itertools import pairwise
from pathlib import Path

import pandas as pd

_DETAIL = re.compile(r"\w+: ")  # begin of a new sentence on a new line of a header
_MARKDOWN = {letter: f"\\{letter}" for letter in "\\`*_{}[]<>|$~#&"}
_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{INFINITY}": r"$\infty$",
}


def markdown(shown, header, is_number, index):
    """A pipe table below the sentences of a header, each a paragraph. shown : a frame of texts, and of numbers that
    pandas formats. is_number : of the columns, which are then aligned right. index : whether to show it."""
    n_levels, rows = _cells(shown, index, _MARKDOWN)
    rule = ["---"] * n_levels + ["---:" if right else "---" for right in is_number]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])]
    return "\n\n".join([*(_escaped(sentence, _MARKDOWN) for sentence in _sentences(header)), "\n".join(lines)]) + "\n"


def latex(shown, about, is_number, index, caption, label):
    """A tabular with the rules of the LaTeX package booktabs, in a table if there is a caption or a label. A caption of
    None is what the table is about, as plain text."""
    n_levels, rows = _cells(shown, index, _LATEX)
    first, *rest = [rf"{' & '.join(row)} \\" for row in rows]
    columns = "l" * n_levels + "".join("r" if right else "l" for right in is_number)
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
        caption = " ".join(f"{_escaped(sentence, _LATEX)}." for sentence in _sentences(about))
    above = [rf"\caption{{{caption}}}"] * bool(caption) + [rf"\label{{{label}}}"] * bool(label)
    if above:
        lines = [r"\begin{table}", r"\centering", *above, *lines, r"\end{table}"]
    return "\n".join(lines) + "\n"


def given_to(buf, text):
    """The text; or None, if it is written to a path or a file."""
    if buf is None:
        return text
    if hasattr(buf, "write"):
        buf.write(text)
    else:
        Path(buf).write_text(text, encoding="utf-8")
    return None


def _sentences(header):
    """The sentences of a header, whose lines are as long as a terminal is wide."""
    sentences = []
    for line in (header or "").split("\n"):
        if sentences and not _DETAIL.match(line):
            sentences[-1] += f" {line.strip()}"
        else:
            sentences.append(re.sub(" +", " ", line))
    return [sentence for sentence in sentences if sentence]


def _cells(shown, index, letters):
    """The number of levels of the index, and all rows of texts, headings first; names of the index are as printed."""
    columns = [_texts(shown.iloc[:, [j]]) for j in range(shown.shape[1])]
    headings = list(shown.columns)
    index_columns = []
    if index:
        levels = [shown.index.get_level_values(k) for k in range(shown.index.nlevels)]
        index_columns = [["" if v is None else v for v in level] for level in levels]
        for level in index_columns[:-1]:  # equal values are shown once, for the first row
            level[1:] = ["" if previous == value else value for previous, value in pairwise(level)]
        headings = ["" if name is None else name for name in shown.index.names] + headings
    rows = [headings, *zip(*index_columns, *columns, strict=True)]
    return len(index_columns), [[_escaped(each, letters) for each in row] for row in rows]


def _texts(column):
    """The texts of a frame of one column, as pandas prints them."""
    if column.empty or column.iloc[:, 0].dtype.kind == "O":
        return ["" if pd.api.types.is_scalar(v) and pd.isna(v) else str(v) for v in column.iloc[:, 0]]
    return [text.strip() for text in column.to_string(index=False, header=False).split("\n")]


def _escaped(text, letters):
    return "".join(letters.get(letter, letter) for letter in str(text))
