"""Tables in Markdown and LaTeX: the numbers that are printed, and names that are only names."""

import io
import re
import sys

import numpy as np
import pandas as pd
import pytest

from skhorseshoe import terms
from skhorseshoe.inspection import contributions

NAME = r"a|b_c&d%e$f#g\h{i}~^<j>*"


@pytest.fixture(scope="module")
def model(weak_problem, short_fit):
    X = pd.DataFrame(weak_problem[0], columns=[NAME, "age", "ward of 3"])
    return short_fit(X, weak_problem[1], n_iter=150), X


def rows_of(text, between, end):
    """The cells of the lines that end so."""
    lines = [line.removesuffix(end).strip() for line in text.split("\n") if line.endswith(end)]
    return [[cell.strip() for cell in re.split(rf"(?<!\\)\{between}", line)] for line in lines]


def test_numbers_are_those_that_are_printed(model):
    model, X = model
    for table in (model.summary(), contributions(model, X[:2]), terms.summary(model), model.summary()[:0]):
        printed = {word for line in repr(table).split("\n") for word in line.split()}
        markdown = rows_of(table.to_markdown().replace("| ", "|", 1), "|", " |")
        latex = rows_of(table.to_latex(), "&", r"\\")
        n = table.index.nlevels
        assert [row[-table.shape[1] :] for row in markdown[2:]] == [row[n:] for row in latex[1:]]
        for row in latex[1:]:
            numbers = [cell for cell, name in zip(row[n:], table.columns, strict=True) if name != "lfsr"]
            assert {cell for cell in numbers if cell} <= printed


def test_names_are_escaped(model):
    model, _ = model
    table = model.summary()
    row = next(line for line in table.to_markdown().split("\n") if "age" not in line and r"\|" in line)
    assert row.startswith(r"| a\|b\_c\&d%e\$f\#g\\h\{i\}\~^\<j\>\* |")
    assert re.sub(r"\\(.)", r"\1", row).startswith(f"| {NAME} |")
    assert (
        r"a\textbar{}b\_c\&d\%e\$f\#g\textbackslash{}h\{i\}\textasciitilde{}\textasciicircum{}\textless{}j\textgreater{}*"
        r" & "
    ) in table.to_latex()


def test_the_header_is_above_the_table(model):
    model, X = model
    table = model.summary()
    text = table.to_markdown()
    first, *details = text.split("\n\n")[:-1]
    assert first.startswith("4 chains of 150 draws")
    assert first.endswith("class 1")
    assert [each.partition(":")[0] for each in details] == ["Prior", "Sampler", "Draws", "Convergence", r"m\_eff"]
    assert "  " not in "".join(details)
    latex = contributions(model, X[:1]).to_latex(label="tab:one")
    assert latex.startswith("\\begin{table}\n\\centering\n\\caption{P(y = 1) of each row, and")
    assert "90 \\% interval" in latex
    assert "\\label{tab:one}\n\\begin{tabular}{lllrrrr}\n\\toprule\n" in latex
    assert table.to_latex(caption="").startswith("\\begin{tabular}{l")
    assert r"\caption{Of $\beta$}" in table.to_latex(caption=r"Of $\beta$")


def test_a_caption_says_what_the_table_is_not_how_it_was_sampled(model, of_patients):
    tables = [model[0].summary(), model[0].summary(level=0.5), of_patients.summary(sort_by="mean")]
    captions = [re.search(r"\\caption\{(.*)\}\n", table.to_latex())[1] for table in tables]
    assert captions[0].startswith(
        r"Coefficients of a probit regression with the horseshoe prior: posterior mean, standard deviation and 90 \% "
        "interval; positive coefficients favour class 1"
    )
    assert r"50 \% interval" in captions[1]
    assert "prior, given the group of rows:" in captions[2]
    for text, table in zip(captions, tables, strict=True):
        assert text.endswith("; chains NOT converged.") == ("NOT converged" in table.attrs["header"])
        assert not re.search(r"hmc|step|burn|thin|sweep|R-hat|\bess\b|m_eff|draws", text)
    assert tables[0].to_latex(caption="x").count("caption") == 1


def test_rows_of_one_patient_are_named_once(model):
    model, X = model
    lines = contributions(model, X[:2], top=None).to_markdown().strip().split("\n\n")[-1].split("\n")
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["0", "", "", "", "", "1", "", "", "", ""]


def test_texts_are_written_where_they_are_asked_for(model, tmp_path):
    table = model[0].summary()
    for write in (table.to_markdown, table.to_latex):
        text, file = write(), io.StringIO()
        assert write(file) is None
        assert file.getvalue() == text
        assert write(tmp_path / "table") is None
        assert (tmp_path / "table").read_text(encoding="utf-8") == text
        assert "ward of 3" in text
        assert "ward of 3" not in write(index=False)
        with pytest.raises(TypeError, match="unexpected keyword argument 'float_format'"):
            write(float_format="%.2f")
    assert len(rows_of(table.to_latex(index=False), "&", r"\\")[0]) == table.shape[1]


def test_a_table_that_has_lost_its_header_is_one_too(model):
    table = model[0].summary()
    table.attrs = {}
    assert table.to_markdown().startswith("| feature |")
    assert table.to_latex().startswith(r"\begin{tabular}")
    whole = table.reset_index(drop=True)[["mean"]]
    assert whole.to_markdown().startswith("|  | mean |\n| --- | ---: |\n| 0 | ")
    assert np.array_equal(pd.DataFrame(whole), whole)


def test_no_other_package_is_needed(model, monkeypatch):
    for name in ("tabulate", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    assert model[0].summary().to_markdown()
    assert model[0].summary().to_latex()
