"""Labels: checks of y for ``fit`` and scores, and the two classes."""

from collections.abc import Collection, Hashable
from enum import Enum

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._backends import device
from .._utils.arrays import is_missing, refuse_masked
from .._utils.warn import is_text_behind_numbers

_SHOWN = 10  # classes that an error names
_KEEPING_ORDER = (
    "Make them text in the same order: y.cat.rename_categories(str), or of a Categorical y.rename_categories(str)."
)
_NUMBERED = (
    "Where scikit-learn puts numbers in place of labels, in sorted order (cross_val_predict of probabilities, "
    "stacking, voting, bagging), give y as numbers in the order of the classes, and ordered=True."
)
_MOST_CLASSES = 255
_KINDS = {"text": str, "numbers": (bool, int, float, np.bool_, np.integer, np.floating)}


def check_labels(y, name="y"):
    """Labels in one dimension, on the host, of one kind; a ValueError if one is masked or missing. name : in errors."""
    refuse_masked(y, name)
    has_order = order_of(y) is not None
    original = y if isinstance(y, list | tuple) else None
    if original is not None:  # an array of text would hide missing labels and numbers, and change labels of an Enum
        try:
            y = np.asarray(y, object)
        except ValueError:  # of lists that are not equally long
            y = np.fromiter(y, object, len(y))
    elif (dtype := nullable_type(y)) is not None:
        refuse_missing(y, name=name)
        y = y.to_numpy(dtype)
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if isinstance(y, np.ndarray) and kind in "Vc":
        complex_ = "Complex data not supported: " if kind == "c" else ""  # as scikit-learn says of X
        raise ValueError(f"{complex_}{name} has dtype {y.dtype}; labels are numbers, booleans or strings.")
    y = column_or_1d(device.to_host(y.astype(object) if kind == "T" else y), warn=name == "y")
    refuse_missing(y, name=name)
    return _of_one_kind(y, original, name, has_order) if y.dtype == object else y


def nullable_type(y):
    """NumPy's type for labels of pandas that scikit-learn makes floats, nullable ones and categories of booleans; None
    for other labels."""
    dtype = _dtype_of(y)
    if isinstance(dtype, pd.CategoricalDtype):
        return np.dtype(bool) if pd.api.types.is_bool_dtype(dtype.categories) else None
    dtype = getattr(dtype, "numpy_dtype", None)
    return dtype if dtype is not None and dtype.kind in "biu" else None


def order_of(y):
    """The labels of an ordered pandas Categorical, or of a table or column of one, from the lowest; None for others."""
    dtype = _dtype_of(y)
    return dtype.categories.tolist() if getattr(dtype, "ordered", False) else None


def _dtype_of(y):
    column = y.iloc[:, 0] if isinstance(y, pd.DataFrame) and y.shape[1] == 1 else y
    return getattr(column, "dtype", None)


def _of_one_kind(objects, original=None, name="y", has_order=False):
    """Labels (n,) that are objects, checked; a ValueError for several kinds, or whole numbers that no array can hold.

    original : the list that the labels come from, which then get an array of their own type; None if they were objects.
    has_order : whether they come from an ordered pandas Categorical.
    """
    kinds = {next((kind for kind, types in _KINDS.items() if issubclass(cls, types)), cls) for cls in _types(objects)}
    if len(kinds) > 1:
        raise ValueError(
            f"{name} holds {_type_names(objects)}: labels must be of one kind. Convert them, for example by "
            "astype(str)."
        )
    if kinds == {"text"} and original is not None:
        text = [str.__str__(label) for label in objects]  # the value of an Enum
        is_cut = any(label.endswith("\0") for label in text)  # by NumPy's type for text
        return np.array(text, dtype=object if is_cut else str)
    if kinds == {"numbers"}:
        plain = [label.item() if isinstance(label, np.generic) else label for label in objects]  # NumPy would round
        array = np.array(objects.tolist())
        if array.dtype == object or array.tolist() != plain:
            raise ValueError(f"{name} holds whole numbers too large for an array to tell apart: give them as text.")
        return objects if original is None and name == "y" else array
    is_times = original is not None and all(issubclass(cls, np.datetime64 | np.timedelta64) for cls in kinds - {"text"})
    if is_times and kinds != {"text"}:
        return np.array(original)
    cls = next(iter(kinds - {"text"}), bytes)
    if name == "y" and not issubclass(cls, bytes):  # which scikit-learn refuses
        raise ValueError(
            f"Unknown label type: {name} holds labels of type {cls.__name__}. "
            f"{_KEEPING_ORDER if has_order else cure_of_kind(cls, name)}"
        )
    return objects


def cure_of_kind(cls, name):
    """What to do with labels of a type that is neither numbers nor text. name : of the argument."""
    if issubclass(cls, Enum):
        return f"Give their names: [label.name for label in {name}]."
    if issubclass(cls, Collection):
        return f"Give one for each row, a number or text, such as ['/'.join(map(str, label)) for label in {name}]."
    return f"Convert them: [str(label) for label in {name}]."


def _types(objects):
    return {type(label) for label in objects.flat}


def _type_names(objects):
    return " and ".join(sorted(cls.__name__ for cls in _types(objects)))


