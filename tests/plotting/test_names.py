"""Names that are long or look like formulas: they are drawn literally, shortened, and nothing is cut."""

import io
from itertools import product

import pytest
from artists import EVERY, made, outside, overlap, row_names
from matplotlib import pyplot as plt

from skhorseshoe._utils.names import shorten
from skhorseshoe.plotting import (
    AutocorrelationDisplay,
    CoefficientsDisplay,
    ContributionsDisplay,
    CredibleSetsDisplay,
    EffectsDisplay,
    ModelSizeDisplay,
    PosteriorCalibrationDisplay,
    ProbabilityIntervalDisplay,
    ShrinkageDisplay,
    TraceDisplay,
)

pytestmark = pytest.mark.filterwarnings("error")  # Matplotlib only warns where a layout is impossible
STRANGE = ["$price$", "$x_{$", "_hidden", r"a\$b$", r"\frac", "50 % of ^", "cost in $"]
LONG = [f"onehotencoder__occupation_Level 4 manager {j:04d}" if j % 3 else f"Größe{j}" for j in range(100)]


ROWS = [CoefficientsDisplay, ShrinkageDisplay, ProbabilityIntervalDisplay]  # they stand for all displays of rows
OTHERS = [TraceDisplay, AutocorrelationDisplay, PosteriorCalibrationDisplay, ModelSizeDisplay]  # few names or none
WIDE = [display for display in EVERY if display is not ContributionsDisplay]  # its names and values leave less room


@pytest.mark.parametrize(
    ("display", "n", "font"),
    [
        *product(WIDE, [1], [10]),
        *product(WIDE, [10], [16]),
        *product(ROWS, [30, 100], [10]),
        *product(OTHERS, [10], [10]),
    ],
)
def test_nothing_is_cut(display, n, font):
    plt.rc("font", size=font)
    shown = made(display, LONG[:n], label=LONG[1]).plot()
    assert outside(shown.figure_) == []
    axes = shown.axes_[:, 0] if display is TraceDisplay else [shown.ax_]
    assert min(ax.get_window_extent().width for ax in axes) / shown.figure_.dpi > 30 / font


@pytest.mark.parametrize("display", [display for display in EVERY if display is not TraceDisplay])
def test_parts_of_a_figure_leave_its_size(display):
    figure = plt.figure(figsize=(9, 8), layout="constrained")
    above, below = figure.subfigures(2)
    for ax in (*above.subplots(1, 2), below.subplots()):
        made(display, LONG[:12], label=LONG[1]).plot(ax=ax)
    assert outside(figure) == []
    assert tuple(figure.get_size_inches()) == (9, 8)


@pytest.mark.parametrize("display", [*ROWS, EffectsDisplay, CredibleSetsDisplay])
@pytest.mark.parametrize("size", [(5.5, 7), pytest.param((6.4, 4.8), marks=pytest.mark.slow)])
def test_names_legends_and_labels_fit_small_axes(display, size):
    figure, axes = plt.subplots(2, 2, figsize=size, dpi=300, layout="constrained")
    for ax in axes.flat:
        made(display, [f"marker {j}" for j in range(20)], label="malignant").plot(ax=ax)
    figure.draw_without_rendering()
    for ax in axes.flat:
        assert not overlap(ax.get_yticklabels())
    for texts in ([ax.legend_ for ax in axes[0]], [ax.xaxis.label for ax in axes[0]]):
        left, right = (text.get_window_extent() for text in texts)
        assert left.x0 >= 0
        assert right.x0 >= left.x1


def test_long_names_leave_room_in_a_large_font():
    plt.rc("font", size=16)
    shown = made(ContributionsDisplay, LONG[:10], label=LONG[1]).plot()
    assert outside(shown.figure_) == []
    assert shown.ax_.get_window_extent().width > 0.35 * shown.figure_.bbox.width
    shown.upper_.set_xlim(shown.ax_.get_xlim())
    assert not overlap(shown.upper_.get_xticklabels())


def looks_like(label, text):
    """Whether a text is drawn as wide as another one is literally."""
    literal = label.figure.text(0, 0, text, fontproperties=label.get_fontproperties(), parse_math=False)
    return label.get_window_extent().width == pytest.approx(literal.get_window_extent().width, abs=0.5)


def test_names_of_rows_are_literal():
    shown = made(ShrinkageDisplay, STRANGE).plot(order="original")
    shown.figure_.draw_without_rendering()
    for label, name in zip(shown.ax_.get_yticklabels(), STRANGE, strict=True):
        assert looks_like(label, name)


def test_names_in_a_legend_are_literal():
    shown = made(AutocorrelationDisplay, STRANGE).plot()
    for label, name in zip(shown.legend_.get_texts(), STRANGE, strict=True):
        assert looks_like(label, f"{' ' * (name == '_hidden')}{name} (ESS 1234)")


@pytest.mark.parametrize("label", STRANGE[:3])
def test_labels_of_classes_are_literal(label):
    shown = made(ProbabilityIntervalDisplay, STRANGE, label=label).plot()
    assert looks_like(shown.ax_.xaxis.label, f"probability of '{label}' and 90 % interval")
    assert looks_like(shown.legend_.get_texts()[0], f"in truth '{label}'")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_strange_names_are_saved(kind):
    for names in (STRANGE, [f"{name}{j}" for j in range(10) for name in STRANGE]):
        made(CoefficientsDisplay, names).plot(top=None).figure_.savefig(io.BytesIO(), format=kind)


def test_a_name_has_one_line():
    names = ["two\nlines", "a\ttab", "\x1b[31mred", "\u202eleft", "\x9b7m"]
    shown = made(ShrinkageDisplay, names).plot(order="original")
    assert row_names(shown.ax_) == ["two lines", "a tab", r"\x1b[31mred", r"\u202eleft", r"\x9b7m"]
    assert outside(shown.figure_) == []


def test_shortened_names_can_be_told_apart():
    stem = "x" * 30
    names = [f"{stem}{c}{stem}" for c in "abc"] + [f"begin{stem}{stem}", f"{stem}{stem}end", "short"]
    first, second, third, begin, end, short = row_names(made(ShrinkageDisplay, names).plot(order="original").ax_)
    assert [text[-7:] for text in (first, second, third)] == ["xxx (0)", "xxx (1)", "xxx (2)"]
    assert begin.startswith("beginxx")
    assert end.endswith("xxend")
    assert short == "short"
    assert len(first) == len(begin) < 40


def test_the_number_of_more_columns_stays_whole():
    assert shorten("GENE18 and 12 more", 14) == "GENE18 +12"
    assert shorten("GENE1800000000 and 12 more", 14) == "GENE180…00 +12"
    assert shorten("GENE18 and 12 more", 20) == "GENE18 and 12 more"


def test_equal_names_stay_equal():
    assert len(set(row_names(made(ShrinkageDisplay, [LONG[1], LONG[1]]).plot().ax_))) == 1


@pytest.mark.parametrize("names", [["age", "bmi"], ["(intercept)", "(global scale)"], LONG[1:3]])
@pytest.mark.parametrize("new", [True, False])
def test_titles_of_traces_do_not_overlap(names, new):
    ax = None if new else plt.subplots(layout="constrained")[1]
    display = made(TraceDisplay, names).plot(ax=ax)
    display.figure_.draw_without_rendering()
    trace, ranks = ([text for text in ax.findobj(plt.Text) if text.get_text()] for ax in display.axes_[0])
    title = next(text for text in trace if "R-hat" in text.get_text())
    beside = next(text for text in ranks if text.get_text().startswith("ranks"))
    assert title.get_window_extent().x1 < beside.get_window_extent().x0
