"""Credible sets of columns: what they are, on draws that are made up; what they find, on data."""

from copy import copy
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._posterior.credible_sets import CandidateSet, CredibleSetSearch, choose_sets
from skhorseshoe.inspection import select
from skhorseshoe.sets import correlated_sets, credible_sets


@pytest.fixture(scope="module")
def twins(seed):
    """Of ten columns 0 and 1 matter; 9 is nearly a copy of 0 with the other sign, on another scale; 3 is constant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((500, 10))
    X[:, 9], X[:, 3] = -10 * (X[:, 0] + 0.03 * X[:, 9]), 7.0
    y = 0.8 * X[:, 0] - 0.8 * X[:, 1] + rng.standard_normal(500) > 0
    return pd.DataFrame(X, columns=[f"gene{j}" for j in range(10)]), y


@pytest.fixture(scope="module")
def model(twins, short_fit):
    return short_fit(*twins, n_iter=500, burn_in=300, standardize=True)


@pytest.fixture(scope="module")
def made_up(weak_problem, short_fit):
    """A function that gives a model these independent draws (m, p) of columns with standard deviation 1."""
    fitted = short_fit(*weak_problem)

    def make(draws):
        made, p = copy(fitted), draws.shape[1]
        made.coef_draws_ = draws.reshape(4, -1, p)
        made.global_scale_draws_ = np.ones(made.coef_draws_.shape[:2])
        made.shrinkage_, made.inclusion_score_, made._column_sd = np.full(p, 0.5), np.full(p, 0.5), np.ones(p)
        made.ess_, made.n_features_in_ = np.full(p, float(len(draws))), p
        return made

    return make


def columns_of(found):
    return sorted(sorted(members.index.get_level_values(1)) for _, members in found.members.groupby(level=0))


@pytest.mark.parametrize("by", ["rows", "correlations"])
def test_twins_are_reported_together_and_not_alone(model, twins, by):
    X = twins[0]
    r = X.corr().to_numpy()
    found = credible_sets(model, X) if by == "rows" else credible_sets(model, correlations=r)
    assert columns_of(found) == [["gene0", "gene9"], ["gene1"]]
    title = found.sets.index[found.sets["n_columns"] == 2].item()
    row = found.sets.loc[title]
    assert row["purity"] == pytest.approx(abs(r[0, 9]))
    assert row["n_columns"] == 2
    assert found.sets.loc["gene1", "purity"] == 1.0
    members = found.members.loc[title]
    sign = [1, -1] if title.startswith("gene0") else [-1, 1]
    np.testing.assert_allclose(members.loc[["gene0", "gene9"], "weight"], sign * X[["gene0", "gene9"]].std(ddof=0))
    total = model.coef_draws_[..., [0, 9]] @ members.loc[["gene0", "gene9"], "weight"].to_numpy()
    assert row["probability"] == pytest.approx(max((total > 0.1).mean(), (total < -0.1).mean()), abs=0.01)
    assert row[["mean", "sd", "5%", "95%"]].tolist() == pytest.approx(
        [total.mean(), total.std(ddof=1), *np.quantile(total, [0.05, 0.95])]
    )
    assert members["mean"].sum() == pytest.approx(row["mean"])
    assert (members["probability"] < 0.95).all()
    assert found.members.loc["gene1", "probability"].item() > 0.99  # on its side, which is the negative one
    assert found.sets.loc["gene1", "mean"] < 0
    assert found.sets.attrs["header"].startswith("2 sets of 3 of 10 columns, expected share of false ones 0.0")
    assert repr(found) == f"{found.sets}\n\n{found.members}"  # one table after the other


def test_sets_of_sparse_rows_are_those_of_the_array(short_fit, seed):
    """With more columns than rows, of which some are empty, constant, or copies."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 150)) * (rng.random((120, 150)) < 0.2)
    X[:, 1], X[:, 2], X[:, 100:] = -3 * X[:, 0], 5.0, 0.0
    model = short_fit(X, X[:, 0] + 0.2 * rng.standard_normal(120) > 0, n_iter=300, burn_in=200)
    expected = credible_sets(model, X)
    assert ["x0", "x1"] in columns_of(expected)
    for form in ("csr", "csc", "coo"):
        found = credible_sets(model, csr_array(X).asformat(form))
        pd.testing.assert_frame_equal(found.sets, expected.sets)
        pd.testing.assert_frame_equal(found.members, expected.members)


