"""Tables of pandas, polars and pyarrow, as far as scikit-learn's own validation leaves something to say."""

import numpy as np


def column_names(table):
    """Names of a table's columns; None for anything else."""
    if hasattr(table, "column_names"):  # pyarrow, whose ``columns`` are the data
        return list(table.column_names)
    if hasattr(table, "columns"):
        return list(table.columns)
    return None


def name_bad_column(table, error):
    """The same error with the first column that is not numeric in it, or ``error`` itself if there is none."""
    for name in column_names(table) or ():
        try:
            np.asarray(table[name]).astype(np.float64)
        except (ValueError, TypeError):
            dtype = getattr(table[name], "dtype", getattr(table[name], "type", "unknown"))
            return ValueError(
                f"Column {name!r} is not numeric (its dtype is {dtype}): {error}. Encode it first, for example with "
                "ColumnTransformer and OneHotEncoder in a Pipeline, or drop it."
            )
    return error
