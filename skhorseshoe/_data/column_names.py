"""Names of columns: of a table, compared with those of the fit, and as the values of ``unpenalized``."""

from collections.abc import Hashable

import numpy as np
import pandas as pd

from .._utils.names import RESERVED, check_different, finder, plain
from .._utils.sklearn_compat import _get_feature_names


def column_types(table):
    """Names and lower-case types of a table's columns; an empty list for anything but a table."""
    if hasattr(table, "schema") and hasattr(table, "column_names"):  # pyarrow
        return list(zip(table.column_names, (str(t).lower() for t in table.schema.types), strict=True))
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        return list(zip(table.columns, (str(t).lower() for t in table.dtypes), strict=True))
    return []


def with_names(X):
    """A polars table as a pandas table if scikit-learn does not see its names. Before 1.9 it does not with polars 2,
    and would not notice columns in another order."""
    if type(X).__name__ == "RecordBatch":  # of pyarrow; its ``columns`` are no names
        import pyarrow as pa

        return pa.Table.from_batches([X])
    if not isinstance(getattr(X, "columns", None), list) or _get_feature_names(X) is not None:
        return X
    return pd.DataFrame({name: X[name].to_numpy() for name in X.columns})


def check_names(table, types):
    if not types and len(getattr(table, "columns", ["X"])) == 0:
        raise ValueError(f"X is a table without columns: 0 feature(s) (shape={table.shape}) while 1 is required.")
    check_different([name for name, _ in types], "X", "Rename them, or leave all names out: X.to_numpy().")
    if taken := [name for name, _ in types if name in RESERVED]:
        raise ValueError(f"X has a column named {taken[0]!r}, as a row of summary() is: rename it, or leave it out.")


def check_column_labels(estimator, table, reset):
    """Remember or compare the labels of a table's columns that are not text, for which scikit-learn does neither."""
    columns = getattr(table, "columns", None)
    labels = [plain(label) for label in columns] if isinstance(columns, pd.Index) else None
    is_text = labels is not None and all(isinstance(label, str) for label in columns)
    if reset:
        vars(estimator).pop("_column_labels", None)
        if labels is not None and not is_text:
            estimator._column_labels = labels
        return
    known = getattr(estimator, "_column_labels", labels)
    if labels == known or labels is None or (is_text and known == [*range(len(known))]):  # scikit-learn checks text
        return
    j = next(j for j, pair in enumerate(zip(labels, known, strict=True)) if pair[0] != pair[1])
    raise ValueError(
        f"The columns of X are not those of fit, or are in another order: number {j} is {labels[j]!r}, and was "
        f"{known[j]!r} in fit. Select the columns of fit in their order."
    )


def column_mask(unpenalized, names):
    """``unpenalized``, which holds names, indices or a mask of bool, as a mask (p,) of bool. names : of the p
    columns."""
    p = len(names)
    mask = np.zeros(p, bool)
    if unpenalized is None:
        return mask
    is_list = isinstance(unpenalized, list | tuple) or np.ndim(unpenalized) > 0
    values = [plain(value) for value in unpenalized] if is_list else [[]]
    kinds = {isinstance(value, bool) for value in values}
    if len(kinds) > 1 or not all(isinstance(value, Hashable) for value in values):
        raise ValueError(f"unpenalized must be a list of names or indices, or a mask; got {unpenalized!r:.80}.")
    if kinds == {True}:
        if len(values) != p:
            raise ValueError(f"unpenalized is a mask of {len(values)} entries, but X has {p} columns.")
        mask[:] = values
    else:
        cure = f" Give names of a table, indices from {-p} to {p - 1}, or a mask."
        find = finder(names, "columns of X", cure, numbered=True)
        columns = [find(value, "unpenalized") for value in values]
        if len({*columns}) < len(columns):
            raise ValueError(f"unpenalized has a column more than once: {values[:9]}. Give a mask as booleans.")
        mask[columns] = True
    return mask
