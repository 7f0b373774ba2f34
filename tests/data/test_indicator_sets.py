"""A category with a column for every level is found, in whatever form it comes; and columns that depend on others."""

import numpy as np
import pandas as pd
import pytest
from laws import ALONE
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, terms
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse as sparse_cpu
from skhorseshoe._data.collinear_sets import collinear_sets
from skhorseshoe._data.rows import Rows

N = 600
SHORT = HorseshoeProbitClassifier(n_iter=40, burn_in=20, random_state=0)


@pytest.fixture(scope="module")
def ward(seed):
    """Rows of a category of five levels, the last of them rare, and two other columns."""
    rng = np.random.default_rng(seed)
    level = rng.choice(5, N, p=[0.3, 0.3, 0.2, 0.19, 0.01])
    level[:5] = range(5)
    columns = {f"ward_{k}": (level == k) * 1.0 for k in range(5)}
    X = pd.DataFrame(columns | {"age": rng.normal(60, 10, N), "male": rng.integers(0, 2, N) * 1.0})
    return X, (0.8 * (level == 1) + 0.05 * (X["age"] - 60) + rng.standard_normal(N) > 0.3).astype(int)


def levels_of(model):
    """The columns of the term of several columns, or None."""
    several = [columns for columns in terms.find(model).values() if len(columns) > 1]
    assert len(several) <= 1
    return {*several[0]} if several else None


WARDS = {f"ward_{k}" for k in range(5)}


@pytest.mark.parametrize(
    "form",
    [
        lambda X: X,
        lambda X: X.astype(np.float32),
        lambda X: X.astype({name: int for name in WARDS}),
        lambda X: X.astype({name: bool for name in WARDS}),
        lambda X: pd.DataFrame(StandardScaler().fit_transform(X), columns=X.columns),
        lambda X: pd.DataFrame(StandardScaler().fit_transform(X.astype(np.float32)), columns=X.columns),
        lambda X: X.iloc[:, [6, 2, 0, 5, 4, 1, 3]],
        lambda X: X.assign(ward_2=1 + 2 * X["ward_2"]),
    ],
    ids=["as is", "float32", "whole", "bool", "scaled", "scaled in float32", "shuffled", "other numbers"],
)
def test_a_whole_set_of_levels_is_found(ward, form, short_fit):
    X, y = ward
    assert levels_of(short_fit(form(X), y)) == WARDS


@pytest.mark.parametrize("weights", ["ones", "some", "one row of the rare level"])
def test_it_is_found_by_weight(ward, weights, short_fit, seed):
    X, y = ward
    w = np.ones(N)
    if weights == "some":
        w = np.random.default_rng(seed).integers(1, 4, N)
    if weights == "one row of the rare level":
        w[4] = 3
    model = clone(SHORT).fit(X, y, w)
    assert {*terms.find(model)["ward"]} == WARDS
    shares = terms.levels(model, "ward")["share"]
    assert np.allclose(shares, [w[X[name] == 1].sum() / w.sum() for name in sorted(WARDS)], atol=1e-6)


def test_sparse_rows_have_it_too(ward, short_fit):
    X, y = ward
    found = terms.find(short_fit(csr_array(X.to_numpy()), y))
    assert ["x0", "x1", "x2", "x3", "x4"] in found.values()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda X: X.drop(columns="ward_4"),
        lambda X: X.assign(ward_0=X["ward_0"].where(X.index != 100, 1 - X["ward_0"])),
        lambda X: X.assign(ward_3=X["ward_3"] + 0.01 * (X.index == 7)),
        lambda X: X.iloc[:, 5:],
    ],
    ids=["one dropped", "a row of two or none", "a third value", "others alone"],
)
def test_what_is_no_whole_set_is_none(ward, spoil, short_fit):
    X, y = ward
    assert levels_of(short_fit(spoil(X), y)) is None


def test_without_an_intercept_levels_are_known_one_by_one(ward, short_fit):
    X, y = ward
    assert levels_of(short_fit(X, y, fit_intercept=False)) is None


def test_two_categories_are_two_terms(ward, short_fit, seed):
    X, y = ward
    sex = np.random.default_rng(seed).choice(["f", "m"], N)
    X = pd.concat([X, pd.get_dummies(pd.Series(sex, name="sex"), prefix="sex", dtype=float)], axis=1)
    found = terms.find(short_fit(X, y))
    assert {*found["ward"]} == WARDS
    assert found["sex"] == ["sex_f", "sex_m"]


def test_columns_that_depend_on_one_another_are_named_once(ward, said):
    X, y = ward
    X = X.iloc[:, 5:]
    other = np.random.default_rng(0).standard_normal(N)
    X = X.assign(systolic=other, pulse=3 * other - 2 * X["age"] + 4)
    (message,) = said(SHORT, X, y, "weighted sum")
    assert message.startswith("Columns 'age', 'systolic', 'pulse': a weighted sum of these shrunk columns is the same")
    free = clone(SHORT).set_params(unpenalized=["pulse"])
    assert not said(free, X, y, "weighted sum")  # the prior of the others bounds it
    assert not said(SHORT, X.assign(pulse=X["pulse"] + 0.01 * (X.index == 3)), y, "weighted sum")


def test_a_copy_is_named_beside_its_original(ward, said):
    X, y = ward
    (message,) = said(SHORT, X.assign(again=2 * X["age"] + 1), y, "weighted sum")
    assert message.startswith("Columns 'age', 'again'")