def test_one_hot_columns_of_a_pipeline_may_be_sparse(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"ward": rng.choice(list("abc"), 500), "unit": rng.choice(list("xyz"), 500)})
    y = 1.5 * (X["ward"] == "a") + rng.standard_normal(500) > 0.5
    model = make_pipeline(OneHotEncoder(), HorseshoeProbitClassifier(n_iter=300, random_state=0)).fit(X, y)
    assert credible_sets(model, X).sets.index.tolist() == ["ward"]
    dense = credible_sets(model[-1], model[:-1].transform(X).toarray(), terms=None)
    names = model[:-1].get_feature_names_out()  # of columns 0, 1, ...
    found = columns_of(credible_sets(model, X, terms=None))
    assert found == [[names[int(one[1:])] for one in columns] for columns in columns_of(dense)]
    assert ["ward_a"] in [[name.split("__")[-1] for name in columns] for columns in found]


def test_noise_has_no_set(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 20))
    X[:, 10:] = X[:, [10]] + 0.5 * X[:, 10:]
    model = HorseshoeProbitClassifier(n_iter=300, burn_in=200, random_state=seed).fit(X, rng.random(200) < 0.5)
    found = credible_sets(model, X, sets={"many": range(20)})
    assert len(found.sets) == len(found.members) == 0
    assert list(found.sets.columns[:3]) == ["n_columns", "probability", "mcse"]
    assert "0 sets of 0 of 20 columns" in found.sets.attrs["header"]


@pytest.mark.parametrize("q", [0.02, 0.04, 0.2])
def test_the_choice_is_the_best_of_all(q, seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        candidates = [
            CandidateSet(rng.choice(6, rng.integers(1, 4), replace=False), None, error) for error in rng.beta(0.5, 8, 9)
        ]

        def value(some):
            columns = np.concatenate([one.columns for one in some])
            allowed = len(set(columns)) == len(columns) and np.mean([one.error for one in some]) <= q
            return sum((1 - one.error) / len(one.columns) for one in some) if allowed else 0.0

        best = max(value(some) for k in range(1, 7) for some in combinations(candidates, k))
        chosen = choose_sets(candidates, q)
        assert (value(chosen) if chosen else 0.0) == pytest.approx(best, rel=1e-3)
        assert [one.error for one in chosen] == sorted(one.error for one in chosen)


def test_nodes_of_the_tree_are_those_of_a_linkage(made_up, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 12)) + rng.standard_normal((40, 3))[:, rng.integers(0, 3, 12)]
    X[:, ::3] *= -1
    r = np.corrcoef(X, rowvar=False)
    merges = linkage((1 - abs(r))[np.triu_indices(12, 1)], "average")
    draws = 3 * np.sign(r[0]) + rng.standard_normal((400, 12))
    nodes = list(CredibleSetSearch(made_up(draws), 1e-6, 0.0).of_tree(np.arange(12), r, merges))
    labels = [fcluster(merges, height, "distance") for height in merges[:, 2] + 1e-9]
    clusters = {tuple(np.flatnonzero(each == label)) for each in labels for label in each}
    assert {tuple(sorted(node.columns)) for node in nodes} == {cluster for cluster in clusters if len(cluster) > 1}
    for node in nodes:
        total = draws[:, node.columns] @ node.weights
        assert node.error == pytest.approx(1 - max((total > 0).mean(), (total < 0).mean()), abs=0.01)
        assert (node.weights @ r[np.ix_(node.columns, node.columns)] @ node.weights) > 0


