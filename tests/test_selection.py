"""The selector: its rules, and its life inside scikit-learn."""

from copy import copy
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.datasets import make_sparse_probit
from skhorseshoe.inspection import select

RULES = ("dss", "interval", "shrinkage", "fsr")
SHORT = HorseshoeProbitClassifier(n_iter=60, burn_in=60, random_state=0)


@pytest.fixture(scope="module")
def noisy(seed):
    X, y, coef = make_sparse_probit(800, 60, random_state=seed)
    return pd.DataFrame(X, columns=[f"gene{j}" for j in range(60)]), y, coef


@pytest.fixture(scope="module")
def fitted(noisy, short_fit):
    return short_fit(*noisy[:2], n_iter=500, burn_in=200)


@parametrize_with_checks([HorseshoeSelector(clone(SHORT).set_params(n_iter=10, burn_in=10, n_chains=2))])
def test_common_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("rule", "most"), [("dss", 3), ("interval", 3), ("shrinkage", 13), ("fsr", 3)])
def test_each_rule_finds_what_matters_and_little_noise(fitted, noisy, rule, most):
    X, _, coef = noisy
    support = HorseshoeSelector(fitted, rule=rule, prefit=True).fit(X).get_support()
    assert support[coef != 0].all()
    assert support[coef == 0].sum() <= most  # of 54


def test_interval_and_shrinkage_are_what_they_say(fitted, noisy):
    for level in (0.5, 0.9):
        low, high = np.quantile(fitted.coef_draws_, [(1 - level) / 2, (1 + level) / 2], axis=(0, 1))
        selector = HorseshoeSelector(fitted, rule="interval", level=level, prefit=True).fit(noisy[0])
        assert np.array_equal(selector.get_support(), (low > 0) | (high < 0))
    selector = HorseshoeSelector(fitted, rule="shrinkage", prefit=True).fit(noisy[0])
    assert np.array_equal(selector.get_support(), fitted.shrinkage_ < 0.5)


@pytest.mark.parametrize("rule", RULES)
def test_columns_that_are_not_shrunk_are_kept(noisy, short_fit, rule):
    X, y, _ = noisy
    model = short_fit(X, y, unpenalized=["gene40"])
    assert HorseshoeSelector(model, rule=rule, prefit=True).fit(X).get_support()[40]


def test_dss_says_where_it_has_nothing_to_compare(short_fit):
    X = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
    model = short_fit(X, np.arange(4) > 1)
    model.coef_draws_ = model.coef_draws_ + 1e6
    with pytest.raises(ValueError, match="slab_scale='per_contrast'"):
        HorseshoeSelector(model, prefit=True).fit(X)
    assert HorseshoeSelector(model, rule="interval", prefit=True).fit(X).support_.all()


