"""Labels: read as they are, of one kind; their order, and that of the rows beside X."""

import enum
import warnings
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, inspection, terms

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2


class Grade(enum.StrEnum):
    LOW = "low"
    HIGH = "high"
    HIGHEST = "highest"


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Stage(enum.IntEnum):
    FIRST = 1
    SECOND = 2


def fit(y, **params):
    return HorseshoeProbitClassifier(n_iter=10, burn_in=5, random_state=0, **params).fit(X, y)


CLASSES = {
    "Enums of text": ([[Grade.LOW, Grade.HIGH][i] for i in Y], ["high", "low"]),
    "Enums of numbers": ([[Stage.FIRST, Stage.SECOND][i] for i in Y], [1, 2]),
    "a zero at the end": ([["a", "a\0"][i] for i in Y], ["a", "a\0"]),
    "a zero at the end in a tuple": (tuple(["b\0", "b\0\0"][i] for i in Y), ["b\0", "b\0\0"]),
    "text of NumPy": (np.array(["a", "b"], np.dtypes.StringDType())[Y] if hasattr(np.dtypes, "StringDType") else list(
        np.array(["a", "b"])[Y]), ["a", "b"]),
    "large numbers": ([[2**63, 2**63 + 1][i] for i in Y], [2**63, 2**63 + 1]),
    "truth values and numbers": ([[False, 1][i] for i in Y], [0, 1]),
    "categories of truth values": (pd.Categorical(Y == 1), [False, True]),
}  # fmt: skip


@pytest.mark.parametrize(("labels", "classes"), CLASSES.values(), ids=CLASSES)
@pytest.mark.filterwarnings("error")
def test_labels_that_differ_are_classes_that_differ(labels, classes):
    with pytest.warns(UserWarning, match="have not converged"):
        model = fit(labels)
    assert list(map(repr, model.classes_.tolist())) == list(map(repr, classes))
    assert np.isin(model.predict(X), model.classes_).all()
    assert 0 < model.score(X, labels) < 1


REFUSED = {
    "one class": (np.ones(30), "only one class, .*needs rows of two classes"),
    "numbers": (X[:, 0], "continuous"),
    "numbers whose sum overflows": (np.where(Y, 1e308, 0.5), "continuous"),
    "bool objects": (Y.astype(bool).astype(object), r"y holds bool as objects.*astype\(bool\)"),
    "times": (
        pd.date_range("2020", periods=2, tz="UTC")[Y],
        r"Unknown label type: y holds labels of type Timestamp.*str\(label\)",
    ),
    "masked": (np.ma.masked_equal(np.arange(30), 7), "y is a masked .*row 7: leave"),
    "numbers and text": ([1, "1", "2"] * 10, "y holds int and str: labels must be of one kind"),
    "text and numbers": (np.array(["1", 1] * 15, object), "y holds int and str: labels must be of one kind"),
    "too large": ([0, 2**64] * 15, "too large for an array to tell apart: give them as text"),
    "too large in objects": (np.array([2**64, 2**64 + 1] * 15, object), "too large .* give them as text"),
    "too large for floats": ([2**53 + 1, 0.5] * 15, "too large .* give them as text"),
    "bytes without a type": (np.zeros(30, "V8"), r"y has dtype \|V8; labels are numbers, booleans or strings"),
    "records": (np.zeros(30, [("a", "i4")]), "y has dtype .*; labels are numbers, booleans or strings"),
    "complex": (Y + 0j, "y has dtype complex128; labels are numbers, booleans or strings"),
    "rounded beside a fraction": (
        np.array([np.int64(2**53 + 1), np.float64(0.5)] * 15, object),
        "too large .* as text",
    ),
    "Enums": (
        [[Colour.RED, Colour.BLUE][i] for i in Y],
        r"type Colour\. Give their names: \[label\.name for label in y\]",
    ),
    "Enums in a Series": (pd.Series([[Colour.RED, Colour.BLUE][i] for i in Y]), "type Colour"),
    "lists": (pd.Series([[i, 1] for i in Y]), "type list. Give one for each row"),
    "lists of other lengths": ([[1] * (1 + i) for i in Y], "type list. Give one for each row"),
    "tuples": (pd.Series([(i, 1) for i in Y]), "type tuple. Give one for each row"),
    "dicts": ([{"a": i} for i in Y], "type dict"),
    "NaN of Decimal": ([Decimal("sNaN"), *[Decimal(1)] * 29], "The label of row 0 is missing"),
    "masked in a list": ([*Y[:29], np.ma.masked], "y is a masked array, .* row 29: leave such rows out"),
}


@pytest.mark.parametrize(("labels", "says"), REFUSED.values(), ids=REFUSED)
@pytest.mark.filterwarnings("error")
def test_unusable_labels_are_refused(labels, says):
    with pytest.raises(ValueError, match=says):
        fit(labels)


@pytest.mark.parametrize("kind", [list, pd.Series])
def test_labels_to_score_are_of_the_kinds_of_fit(kind):
    model = fit(Y)
    with pytest.raises(ValueError, match="labels of type Colour"):
        model.score(X, kind([Colour.RED] * 30))


