"""The names of columns: which a table has, whether they are those of the fit, and which columns names mean."""

from collections.abc import Hashable

import numpy as np
import pandas as pd

from .._utils.names import RESERVED, check_different, finder, plain
from .._utils.sklearn_compat import _get_feature_names


def column_types(table):
    """Names and lower-case types of a table's columns; nothing for anything but a table."""
    if hasattr(table, "schema") and hasattr(table, "column_names"):  # pyarrow
        return list(zip(table.column_names, (str(t).lower() for t in table.schema.types), strict=True))
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        return list(zip(table.columns, (str(t).lower() for t in table.dtypes), strict=True))
    return []


def with_names(X):
    """A table of polars as one of pandas where scikit-learn does not see its names: before 1.9 it does not in polars 2,
    and would take columns in another order for the right ones."""
    if type(X).__name__ == "RecordBatch":  # of pyarrow, whose columns are no names
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
    """Remember the labels of a table's columns, or compare them, where scikit-learn does not: they are not text."""
    columns = getattr(table, "columns", None)
    labels = [plain(label) for label in columns] if isinstance(columns, pd.Index) else None
    is_text = labels is not None and all(isinstance(label, str) for label in columns)
    if reset:
        vars(estimator).pop("_column_labels", None)
        if labels is not None and not is_text:
            estimator._column_labels = labels
        return
    known = getattr(estimator, "_column_labels", labels)
    if labels == known or labels is None or (is_text and known == [*range(len(known))]):  # scikit-learn warns of text
        return
    j = next(j for j, pair in enumerate(zip(labels, known, strict=True)) if pair[0] != pair[1])
    raise ValueError(
        f"The columns of X are not those of fit, or are in another order: number {j} is {labels[j]!r}, and was "
        f"{known[j]!r} in fit. Select the columns of fit in their order."
    )


def column_mask(given, names):
    """The columns that ``given`` means, by names, indices or a mask of bool, as a mask; (p,) bool.

    names : of the p columns.
    """
    p = len(names)
    mask = np.zeros(p, bool)
    if given is None:
        return mask
    is_list = isinstance(given, list | tuple) or np.ndim(given) > 0
    values = [plain(one) for one in given] if is_list else [[]]
    kinds = {isinstance(one, bool) for one in values}
    if len(kinds) > 1 or not all(isinstance(one, Hashable) for one in values):
        raise ValueError(f"unpenalized must be a list of names or indices, or a mask; got {given!r:.80}.")
    if kinds == {True}:
        if len(values) != p:
            raise ValueError(f"unpenalized is a mask of {len(values)} entries, but X has {p} columns.")
        mask[:] = values
    else:
        cure = f" Give names of a table, indices from {-p} to {p - 1}, or a mask."
        find = finder(names, "columns of X", cure, numbered=True)
        found = [find(one, "unpenalized") for one in values]
        if len({*found}) < len(found):
            raise ValueError(f"unpenalized has a column more than once: {values[:9]}. Give a mask as booleans.")
        mask[found] = True
    if mask.all():
        raise ValueError(f"unpenalized has all {p} columns: the horseshoe prior needs one at least to shrink.")
    return mask
