"""What is printed of a table: digits that are known, on lines that a terminal has room for."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from skhorseshoe._posterior.table import Summary, _as_texts
from skhorseshoe.inspection import contributions, marginal_effects, summary_of_sets
from skhorseshoe.plotting import CoefficientsDisplay
from skhorseshoe.sets import credible_sets

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


ENDS = [(-0.004, -0.0004), (0.0004, 0.004), (-4e-7, -2e-7), (0.004, 0.3), (-0.3, -0.0049), (1e-9, 2.0)]


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("drop", ["nothing", "mean", "ess", "lower", "upper"])
def test_an_interval_that_excludes_zero_is_seen_to_do_so(frame, ends, drop):
    """With as few digits as that takes; those that Monte Carlo error allows say nothing of 0.0004."""
    frame.iloc[0, :4] = [sum(ends) / 2, 0.2, *ends]
    shown = _as_texts(frame.drop(columns={"lower": "5%", "upper": "95%"}.get(drop, drop), errors="ignore"))
    for name in {"mean", "5%", "95%"} & {*shown}:
        text, value = shown[name].iloc[0], frame[name].iloc[0]
        assert np.sign(float(text)) == np.sign(value)
        assert abs(value) < 0.004 or len(text) <= len("-0.005")
        assert len(text) <= len("-0.000000")


@pytest.mark.parametrize("value", [-0.0004, -1e-9, -0.0, 0.0, 1e-9])
def test_what_rounds_to_zero_has_no_sign_where_the_interval_has_none(frame, value):
    frame.iloc[0, :4] = [value, 0.2, min(value, -1e-4), max(value, 1e-4)]
    frame["value"] = frame["weight"] = value - 0.0 * frame["mean"]
    shown = _as_texts(frame).iloc[0]
    assert shown["mean"] == shown["95%"] == shown["5%"] == "0.000"
    assert not any(float(text) == 0 and text.startswith("-") for text in shown[["value", "weight"]])


def test_of_few_draws_few_digits_are_known(frame):
    """An effective sample size is unknown where chains have fewer than four draws."""
    frame["ess"] = np.nan
    assert _as_texts(frame).iloc[0, :4].tolist() == ["1.8", "0.7", "0.7", "2.9"]


HOSTILE = ["\x1b[31mred\x1b[0m", "two\nlines", "a\ttab", "\u202eright to left", "\x9b7m", "x" * 10**5]


def levels_of(name):
    return pd.MultiIndex.from_product([["a", name], ["b", name]], names=["row", "feature"])


INDICES = [lambda name: pd.Index([name, "b", "c", 3]), levels_of, lambda name: pd.Index([("a", name), *"bcd"])]
MADE = [
    lambda frame: frame,
    lambda frame: frame.T,
    lambda frame: frame.reset_index(),
    lambda frame: frame[["mean"]],
    lambda frame: pd.concat([frame, frame], axis=1),
]


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("made", MADE)
def test_names_of_a_terminal_and_of_a_page_are_printable(frame, index, made):
    """They stay what they are in the frame."""
    indices = [index(name) for name in [*HOSTILE, "x" * 10**4 + "\x1b"]]
    frame = pd.concat([frame.set_axis(one) for one in indices])
    table = made(frame)
    for text in (repr(table), table._repr_html_()):
        assert text.replace("\n", "").isprintable()
        assert "x" * 101 not in text
    assert frame.index.tolist() == [name for one in indices for name in one]


def test_names_that_would_look_the_same_have_their_places_behind_them(frame):
    stem = "x" * 200
    frame.index = [f"{stem}a{stem}", f"{stem}b{stem}", "two\nlines", r"two\nlines"]
    assert [name[-4:] for name in _as_texts(frame).index] == [" (0)", " (1)", " (2)", " (3)"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_classes_in_sentences_are_printable(name, short_fit, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((60, 2)), columns=[name, name + "2"])
    y = np.array(["a", "\U0010ffff" + name], dtype=object)[rng.integers(0, 2, 60)]
    model = short_fit(X, y, n_iter=100)
    tables = (
        model.summary(),
        summary_of_sets(model, {name: [0, 1]}),
        marginal_effects(model, X),
        contributions(model, X[:1]),
    )
    for table in (*tables, *credible_sets(model, X, sets={name: [0, 1]}, level=0.1)):
        header = table.attrs.get("header", "")
        assert header.replace("\n", "").isprintable()
        assert max(map(len, header.split("\n"))) <= 79
        assert repr(table).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("classes", "says"),
    [(["benign", "malignant"], "'malignant'"), ([0, 1], "class 1"), ([False, True], "class True"), (["0", "1"], "'1'")],
)
def test_a_table_of_coefficients_says_which_class_positive_ones_favour(weak_problem, short_fit, classes, says):
    """In the words of the displays."""
    X, y = weak_problem
    model = short_fit(X, np.array(classes)[y], n_iter=100)
    found = credible_sets(model, X, sets={"all": [0, 1]}, level=0.1)
    tables = {"coefficients": model.summary(), "ones": model.summary_of_sets({"all": [0, 1]}), "effects": found.sets}
    for what, table in tables.items():
        assert f"positive {what} favour {says}" in " ".join(table.attrs["header"].split())
        assert table.attrs["classes"] == classes
    assert CoefficientsDisplay.from_estimator(model).ax_.get_xlabel().endswith(f"(positive favours {says})")


FORMS = [
    lambda table: table,
    lambda table: table.iloc[1:],
    lambda table: table.iloc[[1]],
    lambda table: table.sort_values("mean"),
    lambda table: table[["mean", "sd"]],
    lambda table: table.reset_index(),
    lambda table: pd.concat([table, table]),
]


@pytest.fixture(scope="module")
def tables(weak_problem, short_fit):
    """Of all draws and of few."""
    model, X = short_fit(*weak_problem, n_iter=200), weak_problem[0]
    some = [{"change": change, "max_draws": most} for change in ("auto", "sd", 0.01) for most in (None, 100, 8)]
    effects = [marginal_effects(model, X, **how) for how in some]
    return *effects, contributions(model, X[:2]), model.summary(), model.summary_of_sets({"a": [0], "b": [1, 2]})


@pytest.mark.parametrize("form", FORMS)
def test_every_table_is_printed_alike_in_every_form(tables, form):
    """Under its header, and each mean with the digits that its Monte Carlo error leaves, or that show its sign."""
    for table in tables:
        shown = form(table)
        errors = shown["sd"] / np.sqrt(shown["ess"].fillna(4) if "ess" in shown else 1000)
        for text in (repr(shown), shown._repr_html_()):
            assert table.attrs["header"] in unescape(text)
            numbers = set(re.findall(r"[-.\de]+", text))
            for value, places in zip(shown["mean"], -np.floor(np.log10(errors)).astype(int), strict=True):
                assert {f"{value:z.{more}f}" for more in range(max(places, 0), 7)} & numbers or places > 6


def test_lfsr_is_printed_where_there_is_room(frame, monkeypatch):
    frame.insert(5, "lfsr", [0.003, 0.0005, 0.0003, np.nan])
    narrow = repr(frame)
    assert "lfsr" not in narrow
    assert max(map(len, narrow.split("\n"))) <= 80
    monkeypatch.setenv("COLUMNS", "140")
    assert "lfsr" in repr(frame)
