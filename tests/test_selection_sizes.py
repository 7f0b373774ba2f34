"""The number of columns by cross-validation."""

from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector

HALVES = np.arange(0, 300, 2), np.arange(1, 300, 2)
SHORT = HorseshoeProbitClassifier(n_iter=25, burn_in=30, n_chains=2, random_state=0)


@pytest.fixture(scope="module")
def problem(seed):
    """Three of ten columns matter much."""
    X = np.random.default_rng(seed).standard_normal((300, 10))
    y = X[:, :3] @ [1.5, -1.2, 1.0] + np.random.default_rng(seed + 1).standard_normal(300) > 0
    return pd.DataFrame(X, columns=[f"gene{j}" for j in range(10)]), np.where(y, "ill", "well")


@pytest.fixture(scope="module")
def selected(problem):
    return HorseshoeSelector(clone(SHORT).set_params(n_iter=200, burn_in=200), cv=4).fit(*problem)


@pytest.mark.slow
@parametrize_with_checks([HorseshoeSelector(clone(SHORT).set_params(n_iter=8, burn_in=4), cv=2)])
def test_common_check_with_folds(estimator, check):
    check(estimator)


def test_the_size_that_predicts_is_kept(selected):
    found = selected.sizes_
    assert 3 <= selected.suggested_size_ <= 5
    assert selected.support_[:3].all()
    assert selected.support_.sum() == selected.suggested_size_
    np.testing.assert_array_equal(found["sizes"], np.arange(11))
    assert found["n_rows"] == 300
    assert found["difference"][0] < -10 * found["se"][3]
    assert (found["difference"][-1], found["se"][-1]) == (0, 0)
    within = found["difference"] >= -np.maximum(found["se"], 4)
    assert selected.suggested_size_ == found["sizes"][within][0]


def test_the_search_goes_on_without_folds_too(selected, problem):
    alone = clone(selected).set_params(cv=None).fit(*problem)
    assert alone.sizes_ is alone.suggested_size_ is None
    np.testing.assert_array_equal(alone.support_, alone.path_["supports"][alone.path_["chosen"]])
    np.testing.assert_array_equal(selected.estimator_.coef_draws_, alone.estimator_.coef_draws_)
    assert clone(selected).set_params(rule="interval").fit(*problem).sizes_ is None  # which has no sizes
    np.testing.assert_array_equal(selected.path_["supports"][: len(alone.path_["supports"])], alone.path_["supports"])


@pytest.mark.slow
@pytest.mark.parametrize("chain_seed", [1, 4])
def test_the_score_of_separated_rows_is_that_of_cross_validation(chain_seed):
    """Where few draws would give some rows probabilities near 0, and no column would seem to help."""
    rng = np.random.default_rng(9)
    X = 0.7**0.5 * rng.standard_normal((120, 6)).repeat(10, axis=1) + 0.3**0.5 * rng.standard_normal((120, 60))
    y = X[:, [0, 10, 20]] @ [1.2, -1.2, 1.2] + rng.standard_normal(120) > 0
    model = HorseshoeProbitClassifier(n_iter=1500, burn_in=200, random_state=chain_seed)
    with catch_warnings():
        simplefilter("ignore")  # of separated classes
        found = HorseshoeSelector(model, cv=5).fit(X, y)
        scores = cross_val_score(model, X, y, cv=5, scoring="neg_log_loss")
    assert abs(found.sizes_["log_score"] - 24 * scores.sum()) < 5
    assert found.suggested_size_ > 0


def test_rows_held_out_are_not_seen(problem):
    """The score of the full model is that of fits without each fold."""
    X, y = problem
    selector = HorseshoeSelector(SHORT, cv=[HALVES, HALVES[::-1]]).fit(X, y)
    score = 0.0
    for train, test in (HALVES, HALVES[::-1]):
        proba = clone(SHORT).fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
        score += np.log(np.where(y[test] == "ill", *proba.T)).sum()
    assert selector.sizes_["log_score"] == pytest.approx(score, rel=1e-9)
    once = HorseshoeSelector(SHORT, cv=[HALVES]).fit(X, y).sizes_
    assert once["n_rows"] == 150


