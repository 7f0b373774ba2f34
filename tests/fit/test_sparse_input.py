"""Sparse X with more columns than rows: nobody notices that the sampler does without empty columns, nor that it has an
array in place of rows that are a third full."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from laws import agree, all_draws, same_draws, same_law
from scipy import sparse

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit.sparse_input import array_if_as_small

N, P = 30, 80
FULL = np.arange(1, P, 3)
EMPTY = np.setdiff1d(np.arange(P), FULL)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.zeros((N, P))
    X[:, FULL] = rng.standard_normal((N, len(FULL))) + 0.5
    return X, (X[:, FULL[0]] + rng.standard_normal(N) > 0.5).astype(int)


def fit(X, y, **params):
    params = {"n_iter": 40, "burn_in": 60, "expected_nonzero": 3, "random_state": 0, **params}
    return HorseshoeProbitClassifier(**params).fit(X, y)


def n_sampled(X, y, **params):
    """The columns that the sampler has, and so the state that it saves."""
    with TemporaryDirectory() as folder:
        fit(X, y, n_iter=4, checkpoint=folder, **params)
        (path,) = Path(folder).glob("state-*.npz")
        with np.load(path) as state:
            return state["chains/beta"].shape[1] - 1


@pytest.mark.filterwarnings("ignore:X has more columns")
def test_only_empty_columns_that_cannot_matter_are_left_out(table):
    X, y = table
    rows, fuller = sparse.csr_array(X), X.copy()
    fuller[0, EMPTY[:47]] = 1.0
    assert n_sampled(rows, y) == len(FULL)
    assert n_sampled(rows, y, unpenalized=[int(EMPTY[3])]) == len(FULL) + 1
    assert n_sampled(X, y) == n_sampled(sparse.csr_array(fuller), y) == P
    for slab in (2.0, None):  # of its own, which tells of tau; none, where more columns than rows are another sampler's
        assert n_sampled(rows, y, slab_scale=slab) == P


@pytest.mark.parametrize(("dtype", "share", "is_array"), [
    (np.float32, 0.4, True), (np.float32, 0.3, False), (np.float64, 0.5, True), (np.float64, 0.4, False),
])  # fmt: skip
def test_rows_are_an_array_where_that_takes_hardly_more_memory(dtype, share, is_array):
    """4 or 8 bytes a number, where CSR has 4 more for each that is stored."""
    X = np.zeros((20, 50), dtype)
    X.flat[: int(share * X.size)] = 1.0
    found = array_if_as_small(sparse.csr_array(X))
    assert isinstance(found, np.ndarray) == is_array
    assert array_if_as_small(X) is X


def test_rows_that_are_an_array_have_its_draws(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (N, P)).astype(np.int8), rng.integers(0, 2, N)
    assert same_draws(fit(X, y), fit(sparse.csr_array(X), y))


@pytest.mark.slow
def test_the_others_have_the_law_that_they_have_with_them(table):
    X, y = table
    kept = np.append(FULL, [P, P + 1])
    same_law(*(all_draws(fit(rows, y, n_iter=800, burn_in=100))[..., kept] for rows in (X, sparse.csr_array(X))))


@pytest.mark.parametrize("params", [{}, {"max_draws": 8}, {"standardize": True, "fit_intercept": False}])
def test_what_a_model_says_of_an_empty_column_is_what_it_says_of_a_constant_one(table, params):
    X, y = table
    dense, model = fit(X, y, **params), fit(sparse.csr_array(X), y, **params)
    for name, values in vars(dense).items():
        if isinstance(values, np.ndarray):
            found = getattr(model, name)
            assert found.shape == values.shape, name
            assert found.dtype == values.dtype, name
            if P in values.shape:
                np.testing.assert_array_equal(found[..., EMPTY], values[..., EMPTY], err_msg=name)
                assert not np.isnan(found[..., FULL]).any(), name
    for name, value in dense.prior_.items():
        np.testing.assert_allclose(model.prior_[name], value, rtol=1e-12, err_msg=name)
    if "max_draws" in params:
        for name in ("mean", "sd", "prob_positive"):
            np.testing.assert_array_equal(model.moments_[name][EMPTY], dense.moments_[name][EMPTY])
            assert model.moments_[name].shape == (P + 2,)
            assert model.moments_[name][-1] > 0, name  # of tau
    assert model.summary().index.tolist() == dense.summary().index.tolist()
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(sparse.csr_array(X)))


@pytest.mark.parametrize(("dtype", "params"), [
    (np.float64, {}), (np.int8, {"fit_intercept": False, "sampler": "gibbs"}), (bool, {"unpenalized": [3]}),
])  # fmt: skip
def test_rows_of_zeros_are_fitted_as_an_array_of_them_is(dtype, params):
    y, zeros = np.arange(N) % 3 > 0, sparse.csr_array((N, P), dtype=dtype)
    dense, model = (fit(rows, y, n_iter=200, burn_in=100, **params) for rows in (zeros.toarray(), zeros))
    for name in ("coef_", "shrinkage_", "inclusion_score_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(dense, name))
    agree(model.intercept_draws_[..., None], dense.intercept_draws_[..., None], 4.5)


def test_a_category_keeps_its_columns(table):
    X, y = table
    X = X.copy()
    X[:, EMPTY[:3]] = np.eye(3)[np.arange(N) % 3]
    (factor,) = fit(sparse.csr_array(X), y)._factors
    np.testing.assert_array_equal(np.sort(factor["columns"]), EMPTY[:3])


def test_k_and_then_m_sweeps_are_k_plus_m(table):
    X, y = table
    rows = sparse.csr_array(X)
    then = fit(rows, y, warm_start=True).set_params(n_iter=30).fit(rows, y)
    assert same_draws(then, fit(rows, y, n_iter=70))


def test_chains_do_not_go_on_where_other_columns_are_empty(table):
    X, y = table
    model = fit(sparse.csr_array(X), y, warm_start=True)
    with pytest.raises(ValueError, match="columns that are not empty"):
        model.fit(sparse.csr_array(np.roll(X, 1, axis=1)), y)


def test_names_stay_with_their_columns(table):
    X, y = table
    rows = pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(X), columns=[f"word{j}" for j in range(P)])
    X = X * np.where(np.arange(P) == FULL[1], 1e5, 1.0)
    with pytest.warns(UserWarning, match=f"'word{FULL[1]}'"):  # of scales
        fit(rows * np.where(np.arange(P) == FULL[1], 1e5, 1.0), y)


def test_rows_with_groups_may_have_empty_columns(table):
    X, y = table
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=100, random_state=0)
    model.fit(sparse.csr_array(X), y, groups=np.arange(N) // 3)
    assert model.coef_draws_.shape == (4, 20, P)
    assert not model.coef_draws_[..., EMPTY].any()
    assert model.coef_draws_[..., FULL].all()
    assert model.predict_proba(sparse.csr_array(X)).shape == (N, 2)
