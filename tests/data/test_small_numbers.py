"""Rows of booleans and of whole numbers of 16 bits at most become float32, which has every one of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.validation import check_X

RNG = np.random.default_rng(0)
GENOTYPES = RNG.binomial(2, 0.3, (120, 6)).astype(np.int8)
NAMES = list("abcdef")
NULLABLE = {"bool": "boolean", "int8": "Int8", "int16": "Int16", "uint16": "UInt16"}
FORMS = {
    "array": lambda X: X,
    "CSR": sp.csr_array,
    "CSC": sp.csc_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "nullable": lambda X: pd.DataFrame(X, columns=NAMES).astype(NULLABLE[X.dtype.name]),
    "of Arrow": lambda X: pd.DataFrame(X, columns=NAMES).astype(f"{X.dtype}[pyarrow]"),
    "sparse columns": lambda X: pd.DataFrame(X, columns=NAMES).astype(pd.SparseDtype(X.dtype, X.dtype.type(0))),
    "polars": lambda X: pl.DataFrame(dict(zip(NAMES, X.T, strict=True))),
    "pyarrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
}


def read(X):
    return check_X(HorseshoeProbitClassifier(), X, reset=True)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int16, np.uint16])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_small_numbers_become_float32(form, dtype):
    X = GENOTYPES.astype(dtype)
    if dtype in (np.int16, np.uint16):  # as far as they go
        X[:2] = [np.iinfo(dtype).min], [np.iinfo(dtype).max]
    got = read(form(X))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got.toarray() if sp.issparse(got) else got, X.astype(float))


@pytest.mark.parametrize("form", ["array", "CSR", "pandas"])
def test_larger_numbers_stay_float64(form):
    assert read(FORMS[form](GENOTYPES.astype(np.int32))).dtype == np.float64


def test_a_column_of_other_numbers_keeps_the_table_float64():
    assert read(pd.DataFrame(GENOTYPES, columns=NAMES).assign(dose=0.1)).dtype == np.float64