def test_rows_that_are_held_out_twice_count_once(problem):
    X, y = problem
    twice, once = (HorseshoeSelector(SHORT, cv=[HALVES] * k).fit(X, y).sizes_ for k in (2, 1))
    for name in ("difference", "se", "log_score", "n_rows"):
        np.testing.assert_allclose(twice[name], once[name])
    HorseshoeSelector(SHORT, cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=1, random_state=0)).fit(X, y)


def test_weights_reach_folds_and_scores(problem):
    X, y = problem
    rows, halves = np.arange(300) < 200, (np.arange(200), np.arange(200, 300))
    with_zeros = HorseshoeSelector(SHORT, cv=[(np.arange(300), np.arange(300))]).fit(X, y, rows.astype(float))
    without = HorseshoeSelector(SHORT, cv=[(np.arange(200), np.arange(200))]).fit(X[rows], y[rows])
    doubled = HorseshoeSelector(SHORT, cv=[halves]).fit(X, y, np.where(rows, 1.0, 2.0))
    single = HorseshoeSelector(SHORT, cv=[halves]).fit(X, y)
    for name in ("difference", "se", "log_score", "n_rows"):
        np.testing.assert_allclose(with_zeros.sizes_[name], without.sizes_[name], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(doubled.sizes_["se"], 2 * single.sizes_["se"])  # a row stays one observation
    by_class = HorseshoeSelector(clone(SHORT).set_params(class_weight={"ill": 2, "well": 2}), cv=[halves]).fit(X, y)
    for weight in (np.full(300, 2.0), 2.0):  # one for all, as the classifier takes it
        by_row = HorseshoeSelector(SHORT, cv=[halves]).fit(X, y, weight)
        assert by_class.sizes_["log_score"] == pytest.approx(by_row.sizes_["log_score"])


def test_columns_that_are_not_shrunk_do_not_count(problem):
    X, y = problem
    model = clone(SHORT).set_params(unpenalized=["gene0", "gene1", "gene2"], n_iter=200, burn_in=200)
    selector = HorseshoeSelector(model, cv=3).fit(X, y)
    assert selector.sizes_["sizes"][-1] == 7
    assert selector.support_[:3].all()
    assert selector.suggested_size_ == selector.support_[3:].sum() <= 2


def test_a_fitted_model_and_sparse_rows(problem, tmp_path):
    X, y = sp.csr_array(problem[0].to_numpy()), problem[1]
    model = clone(SHORT).set_params(checkpoint=tmp_path).fit(X, y)
    selector = HorseshoeSelector(model, prefit=True, cv=2).fit(X, y)
    assert selector.estimator_ is model
    order = np.argsort(y)  # folds have both classes nevertheless
    dense = HorseshoeSelector(SHORT, cv=2).fit(X.toarray()[order], y[order])
    np.testing.assert_allclose(selector.sizes_["difference"][0], dense.sizes_["difference"][0], rtol=0.2)


def test_what_cannot_be_split_is_refused(problem):
    X, y = problem
    never = HorseshoeProbitClassifier(n_iter=10**9)  # so that it must be refused before the fit
    for selector, error, message in (
        (HorseshoeSelector(never, cv=1), ValueError, "'cv' parameter"),
        (HorseshoeSelector(never, cv=GroupKFold(3)), ValueError, r"cv=list\(splitter.split\(X, y, groups\)\)"),
        (HorseshoeSelector(never, cv=301), ValueError, "n_splits=301"),
    ):
        with pytest.raises(error, match=message):
            selector.fit(X, y)
    used_up = iter([HALVES])
    HorseshoeSelector(SHORT, cv=used_up).fit(X, y)
    with pytest.raises(ValueError, match=r"no folds.*a list of its pairs"):  # not a choice without them
        HorseshoeSelector(never, cv=used_up).fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        HorseshoeSelector(clone(SHORT).fit(X, y), prefit=True, cv=2).fit(X)
    groups = np.repeat(np.arange(30), 10)
    with pytest.warns(UserWarning, match=r"others of it are held out\. cv=GroupKFold\(2\) holds out whole groups"):
        HorseshoeSelector(SHORT, cv=2).fit(X, y, groups=groups)
    by_group = HorseshoeSelector(SHORT, cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    assert by_group.sizes_["n_rows"] == 300


def test_the_folds_warn_once(problem):
    with pytest.warns(ConvergenceWarning) as said:
        HorseshoeSelector(clone(SHORT).set_params(n_iter=5, burn_in=5), cv=3).fit(*problem)
    texts = [str(one.message) for one in said]
    assert len(texts) == 2
    assert texts[1].startswith("Fits without a fold gave 3 warnings in 3 folds")
    assert said[1].filename == __file__


def of_more(kind, problem):
    """Rows of classes that depend on three of six columns: text in an order other than the sorted one, or without."""
    X, noise = problem[0].iloc[:, :6], np.random.default_rng(0).standard_normal((300, 3))
    if kind == "ordered":
        score = X.to_numpy()[:, :3] @ [1.2, -1.0, 0.8] + noise[:, 0]
        levels = ["none", "mild", "bad", "awful"]
        return X, pd.cut(score, [-np.inf, -1.0, 0.5, 1.5, np.inf], labels=levels).astype(str), levels
    coef = np.array([[1.5, 0, -1.5], [0, 1.5, -1.5], [2.0, -1.0, -1.0]])
    return X, np.array(["ash", "elm", "fir"])[(X.to_numpy()[:, :3] @ coef + noise).argmax(axis=1)], False


@pytest.mark.parametrize("kind", ["several", "ordered"])
def test_more_than_two_classes_keep_the_size_that_predicts(problem, kind):
    """The score of the full model is that of a fit without the fold, by hand."""
    X, y, order = of_more(kind, problem)
    clf, (train, test) = clone(SHORT).set_params(ordered=order), HALVES
    selector = HorseshoeSelector(clf, cv=[HALVES]).fit(X, y)
    assert selector.suggested_size_ == 3
    assert selector.get_support(indices=True).tolist() == [0, 1, 2]
    fold = clone(clf).fit(X.iloc[train], y[train])
    proba = fold.predict_proba(X.iloc[test])[np.arange(150), np.searchsorted(fold.classes_, y[test])]
    assert selector.sizes_["log_score"] == pytest.approx(np.log(proba).sum(), rel=1e-6)
    assert selector.sizes_["difference"][0] < -10 * selector.sizes_["se"][3]


def test_an_ordered_categorical_keeps_its_order_in_folds(problem):
    X, y, levels = of_more("ordered", problem)
    clf = clone(SHORT).set_params(class_weight="balanced")
    categorical = pd.Categorical(y, levels, ordered=True)
    one, other = (
        HorseshoeSelector(clone(clf).set_params(ordered=ordered), cv=[HALVES]).fit(X, given)
        for ordered, given in ((True, categorical), (levels, y))
    )
    np.testing.assert_array_equal(one.sizes_["difference"], other.sizes_["difference"])


def test_a_fold_without_a_class_is_refused_before_the_fit(problem, monkeypatch):
    monkeypatch.setattr(HorseshoeProbitClassifier, "fit", None)
    X, y, _ = of_more("several", problem)
    train = np.flatnonzero(y != "fir")
    with pytest.raises(ValueError, match=r"Fold 1 of cv leaves no row of the class 'fir' to fit.*fewer folds"):
        HorseshoeSelector(SHORT, cv=[HALVES, (train, np.flatnonzero(y == "fir"))]).fit(X, y)


def test_folds_of_sorted_rows_are_told(problem):
    """Where each fold holds out other rows than it is fitted to, all columns predict worse than none."""
    X = problem[0].to_numpy()
    far = np.where(np.arange(len(X)) < 200, 1.0, -1.0)  # the effect changes its sign where the fold begins
    z = far * (3 * X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(len(X))
    folds = [(np.flatnonzero(far > 0), np.flatnonzero(far < 0))]
    with pytest.warns(UserWarning, match="worse than the 0 columns of the smallest size do, by .*Shuffle them"):
        HorseshoeSelector(SHORT, cv=folds).fit(X, z > 0)
