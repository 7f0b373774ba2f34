"""Rows of booleans and of whole numbers of 16 bits at most become float32, which has every one of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from skhorseshoe import HorseshoeProbitClassifier, groups, inspection
from skhorseshoe._data.validation import check_X

RNG = np.random.default_rng(0)
GENOTYPES = RNG.binomial(2, 0.3, (120, 6)).astype(np.int8)
Y = GENOTYPES[:, 0] + RNG.standard_normal(120) > 0.6
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


def groups_of(X):
    return groups.correlated_groups(X.toarray() if sp.issparse(X) else X, 0.5)


@pytest.mark.parametrize("form", ["array", "CSR", "pandas"])
def test_the_same_values_are_the_same_rows_in_every_type(form):
    """Of a fit and of what is asked of it, each with the other."""
    small, large = FORMS[form](GENOTYPES), FORMS[form](GENOTYPES.astype(float))
    fits = [HorseshoeProbitClassifier(n_iter=60, burn_in=60, random_state=0).fit(X, Y) for X in (small, large)]
    np.testing.assert_allclose(*(fit.coef_ for fit in fits), atol=0.2)
    for fit in fits:
        for ask in (
            lambda X, fit=fit: fit.predict_proba(X),
            lambda X, fit=fit: fit.predict_interval(X),
            lambda X, fit=fit: inspection.loo(fit, X, Y).elpd_i,
            lambda X, fit=fit: inspection.marginal_effects(fit, X)["mean"],
            lambda X, fit=fit: inspection.contributions(fit, X[:3])["mean"],
            lambda X, fit=fit: fit.group_summary(groups_of(X))["mean"],
        ):
            np.testing.assert_allclose(*(np.asarray(ask(X), float) for X in (small, large)), rtol=1e-4, atol=1e-5)
