"""Sets of columns: how they are found, and what the posterior says of each as a whole."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from laws import peak_memory
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csc_array, csr_array, random_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skhorseshoe._posterior.correlations import correlations_of
from skhorseshoe.diagnostics import ess_bulk
from skhorseshoe.inspection import summary_of_sets
from skhorseshoe.sets import correlated_sets, credible_sets


@pytest.fixture(scope="module")
def blocks(seed):
    """Three blocks of four columns with correlations of 0.9, one of them with signs; the first has an effect."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.standard_normal((400, 3)), 4, axis=1) + 0.33 * rng.standard_normal((400, 12))
    X[:, 5::2] *= -10
    names = [f"gene{j}" for j in range(12)]
    return pd.DataFrame(X, columns=names), 1.5 * X[:, 1] + rng.standard_normal(400) > 0


@pytest.fixture(scope="module")
def model(blocks, short_fit):
    return short_fit(*blocks, n_iter=400, burn_in=200, standardize=True)


@pytest.mark.parametrize("block", [1, 10_000])
def test_sets_are_those_of_a_linkage_of_all_columns(block, sizes, seed):
    sizes(correlations_of_a_block=block)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 40)) + rng.standard_normal((30, 5))[:, rng.integers(0, 5, 40)]
    distance = 1 - np.abs(np.corrcoef(X, rowvar=False))
    for threshold in (0.3, 0.5, 0.7):
        labels = fcluster(linkage(distance[np.triu_indices(40, 1)], "average"), 1 - threshold, "distance")
        expected = {tuple(np.flatnonzero(labels == label)) for label in labels}
        assert 1 < len(expected) < 40
        assert {tuple(columns) for columns in correlated_sets(X, threshold).values()} == expected


def test_numbers_constants_single_columns_and_copies():
    X = np.random.default_rng(0).standard_normal((50, 5))
    X[:, 3], X[:, 1] = 7.0, -2 * X[:, 4]
    sets = correlated_sets(X, 1.0)
    assert [sorted(columns) for columns in sets.values()] == [[0], [1, 4], [2]]
    assert list(sets) == ["x0", "x1 and 1 more", "x2"]
    assert sets["x1 and 1 more"][4] < 0 < sets["x1 and 1 more"][1]
    assert correlated_sets(np.ones((5, 2))) == {}
    assert [list(columns) for columns in correlated_sets(X[:, [3, 0]]).values()] == [[1]]
    assert list(correlated_sets(pl.DataFrame(X, schema=list("abcde")), 1.0)) == ["a", "b and 1 more", "c"]