@pytest.fixture(scope="module")
def pointless(seed):
    """A model of columns that do not matter, the last of which is constant, and its rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((300, 19)), np.ones(300)])
    return HorseshoeProbitClassifier(n_iter=500, random_state=seed).fit(X, rng.integers(0, 2, 300)), X


@pytest.mark.filterwarnings("ignore:rule=.* keeps no column")
def test_where_nothing_matters_little_is_selected(pointless):
    model, X = pointless
    for rule in RULES:
        selector = HorseshoeSelector(model, rule=rule, prefit=True).fit(X)
        assert selector.transform(X).shape[1] == selector.get_support().sum() <= 2


STRICT = {"dss": {"level": 0.9999}, "interval": {"level": 0.9999}, "fsr": {"q": 0.0006}, "shrinkage": {}}


@pytest.mark.parametrize("rule", RULES)
def test_as_many_columns_are_kept_as_are_asked_for(fitted, noisy, rule):
    """Those that the rule ranks next, and they stay where more are asked for."""
    kept = [
        HorseshoeSelector(fitted, rule=rule, prefit=True, min_features=n).fit(noisy[0]) for n in (0, 1, 7, 30, 60, 99)
    ]
    own = kept[0].support_.sum()
    assert [each.support_.sum() for each in kept] == [max(own, n) for n in (0, 1, 7, 30, 60, 60)]
    for fewer, more in pairwise(kept):
        assert more.support_[fewer.support_].all()
    low = np.minimum((fitted.coef_draws_ > 0).mean(axis=(0, 1)), (fitted.coef_draws_ < 0).mean(axis=(0, 1)))
    path = kept[3].path_ and np.argmax(kept[3].path_["supports"], axis=0) + 99 * ~kept[3].path_["supports"].any(axis=0)
    rank = {"dss": path, "interval": low, "fsr": kept[3].error_, "shrinkage": fitted.shrinkage_}[rule]
    assert rank[kept[3].support_].max() <= rank[~kept[3].support_].min() + 1e-12
    assert select(fitted, noisy[0], rule=rule, min_features=30).support_.tolist() == kept[3].support_.tolist()


@pytest.mark.parametrize("rule", RULES)
def test_where_nothing_is_kept_a_pipeline_is_told_how_to_go_on(pointless, rule, recwarn):
    model, X = copy(pointless[0]), pointless[1]
    model.shrinkage_ = np.maximum(model.shrinkage_, 0.6)
    selector, y = HorseshoeSelector(model, rule=rule, prefit=True, **STRICT[rule]), np.arange(300) % 2
    pipeline = make_pipeline(selector, LogisticRegression())
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        pipeline.fit(X, y)
    (warning,) = [str(one.message) for one in recwarn if "column" in str(one.message) or "feature" in str(one.message)]
    assert warning.startswith(f"rule={rule!r} keeps no column")
    assert "min_features=1" in warning
    recwarn.clear()
    assert pipeline[0].set_output(transform="pandas").transform(X).shape == (300, 0)
    recwarn.clear()
    pipeline.set_params(horseshoeselector__min_features=1).fit(X, y)
    assert pipeline[0].support_.sum() == 1
    assert not recwarn.list


@pytest.mark.parametrize("n", [1, 2, 3])
def test_columns_that_are_not_shrunk_count(pointless, n):
    model, X = copy(pointless[0]), pointless[1]
    model.shrinkage_ = np.where(np.isin(np.arange(20), [4, 7]), 0.0, np.maximum(model.shrinkage_, 0.6))
    support = HorseshoeSelector(model, rule="shrinkage", prefit=True, min_features=n).fit(X).support_
    assert support[[4, 7]].all()
    assert support.sum() == max(n, 2)


def test_a_fitted_model_is_read_and_not_fitted_again(fitted, noisy):
    X, y, _ = noisy
    for selector in (
        HorseshoeSelector(fitted, prefit=True).fit(X),
        HorseshoeSelector(FrozenEstimator(fitted)).fit(X, y),
    ):
        assert np.array_equal(selector.estimator_.coef_draws_, fitted.coef_draws_)
        assert np.shares_memory(selector.estimator_.coef_draws_, fitted.coef_draws_)
        assert selector.get_support().any()


def test_default_estimator_and_names(noisy):
    X, y, _ = noisy
    selector = HorseshoeSelector(rule="interval").set_output(transform="pandas").fit(X.iloc[:, :8], y)
    kept = X.columns[:8][selector.get_support()]
    assert list(selector.get_feature_names_out()) == list(kept)
    assert list(selector.transform(X.iloc[:, :8]).columns) == list(kept)
    assert list(selector.feature_names_in_) == list(X.columns[:8])
    table = pl.DataFrame({name: X[name].to_numpy() for name in X.columns[:8]})
    assert selector.set_output(transform="polars").transform(table).columns == list(kept)


@pytest.mark.parametrize(
    ("selector", "error", "message"),
    [
        (HorseshoeSelector(LogisticRegression()), TypeError, r"estimator .* got LogisticRegression"),
        (HorseshoeSelector(FrozenEstimator(LogisticRegression())), TypeError, "estimator"),
        (HorseshoeSelector(CalibratedClassifierCV(HorseshoeProbitClassifier())), TypeError, "estimator"),
        (HorseshoeSelector(prefit=True), TypeError, r"estimator .* got None.* inspection\.select"),
        (HorseshoeSelector(HorseshoeProbitClassifier(), prefit=True), NotFittedError, "not fitted"),
        (HorseshoeSelector(rule="kmeans"), ValueError, "'rule' parameter"),
        (HorseshoeSelector(level=90), ValueError, "'level' parameter"),
        (HorseshoeSelector(q=1.0), ValueError, "'q' parameter"),
        (HorseshoeSelector(effect=-0.1), ValueError, "'effect' parameter"),
        (HorseshoeSelector(min_features=-1), ValueError, "'min_features' parameter"),
        (HorseshoeSelector(min_features=0.5), ValueError, "'min_features' parameter"),
        (HorseshoeSelector(), ValueError, "requires y"),
    ],
)
def test_what_cannot_be_used_is_refused(selector, error, message):
    with pytest.raises(error, match=message):
        selector.fit(np.eye(5))


def test_fsr_is_the_largest_set_with_few_false_columns(fitted, noisy):
    X = noisy[0]
    sized = fitted.coef_draws_ * X.to_numpy().std(axis=0)
    for q, effect in ((0.01, 0.05), (0.1, 0.0), (0.3, 0.2)):
        right = np.maximum((sized > effect).mean(axis=(0, 1)), (sized < -effect).mean(axis=(0, 1)))
        least = 1 / np.minimum(fitted.ess_, fitted.global_scale_draws_.size)
        selector = HorseshoeSelector(fitted, rule="fsr", q=q, effect=effect, prefit=True).fit(X)
        np.testing.assert_allclose(selector.error_, np.maximum(1 - right, least))
        kept = selector.get_support()
        assert selector.error_[kept].mean() <= q < np.append(selector.error_[kept], selector.error_[~kept].min()).mean()
        assert selector.error_[kept].max() <= selector.error_[~kept].min()
    assert HorseshoeSelector(fitted, rule="interval", prefit=True).fit(X).error_ is None


def test_fsr_counts_effects_per_standard_deviation(noisy, short_fit):
    X, y, _ = noisy
    X, scale = X.to_numpy()[:, :8], np.geomspace(0.01, 100, 8)
    models = short_fit(X, y, standardize=True), short_fit(X * scale, y, standardize=True)
    errors = [
        HorseshoeSelector(m, rule="fsr", prefit=True).fit(Z).error_ for m, Z in zip(models, (X, X * scale), strict=True)
    ]
    np.testing.assert_allclose(*errors, atol=0.03)


def test_fsr_refuses_what_the_draws_cannot_tell(fitted, noisy):
    HorseshoeSelector(fitted, rule="fsr", q=1 / 2000, prefit=True).fit(noisy[0])
    with pytest.raises(ValueError, match=r"q=0\.0004 .* 2500 .* has 2000: .*n_iter"):
        HorseshoeSelector(fitted, rule="fsr", q=0.0004, prefit=True).fit(noisy[0])


def test_prefit_wants_the_columns_of_the_fit(fitted, noisy):
    selector = HorseshoeSelector(fitted, prefit=True)
    with pytest.raises(ValueError, match="feature names"):
        selector.fit(noisy[0].iloc[:, ::-1])
    with pytest.raises(ValueError, match="expecting 60 features"):
        selector.fit(noisy[0].to_numpy()[:, :5])
    with pytest.raises(NotFittedError):
        selector.get_support()


def two_populations(seed):
    """Rows of which some vary in the first column only, the others in the second only; a fit that needs both."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 3))
    X[:200, 1] *= 0.02
    X[200:, 0] *= 0.02
    return X, (X @ [2.0, 2.0, 0.0] + rng.standard_normal(400) > 0).astype(int), np.repeat([True, False], 200)


