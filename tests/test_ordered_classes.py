"""Classifiers of classes in an order: what is asked of y, what they answer, and what they hand to other tools."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, inspection, plotting, sets, terms
from skhorseshoe._data import separation
from skhorseshoe.diagnostics import rhat

LEVELS = ["low", "mid", "high", "top"]
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((240, 4)), columns=list("abcd"))
Z = X["a"] - 0.6 * X["b"] + RNG.standard_normal(240)
Y = pd.cut(Z, [-np.inf, -0.7, 0.4, 1.4, np.inf], labels=LEVELS)
FAST = {"n_iter": 200, "burn_in": 60, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return HorseshoeProbitClassifier(ordered=True, **FAST).fit(X, Y)


def fit(y, **how):
    return HorseshoeProbitClassifier(**{**FAST, "n_iter": 20, "burn_in": 10, **how}).fit(X, y)


@pytest.fixture(scope="module")
def brief():
    return fit(Y, ordered=True)


@pytest.mark.parametrize(
    ("ordered", "y"),
    [
        (True, Y),
        (True, Y.array),
        (True, Y.to_frame()),
        (True, pl.Series(Y.astype(str), dtype=pl.Enum(LEVELS))),
        (LEVELS, Y.astype(str)),
        (LEVELS, np.asarray(Y)),
        (np.array(LEVELS), Y.astype(str).tolist()),
    ],
)
def test_every_way_to_give_the_order_gives_the_same_fit(brief, ordered, y):
    other = fit(y, ordered=ordered)
    np.testing.assert_array_equal(other.coef_draws_, brief.coef_draws_)
    assert other.ordered_classes_.tolist() == LEVELS
    assert other.classes_.tolist() == sorted(LEVELS)  # as scikit-learn's scorers need them


@pytest.mark.parametrize("kind", [int, float, "int8", "Int64"])
def test_numbers_are_in_their_order(brief, kind):
    other = fit(pd.Series(Y.cat.codes).astype(kind), ordered=True)
    np.testing.assert_array_equal(other.coef_draws_, brief.coef_draws_)
    np.testing.assert_array_equal(other.predict(X), [LEVELS.index(label) for label in brief.predict(X)])


@pytest.mark.parametrize("ordered", [True, ["bad", "good"]])
def test_two_classes_are_the_binary_fit(ordered):
    y = np.where(Z > 0, "good", "bad")
    y = pd.Categorical(y, ["bad", "good"], ordered=True) if ordered is True else y
    two, binary = (fit(y, ordered=given) for given in (ordered, False))
    np.testing.assert_array_equal(two.coef_draws_, binary.coef_draws_)
    assert not hasattr(two, "ordered_classes_")
    assert two.predict_proba(X).shape == (240, 2)


def test_probabilities_are_those_of_the_draws(model):
    eta = X.to_numpy() @ model.coef_draws_.reshape(-1, 4).T + model.intercept_draws_.ravel()
    own = model.cut_points_draws_.reshape(-1, 3) + model.intercept_draws_.reshape(-1, 1)
    np.testing.assert_allclose(own[:, 0], 0, atol=1e-12)
    wanted = model._likelihood.probabilities(eta, own[:, 1:])
    proba = model.predict_proba(X)[:, [sorted(LEVELS).index(label) for label in LEVELS]]
    np.testing.assert_allclose(proba, wanted.mean(axis=1), rtol=1e-9)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert (model.predict(X) == model.classes_[model.predict_proba(X).argmax(axis=1)]).all()
    assert (model.decision_function(X).argmax(axis=1) == model.predict_proba(X).argmax(axis=1)).all()
    ends = model.predict_interval(X, 0.8)
    assert ends.shape == (240, 4, 2)
    place = sorted(LEVELS).index("mid")
    np.testing.assert_allclose(ends[:, place], np.quantile(wanted[..., 1], [0.1, 0.9], axis=1).T, rtol=1e-9)
    logs = model._likelihood.log_density_of_class(eta, np.tile(Y.cat.codes.to_numpy(int)[:, None], 800), own[:, 1:])
    data = model.to_arviz(X, Y)
    np.testing.assert_allclose(np.asarray(data.log_likelihood["y"]).reshape(-1, 240).T, logs, rtol=1e-9)
    assert data.posterior["cut_points"].dims == ("chain", "draw", "cut")
    assert data.posterior["cut"].values.tolist() == ["low|mid", "mid|high", "high|top"]


def test_decisions_are_finite_and_those_of_the_lowest_and_the_highest_class_are_of_two_classes(model):
    far = X * 300
    decision = model.decision_function(far)
    assert np.isfinite(decision).all()
    assert abs(decision).max() > 30
    for label, of_two in ("top", 1), ("low", -1):
        at_least = inspection.at_least(model, "top" if of_two == 1 else "mid")
        np.testing.assert_allclose(decision[:, sorted(LEVELS).index(label)], of_two * at_least.decision_function(far))
    np.testing.assert_array_equal(decision[:1], model.decision_function(far[:1]))


@pytest.mark.parametrize("label", LEVELS[1:])
def test_the_model_of_at_least_a_class_sums_its_probabilities(model, label):
    at_least, place = inspection.at_least(model, label), LEVELS.index(label)
    assert at_least.classes_.tolist() == [False, True]
    above = [sorted(LEVELS).index(name) for name in LEVELS[place:]]
    np.testing.assert_allclose(at_least.predict_proba(X)[:, 1], model.predict_proba(X)[:, above].sum(axis=1))
    effects = inspection.marginal_effects(at_least, X)
    shifted = inspection.at_least(model, label).predict_proba(X.assign(a=X["a"] + 1))[:, 1]
    assert effects.loc["a", "mean"] == pytest.approx((shifted - at_least.predict_proba(X)[:, 1]).mean())
    assert len(inspection.contributions(at_least, X[:1]))
    assert at_least.predict_proba_samples(X[:3]).shape == (3, 800)
    plotting.PosteriorCalibrationDisplay.from_estimator(at_least, X, label <= Y)
    with pytest.raises(ValueError, match="within a model of ordered classes"):
        inspection.loo(at_least, X, label <= Y)


def test_what_is_of_two_classes_says_what_to_ask(model):
    refused = {
        "marginal_effects": lambda: inspection.marginal_effects(model, X),
        "contributions": lambda: inspection.contributions(model, X[:2]),
        "A display of probabilities": lambda: plotting.PosteriorCalibrationDisplay.from_estimator(model, X, Y),
    }
    for what, ask in refused.items():
        with pytest.raises(ValueError, match=rf"{what} is of two classes, .*inspection\.at_least\(model, 'top'\)"):
            ask()
    with pytest.raises(ValueError, match="at_least takes one of"):
        inspection.at_least(model, "low")
    with pytest.raises(ValueError, match="at_least is for ordered classes"):
        inspection.at_least(fit(Z > 0), True)


def test_a_summary_has_the_cut_points_and_says_what_is_favoured(model):
    frame = model.summary()
    cuts = [f"(cut {low}|{high})" for low, high in pairwise(LEVELS)]
    assert frame.index.tolist() == [*"abcd", "(global scale)", *cuts]
    np.testing.assert_allclose(frame.loc[cuts, "mean"], model.cut_points_)
    assert "positive coefficients favour higher classes" in " ".join(frame.attrs["header"].split())
    assert "Coefficients of an ordered probit regression" in frame.attrs["caption"]
    display = plotting.CoefficientsDisplay.from_estimator(model)
    assert "(positive favours higher classes)" in display.ax_.get_xlabel()
    found = plotting.CredibleSetsDisplay.from_sets(sets.credible_sets(model, X))
    assert "(positive favours higher classes)" in found.ax_.get_xlabel()
    assert model.summary(sort_by="mean").index[0] == "a"
    assert frame["rhat"].max() < 1.1


def test_the_intercept_is_the_first_cut_point_and_not_judged_beside_it(said):
    """Nor are moments of all draws those of cut points, of which those that are kept tell."""
    clf = HorseshoeProbitClassifier(ordered=True, n_iter=40, burn_in=10, max_draws=10, random_state=0)
    (text,) = said(clf, X, Y, "have not converged")
    assert "of 8 quantities" in text  # four columns, the global scale and three cut points
    frame = clf.summary()
    np.testing.assert_allclose(frame["mean"].to_numpy()[:5], clf.moments_["mean"][[0, 1, 2, 3, 5]])
    np.testing.assert_allclose(frame["mean"].to_numpy()[5:], clf.cut_points_)
    assert "mean and sd are of all, but those of cut points;" in " ".join(frame.attrs["header"].split())


def test_without_an_intercept_the_first_cut_point_is_held_and_not_judged(said):
    clf = HorseshoeProbitClassifier(ordered=True, fit_intercept=False, random_state=0)
    assert not said(clf, X, Y)
    assert (clf.cut_points_draws_[..., 0] == 0).all()
    frame = clf.summary()
    assert frame.index[-2:].tolist() == ["(cut mid|high)", "(cut high|top)"]
    assert np.isfinite(frame[["ess", "rhat"]].to_numpy()[-2:]).all()


def test_the_rest_of_the_library_takes_it(model):
    assert inspection.loo(model, X, Y).elpd_loo == pytest.approx(
        np.log(model.predict_proba(X)[np.arange(240), [sorted(LEVELS).index(y) for y in Y]]).sum(), rel=0.1
    )
    for rule in ("shrinkage", "interval", "fsr", "dss"):
        kept = HorseshoeSelector(model, prefit=True, rule=rule).fit(X, Y).get_support()
        assert kept[:2].all()
    assert HorseshoeSelector(clone(model).set_params(class_weight="balanced")).fit(X, Y).get_support()[:2].all()
    assert len(terms.summary(model, X, terms={"both": ["a", "b"]}))
    assert len(sets.credible_sets(model, X).sets) >= 2
    search = GridSearchCV(clone(model), {"n_iter": [20, 40]}, scoring="neg_log_loss", cv=3).fit(X, Y)
    assert search.best_score_ > -1.4
    scores = cross_val_score(clone(model).set_params(n_iter=40), X, Y, scoring="roc_auc_ovr", cv=3)
    assert scores.min() > 0.6
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, Y)
    at_least = inspection.at_least(pipeline, "high")
    effects = inspection.marginal_effects(at_least, X)
    assert effects.index.tolist() == list("abcd")
    assert effects.loc["a", "mean"] > 0 > effects.loc["b", "mean"]


def test_weights_count_rows_and_class_weights_are_those_of_their_class():
    weight = np.random.default_rng(1).integers(1, 4, 240)
    rows = np.repeat(np.arange(240), weight)
    how = {**FAST, "n_iter": 600, "burn_in": 100, "ordered": True}
    weighted = HorseshoeProbitClassifier(**how).fit(X, Y, sample_weight=weight)
    repeated = HorseshoeProbitClassifier(**how).fit(X.iloc[rows], Y.iloc[rows])
    np.testing.assert_allclose(weighted.cut_points_, repeated.cut_points_, atol=0.02)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=0.02)
    # Means would hardly tell doubled weights; deviations would be .71 times as large.
    spreads = [
        np.r_[one.cut_points_draws_.std((0, 1)), one.coef_draws_.std((0, 1))[:2]] for one in (weighted, repeated)
    ]
    np.testing.assert_allclose(*spreads, rtol=0.15)
    by_class = {"low": 3.0, "mid": 1.0, "high": 2.0, "top": 1.0}
    short = {**FAST, "n_iter": 20, "burn_in": 10, "ordered": True}
    one = HorseshoeProbitClassifier(**short, class_weight=by_class).fit(X, Y)
    other = HorseshoeProbitClassifier(**short).fit(X, Y, sample_weight=np.array([by_class[y] for y in Y]))
    np.testing.assert_array_equal(one.coef_draws_, other.coef_draws_)


def test_a_column_of_the_top_class_alone_is_told(said):
    """Its coefficient has no bound; one of a class in the middle has."""
    X_top = X.assign(e=(Y == "top") & (np.arange(240) % 2 == 0), f=(Y == "mid") & (np.arange(240) % 2 == 0))
    model = HorseshoeProbitClassifier(ordered=True, n_iter=20, burn_in=10)
    texts = said(model, X_top.astype(float), Y, "slab_scale")
    assert texts
    assert all(text.startswith("Column 'e': ") for text in texts)  # of so few draws the worst R-hat may be that of 'f'


def test_separation_is_that_of_ordered_classes(said):
    """A column of a class in the middle separates the lowest class from the others, and bounds its own coefficient."""
    X_mid = X.assign(e=(Y == "mid").astype(float))
    assert said(HorseshoeProbitClassifier(ordered=True, n_iter=20, burn_in=10), X_mid, Y == "low", "separat")
    assert not said(HorseshoeProbitClassifier(ordered=True, n_iter=20, burn_in=10), X_mid, Y, "separat")
    X_sum = X.assign(e=Y.cat.codes - X["a"] - 10 * X["b"], f=X["a"] + 10 * X["b"])  # together they tell the class
    assert said(HorseshoeProbitClassifier(ordered=True, n_iter=20, burn_in=10), X_sum, Y, "complete separation")


def test_sampling_ends_when_the_cut_points_that_are_told_have_converged():
    """The wine data of R's "ordinal" (Randall 1989): temp, contact, rating. A plane divides the first rating alone."""
    wine = np.array([[[4, 9, 5, 0, 0], [1, 7, 8, 2, 0]], [[0, 5, 8, 3, 2], [0, 1, 5, 7, 5]]])
    *columns, rating = np.repeat(np.argwhere(wine >= 0), wine.ravel(), axis=0).T
    for seed in (0, 7, 8):
        model = HorseshoeProbitClassifier(ordered=True, unpenalized=[0, 1], random_state=seed, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(np.column_stack(columns).astype(float), rating)
        assert rhat(model.cut_points_draws_).max() <= 1.01


def test_a_fit_ends_where_separation_takes_too_long_to_find_out(monkeypatch):
    monkeypatch.setattr(separation, "_PROGRAMME_NUMBERS", 1)
    assert fit(Y, ordered=True, standardize=True).n_iter_ == 20


@pytest.mark.parametrize(
    ("y", "how", "text"),
    [
        (Y.astype(str), {"ordered": True}, "text, which has no order of its own: give the list"),
        (Y.astype(str), {"ordered": ["low", "mid", "high"]}, "y holds the class 'top', which ordered="),
        (np.arange(len(Y)) % 2, {"ordered": [0, 2]}, "y holds the class 1, which ordered="),
        (Y.astype(str), {"ordered": ["low", "low"]}, "a list of two or more different classes"),
        (Y.astype(str), {"ordered": [["low"], ["mid"]]}, "a list of two or more different classes"),
        (Y.astype(str), {"ordered": np.array("low")}, "a list of two or more different classes"),
        (Y.cat.codes, {"ordered": LEVELS}, "scikit-learn puts numbers in place of labels, .* give y as numbers"),
        (pd.cut(Z, 4), {"ordered": True}, r"in the same order: y\.cat\.rename_categories\(str\)"),
        (Y, {"ordered": True, "sampler": "gibbs"}, "sampler='gibbs' does not take an ordered probit likelihood"),
        (Y, {"ordered": True, "sampler": "pxda"}, "Use sampler='hmc'"),
        (Y, {"ordered": True, "device": "cuda"}, "runs on the CPU"),
        (Y, {"ordered": True, "class_weight": {"top": 0.0}}, "must be positive and finite for each class"),
        (np.arange(240) * 1.5, {"ordered": True}, "continuous"),
        (Y.cat.codes / 2, {"ordered": [0, 0.5, 1, 1.5]}, "number them in their order"),
        (np.zeros(240, int), {"ordered": True}, "one class"),
    ],
)
def test_what_cannot_be_ordered_is_refused_with_what_to_do(y, how, text):
    with pytest.raises(ValueError, match=text):
        fit(y, **how)


@pytest.mark.parametrize(
    "fitted",
    [
        lambda model, y: cross_val_predict(model, X, y, cv=3, method="predict_proba"),
        lambda model, y: VotingClassifier([("one", model)], voting="soft").fit(X, y),
        lambda model, y: StackingClassifier([("one", model)], cv=3).fit(X, y),
        lambda model, y: BaggingClassifier(model, 2).fit(X, y),
    ],
)
def test_numbers_that_scikit_learn_puts_in_place_of_text_are_no_order(fitted):
    model = HorseshoeProbitClassifier(ordered=True, n_iter=20, burn_in=10, random_state=0)
    with pytest.raises(ValueError, match="sorted order of labels that are text"):
        fitted(model, Y)
    fitted(model, Y.cat.codes)


def test_labels_in_a_column_are_told_once_and_intervals_keep_their_order():
    model = HorseshoeProbitClassifier(ordered=True, n_iter=20, burn_in=10)
    with pytest.warns(DataConversionWarning) as caught:
        model.fit(X, Y.cat.codes.to_numpy()[:, None])
    assert len([one for one in caught if issubclass(one.category, DataConversionWarning)]) == 1
    steps = pd.cut(Z, [-np.inf, -10.0, 0.0, 2.0, np.inf]).cat.rename_categories(str)
    assert model.fit(X, steps).ordered_classes_.tolist() == ["(-10.0, 0.0]", "(0.0, 2.0]", "(2.0, inf]"]


def test_draws_of_cut_points_are_in_the_forecast_of_memory(caplog):
    model = HorseshoeProbitClassifier(ordered=True, n_iter=40, burn_in=1, n_chains=64, random_state=0, verbose=1)
    with caplog.at_level("INFO", "skhorseshoe"):
        model.fit(X[["a"]], np.arange(240) % 60)
    nbytes = model.coef_draws_.nbytes + model.cut_points_draws_.nbytes
    assert nbytes > 2**20
    assert f"{round(nbytes / 2**20)} MiB for draws" in caplog.text


def test_too_many_classes_are_refused():
    many = np.arange(600) % 300
    with pytest.raises(ValueError, match="300 classes, and at most 255"):
        HorseshoeProbitClassifier(ordered=True).fit(np.ones((600, 1)), many)


def test_a_class_with_a_single_row_and_a_level_without_rows():
    y = Y.cat.codes.to_numpy().copy()
    y[y == 3] = 2
    y[0] = 3
    model = fit(y, ordered=True, n_iter=200, burn_in=60)
    assert np.isfinite(model.cut_points_).all()
    assert model.cut_points_[2] > model.cut_points_[1] + 0.5
    empty = pd.Categorical(Y.astype(str), ["none", *LEVELS, "beyond"], ordered=True)
    assert fit(empty, ordered=True).ordered_classes_.tolist() == LEVELS


def test_saved_and_loaded_it_predicts_the_same(model, tmp_path):
    import pickle

    skops = pytest.importorskip("skops.io")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    file = tmp_path / "model.skops"
    skops.dump(model, file)
    loaded = skops.load(file, trusted=skops.get_untrusted_types(file=file))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_scikit_learns_checks_hold_with_ordered():
    failing = {"check_classifiers_classes": "its text has no order", "check_classifiers_train": "nor have its blobs"}
    model = HorseshoeProbitClassifier(ordered=True, n_iter=20, burn_in=10, random_state=0)
    check_estimator(model, expected_failed_checks=failing)


def test_other_models_say_that_they_have_no_cut_points(model, short_fit):
    two = short_fit(np.arange(40.0)[:, None] % 7, np.arange(40) % 2)
    for other in (two, inspection.at_least(model, model.ordered_classes_[1]), HorseshoeProbitClassifier()):
        with pytest.raises(AttributeError, match="three classes or more in order"):
            _ = other.cut_points_