def test_sets_below_the_threshold_are_no_candidates(made_up):
    r = np.array([[1, 0.6, 0.1], [0.6, 1, 0.6], [0.1, 0.6, 1]])  # the first two with the third: 0.35 on average
    model = made_up(np.tile(np.eye(3), (400, 1)))  # of the three together all draws are sure
    for threshold, found in ((0.5, []), (0.3, [["x0", "x1", "x2"]])):
        assert columns_of(credible_sets(model, correlations=r, threshold=threshold)) == found


def test_what_cancels_in_the_score_is_no_signal(made_up, seed):
    """The size of a difference between twins is the prior's; of a sum the data's."""
    apart = 3 + np.random.default_rng(seed).exponential(size=(400, 1))
    r = np.array([[1, 0.99], [0.99, 1]])
    side = np.where(np.arange(400) % 2, 1, -1)[:, None]
    assert len(credible_sets(made_up(side * apart * [1, -1]), correlations=r).sets) == 0
    either = np.where(side > 0, [1.0, 0.0], [0.0, 1.0])
    found = credible_sets(made_up(either * apart), correlations=r)
    assert columns_of(found) == [["x0", "x1"]]
    assert found.members["probability"].tolist() == [0.5, 0.5]


def test_smaller_sets_are_preferred_and_each_is_sure_enough(made_up, seed):
    rng = np.random.default_rng(seed)
    r = np.full((3, 3), 0.8) + 0.2 * np.eye(3)
    r[0, 1] = r[1, 0] = 0.9
    draws = np.zeros((1000, 3))
    draws[:, 0] = np.where(np.arange(1000) < 930, 1.0, 0.0)
    draws[:, 1] = np.where(np.arange(1000) >= 930, 1.0, 0.0) * (np.arange(1000) < 990)
    model = made_up(draws[rng.permutation(1000)])
    for level, expected in ((0.9, [["x0"]]), (0.95, [["x0", "x1"]]), (0.995, [])):
        assert columns_of(credible_sets(model, correlations=r, level=level)) == expected
    assert columns_of(credible_sets(model, correlations=r, level=0.9, q=0.05)) == [["x0", "x1"]]


def test_a_probability_is_no_higher_than_the_draws_tell(made_up):
    model = made_up(np.ones((40, 2)) + 1e-3 * np.random.default_rng(0).standard_normal((40, 2)))
    found = credible_sets(model, correlations=np.eye(2))
    assert found.sets["probability"].tolist() == pytest.approx([1 - 1 / 40] * 2)
    assert found.members["probability"].tolist() == pytest.approx([1 - 1 / 40] * 2)
    model.ess_ = np.array([40.0, 10.0])  # too few for a level of 0.95
    assert columns_of(credible_sets(model, correlations=np.eye(2))) == [["x0"]]