def test_dss_selects_for_the_rows_as_they_are_weighted(seed):
    X, y, first = two_populations(seed)
    model = HorseshoeProbitClassifier(n_iter=500, burn_in=200, random_state=seed).fit(X, y)
    selector = HorseshoeSelector(model, prefit=True)
    assert list(selector.fit(X).get_support()[:2]) == [True, True]
    assert list(selector.fit(X, sample_weight=first.astype(float)).get_support()[:2]) == [True, False]
    assert list(selector.fit(X, sample_weight=(~first).astype(int)).get_support()[:2]) == [False, True]
    with pytest.raises(ValueError, match="sample_weight"):
        selector.fit(X, sample_weight=-np.ones(400))


@pytest.mark.parametrize("rule", ["dss", "fsr"])  # which read the rows, or their spread
def test_weights_are_repeated_rows_and_those_of_classes_too(noisy, rule, seed):
    X, y, _ = noisy
    X, weight = X.iloc[:, :10], np.random.default_rng(seed).integers(0, 3, len(y))
    selector = HorseshoeSelector(SHORT, rule=rule)
    weighted = clone(selector).fit(X, y, weight)
    repeated = clone(selector).fit(X.iloc[np.repeat(np.arange(len(y)), weight)], np.repeat(y, weight))
    assert np.array_equal(weighted.estimator_.coef_draws_, repeated.estimator_.coef_draws_)
    assert np.array_equal(weighted.get_support(), repeated.get_support())

    classes = {0: 1, 1: 2}
    by_class = HorseshoeSelector(clone(SHORT).set_params(class_weight=classes), rule=rule).fit(X, y)
    by_row = clone(selector).fit(X, y, compute_sample_weight(classes, y))
    assert np.array_equal(by_class.get_support(), by_row.get_support())


