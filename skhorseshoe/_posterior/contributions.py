"""What columns add to the scores of single rows."""

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype

from .._utils.arrays import dense, refuse_masked
from .._utils.memory import check_matrices
from .._utils.names import printable
from . import predict
from .estimates import means
from .pipeline import names_of
from .raw_rows import RawRows, is_polars, seen
from .summary import in_lines, summary_frame
from .table import Summary

_ROUNDING = 1e-12  # of a column, beside its largest value


def contributions_frame(model, before, X, reference, level):
    """See ``inspection.contributions``."""
    X, p = RawRows(X), model.n_features_in_
    check_matrices(8, (X.shape[0], p), "contributions(X)", "Ask for fewer rows.")
    rows = dense(seen(model, before, X.part(slice(None))))
    origin = model._column_means
    if reference is not None:
        origin = dense(seen(model, before, _one_row(reference, X)))[0]
    origin = np.where(np.abs(origin) > _ROUNDING * np.abs(rows).max(axis=0), origin, 0.0)
    moved = rows - origin
    coef = summary_frame(model, level, None).iloc[:p, :4]  # mean, sd, and the ends of the interval
    low, high = (moved * end for end in coef.iloc[:, 2:].to_numpy().T)
    mean, sd = moved * coef["mean"].to_numpy(), np.abs(moved) * coef["sd"].to_numpy()
    total = _of_scores(model, moved, level)
    columns = {
        "value": (rows, np.full(len(rows), np.nan)),
        "reference": (np.tile(origin, (len(rows), 1)), np.full(len(rows), np.nan)),
        "mean": (mean, mean.sum(axis=1)),
        "sd": (sd, total[:, 0]),
        coef.columns[2]: (np.minimum(low, high), total[:, 1]),
        coef.columns[3]: (np.maximum(low, high), total[:, 2]),
    }
    labels = X.X.index if isinstance(X.X, pd.DataFrame) else range(len(rows))
    index = pd.MultiIndex.from_product([labels, [*names_of(before, model), "(total)"]], names=["row", "feature"])
    frame = Summary({name: np.column_stack(parts).ravel() for name, parts in columns.items()}, index=index)
    weights, intercept = means(model)
    whose = "the average row" if reference is None else "the reference"
    frame.attrs["header"] = in_lines(
        f"Score of P(y = {printable(model.classes_[1])}): {whose} has {origin @ weights + intercept:.3g}, and each "
        "column moves a row away from that by its contribution"
    )
    return frame


def _one_row(reference, X):
    """A reference as a row of the same form as X."""
    is_table = hasattr(X.X, "columns")
    if isinstance(reference, pd.Series) and not is_table and len(reference) == len(X.names):
        reference = reference.to_numpy()
    if isinstance(reference, (Mapping, pd.Series)):
        missing = [name for name in X.names if name not in reference]
        if missing:
            raise ValueError(f"reference has no value of column {missing[0]!r}: give one for each column of X.")
        reference = [reference[name] for name in X.names]
    refuse_masked(reference, "reference")
    row = reference
    if np.ndim(reference) == 1:  # of text and numbers each stays what it is
        row = np.asarray(reference, object if is_table or X.X.dtype == object else None).reshape(1, -1)
    if len(np.shape(row)) != 2 or np.shape(row)[0] != 1:
        raise ValueError(f"reference must be one row, or None; got shape {np.shape(row)}.")
    if is_table and not hasattr(row, "columns") and np.shape(row)[1] == len(X.names):
        row = pd.DataFrame(np.asarray(row, dtype=object), columns=X.names).infer_objects()
        return type(X.X)(row.to_dict("list")) if is_polars(X.X) else _of_types(row, X.X.dtypes)
    return RawRows(row).part(slice(None))


def _of_types(row, dtypes):
    """A row with the types of pandas's own that columns have: a missing value is what it is to them. A value that is
    none of a type, such as 2.5 of whole numbers, stays."""
    for j, dtype in enumerate(dtypes):
        if isinstance(dtype, ExtensionDtype) and not isinstance(dtype, pd.CategoricalDtype):
            with suppress(TypeError, ValueError):
                row.isetitem(j, row.iloc[:, j].astype(dtype))
    return row


def _of_scores(model, moved, level):
    """Standard deviation and ends of the interval of the score's difference, for each row; (n, 3)."""
    out, (coef, intercept) = np.empty((len(moved), 3)), predict.flat(model)

    def use(eta, rows, ops):
        out[rows, 0] = ops.to_host(eta).std(axis=1, ddof=1) if len(coef) > 1 else np.nan
        out[rows, 1:] = ops.to_host(ops.quantiles(eta, [(1 - level) / 2, (1 + level) / 2]))

    predict._each_predictor(model, moved, coef, np.zeros_like(intercept), use)
    return out