def test_equal_rows_count_as_often_as_they_are_given(said):
    """Those of a small X become one row, of 30 here, before the findings are made."""
    site = pd.Series(np.random.default_rng(0).integers(0, 30, 1000))
    X = pd.get_dummies(pd.DataFrame({"site": site, "region": site // 5, "country": site // 15}).astype(str)) * 1.0
    y = site == 3
    model = clone(SHORT).set_params(sampler="hmc", slab_scale=None)
    (message,) = said(model, X, y, "weighted sum")
    assert message.startswith("Columns 'site_0', 'site_1', 'site_2' and 3 more: a weighted")
    assert "than rows" not in message
    assert said(model, X, y, "sample_weight the 1000 rows count as 10:", sample_weight=np.full(1000, 0.01))
    assert not said(model, np.ones((400, 4)), np.arange(400) % 2, "than rows")


def test_levels_that_sum_to_one_are_no_fault(ward, said):
    assert not said(SHORT, *ward, "weighted sum")


# Categories with levels in the same rows ------------------------------------------------------------------------------


def within(seed, n=900):
    """Nine hospitals in three regions, their first letters, which tell four of them from five, and a crossed category;
    a column for each level, names of columns, and the hospital of each row."""
    rng = np.random.default_rng(seed)
    hospital, crossed = rng.permutation(np.arange(n) % 9), rng.integers(0, 2, n)
    codes = {"region": hospital // 3, "hospital": hospital, "letter": np.isin(hospital, [0, 1, 4, 8]), "sex": crossed}
    names = [f"{name} {level}" for name, of in codes.items() for level in np.unique(of)]
    return np.column_stack([of == level for of in codes.values() for level in np.unique(of)]), names, hospital


SHARED = [
    *({f"region {r}", *(f"hospital {3 * r + k}" for k in range(3))} for r in range(3)),
    {"letter False", *(f"hospital {k}" for k in (2, 3, 5, 6, 7))},
    {"letter True", *(f"hospital {k}" for k in (0, 1, 4, 8))},
]


def shared_sets(X, unpenalized=None):
    y, ops = np.arange(X.shape[0], dtype=np.uint8) % 2, sparse_cpu if issparse(X) else cpu
    rows = Rows(X, y, True, ops, ALONE, unpenalized=unpenalized)
    return collinear_sets(rows, X.shape[0]).dependent


@pytest.mark.parametrize("form", [lambda X: X * 1.0, lambda X: csr_array(X * 1.0), lambda X: 3 + 2.0 * X])
def test_levels_in_the_same_rows_are_sets(form, seed):
    X, names, _ = within(seed)
    found = shared_sets(form(X))
    assert sorted(sorted(names[j] for j in each.columns) for each in found) == sorted(map(sorted, SHARED))
    above = ((form(X)[:, each.columns] - each.base) / each.step for each in found)
    assert all(np.ptp(each.sum(axis=1)) < 1e-12 for each in above)
    found = shared_sets(form(X), np.isin(names, ["letter True"]))
    assert [{names[j] for j in each.columns} for each in found[:3]] == SHARED[:3]
    assert "letter True" not in {names[j] for each in found for j in each.columns}


def test_levels_that_meet_in_a_row_outside_the_sample_are_no_set(seed, monkeypatch):
    X, names, hospital = within(seed)
    X = X[np.argsort(hospital == 8, kind="stable")]
    X[-1, :3] = [True, False, False]  # a patient of the first region in a hospital of the third
    monkeypatch.setattr("skhorseshoe._data.collinear_sets._most_rows", lambda *_: 800)
    found = shared_sets(csr_array(X * 1.0))
    assert not {"region 0", "region 2"} & {names[j] for each in found for j in each.columns}
    assert {"region 1", "letter True"} <= {names[j] for each in found for j in each.columns}


def test_the_header_says_whose_answer_their_shares_are(seed, short_fit):
    X, names, hospital = within(seed)
    for y, told in ((hospital > 3, ", as told by skhorseshoe.terms.levels"), (hospital % 3, "")):
        text = " ".join(short_fit(pd.DataFrame(X * 1.0, columns=names), y).summary().attrs["header"].split())
        assert (
            f"differences are, unless named below. Above, levels count that differ from the mean over rows{told} "
            in text
        )
        assert "Dependent: region 0, hospital 0, hospital 1 and 1 more (one of 5 such sets): a weighted sum" in text


@pytest.mark.parametrize("is_sparse", [False, True], ids=["array", "sparse"])
def test_columns_with_a_sum_that_hardly_varies_are_sets(is_sparse, seed):
    """By how much it may vary depends on the number of rows, and how many columns it may have does not."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2000, 12))
    X[:, 1] = 3 - 2 * X[:, 0] + 0.06 * rng.standard_normal(2000)
    X[:, 4] = X[:, 2] + X[:, 3] + 0.03 * rng.standard_normal(2000)
    X[:, 11] = X[:, 5:11].sum(axis=1) + 0.01 * rng.standard_normal(2000)
    given, ops = (csr_array(X), sparse_cpu) if is_sparse else (X, cpu)
    rows = Rows(given, np.arange(2000, dtype=np.uint8) % 2, True, ops, ALONE)
    found = collinear_sets(rows, 2000).near
    assert sorted(each.columns.tolist() for each in found) == [[0, 1], [2, 3, 4]]
    for each in found:
        assert 0 < np.std(((X[:, each.columns] - each.base) / each.step).sum(axis=1)) < 0.07
    assert not collinear_sets(rows, 2_000_000).near