def test_weights_of_classes_need_the_labels(seed):
    X, y, _ = two_populations(seed)
    model = clone(SHORT).set_params(class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="needs y, also with prefit=True"):
        HorseshoeSelector(model, prefit=True).fit(X)
    path = HorseshoeSelector(model, prefit=True).fit(X, y).path_
    HorseshoeSelector(model, prefit=True, rule="interval").fit(X)
    later = HorseshoeSelector(model.set_params(class_weight=None), prefit=True).fit(X, y)  # it was fitted with them
    assert np.array_equal(later.path_["distances"], path["distances"])


def test_weights_of_classes_are_those_of_the_fit_whatever_becomes_of_the_dict(seed):
    X, y, _ = two_populations(seed)
    weights = dict.fromkeys(np.unique(y).tolist(), 2)
    model = clone(SHORT).set_params(class_weight=weights).fit(X, y)
    before = HorseshoeSelector(model, prefit=True).fit(X, y).path_["distances"]
    weights[y[0].item()] = 50
    assert np.array_equal(HorseshoeSelector(model, prefit=True).fit(X, y).path_["distances"], before)


def test_weights_are_routed_to_the_classifier_and_to_the_rule(seed):
    X, y, first = two_populations(seed)
    with sklearn.config_context(enable_metadata_routing=True):
        longer = clone(SHORT).set_params(n_iter=500, burn_in=300)
        requests = clone(longer).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler(), HorseshoeSelector(requests), LogisticRegression())
        pipeline[-1].set_fit_request(sample_weight=False)
        pipeline[0].set_fit_request(sample_weight=False)
        pipeline.fit(X, y, sample_weight=first.astype(float))
        assert list(pipeline[1].get_support()[:2]) == [True, False]
        for estimator in (SHORT, None):
            with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
                HorseshoeSelector(estimator).fit(X, y, sample_weight=first)
        ignores = clone(SHORT).set_fit_request(sample_weight=False)
        with pytest.raises(TypeError, match="sample_weight"):
            HorseshoeSelector(ignores).fit(X, y, sample_weight=first)
        fitted = clone(longer).fit(X, y, first)
        for model in (fitted, make_pipeline(fitted)):  # whose fit is not called again
            assert list(select(model, X, y, sample_weight=first).get_support()[:2]) == [True, False]
        renamed = HorseshoeSelector(clone(longer).set_fit_request(sample_weight="first")).fit(X, y, first=first)
        assert list(renamed.get_support()[:2]) == [True, False]
    with pytest.raises(TypeError, match="unexpected keyword argument 'first'"):
        HorseshoeSelector(longer).fit(X, y, first=first)
    assert not hasattr(HorseshoeSelector, "set_fit_request")
    legacy = make_pipeline(HorseshoeSelector(longer), LogisticRegression())
    legacy.fit(X, y, horseshoeselector__sample_weight=first)
    assert list(legacy[0].get_support()[:2]) == [True, False]


@pytest.mark.parametrize("rule", ["interval", "shrinkage", "fsr"])
def test_rules_of_the_posterior_alone_read_no_rows(rule, noisy, short_fit):
    class Unread(np.ndarray):
        def __getitem__(self, at):
            raise AssertionError("a row was read")

    X, y, _ = noisy
    X = X.to_numpy()
    selector = HorseshoeSelector(short_fit(X, y), rule=rule, prefit=True).fit(X.view(Unread))
    assert selector.n_features_in_ == X.shape[1]


def test_a_fit_that_fails_leaves_the_selector_as_it_was(fitted, noisy):
    X, y, _ = noisy
    selector = HorseshoeSelector(fitted, prefit=True).fit(X)
    before = {**vars(selector), "estimator": None}
    weighted = clone(fitted).set_params(class_weight={0: 1, 1: 2}).fit(X.iloc[:, :6], y)
    with pytest.raises(ValueError, match="needs y"):
        selector.set_params(estimator=weighted).fit(X.iloc[:, :6])
    assert {**vars(selector), "estimator": None} == before
    with pytest.raises(ValueError, match="needs y"):
        (other := HorseshoeSelector(weighted, prefit=True)).fit(X.iloc[:, :6])
    with pytest.raises(NotFittedError):
        other.transform(X.iloc[:, :6])