def test_the_monte_carlo_error_of_a_probability_is_that_of_other_draws(made_up, seed):
    """Of 400 independent draws each, of which 0.9 are beyond the least effect."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(60):
        draws = np.where(rng.random((400, 2)) < 0.9, 1.0, 0.0) + 1e-3 * rng.standard_normal((400, 2))
        sets, _ = credible_sets(made_up(draws), sets={"first": [0]}, level=0.7, q=0.5, terms=None)
        found.append(sets.iloc[0][["probability", "mcse"]])
    probability, mcse = np.array(found, float).T
    assert mcse.mean() == pytest.approx(probability.std(), rel=0.5)


def test_members_are_on_the_side_where_their_set_is_more_often(made_up):
    """The mean may be on the other one, by a few draws that are far out."""
    draws = 1 + 1e-3 * np.random.default_rng(0).standard_normal((400, 1))
    draws[::50] = -1000.0
    found = credible_sets(made_up(draws), correlations=np.eye(1))
    assert found.sets["mean"].item() < 0
    assert found.sets["probability"].item() == found.members["probability"].item() == pytest.approx(0.98)


@pytest.mark.parametrize("correlated", [True, False])
@pytest.mark.parametrize("probable", range(4))
def test_a_set_has_the_name_of_its_central_column_whatever_the_draws(made_up, correlated, probable, seed):
    """Column 0 is the central one, and 3 is correlated negatively with all. The column that gives the name has a
    positive weight; the most probable one is the first member."""
    signs = np.array([1, 1, 1, -1])
    r = np.full((4, 4), 0.9)
    r[0, 1:] = r[1:, 0] = 0.95
    np.fill_diagonal(r, 1.0)
    r *= np.outer(signs, signs)
    which = np.random.default_rng(seed).permutation(np.repeat(np.append(np.arange(4), [probable] * 6), 40))
    model = made_up(-2.0 * signs * np.eye(4)[which])
    given = {"correlations": r} if correlated else {"sets": {"all": dict(enumerate(signs))}}
    sets, members = credible_sets(model, **given)
    title, sign = ("all", 1) if not correlated else ("x0 and 3 more", 1)
    assert sets.index.tolist() == [title]
    assert members.index.get_level_values("feature")[0] == f"x{probable}"
    np.testing.assert_array_equal(members["weight"].sort_index(), sign * signs)
    assert sets["mean"].item() == pytest.approx(-2 * sign)


def test_sets_of_the_user_are_candidates(model, twins):
    X = twins[0]
    given = {"pair": ["gene0", "gene9"], "contrast": {"gene1": -1.0, "gene5": 1.0}, "noise": ["gene4", "gene3"]}
    with_rows, alone = (credible_sets(model, rows, sets=given) for rows in (X, None))
    assert columns_of(with_rows) == [["gene0", "gene9"], ["gene1"]]  # alone, gene1 is smaller than the contrast
    assert (
        with_rows.sets.index[with_rows.sets["n_columns"] == 2]
        .isin(["pair", "gene0 and 1 more", "gene9 and 1 more"])
        .all()
    )
    assert columns_of(alone) == [["gene1"]]  # without correlations, nothing tells that the twin has the other sign
    signed = credible_sets(model, sets=correlated_sets(X))
    assert columns_of(signed) == [["gene0", "gene9"], ["gene1"]]
    assert np.isnan(signed.sets.loc[signed.sets["n_columns"] == 2, "purity"]).all()


def test_of_sets_that_overlap_the_best_disjoint_ones_are_taken(made_up, seed):
    """As of all candidates: each of the first two is sure, and the smaller one has more for each of its columns."""
    rng = np.random.default_rng(seed)
    draws = 0.02 * rng.standard_normal((400, 6))
    which = np.arange(400) % 2
    draws[np.arange(400), which] += 1.0  # an effect of column 0 or 1, and one of column 4 or 5
    draws[np.arange(400), 4 + which] += 1.0
    given = {"large": [0, 1, 2, 3], "small": [0, 1], "other": [4, 5, "TP53"], "all": [*range(6)]}
    found = credible_sets(made_up(draws[rng.permutation(400)]), sets=given, missing="ignore")
    assert sorted(found.sets.index) == ["other", "small"]
    assert "Left out: 1 name that is no column, 0 of 4 sets" in " ".join(found.sets.attrs["header"].split())
    assert columns_of(found) == [["x0", "x1"], ["x4", "x5"]]


def test_terms_that_overlap_are_candidates(model, twins):
    sets = {"one": ["gene0", "gene9", "gene2"], "two": ["gene0", "gene9"], "three": ["gene4", "TP53"]}
    found = credible_sets(model, twins[0], terms=sets, missing="ignore")
    assert columns_of(found) == [["gene0", "gene9"], ["gene1"]]
    assert "two" in found.sets.index


def test_columns_that_are_not_shrunk_are_no_candidates(twins, short_fit):
    X, y = twins
    model = short_fit(X, y, unpenalized=["gene1"], standardize=True, n_iter=200)
    assert ["gene1"] not in columns_of(credible_sets(model, X))
    assert ["gene1"] in columns_of(credible_sets(model, X, sets={"by name": ["gene1"]}))
    free = short_fit(X, y, unpenalized=[True] * 10, n_iter=200)
    assert ["gene1"] in columns_of(credible_sets(free, X, sets={"by name": ["gene1"]}))
    with pytest.raises(ValueError, match=r"All columns of this model are unpenalized.*give sets"):
        credible_sets(free, X)


def test_a_pipeline_gives_names_and_scaled_columns(twins):
    X, y = twins
    classifier = HorseshoeProbitClassifier(n_iter=500, burn_in=300, random_state=0)
    pipeline = make_pipeline(StandardScaler(), classifier).fit(X, y)
    found = credible_sets(pipeline, X, sets={"pair": ["gene0", "gene9"]})
    assert columns_of(found) == [["gene0", "gene9"], ["gene1"]]
    np.testing.assert_allclose(abs(found.members["weight"]), 1)
    assert "gene1" in select(pipeline, X, rule="fsr", q=0.05).get_feature_names_out()


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({}, ValueError, "Give X"),
        ({"X": np.eye(10), "correlations": np.eye(10)}, ValueError, "Give X"),
        ({"correlations": np.eye(9)}, ValueError, r"\(10, 10\).*\(9, 9\)"),
        ({"correlations": 2 * np.eye(10)}, ValueError, "diagonal"),
        ({"correlations": np.tri(10)}, ValueError, "symmetric"),
        ({"X": csr_array(np.ones((1, 10)))}, ValueError, "two rows"),
        ({"X": np.ones((1, 10))}, ValueError, "two rows"),
        ({"X": np.ones((5, 9))}, ValueError, "10 features"),
        ({"sets": {"a": ["gene99"]}}, ValueError, "'gene99'.*'gene9'.*missing='ignore' leaves out"),
        ({"sets": {"a": ["TP53"]}, "missing": "ignore"}, ValueError, "None of the sets has a column"),
        ({"sets": ["gene0"]}, TypeError, "sets must be a dict"),
        ({"correlations": np.eye(10), "q": 1.0}, ValueError, "q must be between"),
        ({"correlations": np.eye(10), "level": 95}, ValueError, "level must be between"),
        ({"correlations": np.eye(10), "effect": -1.0}, ValueError, "effect"),
        ({"correlations": np.eye(10), "effect": np.nan}, ValueError, "effect must be .* got nan"),
        ({"correlations": np.eye(10), "threshold": 2.0}, ValueError, "threshold"),
        ({"correlations": np.eye(10), "level": 0.9999}, ValueError, r"level=0\.9999 needs 10000 .* has 2000.*n_iter"),
        ({"correlations": np.eye(10), "q": 1e-4}, ValueError, r"q=0\.0001 needs 10000"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_what_cannot_be_used_is_refused(model, given, error, says):
    with pytest.raises(error, match=says):
        credible_sets(model, **given)


@pytest.mark.slow
def test_rates_of_false_sets_on_data_from_the_model():
    """40 data sets, drawn from the prior with tau = 0.05: the share of false sets at q is at most q, but for chance."""
    from _data import FromModel
    from selection import realised

    counts = [realised(FromModel(150, 20, pairs=5), seed) for seed in range(40)]
    for q in (0.05, 0.1, 0.2):
        for rule in ("fsr", "sets"):
            false = np.array([count[rule, q, "effects"]["false share"] for count in counts])
            assert false.mean() <= q + 2 * false.std() / np.sqrt(len(false)), (rule, q)
        assert sum(count["sets", q, "effects"]["found"] for count in counts) > 20


def test_sets_of_one_name_are_refused(made_up, seed):
    first, second = np.random.default_rng(seed).standard_normal((2, 400))
    model = made_up(np.column_stack([5 + first, 2 + 4 * second, 2 - 4 * second]))
    with pytest.raises(ValueError, match=r"sets.* 'x0'"):
        credible_sets(model, sets={"x0": [1, 2]}, q=0.2)
    assert sorted(credible_sets(model, sets={"pair": [1, 2]}, q=0.2).sets.index) == ["pair", "x0"]
