"""Whole numbers that float64 cannot tell apart are refused by name, in whatever form they come."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from skhorseshoe import HorseshoeProbitClassifier

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
