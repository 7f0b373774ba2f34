"""What a fit is given, checked."""

from typing import NamedTuple

import numpy as np

from .._data import validation
from .._data.weights import is_whole, is_wide, rows_that_count

_OF_COLUMNS = "n_features_in_", "feature_names_in_"


class Data(NamedTuple):
    """Checked rows and labels, in memory or on a cluster."""

    shape: tuple  # of X
    columns: dict  # attributes that a fitted model has of them: their number, and names if there are any
    classes: np.ndarray
    unpenalized: np.ndarray  # (p,) bool
    weighted_by: str  # in words, "" if nothing has weighted the rows
    whole: bool  # whether rows can be repeated in place of their weights
    times: float  # as many rows there are then
    wide: bool  # whether X is dense and has clearly more columns than rows
    given: object = None  # X before the checks, which may have made a copy
    rows: tuple | None = None  # X, y as 0 and 1, and the weights or None; None on a cluster
    open_on_cluster: object = None  # function of the arguments of ``Rows`` after y that gives a context with them


def validate(model, params, X, y, sample_weight):
    """``Data``; a ValueError, TypeError or MemoryError that names what cannot be used. ``model`` stays as it is."""
    noted = object.__new__(type(model))  # scikit-learn's checks write to an estimator
    vars(noted).update({name: value for name, value in vars(model).items() if name not in _OF_COLUMNS} | vars(params))
    by = [] if params.class_weight is None else [f"class_weight={params.class_weight!r}"]
    by += [] if sample_weight is None else ["sample_weight"]
    if validation.is_dask(X, y, sample_weight):
        from .._data.dask_input import prepare  # imports Dask

        shape, classes, open_rows = prepare(noted, X, y, sample_weight)
        facts = {"whole": not by, "times": 1, "wide": False, "open_on_cluster": open_rows}
    else:
        given = X
        X, y = validation.check_X(noted, X, y=y, reset=True)
        X, y, weight, classes = rows_that_count(X, y, sample_weight, params.class_weight)
        shape, whole = X.shape, is_whole(weight)
        times = weight.sum() / len(weight) if whole and weight is not None else 1
        facts = {"whole": whole, "times": times, "wide": is_wide(X, weight), "given": given, "rows": (X, y, weight)}
    columns = {name: value for name, value in vars(noted).items() if name in _OF_COLUMNS}
    unpenalized = validation.column_mask(params.unpenalized, shape[1], columns.get("feature_names_in_"))
    return Data(shape, columns, classes, unpenalized, " and ".join(by), **facts)
