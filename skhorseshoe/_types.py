"""The types that public signatures name.

Only type checkers read this module (``if TYPE_CHECKING``): nothing heavy is imported for them at run time.
"""

from collections.abc import Callable as Callable
from collections.abc import Mapping as Mapping
from collections.abc import Sequence as Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes as Axes
from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import DTypeLike as DTypeLike
from numpy.typing import NDArray as NDArray
from pandas import DataFrame as DataFrame

RowsLike = Any  # an array, table, sparse matrix, CuPy array or Dask collection: most of their libraries are optional
Labels = Any  # an array-like of one of these kinds
Weights = Any
Offsets = Any
NewGroups = bool | None
Model = Any  # a classifier, or a Pipeline or search that ends with one: scikit-learn has no types

# Answers are annotated for rows in memory. They are CuPy arrays for CuPy rows and lazy Dask arrays for Dask rows.
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

Path = str | PathLike[str]
Seed = int | np.random.RandomState | np.random.Generator | None
Sampler = Literal["auto", "hmc", "pxda", "gibbs"]
Rule = Literal["dss", "interval", "shrinkage", "fsr"]
Missing = Literal["raise", "ignore"]
Change = Literal["auto", "unit", "sd", "binary", "pairs"] | float  # of a column, in marginal_effects
Order = Literal["size", "name", "original"]
RowOrder = Literal["probability", "original"]
Names = str | Sequence[str] | None
Device = str  # "auto", "cpu", "cuda" or "cuda:N"
