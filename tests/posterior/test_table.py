"""What is printed of a table: digits that are known, on lines that a terminal has room for."""

import numpy as np
import pandas as pd
import pytest

from skhorseshoe._posterior.table import Summary

NAMES = ["age", "mean fractal dimension of the nuclei", "num__cholesterol in the blood, mg/dl", "(intercept)"]


@pytest.fixture
def frame():
    columns = {
        "mean": [1.84213, -0.123456, 12.5, 3.456],
        "sd": [0.66, 0.2, 0.1, np.nan],
        "5%": [0.733, -0.416, 12.3, 1.0],
        "95%": [2.888, 0.309, 12.7, 5.0],
        "prob_positive": [0.99734, 0.0, 1.0, np.nan],
        "shrinkage": [0.1312, 0.0, 1.0, np.nan],
        "ess": [2300.4, 2000.0, 4000.2, np.nan],
        "rhat": [1.00049, 1.0, np.nan, 1.2345],
    }
    frame = Summary(columns, index=pd.Index(NAMES, name="feature"))
    frame.attrs["header"] = "4 chains of 2000 draws"
    return frame


def test_digits_are_those_that_monte_carlo_error_allows(frame):
    """The last one is the first that is not sure: 0.66 / sqrt(2300) is 0.014, 2e-5 / sqrt(2000) is 4.5e-7."""
    frame.iloc[1, :4] = [-0.000123456, 2e-5, -0.00016, -0.00009]
    html = frame._repr_html_()
    for text in ["1.84", "0.66", "-1.235e-04", "12.500", "0.997", "1.000", "0.13", "2300", "1.234", "3.46"]:
        assert f"<td>{text}</td>" in html
    assert "1.8421" not in html
    assert frame["mean"].iloc[0] == 1.84213  # the frame itself holds all of them
    assert float(frame.to_csv().splitlines()[1].split(",")[1]) == 1.84213


@pytest.mark.parametrize("columns", [79, 80, 100, 200])
def test_a_table_fits_the_terminal(frame, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pd.option_context("display.width", columns):
        lines = repr(frame).split("\n\n")[1].split("\n")
    assert len(lines) == 6  # two of headings, and the rows
    assert max(map(len, lines)) <= columns
    assert ("…" in lines[3]) == (columns <= 100)
    if columns < 100:
        at = lines[0].index("   prob_")
        assert lines[1][at : at + 8] == "positive"
        assert lines[2][at : at + 8] == "   0.997"


def test_numbers_of_many_digits_fit_the_terminal(frame, monkeypatch):
    monkeypatch.setenv("COLUMNS", "79")
    frame.iloc[1, :4] = [-0.03322, 0.002, -0.0489, -0.0189]
    with pd.option_context("display.width", 79):
        head, below, *rows = repr(frame).split("\n\n")[1].split("\n")
    assert len(rows) == 4
    assert max(map(len, (head, below, *rows))) <= 79
    assert rows[1].split()[-8:-4] == ["-0.03322", "0.00200", "-0.04890", "-0.01890"]


def test_names_that_would_become_the_same_are_not_cut(frame, monkeypatch):
    monkeypatch.setenv("COLUMNS", "79")
    frame.index = pd.Index([f"the gene with the number {i} of all genes" for i in range(4)], name="feature")
    with pd.option_context("display.width", 79):
        assert "the gene with the number 3 of all genes" in repr(frame)


def test_a_table_without_rows_is_printed_where_room_is_short(frame, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    with pd.option_context("display.width", 40):
        assert "Empty DataFrame" in repr(frame.iloc[:0])


def test_frames_that_are_made_of_a_table_are_printed(frame):
    for made in (frame.T, frame.astype(str), frame.describe(), frame.iloc[:0], frame[["mean"]], frame.round(2)):
        assert repr(made)
    assert "1.84213" in repr(frame[["mean"]])  # nothing is known of its error
    numbers = frame.select_dtypes("number")
    for made in (pd.concat([frame, frame], axis=1), frame.reset_index(), numbers - numbers, -numbers, numbers.isna()):
        assert repr(made)
    assert "True" in repr(numbers > 0)


def test_a_share_is_certain_only_where_all_draws_say_so(frame):
    frame.loc[:, "prob_positive"] = [0.9996, 0.0004, 1.0, 0.5][: len(frame)]
    text = repr(frame)
    assert ">0.999" in text
    assert "<0.001" in text


def test_lfsr_is_printed_where_there_is_room(frame, monkeypatch):
    frame.insert(5, "lfsr", [0.003, 0.0005, 0.0003, np.nan])
    narrow = repr(frame)
    assert "lfsr" not in narrow
    assert max(map(len, narrow.split("\n"))) <= 80
    monkeypatch.setenv("COLUMNS", "140")
    assert "lfsr" in repr(frame)
