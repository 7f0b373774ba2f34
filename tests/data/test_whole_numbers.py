"""Whole numbers, in whatever form they come: small ones become float32, and large ones that float64 cannot tell apart
are refused by name."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.validation import check_X

RNG = np.random.default_rng(0)
SMALL, VALUES = RNG.integers(0, 60, 200), RNG.standard_normal(200)
Y = RNG.random(200) > 0.5
FORMS = {
    "pandas": lambda big: pd.DataFrame({"a": VALUES, "id": big}),
    "nullable": lambda big: pd.DataFrame({"a": VALUES, "id": pd.array(big.tolist(), "Int64")}),
    "of Arrow": lambda big: pd.DataFrame({"a": VALUES, "id": pd.array(big.tolist(), "int64[pyarrow]")}),
    "objects": lambda big: pd.DataFrame({"a": VALUES, "id": big.astype(object)}),
    "decimals": lambda big: pd.DataFrame({"a": VALUES, "id": [Decimal(one) for one in big.tolist()]}),
    "sparse columns": lambda big: pd.DataFrame({"a": pd.arrays.SparseArray(SMALL), "id": pd.arrays.SparseArray(big)}),
    "polars": lambda big: pl.DataFrame({"a": VALUES, "id": big}),
    "pyarrow": lambda big: pa.table({"a": VALUES, "id": big}),
    "array": lambda big: np.column_stack([SMALL, big]),
    "array of objects": lambda big: np.column_stack([SMALL, big]).astype(object),
    "list": lambda big: np.column_stack([SMALL, big]).tolist(),
    "CSR": lambda big: sp.csr_array(np.column_stack([SMALL, big])),
    "COO": lambda big: sp.coo_matrix(np.column_stack([SMALL, big])),
}
if hasattr(pl, "Int128"):  # older versions of polars have no such numbers
    FORMS["polars, 128 bits"] = lambda big: pl.DataFrame({"a": VALUES, "id": pl.Series(big.tolist(), dtype=pl.Int128)})


def fit(X):
    return HorseshoeProbitClassifier(n_iter=5, burn_in=5, standardize=True, random_state=0).fit(X, Y)


@pytest.mark.parametrize("offset", [2**53, 10**17, -(2**62)])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_column_that_loses_digits_is_refused_by_name(form, offset):
    with pytest.raises(
        ValueError, match=r"Column ('id'|1) holds whole numbers that float64 cannot tell apart, such as"
    ):
        fit(form(offset + SMALL))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.filterwarnings("ignore:Column")
def test_large_numbers_that_float64_has_are_taken(form):
    """Also the largest of uint64; and to predict, a row that fit has not seen may be any number."""
    model = fit(form(2**53 + 2 * SMALL))
    assert np.isfinite(model.predict_proba(form(2**53 + SMALL))).all()
    assert np.isfinite(fit(np.column_stack([SMALL, 2**63 + 2**11 * SMALL.astype("u8")])).coef_).all()


@pytest.mark.parametrize("values", [1e17 + 16 * (SMALL % 2), -1e16 - 2 * (SMALL % 3)])
def test_a_column_that_varies_within_rounding_is_told(values, said):
    """Its coefficient is that of a constant, 0."""
    X = pd.DataFrame({"a": VALUES, "time": values})
    model = HorseshoeProbitClassifier(n_iter=5, burn_in=5)
    (text,) = said(model, X, Y, "Column 'time' lies up to 5e+15 standard deviations from zero")
    assert "Subtract the means" in text
    assert not said(model, X.assign(time=1e17), Y, "'time'")


GENOTYPES = RNG.binomial(2, 0.3, (120, 6)).astype(np.int8)
NAMES = list("abcdef")
NULLABLE = {"bool": "boolean", "int8": "Int8", "int16": "Int16", "uint16": "UInt16"}
SMALL_FORMS = {
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
@pytest.mark.parametrize("form", SMALL_FORMS.values(), ids=SMALL_FORMS)
def test_small_numbers_become_float32(form, dtype):
    X = GENOTYPES.astype(dtype)
    if dtype in (np.int16, np.uint16):  # as far as they go
        X[:2] = [np.iinfo(dtype).min], [np.iinfo(dtype).max]
    got = read(form(X))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got.toarray() if sp.issparse(got) else got, X.astype(float))


@pytest.mark.parametrize("form", ["array", "CSR", "pandas"])
def test_larger_numbers_stay_float64(form):
    assert read(SMALL_FORMS[form](GENOTYPES.astype(np.int32))).dtype == np.float64


def test_a_column_of_other_numbers_keeps_the_table_float64():
    assert read(pd.DataFrame(GENOTYPES, columns=NAMES).assign(dose=0.1)).dtype == np.float64