def levels_of(ordered, y, labels):
    """The classes from lowest to highest that ``ordered``, True or a list of them, and y tell; None if the order of the
    classes has no use. y : as the user gave it. labels : the same, from ``check_labels``."""
    if isinstance(ordered, bool | np.bool_):
        if not ordered:
            return None
        if type(dtype := _dtype_of(y)).__name__ == "Enum":  # of polars, whose order nobody need have meant
            return dtype.categories.to_list()
        if (levels := order_of(y)) is not None:
            return levels
        classes = np.unique(labels).tolist()
        if len(classes) > 2 and not isinstance(classes[0], str) and is_text_behind_numbers():
            raise ValueError(f"y holds numbers in the sorted order of labels that are text. {_NUMBERED}")
        if len(classes) > 2 and isinstance(classes[0], str):
            raise ValueError(
                "ordered=True, and y holds text, which has no order of its own: give the list of the classes from "
                f"lowest on, such as ordered={classes[:_SHOWN]}, an ordered pandas Categorical or a polars Enum."
            )
        return classes
    levels = np.atleast_1d(ordered) if isinstance(ordered, np.ndarray) else ordered
    levels = [label.item() if isinstance(label, np.generic) else label for label in levels]
    if len(levels) < 2 or not all(isinstance(label, Hashable) for label in levels) or len({*levels}) < len(levels):
        raise ValueError(f"ordered must be True, False, or a list of two or more different classes; got {levels!r}.")
    return levels


def encode_labels(y, without="", levels=None):
    """The classes, and the labels as their places among these or, of more than two, in ``levels``, uint8.

    without : the rows that have been left out, in words. levels : from ``levels_of``, or None.
    """
    y = np.asarray(y)
    if y.dtype == object and type_of_target(y) == "unknown":  # numbers as objects
        kinds = _type_names(y)
        dtype = kinds if kinds in ("bool", "int", "float") else "str"
        raise ValueError(f"Unknown label type: y holds {kinds} as objects. Convert it: astype({dtype}).")
    if type_of_target(y) == "continuous":
        raise ValueError(
            "Unknown label type: continuous. y holds numbers that are not whole, which scikit-learn takes for amounts. "
            "If they are classes, number them in their order: numpy.unique(y, return_inverse=True)[1]."
        )
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) < 2:
        why = f"contains only one class{without}, {classes.tolist()[0]!r}" if len(classes) else f"has no rows{without}"
        raise ValueError(f"y {why}: a classifier needs rows of two classes.")
    if len(classes) > _MOST_CLASSES:
        raise ValueError(
            f"y has {len(classes)} classes, and at most {_MOST_CLASSES} are possible: it may be a number to predict by "
            "a regression, or classes to put together, such as numpy.digitize(y, edges)."
        )
    held = classes.tolist() if levels is None else _held(levels, classes)
    places = np.array([held.index(label) for label in classes.tolist()], np.uint8)
    return classes, placed(y, classes, places)


def placed(y, classes, places):
    """Labels (n,) as the places of their classes, or 0 and 1 of two, uint8. classes : sorted, (K,)."""
    if len(classes) > 2:
        return places[np.searchsorted(classes, y)]
    return (y == classes[1:]).astype(np.uint8)  # not classes[1], which as NumPy text would lose its end


def _held(levels, classes):
    """The levels that y holds, from lowest to highest, whose sorted labels are ``classes``."""
    if unknown := [label for label in classes.tolist() if label not in levels]:
        shown = f"{levels[:_SHOWN]}" + " and others" * (len(levels) > _SHOWN)
        hint = f" {_NUMBERED}" if isinstance(unknown[0], int) and isinstance(levels[0], str) else ""
        raise ValueError(f"y holds the class {unknown[0]!r}, which ordered={shown} does not name.{hint}")
    return in_order(levels, classes)


def in_order(levels, classes):
    """The classes (K,) that y holds, a list, from lowest to highest."""
    return [label for label in levels if label in classes.tolist()]


def refuse_missing(labels, start=0, name="y"):
    """Raise a ValueError for a label that is missing. start : number of the first row."""
    missing = np.ravel(is_missing(labels))
    if missing.any():
        where, cure = f"row {start + np.argmax(missing)}", "leave such rows out"
        if name != "y":
            where += f" in {name}"
            cure += " of fit; to predict for a new group, give any label that the fit has not seen"
        raise ValueError(f"The label of {where} is missing: {cure}.")


def places_of(y, X, model, weight=None):
    """The place of each label among the classes in their order, 0 or 1 for two; (n,). weight : (n,), or None; of rows
    without any a label may be one that fit has not seen, and has any place."""
    levels = getattr(model, "ordered_classes_", model.classes_).tolist()
    y, classes = _known(y, X, model, weight), model.classes_.tolist()
    return np.array([levels.index(label) for label in classes])[np.searchsorted(model.classes_, y)]


def is_second(y, X, model):
    """Whether each label is the second class; (n,) bool."""
    return _known(y, X, model) == model.classes_[1:]


def _known(y, X, model, weight=None):
    """Checked labels of the rows of X; a ValueError for one that fit has not seen. weight : as in ``places_of``."""
    y = check_labels(y)
    check_consistent_length(X, y)
    if weight is not None:
        y = np.where((weight == 0) & ~np.isin(y, model.classes_), model.classes_[0], y)
    unknown, classes = np.setdiff1d(y, model.classes_), model.classes_.tolist()
    if len(unknown):
        what = f"y holds labels that fit has not seen: {unknown.tolist()}; classes_ is {classes}."
        if hasattr(model, "_outcomes"):
            event, label = model._outcomes[1], unknown.tolist()[0]
            what = f"This model asks whether {event}: y must be True or False for each row, and has {label!r}."
        raise ValueError(what)
    return y