def test_columns_of_the_same_name_have_sets_of_their_own(short_fit, seed):
    """An encoder may make two columns a_b_c: of the level b_c of a, and of the level c of a_b."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.choice(["b_c", "z"], 300), "a_b": rng.choice(list("cqr"), 300)})
    y = (X["a"] == "z") + (X["a_b"] == "c") + rng.standard_normal(300) > 1
    encoder = OneHotEncoder(sparse_output=False).fit(X)
    model = make_pipeline(encoder, short_fit(encoder.transform(X), y))
    sets = correlated_sets(X, 0.99, model=model)
    assert [list(columns) for columns in sets.values()] == [[0, "a_z"], [2], ["a_b_q"], ["a_b_r"]]
    assert list(sets)[:2] == ["a_b_c (0) and 1 more", "a_b_c (2)"]
    assert summary_of_sets(model, sets)["n_columns"].tolist() == [2, 1, 1, 1]
    found = credible_sets(model, X, terms=None, level=0.5, q=0.5).sets
    assert {"a_b_c (0)", "a_b_c (2)"} <= {*found.index}


@pytest.mark.parametrize("block", [1, 10_000])
def test_correlations_of_sparse_columns_are_those_of_the_array(block, sizes, seed):
    sizes(correlations_of_a_block=block)
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (30, 40)) * (rng.random((30, 40)) < 0.4) + 50.0 * (np.arange(40) < 3)  # three far from zero
    X[:, 5:9], X[:, 9], X[:, 10] = -2 * X[:, 20:24], 0.0, 7.0
    for dtype in (np.float32, np.int8):
        (r, sd), (of_array, _) = correlations_of(csc_array(X.astype(dtype))), correlations_of(X.astype(dtype))
        np.testing.assert_allclose(sd, X.std(axis=0), atol=1e-12)
        for columns in (slice(3, None), np.array([9, 2, 20])):
            np.testing.assert_allclose(r(slice(1, 30), columns), of_array(slice(1, 30), columns), atol=1e-9)
        found, expected = (correlated_sets(rows.astype(dtype), 0.4) for rows in (csr_array(X), X))
        assert [[*columns] for columns in found.values()] == [[*columns] for columns in expected.values()]
        assert not {9, 10} & {j for columns in found.values() for j in columns}
        for one, two in zip(found.values(), expected.values(), strict=True):
            np.testing.assert_allclose([*one.values()], [*two.values()])


def test_sparse_columns_are_never_made_dense(sizes):
    sizes(correlations_of_a_block=2**18)
    X = random_array((3000, 3000), density=1e-3, random_state=0)
    assert peak_memory(lambda: correlated_sets(X, 0.95)) < 8 * 3000**2 / 8


def test_what_cannot_be_correlated_is_refused(blocks, free_memory):
    X, _ = blocks
    for wrong in (0, 1.5, np.nan):
        with pytest.raises(ValueError, match="threshold"):
            correlated_sets(X, wrong)
    assert correlated_sets(X, np.float32(0.5)) == correlated_sets(X, 0.5)
    with pytest.raises(ValueError, match=r"NaN: .* of column 'gene3'"):
        correlated_sets(X.assign(gene3=X["gene3"].where(X["gene3"] < 0.5)))
    with pytest.raises(ValueError, match="Column 'gene3' is not numeric"):
        correlated_sets(X.assign(gene3="a"))
    with pytest.raises(ValueError, match="2 columns named 'gene0'"):
        correlated_sets(X.rename(columns={"gene3": "gene0"}))
    free_memory(383)
    with pytest.raises(MemoryError, match=r"threshold=0\.7.*4 x 4"):
        correlated_sets(X)
    assert len(correlated_sets(X, 0.999)) == 12


def test_a_set_is_the_sum_of_its_draws(model):
    sets = {"sum": ["gene0", "gene1"], "weighted": {"gene2": 2.0, "gene5": -1}, "number": [-1, 3]}
    frame = model.summary_of_sets(sets, level=0.8)
    draws = model.coef_draws_
    sums = {
        "sum": draws[..., 0] + draws[..., 1],
        "weighted": 2 * draws[..., 2] - draws[..., 5],
        "number": draws[..., 11] + draws[..., 3],
    }
    assert list(frame.index) == list(sums)
    assert list(model.summary_of_sets({("a", "pair"): ["gene0"]}).index) == [("a", "pair")]
    for title, values in sums.items():
        row = frame.loc[title]
        assert row["mean"] == pytest.approx(values.mean())
        assert row["sd"] == pytest.approx(values.std(ddof=1))
        assert row[["10%", "90%"]].tolist() == pytest.approx(np.quantile(values, [0.1, 0.9]).tolist())
        assert row["prob_positive"] == pytest.approx((values > 0).mean())
        assert row["ess"] == pytest.approx(ess_bulk(values))
    assert frame["n_columns"].tolist() == [2, 2, 2]
    assert frame.loc["weighted", "m_eff"] == pytest.approx(model.inclusion_score_[[2, 5]].sum())


def test_names_that_are_no_columns_are_left_out_on_demand(model):
    sets = {"some": {"gene1", "TP53", "gene0"}, "weighted": {"TP53": 5.0, "gene5": -2.0}, "none": ["TP53", None]}
    frame = model.summary_of_sets(sets, missing="ignore")
    alone = model.summary_of_sets({"some": ["gene0", "gene1"], "weighted": {"gene5": -2.0}})
    pd.testing.assert_frame_equal(frame, alone)
    assert "Left out: 4 names that are no columns, 1 of 3 sets as a whole" in " ".join(frame.attrs["header"].split())
    assert "Left out" not in model.summary_of_sets({"a": ["gene0"]}, missing="ignore").attrs["header"]
    pd.testing.assert_frame_equal(summary_of_sets(model, sets, missing="ignore"), frame)
    with pytest.raises(ValueError, match="None of the sets has a column of this model, whose columns are 'gene0'"):
        model.summary_of_sets({"none": ["TP53"]}, missing="ignore")
    with pytest.raises(ValueError, match="there is no 7157"):  # a number is a place in a table with names
        model.summary_of_sets({"entrez": ["gene0", 7157]}, missing="ignore")
    with pytest.raises(ValueError, match="missing=True"):
        model.summary_of_sets(sets, missing=True)


@pytest.mark.parametrize("named", [True, False])
def test_sets_of_a_pipeline_are_in_the_units_of_its_classifier(blocks, short_fit, named):
    X, y = blocks[0] * np.repeat([1.0, 1000.0], 6), blocks[1]
    scaler = StandardScaler().set_output(transform="pandas" if named else None).fit(X)
    rows = scaler.transform(X)
    clf = short_fit(rows, y)
    whole = make_pipeline(scaler, clf)
    found, alone = correlated_sets(X, model=whole), correlated_sets(pd.DataFrame(rows, columns=X.columns))
    assert found == alone
    frame = clf.summary_of_sets(correlated_sets(rows, model=clf))
    pd.testing.assert_frame_equal(summary_of_sets(whole, found), frame.set_axis(list(found)).rename_axis("set"))
    with pytest.raises(ValueError, match="feature names"):
        correlated_sets(X.rename(columns={"gene0": "gene"}), model=whole)


@pytest.mark.parametrize(
    ("sets", "error", "says"),
    [
        (["gene0"], TypeError, "sets"),
        ({}, ValueError, "sets is empty"),
        ({"a": []}, ValueError, "'a'"),
        ({"a": "gene0"}, ValueError, r"'a' .* got 'gene0'"),
        ({"a": 3}, ValueError, "'a' .* got 3"),
        ({"a": ["gene0", "Gene1"]}, ValueError, r"'Gene1'.* 'gene1.*missing='ignore' leaves out"),
        ({"a": [12]}, ValueError, "12"),
        ({"b": ["gene0"], "a": ["gene0", "gene0"]}, ValueError, "'a' has a column more than once"),
        ({"a": {"gene0": 1.0, 0: -1.0}}, ValueError, "'a' has a column more than once"),
        ({"a": {"gene0": np.inf}}, ValueError, "finite"),
        ({"a": {"gene0": None}}, ValueError, "weights .* set 'a' must be finite numbers"),
        ({"a": pd.Series([1, -1], index=["gene0", "gene1"])}, ValueError, r"'a' .*dict .*\.to_dict\(\)"),
        ({"a": [["gene0"]]}, ValueError, r"The set 'a': there is no \['gene0'\]"),
    ],
)
def test_sets_that_are_none_are_refused(model, sets, error, says):
    with pytest.raises(error, match=says):
        model.summary_of_sets(sets)


def test_a_model_without_names_and_a_sum_that_is_zero(problem, short_fit):
    model = short_fit(np.column_stack([problem[0], np.ones(200)]), problem[1])
    assert model.summary_of_sets({"ones": [8]})["prob_positive"].item() == 0.5
    with pytest.raises(ValueError, match=r"'gene0'.*without names"):
        model.summary_of_sets({"a": ["gene0"]})


def test_of_two_columns_the_first_is_central(seed):
    X = np.random.default_rng(seed).standard_normal((200, 40))
    X[:, 1::2] = 0.3 * X[:, 1::2] - X[:, ::2]
    assert list(correlated_sets(X)) == [f"x{j} and 1 more" for j in range(0, 40, 2)]


def test_the_central_column_gives_a_set_its_name_and_its_signs(seed):
    z = np.random.default_rng(seed).standard_normal((2000, 4))
    X = z[:, [0]] + 0.6 * z * [0, 1, 1, 1]
    X[:, 1] *= -10
    for order in ([1, 2, 0, 3], [0, 1, 2, 3]):
        ((title, weights),) = correlated_sets(X[:, order]).items()
        assert title == f"x{order.index(0)} and 3 more"
        sign = np.where(np.array(order) == 1, -1, 1)
        np.testing.assert_allclose([weights[place] for place in range(4)], sign * X[:, order].std(axis=0))
