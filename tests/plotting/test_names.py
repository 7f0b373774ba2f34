"""Names that are long or look like formulas: they are drawn literally, shortened, and nothing is cut."""

import io
import warnings
from itertools import product

import numpy as np
import pytest
from artists import outside, texts
from matplotlib import pyplot as plt

from skhorseshoe.plotting import (
    AutocorrelationDisplay,
    CoefficientsDisplay,
    PosteriorCalibrationDisplay,
    ProbabilityIntervalDisplay,
    ShrinkageDisplay,
    TraceDisplay,
)

LENGTHS = [5, 41, 100]
STRANGE = ["$price$", "$x_{$", "_hidden", r"a\$b$", r"\frac", "50 % of ^", "cost in $"]


def of_length(length, n):
    """Every third one is short, with an umlaut."""
    stem = ("onehotencoder__occupation_Level 4 manager of " * 3)[: length - 4]
    return [f"{stem}{j:04d}" if j % 3 else f"Größe{j}" for j in range(n)]


def made(display, names, label="well"):
    """A display of made-up statistics, not yet drawn."""
    rng = np.random.default_rng(0)
    n = len(names)
    mean = rng.uniform(0.2, 0.8, n)
    interval = mean + np.array([[-0.5], [0.1]]) * rng.random(n)
    if display is CoefficientsDisplay:
        return display(names=names, mean=mean, interval=interval - 0.3 * (np.arange(n) > 10), level=0.9)
    if display is ShrinkageDisplay:
        return display(names=names, shrinkage=mean)
    if display is ProbabilityIntervalDisplay:
        classes = np.array(["ill", label], dtype=object)
        y = classes[rng.integers(2, size=n)]
        return display(names=names, mean=mean, interval=interval, level=0.9, classes=classes, y=y)
    if display is PosteriorCalibrationDisplay:
        p = np.linspace(0, 1, 9)
        return display(predicted=p, observed=p, band=np.stack([p, p]), counts=np.ones(9), level=0.9, label=label)
    if display is TraceDisplay:
        return display(names=names[:3], draws=rng.standard_normal((min(n, 3), 4, 50)))
    curves = 0.8 ** np.arange(30) * np.ones((min(n, 8), 1))
    return display(names=names[:8], autocorrelations=curves, ess=np.full(len(curves), 1234.5))