LEVELS = ["low", "mid", "high"]
RANKS = np.arange(30) % 3
GRADES = pd.Series(np.array(LEVELS)[RANKS], dtype=pd.CategoricalDtype(LEVELS, ordered=True))


@pytest.mark.parametrize("y", [GRADES, GRADES.to_frame(), GRADES.array])
def test_an_order_of_more_classes_that_is_not_used_is_told(y):
    with pytest.warns(
        UserWarning, match=r"y is ordered, 'low' < 'mid' < 'high', .*HorseshoeProbitClassifier\(ordered=True\)"
    ):
        fit(y)


@pytest.mark.parametrize("y", [RANKS, RANKS / 1.0, [Stage(1), Stage(2), 3] * 10, GRADES.astype(str)])
def test_more_classes_are_fitted_as_they_are(y):
    assert fit(y).classes_.tolist() == sorted(set(np.asarray(y).tolist()))


def test_rows_of_weight_0_may_hold_a_third_class():
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=5).fit(X, GRADES, (GRADES != "mid").astype(float))
    assert model.classes_.tolist() == ["high", "low"]


@pytest.mark.parametrize("as_series", [True, False])
def test_categories_in_another_order_than_the_classes_are_told(as_series, said):
    """scikit-learn's scorers take the last label, sorted, for the positive one."""
    model, names = HorseshoeProbitClassifier(n_iter=10, burn_in=5), np.array(["low", "high"])
    for order, told in ((["low", "high"], True), (["high", "low"], False), (["none", "high", "low"], False)):
        y = pd.Categorical(names[Y], order, ordered=True)
        texts = said(model, X, pd.Series(y) if as_series else y, "y is ordered, 'low' < 'high'")
        assert len(texts) == told
        assert model.classes_.tolist() == ["high", "low"]
    assert not said(model, X, pd.Series(pd.Categorical(names[Y], ["low", "high"])), "y is ordered")


def test_rows_in_another_order_than_their_labels_are_told(said):
    """Rows are matched by position, as everywhere in scikit-learn."""
    model, frame, y = HorseshoeProbitClassifier(n_iter=10, burn_in=5), pd.DataFrame(X), pd.Series(Y)
    moved, patients = np.roll(np.arange(30), 1), pd.Index(np.repeat(list("abcdef"), 5))
    for rows, labels, weights, told in (
        (frame, y, None, []),
        (frame.iloc[moved], y, None, ["y.loc[X.index]"]),
        (frame.iloc[moved], y.iloc[moved], None, []),
        (frame.iloc[moved], Y, None, []),
        (frame, y, pd.Series(np.ones(30)).iloc[moved], ["sample_weight.loc[X.index]"]),
        (frame, y.set_axis(range(30, 60)), None, []),  # other labels, which say nothing
        (frame.set_axis(patients), y.set_axis(patients), None, []),
        (frame.set_axis(patients), y.set_axis(patients[::-1]), None, ["y.loc[X.index]"]),
    ):
        texts = said(model, rows, labels, "the same index labels in another order", sample_weight=weights)
        assert len(texts) == len(told)
        assert all(cure in text for cure, text in zip(told, texts, strict=True))


def test_what_is_asked_of_a_model_tells_an_order_that_differs():
    """As ``fit`` does: of labels, weights and offsets that are matched to rows by position."""
    frame, y = pd.DataFrame(X, columns=list("abc")), pd.Series(Y)
    moved = np.roll(np.arange(30), 1)
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=5).fit(frame, y)
    with_offset = clone(model).fit(frame, y, offset=np.zeros(30))
    behind = [make_pipeline(StandardScaler().set_output(transform=kind), with_offset) for kind in ("default", "pandas")]
    behind = [pipe.fit(frame, y, horseshoeprobitclassifier__offset=np.zeros(30)) for pipe in behind]
    of_pipes = inspection.predict_interval, inspection.predict_proba_samples, partial(inspection.calibration, y=y)
    uses = {
        "y": [
            lambda v: model.score(frame, v),
            lambda v: HorseshoeSelector(model, prefit=True, rule="interval").fit(frame, v),
            lambda v: inspection.select(behind[0], frame, v, rule="interval"),
        ],
        "sample_weight": [
            lambda v: model.score(frame, y, v),
            lambda v: inspection.marginal_effects(model, frame, sample_weight=v),
            lambda v: terms.summary(model, X=frame, sample_weight=v),
            lambda v: HorseshoeSelector(model, prefit=True, rule="interval").fit(frame, sample_weight=v),
        ],
        "offset": [
            lambda v: with_offset.score(frame, y, offset=v),
            lambda v: inspection.marginal_effects(with_offset, frame, offset=v),
            *(lambda v, ask=ask, pipe=pipe: ask(pipe, frame, offset=v) for ask in of_pipes for pipe in behind),
        ],
    }
    for name, asked in uses.items():
        values = y if name == "y" else pd.Series(np.ones(30))
        for ask in asked:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ask(values)
                ask(values.to_numpy()[moved])
                ask(values.iloc[moved])
            told = [w for w in caught if f"X and {name} have the same index labels in another order" in str(w.message)]
            assert len(told) == 1
            assert f"{name}.loc[X.index] matches" in str(told[0].message)
            assert told[0].filename == __file__
