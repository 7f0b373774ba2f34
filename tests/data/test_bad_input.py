"""Data and parameters that cannot be used: each is refused by name, with a cure and without noise."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.inspection import marginal_effects

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2
DAYS = ["2020-01-01", "2021-01-01"]


def fit(X=X, y=Y, sample_weight=None, **params):
    params = {"n_iter": 10, "burn_in": 5, "random_state": 0, "n_jobs": 1, **params}
    return HorseshoeProbitClassifier(**params).fit(X, y, sample_weight=sample_weight)


def with_entry(*values):
    """X with other values in row 4."""
    changed = X.copy()
    changed[4, : len(values)] = values
    return changed


class Failing:
    """Says that it is an array."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("no numbers")


class Length:
    def __len__(self):
        return -1


class Interface:
    """An array for NumPy, and nothing else."""

    __array_interface__ = X.__array_interface__


@pytest.mark.parametrize("data", [None, 3, "abc", b"abc", {"a": [1.0] * 30}, (row for row in X), Length(), print])
def test_what_holds_no_rows_is_refused(data):
    with pytest.raises(TypeError, match=f"X holds no rows: .* of type {type(data).__name__}.*Give an array, a table"):
        fit(data)


class Cells:
    """As an AnnData: it has a shape and a length, and parts of it have them again."""

    shape, X, obs, var = X.shape, X, None, None

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        return Cells()


class Modes(Cells):
    """As a MuData."""

    mod = {"rna": Cells()}  # noqa: RUF012