@pytest.fixture(autouse=True)
def _no_warning():
    """Matplotlib only warns where a layout is impossible."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


ROWS = [CoefficientsDisplay, ShrinkageDisplay, ProbabilityIntervalDisplay]
CHAINS = [TraceDisplay, AutocorrelationDisplay]
EVERY = [*ROWS, *CHAINS, PosteriorCalibrationDisplay]


def all_of(displays, *others, default):
    """Every combination, of which only those with the default values of the others are not slow ones."""
    slow = {tuple(values): pytest.mark.slow for values in product(*others) if values != default}
    each = product(displays, product(*others))
    return [pytest.param(display, *values, marks=slow.get(values, ())) for display, values in each]


@pytest.mark.parametrize(("display", "length", "n"), all_of(EVERY, LENGTHS, [2, 30, 1000], default=(41, 30)))
def test_nothing_is_cut(display, length, n):
    names = of_length(length, n)
    shown = made(display, names, label=names[1]).plot()
    assert outside(shown.figure_) == []
    width, _ = shown.figure_.get_size_inches()
    axes = shown.axes_[:, 0] if display is TraceDisplay else [shown.ax_]
    assert min(ax.get_window_extent().width for ax in axes) / shown.figure_.dpi > 3.5
    assert width < 10
    if length == 5:
        assert width == (8 if display is TraceDisplay else 6.4)
    if hasattr(shown, "names"):
        assert shown.names == names[: len(shown.names)]


@pytest.mark.parametrize(("length", "top"), [*product(LENGTHS, [5, None])])
def test_coefficients_beyond_the_names(length, top):
    shown = made(CoefficientsDisplay, of_length(length, 1000)).plot(top=top)
    assert outside(shown.figure_) == []


@pytest.mark.parametrize(
    ("display", "length", "layout"),
    all_of(ROWS + EVERY[4:], LENGTHS, ["constrained", "tight", "compressed"], default=(41, "constrained")),
)
def test_axes_side_by_side(display, length, layout):
    names = of_length(length, 12)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout=layout)
    for ax in axes:
        made(display, names, label=names[1]).plot(ax=ax)
    assert outside(figure) == []
    assert tuple(figure.get_size_inches()) == (9, 4)


@pytest.mark.parametrize("display", EVERY)
def test_a_large_font_and_parts_of_a_figure(display):
    plt.rc("font", size=16)
    assert outside(made(display, of_length(41, 10), label="x" * 41).plot().figure_) == []
    plt.rc("font", size=10)
    figure = plt.figure(figsize=(7, 10), layout="constrained")
    for part in figure.subfigures(2):
        made(display, of_length(41, 10), label="x" * 41).plot(ax=part.subplots())
    assert outside(figure) == []
    ax = plt.figure(figsize=(7, 4)).add_axes((0.4, 0.2, 0.5, 0.5))
    if display is not TraceDisplay:
        assert made(display, of_length(41, 4), label="x" * 41).plot(ax=ax).ax_ is ax


def looks_like(label, text):
    """Whether a text is drawn as wide as another one is literally."""
    literal = label.figure.text(0, 0, text, fontproperties=label.get_fontproperties(), parse_math=False)
    return label.get_window_extent().width == pytest.approx(literal.get_window_extent().width, abs=0.5)


@pytest.mark.parametrize("display", ROWS)
def test_names_of_rows_are_literal(display):
    shown = made(display, STRANGE).plot()
    shown.figure_.canvas.draw()
    for label, j in zip(shown.ax_.get_yticklabels(), shown.shown_, strict=True):
        assert looks_like(label, STRANGE[j])


def test_other_names_are_literal():
    shown = made(AutocorrelationDisplay, STRANGE).plot()
    assert len(texts(shown.ax_)) == len(STRANGE)
    for label, name in zip(shown.legend_.get_texts(), STRANGE, strict=True):
        assert looks_like(label, f"{' ' * (name == '_hidden')}{name} (ESS 1234)")
    for label in STRANGE:
        shown = made(PosteriorCalibrationDisplay, [], label=label).plot()
        assert looks_like(shown.ax_.xaxis.label, f"predicted probability of {label}")
        shown = made(ProbabilityIntervalDisplay, STRANGE, label=label).plot()
        assert looks_like(shown.ax_.xaxis.label, f"probability of {label} and 90 % interval")
        assert looks_like(shown.legend_.get_texts()[0], f"in truth {label}")


@pytest.mark.parametrize(("display", "kind"), all_of(EVERY, ["png", "svg", "pdf"], default=("png",)))
def test_strange_names_are_saved(display, kind):
    for names in (STRANGE, [f"{name}{j}" for j in range(10) for name in STRANGE]):
        made(display, names, label="$x_{$").plot().figure_.savefig(io.BytesIO(), format=kind)


def test_a_name_has_one_line():
    shown = made(ShrinkageDisplay, ["two\nlines", "a\ttab"]).plot(order="original")
    assert [label.get_text() for label in shown.ax_.get_yticklabels()] == ["two lines", "a tab"]


def test_shortened_names_can_be_told_apart():
    stem = "x" * 30
    names = [f"{stem}{c}{stem}" for c in "abc"] + [f"begin{stem}{stem}", f"{stem}{stem}end", "short"]
    shown = made(ShrinkageDisplay, names).plot(order="original")
    drawn = [label.get_text() for label in shown.ax_.get_yticklabels()]
    assert len(set(drawn)) == len(names)
    assert all(text.endswith(f"xxx ({j})") for j, text in enumerate(drawn[:3]))
    assert drawn[3].startswith("beginxx")
    assert drawn[4].endswith("xxend")
    assert drawn[5] == "short"
    assert max(map(len, drawn)) == 35
    same = made(ShrinkageDisplay, [names[0], names[0]]).plot()
    assert len({label.get_text() for label in same.ax_.get_yticklabels()}) == 1


@pytest.mark.parametrize("length", LENGTHS)
def test_titles_of_traces_do_not_overlap(length):
    display = made(TraceDisplay, of_length(length, 3)[::-1])
    display.plot()
    assert outside(display.figure_) == []
    _, ax = plt.subplots(layout="constrained")
    for axes in (display.axes_, display.plot(ax=ax).axes_):
        axes[0, 0].figure.canvas.draw()
        titles = [text for ax in axes[0] for text in ax.findobj(plt.Text) if "R-hat" in text.get_text()]
        ranks = next(text for text in axes[0, 1].findobj(plt.Text) if text.get_text().startswith("ranks"))
        assert titles[0].get_window_extent().x1 < ranks.get_window_extent().x0
    assert ("\n" in titles[0].get_text()) == (length > 5)