CONTAINERS = {
    "AnnData": (Cells(), "of type Cells.*Give an array.* cells by genes, are X.X, or .* X.to_df()"),
    "MuData": (Modes(), "several tables: give one, such as X['rna'].to_df()"),
    "dict of columns": ({"a": [1.0] * 30}, "pandas.DataFrame(X) makes a table of a dict"),
    "list of dicts": ([{"a": 1.0}] * 30, "rows of X are of type dict. pandas.DataFrame(list(X)) makes a table"),
    "array of dicts": (np.array([{"a": 1.0}] * 30), "rows of X are of type dict. pandas.DataFrame(list(X))"),
    "list of words": (["a b"] * 30, "rows of X are of type str, as 'a b', and no sequences of numbers. Give an array"),
    "list of sets": ([{1, 2}] * 30, "rows of X are of type set, as {1, 2}, and no sequences"),
    "ragged": ([[1.0, 2.0]] * 7 + [[1.0]], "Row 0 of X has 2 entries, and row 7 has 1"),
    "records": (
        pd.DataFrame({"age": X[:, 0]}).to_records(),
        "records with the fields ['index', 'age']. pandas.DataFrame",
    ),
    "groups of a table": (pd.DataFrame(X).groupby(0), "of type DataFrameGroupBy.* fit(X, y, groups=...)"),
    "a name of a file": ("X.csv", "Read a file first, for example with pandas.read_csv"),
    "an iterator": (iter(X), "If its entries are rows, list(X) is one"),
    "a type": (np.ndarray, "of type type. Give an array"),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers_that_are_no_table_are_refused_with_the_cure(kind):
    data, says = CONTAINERS[kind]
    with pytest.raises((TypeError, ValueError), match=re.escape(says).replace(r"\.\*", ".*")):
        fit(data)
    if kind in ("AnnData", "MuData"):
        with pytest.raises(TypeError, match="X holds no rows"):
            marginal_effects(fit(), data)


def test_arrays_with_labels_are_taken():
    xarray = pytest.importorskip("xarray")
    np.testing.assert_array_equal(fit(xarray.DataArray(X, dims=("cell", "gene"))).coef_, fit(X).coef_)
    with pytest.raises(ValueError, match=r"X\.to_dataframe\(\) is a table"):
        fit(xarray.Dataset({"a": ("row", X[:, 0])}))


@pytest.mark.parametrize("form", [Interface, memoryview, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.dia_matrix])
def test_unusual_arrays_of_numbers_are_taken(form):
    data = Interface() if form is Interface else big_endian(form(X))
    np.testing.assert_allclose(fit(data).coef_, fit(X).coef_, rtol=1e-6)


def big_endian(matrix):
    """With places as a file of another machine has them."""
    for name in ("indices", "indptr", "offsets", *(["coords"] if hasattr(matrix, "coords") else [])):
        if isinstance(places := getattr(matrix, name, None), np.ndarray):
            setattr(matrix, name, places.astype(places.dtype.newbyteorder(">")))
        elif places is not None:
            matrix.coords = tuple(axis.astype(axis.dtype.newbyteorder(">")) for axis in places)
    return matrix


def cases(what, table):
    """Parametrize a test over pairs by name."""
    return pytest.mark.parametrize((what, "says"), table.values(), ids=table)


@cases("data", {
    "NaN": (with_entry(0, np.nan), "NaN: .*row 4 of column 1.* Impute"),
    "NaN in a table": (pd.DataFrame(with_entry(0, np.nan), columns=list("abc")), "NaN: .*row 4 of column 'b'"),
    "NaN in sparse rows": (sp.csr_array(with_entry(0, np.nan)), "NaN: .*row 4 of column 1"),
    "infinite": (with_entry(0, np.inf), "infinity .*row 4 of column 1.* Clip"),
    "masked": (np.ma.masked_equal(with_entry(0, 9), 9), "X is a masked .*row 4 of column 1: impute"),
    "masked rows": ([np.ma.masked_equal(row, 9) for row in with_entry(0, 9)], "X is a masked .*row 4 of column 1: imp"),
    "NaN of Decimal": (np.where(X[4, 1] == X, Decimal("sNaN"), X.astype(object)), "NaN: .*row 4 of column 1"),
    "an array that fails": (Failing(), "X, of type Failing, cannot be read as an array: no numbers. Give an array"),
    "too large": (with_entry(0, 1e200), "'x1' of X is too large for float64.*StandardScaler"),
    "too large for float32": ((X * 1e37).astype("f4"), "too large for float32"),
    "sums overflow": (with_entry(1.7e308, -1.7e308), "too large for .*StandardScaler"),
    "too small": (X * 1e-155, "too small for float64: its root mean square"),
    "too small for float32": ((X * 1e-42).astype("f4"), "too small for float32"),
    "large whole number": (np.full((30, 3), 10**400, object), "whole number that is too large .*Divide"),
    "dates": (X.astype("datetime64[s]"), "dates or durations .*datetime64"),
    "durations": (X.astype("timedelta64[s]"), "dates or durations .*timedelta64"),
    "text": (np.where(np.isclose(X, X[3, 2]), "a", "1"), "Column 2 is not numeric: .*OneHotEncoder"),
    "no columns": (pd.DataFrame(index=range(30)), r"without columns: 0 feature\(s\)"),
    "lists with text": ([[1.0, 2.0, "a"]] * len(X), "Column 2 is not numeric: .* 'a'.*OneHotEncoder"),
    "one name twice": (pd.DataFrame(X, columns=list("aba")), "2 columns named 'a'.*to_numpy"),
    "the same in Arrow": (pa.Table.from_arrays(list(map(pa.array, X.T)), list("aba")), "2 columns named 'a'.*to_numpy"),
})  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_unusable_rows_are_refused(data, says):
    with pytest.raises(ValueError, match=says):
        fit(data)


MISSING = {
    "text": [*14 * ["a", "b"], "b", np.nan],
    "a tuple": (*14 * ("a", "b"), "b", float("nan")),
    "objects": np.array([*14 * ["a", "b"], "b", None], object),
    "numbers": np.array([*14 * [0, 1], 1, np.nan]),
    "NA": pd.Series([*14 * ["a", "b"], "b", pd.NA], dtype="string"),
    "times": np.array([*14 * DAYS, DAYS[1], "NaT"], "datetime64[s]"),
    "times of pandas": pd.Series(pd.to_datetime([*14 * DAYS, DAYS[1], None])),
    "times in a list": [*14 * [pd.Timestamp(0), pd.Timestamp(1)], pd.Timestamp(1), pd.NaT],
    "durations": np.array([*14 * [0, 1], 1, "NaT"], "timedelta64[s]"),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_label_is_no_class(kind):
    with pytest.raises(ValueError, match="label of row 29 is missing: leave such rows out"):
        fit(y=MISSING[kind])


def test_a_missing_label_is_none_of_those_to_compare_with():
    model = fit(y=[*15 * ["a", "nan"]])
    with pytest.raises(ValueError, match="label of row 29 is missing"):
        model.to_arviz(X, [*14 * ["a", "nan"], "a", np.nan])


@cases("weight", {
    "masked": (np.ma.masked_equal(np.arange(30.0) + 1, 4.0), "sample_weight is a masked array, .* row 3: leave"),
    "no float": ([10**400, *29 * [1]], "sample_weight holds a whole number that is too large .*divide"),
    "NaN for all rows": (np.nan, "sample_weight contains NaN"),
    "infinity for all rows": (np.float64("inf"), "sample_weight contains infinity"),
    "that of classes": ("balanced", "sample_weight must be numbers, .* class_weight: .*'balanced'"),
    "1e308 each": (np.full(30, 1e308), "sample_weight and class_weight add up to .*divide"),
    "one of 1e30": (np.where(np.arange(30) == 7, 1e30, np.arange(30) > 4), r"in row 7, is 1e\+30.* divide"),
    "below zero": (-1.0, "[Nn]egative"),
    "of one class only": (Y * 1.0, "only one class without the rows of weight 0, "),
    "1e-300 each": (np.full(30, 1e-300), "sample_weight and class_weight add up to"),
    "a class of nothing": (np.where(Y, 1.0, 1e-30), "sample_weight and class_weight add up to"),
})  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_weights_that_cannot_be_computed_with_are_refused(weight, says):
    with pytest.raises(ValueError, match=says) as error:
        fit(sample_weight=weight)
    assert "olumn" not in str(error.value)


@pytest.mark.parametrize(("name", "value"), [
    ("n_iter", 0), ("n_iter", 10.0), ("n_iter", True), ("n_iter", 10**400), ("burn_in", -1), ("burn_in", 10**400),
    ("n_chains", 257), ("thin", 1.5), ("fit_intercept", "yes"), ("global_scale", 0), ("global_scale", np.nan),
    ("global_scale", True), ("coef_summary", "mode"), ("credible_level", 90), ("sampler", "nuts"), ("device", "tpu"),
    ("n_jobs", 0), ("n_jobs", 10**9), ("random_state", "today"), ("verbose", -1), ("target_ess", 10**400),
])  # fmt: skip
def test_a_parameter_out_of_range_is_named(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter .* Got {value!r}"):
        fit(**{name: value})


@pytest.mark.parametrize(("params", "says"), [
    ({"thin": 11}, "thin=11, n_iter=10"),
    ({"unpenalized": np.array(7)}, r"unpenalized must be a list of names .*; got array\(7\)"),
    ({"thin": 20_000, "n_iter": "auto"}, "thin must not exceed the 10000 sweeps"),
    ({"target_ess": 1, "max_draws": 2}, "max_draws=2 .*target_ess=1 .*Raise max_draws to 8"),
    ({"target_ess": 5000, "n_iter": 1249, "max_draws": 1249}, "1249 of each of 4 chains. Raise max_draws to 1250 "),
    ({"n_iter": "auto", "max_draws": 199}, r"target_ess=400 \(n_iter='auto'\).* Raise max_draws to 200 "),
    ({"checkpoint": "run", "warm_start": True}, "checkpoint and warm_start=True"),
    ({"checkpoint": ""}, "checkpoint='' names no folder"),
    ({"class_weight": {0: 1, 2: 3}}, r"class_weight has the class 2, .* \[0, 1\]"),
    ({"sampler": "gibbs", "sample_weight": 0.5}, "must be integers. Use sampler='hmc'"),
    ({"class_weight": {0: 0.0, 1: 1.0}}, "class_weight=.* must be positive and finite"),
    ({"class_weight": {0: 10**400, 1: 1}}, "class_weight=.* must be positive and finite"),
    ({"class_weight": {0: "1", 1: 1}}, "class_weight=.* must be positive and finite"),
])  # fmt: skip
def test_parameters_that_do_not_fit_together_are_refused(params, says):
    with pytest.raises(ValueError, match=says):
        fit(**params)


@pytest.mark.parametrize("method", ["predict_proba", "predict_interval", "predict_proba_samples"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_row_that_is_too_large_to_predict_is_told(method):
    model = fit(global_scale=1e3)
    model.coef_draws_[:] = [5.0, 4.0, 5.0]
    with pytest.raises(ValueError, match="Row 4 of X is too large to predict"):
        getattr(model, method)(with_entry(1.7e308, 1.7e308, -1.7e308))
    assert np.isfinite(getattr(model, method)(with_entry(1e307, 1e307, -1e307))).all()


def test_a_fit_that_fails_does_not_mix_with_the_fit_before():
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=5, random_state=0)
    with pytest.raises(ValueError, match="too large"):
        model.fit(1e200 * X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    before = model.fit(X, Y).predict_proba(X)
    with pytest.raises(ValueError, match="too large"):
        model.fit(1e200 * X[:, :1], np.where(Y, "yes", "no"))
    assert np.array_equal(model.predict_proba(X), before)
    assert list(model.classes_) == [0, 1]


def test_an_unknown_sampler_is_told_those_that_there_are_and_no_other():
    with pytest.raises(ValueError, match="Got 'nuts'") as told:
        HorseshoeProbitClassifier(sampler="nuts").fit(np.eye(2), [0, 1])
    assert set(re.findall(r"'(\w+)'", str(told.value))) == {"sampler", "auto", "hmc", "pxda", "gibbs", "nuts"}
