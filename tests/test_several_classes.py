"""Classifiers of several classes without an order: what they answer, and what they refuse."""

import ast
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, disk, inspection, plotting, sets, terms
from skhorseshoe._data.separation import COMPLETE, NONE, QUASI, separation
from skhorseshoe._model.multinomial_probit import simplex

RNG = np.random.default_rng(0)
LABELS = np.array(["ash", "elm", "oak"])
X = pd.DataFrame(RNG.standard_normal((240, 4)), columns=list("abcd"))
COEF = np.array([[1.2, -0.6, 0, 0], [-0.6, 1.2, 0, 0], [-0.6, -0.6, 0, 0]])
Y = LABELS[(X.to_numpy() @ COEF.T + RNG.standard_normal((240, 3))).argmax(axis=1)]
FAST = {"n_iter": 200, "burn_in": 100, "random_state": 0}
BRIEF = {**FAST, "n_iter": 20, "burn_in": 20}  # where draws are compared


@pytest.fixture(scope="module")
def model():
    return HorseshoeProbitClassifier(**FAST).fit(X, Y)


def test_coefficients_are_beside_the_mean_of_all_classes(model):
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.coef_draws_.shape == (4, 200, 3, 4)
    assert model.rhat_.shape == model.ess_.shape == (3, 4)
    np.testing.assert_allclose(model.coef_draws_.sum(axis=2), 0, atol=1e-12)
    np.testing.assert_allclose(model.intercept_draws_.sum(axis=2), 0, atol=1e-12)
    sd = model.coef_draws_.std(axis=(0, 1))
    assert (abs(model.coef_ - COEF) < 4 * sd + 0.1).all()
    assert (model.shrinkage_[:2] < 0.5).all()


def test_probabilities_are_those_of_the_draws(model):
    coef, intercept = model.coef_draws_.reshape(-1, 3, 4), model.intercept_draws_.reshape(-1, 3)
    eta = np.einsum("ij,mkj->imk", X.to_numpy(), coef) + intercept
    wanted = model._likelihood.probabilities(eta @ simplex(3).T)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba, wanted.mean(axis=1), rtol=1e-7)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    utilities = eta[:5, ::20, None] + np.random.default_rng(0).standard_normal((5, 40, 4000, 3))
    shares = (utilities.argmax(axis=-1)[..., None] == np.arange(3)).mean(axis=2)
    np.testing.assert_allclose(shares, wanted[:5, ::20], atol=5 * 0.5 / np.sqrt(4000))
    assert (model.predict(X) == LABELS[proba.argmax(axis=1)]).all()
    assert (model.decision_function(X).argmax(axis=1) == proba.argmax(axis=1)).all()
    np.testing.assert_allclose(model.predict_interval(X, 0.8)[:, 1], np.quantile(wanted[..., 1], [0.1, 0.9], axis=1).T)
    samples = model.predict_proba_samples(X[:3], max_draws=40)
    assert samples.shape == (3, 40, 3)
    np.testing.assert_allclose(model.predict_proba_samples(X[:3]), wanted[:3], rtol=1e-6)
    place = np.searchsorted(LABELS, Y)
    logs = np.log(np.take_along_axis(wanted, np.tile(place[:, None, None], (1, 800, 1)), 2)[..., 0])
    data = model.to_arviz(X, Y)
    np.testing.assert_allclose(np.asarray(data.log_likelihood["y"]).reshape(-1, 240).T, logs, rtol=1e-6, atol=1e-9)
    assert data.posterior["coef"].dims == ("chain", "draw", "class", "feature")
    assert inspection.loo(model, X, Y).n_rows == 240


def test_one_class_against_another_is_a_model_of_two(model):
    pair = inspection.against(model, "elm", "ash")
    difference = model.coef_draws_[:, :, 1] - model.coef_draws_[:, :, 0]
    np.testing.assert_allclose(pair.coef_draws_, difference / np.sqrt(2))
    eta = X.to_numpy() @ difference.reshape(-1, 4).T
    eta += (model.intercept_draws_[..., 1] - model.intercept_draws_[..., 0]).ravel()
    noise = np.random.default_rng(1).standard_normal((2, 200_000))
    above = [(eta[0, m] + noise[0] > noise[1]).mean() for m in range(5)]  # of the utilities of two
    np.testing.assert_allclose(pair.predict_proba_samples(X[:1])[0, :5], above, atol=6e-3)
    for ask in (inspection.marginal_effects, inspection.contributions):
        assert len(ask(pair, X[:50]))
    assert "elm" in inspection.summary(pair).attrs["header"]
    assert len(sets.credible_sets(pair, X).sets)
    with pytest.raises(ValueError, match="the log score of a row"):
        inspection.loo(pair, X, Y)
    both = np.isin(Y, ["elm", "ash"])
    for judge in (inspection.calibration, inspection.net_benefit, plotting.PosteriorCalibrationDisplay.from_estimator):
        with pytest.raises(ValueError, match=r"of 'elm' against 'ash' .* others have left"):
            judge(pair, X[both], Y[both])
    assert len(inspection.net_benefit(pair, X[both], thresholds=[0.5]))
    for labels, words in {
        ("elm", "elm"): "twice",
        ("elm", "fir"): "one of the classes",
        ("fir", "elm"): "'fir'",
    }.items():
        with pytest.raises(ValueError, match=words):
            inspection.against(model, *labels)
    with pytest.raises(ValueError, match="this model has two"):
        inspection.against(pair, "elm", "ash")


def test_scikit_learn_reads_the_labels_of_a_pair(model):
    """Its scorers and wrappers take ``classes_`` to be sorted, also where positive coefficients favour the first."""
    rows, labels = X[Y != "oak"], Y[Y != "oak"]
    for label, other in (("elm", "ash"), ("ash", "elm")):
        pair = inspection.against(model, label, other)
        y = pair.classes_[(labels == label).astype(int)]
        assert get_scorer("roc_auc")(pair, rows, y) > 0.8
        voting = VotingClassifier([("pair", FrozenEstimator(pair))], voting="soft").fit(rows, y)
        assert voting.score(rows, y) == pair.score(rows, y) > 0.7


def test_summaries_have_sizes_and_one_class(model):
    table = inspection.summary(model, sort_by="mean")
    size = np.linalg.norm(model.coef_draws_, axis=2)
    np.testing.assert_allclose(table.loc[list("abcd"), "mean"], size.mean(axis=(0, 1)))
    np.testing.assert_allclose(table.loc[list("abcd"), "elm"], model.coef_[1])
    assert table.loc[["a", "b"], "probability"].min() > 0.98
    assert table.loc[["c", "d"], "probability"].max() < 0.9
    assert set(table.index[:2]) == {"a", "b"}
    assert len(str(table))
    one = model.summary(of="elm")
    np.testing.assert_allclose(one.loc[list("abcd"), "mean"], model.coef_[1])
    assert "'elm' beside the mean of all classes" in " ".join(one.attrs["header"].split())
    with pytest.raises(ValueError, match="of takes one of the classes"):
        model.summary(of="fir")
    found = terms.summary(model)
    np.testing.assert_allclose(found.loc["a", "mean"], (size[..., 0] * model._column_sd[0]).mean())


def test_a_class_that_is_called_as_a_column_takes_no_place():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = HorseshoeProbitClassifier(n_iter=40, burn_in=20, random_state=0).fit(X, np.where(Y == "elm", "sd", Y))
    table = fitted.summary()
    assert table.columns.tolist()[:7] == ["mean", "sd", "5%", "95%", "'ash'", "'oak'", "'sd'"]
    np.testing.assert_allclose(table.loc[list("abcd"), "'sd'"], fitted.coef_[2])
    as_printed = str(table).split("\n\n")[1]
    assert "NaN" not in as_printed
    assert f"{fitted.coef_[2, 0]:.4f}" not in as_printed  # more digits than the draws tell


def test_summaries_have_the_means_of_all_draws():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = HorseshoeProbitClassifier(n_iter=60, burn_in=20, max_draws=10, random_state=0).fit(X, Y)
    of_kept = fitted.coef_draws_.mean(axis=(0, 1))
    assert abs(of_kept - fitted.coef_).max() > 1e-3
    for k, label in enumerate(LABELS):
        one = fitted.summary(of=label)
        np.testing.assert_allclose(one["mean"], [*fitted.coef_[k], fitted.intercept_[k], fitted.moments_["mean"][-1]])
        np.testing.assert_allclose(fitted.summary().loc[list("abcd"), label], fitted.coef_[k])
    assert "mean and sd are of all" in " ".join(one.attrs["header"].split())
    assert "mean and sd are of all" not in " ".join(fitted.summary().attrs["header"].split())


def test_displays_of_chains_have_a_quantity_for_each_class(model):
    names = ["a (elm)", "(intercept oak)"]
    shown = plotting.TraceDisplay.from_estimator(model, names=names)
    np.testing.assert_array_equal(shown.draws[0], model.coef_draws_[:, :, 1, 0])
    np.testing.assert_array_equal(shown.draws[1], model.intercept_draws_[..., 2])
    assert len(plotting.AutocorrelationDisplay.from_estimator(model, worst=3).names) == 3


@pytest.mark.parametrize("as_stored", [np.asarray, csr_array])
def test_separation_of_several_classes(as_stored):
    rng = np.random.default_rng(0)
    y, noise = np.repeat([0, 1, 2], 30).astype(np.uint8), rng.standard_normal((90, 2))

    def found(*columns):
        Z = np.column_stack([*columns, noise])
        return separation(as_stored(Z), y, True, Z.mean(axis=0), Z.std(axis=0), False)

    apart = 9.0 * np.eye(3)[y] + rng.standard_normal((90, 3))
    assert found() == NONE
    assert found(apart[:, 1]) == QUASI  # one class is apart from two that are not told apart
    assert found(np.arange(90) < 5) == QUASI  # a level in one class only
    assert found(apart[:, 0], apart[:, 1]) == COMPLETE
    assert found(9.0 * y + noise[:, 0]) == COMPLETE


def test_what_nothing_bounds_is_told_with_its_cause():
    rng = np.random.default_rng(0)
    y, Z = LABELS[np.repeat([0, 1, 2], 20)], rng.standard_normal((60, 3))
    Z[:20, 0] += 12
    how = {"n_iter": 100, "burn_in": 100, "random_state": 0}
    with pytest.warns(UserWarning, match=r"The columns separate the classes \(quasi-complete"):
        HorseshoeProbitClassifier(slab_scale=None, **how).fit(Z, y)
    with pytest.warns(UserWarning, match=r"unpenalized columns separate .* Remove them from unpenalized, or give"):
        HorseshoeProbitClassifier(unpenalized=[0], **how).fit(Z, y)
    rare = LABELS[np.repeat([0, 1, 2], [25, 25, 10])]  # of which the smallest is not the first
    with pytest.warns(UserWarning, match="5 columns are not shrunk, and the rarest class has 10 rows"):
        HorseshoeProbitClassifier(unpenalized=list(range(5)), **how).fit(rng.standard_normal((60, 5)), rare)


@pytest.mark.parametrize("rule", ["dss", "fsr", "interval"])
def test_rules_select_the_columns_that_matter(model, rule):
    assert HorseshoeSelector(model, rule=rule, prefit=True).fit(X).get_support().tolist() == [True, True, False, False]


@pytest.mark.parametrize("k", range(3))
def test_the_fewest_columns_that_predict_as_well_are_those_that_matter(k):
    """Three of twelve columns, one of which tells a single class from the others."""
    rng = np.random.default_rng(k)
    rows, coef = rng.standard_normal((400, 12)), np.zeros((4, 12))
    coef[:, :3] = np.array([[1.2, 0, 0, -1.2], [0, 1.2, -1.2, 0], [1.5, -0.5, -0.5, -0.5]]).T
    y = (rows @ coef.T + rng.standard_normal((400, 4))).argmax(axis=1)
    selector = HorseshoeSelector(HorseshoeProbitClassifier(**{**FAST, "n_chains": 2})).fit(rows, y)
    assert selector.get_support(indices=True).tolist() == [0, 1, 2]


def test_matrices_of_contrasts_without_room_are_refused_before_the_fit(monkeypatch, free_memory):
    monkeypatch.setattr(HorseshoeProbitClassifier, "fit", None)
    free_memory(8 * 6 * 8 * 8 - 1)  # six matrices of 4 columns with 2 contrasts each
    with pytest.raises(MemoryError, match=r"rule='dss' needs .* for matrices of 8 x 8"):
        HorseshoeSelector().fit(X, Y)


display = plotting.PosteriorCalibrationDisplay
ASKS = {
    "marginal_effects": lambda model: inspection.marginal_effects(model, X),
    "contributions": lambda model: inspection.contributions(model, X[:2]),
    "summary_of_sets": lambda model: model.summary_of_sets({"both": ["a", "b"]}),
    "credible_sets": lambda model: sets.credible_sets(model, X),
    "CoefficientsDisplay": lambda model: plotting.CoefficientsDisplay.from_estimator(model),
    "PriorDisplay": lambda model: plotting.PriorDisplay.from_estimator(model, X),
    "calibration": lambda model: inspection.calibration(model, X, Y == "elm"),
    "net_benefit": lambda model: inspection.net_benefit(model, X, Y == "elm"),
    "A predictive check": lambda model: inspection.predictive_check(model, X, Y == "elm", "a"),
    "A display of probabilities": lambda model: display.from_estimator(model, X, Y == "elm"),
}


@pytest.mark.parametrize("what", ASKS)
def test_what_is_of_two_classes_says_of_which_model_and_that_takes_it(what, model):
    with pytest.raises(ValueError, match=f"{what} is of two classes, and this model has 3") as refused:
        ASKS[what](model)
    advised = re.findall(r"inspection\.(\w+)\(model, ([^)]*)\)", str(refused.value))
    assert advised
    for made, labels in advised:
        ASKS[what](getattr(inspection, made)(model, *ast.literal_eval(f"[{labels}]")))


def test_what_is_not_there_says_what_to_do(model):
    with pytest.raises(ValueError, match="not for a fit to 3 classes: fit y == a class"):
        inspection.with_prevalence(model, 0.1)
    with pytest.raises(ValueError, match=r"takes no model of y = 'elm' within .*inspection\.against makes"):
        HorseshoeSelector(inspection.one_vs_rest(model, "elm"), prefit=True).fit(X)
    for part in (model, inspection.one_vs_rest(model, "elm"), inspection.against(model, "elm", "ash")):
        with pytest.raises(ValueError, match=r"leave groups out\. .*; one to y == a class does"):
            part.predict_proba(X, np.arange(240))
        with pytest.raises(ValueError, match=r"sensitivity (takes no part of|is not for) a fit to .*it y == a class"):
            inspection.sensitivity(part)
    with pytest.raises(ValueError, match="Leave groups out, or fit y == a class"):
        HorseshoeProbitClassifier(**FAST).fit(X, Y, groups=np.arange(240) % 20)
    with pytest.raises(ValueError, match="Use sampler='hmc' or 'auto'"):
        HorseshoeProbitClassifier(sampler="pxda").fit(X, Y)
    with pytest.raises(ValueError, match="at most 255"):
        HorseshoeProbitClassifier().fit(np.zeros((300, 1)), np.arange(300))


def test_an_order_that_is_not_used_is_told():
    y = pd.Categorical(Y, ["oak", "elm", "ash"], ordered=True)
    with pytest.warns(UserWarning, match=r"y is ordered, 'oak' < 'elm' < 'ash', .*ordered=True"):
        HorseshoeProbitClassifier(n_iter=10, burn_in=10, random_state=0).fit(X, y)


def test_rows_of_every_kind_give_the_same_posterior(model, tmp_path):
    on_disk = disk.convert(pd.concat([X, pd.Series(Y, name="y")], axis=1), tmp_path / "rows", y="y")
    weight = np.ones(240)
    weight[::3] = 2.0
    often, twice = np.repeat(X.to_numpy(), weight.astype(int), axis=0), np.repeat(Y, weight.astype(int))
    same = HorseshoeProbitClassifier(**BRIEF).fit(often, twice)
    np.testing.assert_allclose(HorseshoeProbitClassifier(**BRIEF).fit(X.to_numpy(), Y, weight).coef_, same.coef_)
    np.testing.assert_allclose(HorseshoeProbitClassifier(**FAST).fit(*on_disk).coef_, model.coef_, atol=0.1)
    as_csr = HorseshoeProbitClassifier(**FAST).fit(csr_array(X.to_numpy()), Y)
    np.testing.assert_allclose(as_csr.coef_, model.coef_, atol=0.1)


def test_going_on_gives_the_draws_of_one_run_and_saving_keeps_them(tmp_path):
    narrow, wide = X.to_numpy()[:60], np.random.default_rng(0).standard_normal((60, 100))
    for columns, sampler in ((narrow, "hmc"), (wide, "hmc"), (narrow[:, :3], "gibbs")):
        how = {"burn_in": 60, "random_state": 1, "max_draws": 16, "sampler": sampler}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = HorseshoeProbitClassifier(n_iter=40, **how).fit(columns, Y[:60])
            parts = HorseshoeProbitClassifier(n_iter=20, warm_start=True, **how)
            parts.fit(columns, Y[:60]).fit(columns, Y[:60])
            HorseshoeProbitClassifier(n_iter=20, checkpoint=tmp_path / str(columns.shape[1]), **how).fit(
                columns, Y[:60]
            )
            again = HorseshoeProbitClassifier(n_iter=40, checkpoint=tmp_path / str(columns.shape[1]), **how)
            again.fit(columns, Y[:60])
        np.testing.assert_array_equal(parts.coef_draws_, whole.coef_draws_)
        np.testing.assert_array_equal(again.coef_draws_, whole.coef_draws_)
        np.testing.assert_allclose(whole.coef_.sum(axis=0), 0, atol=1e-10)
        saved = pickle.loads(pickle.dumps(whole))
        np.testing.assert_array_equal(saved.predict_proba(columns), whole.predict_proba(columns))


def test_iris_converges_without_a_warning():
    flowers, species = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = make_pipeline(StandardScaler(), HorseshoeProbitClassifier(random_state=0)).fit(flowers, species)
    assert fitted.score(flowers, species) > 0.95


@pytest.mark.slow
def test_scikit_learn_accepts_it():
    check_estimator(HorseshoeProbitClassifier(n_iter=20, burn_in=20, n_chains=2, random_state=0))


@pytest.mark.parametrize("as_stored", [np.asarray, csr_array])
def test_the_paper_s_sampler_takes_offsets_whole_weights_and_sparse_rows(as_stored):
    rng = np.random.default_rng(2)
    offset, weight = rng.standard_normal((240, 3)), rng.integers(0, 3, 240)
    how, given = {"n_iter": 600, "burn_in": 200, "random_state": 0}, as_stored(X.to_numpy())
    fits = [HorseshoeProbitClassifier(sampler=s, **how).fit(given, Y, weight, offset=offset) for s in ("gibbs", "hmc")]
    sd = fits[1].coef_draws_.std(axis=(0, 1))
    assert (abs(fits[0].coef_ - fits[1].coef_) < 0.25 * sd).all()
    assert fits[0].sampler_ == "gibbs"
    with pytest.raises(ValueError, match=r"weights .* must be integers"):
        HorseshoeProbitClassifier(sampler="gibbs", **how).fit(given, Y, weight + 0.5)


def test_an_offset_by_class_is_of_utilities(tmp_path):
    rng = np.random.default_rng(3)
    offset = pd.DataFrame(2 * rng.standard_normal((240, 3)), columns=LABELS)
    y = LABELS[(X.to_numpy() @ COEF.T + offset.to_numpy() + rng.standard_normal((240, 3))).argmax(axis=1)]
    fitted = HorseshoeProbitClassifier(**FAST).fit(X, y, offset=offset)
    sd = fitted.coef_draws_.std(axis=(0, 1))
    assert (abs(fitted.coef_ - COEF) < 4 * sd + 0.1).all()
    coef, intercept = fitted.coef_draws_.reshape(-1, 3, 4), fitted.intercept_draws_.reshape(-1, 3)
    eta = np.einsum("ij,mkj->imk", X.to_numpy(), coef) + intercept + offset.to_numpy()[:, None]
    wanted = fitted._likelihood.probabilities(eta @ simplex(3).T)
    np.testing.assert_allclose(fitted.predict_proba(X, offset=offset), wanted.mean(axis=1), rtol=1e-7)
    moved = offset.add(rng.standard_normal(240), axis=0)  # of all classes alike, which changes nothing
    briefs = [HorseshoeProbitClassifier(**BRIEF).fit(X, y, offset=one) for one in (offset, moved)]
    np.testing.assert_allclose(*(one.coef_ for one in briefs))
    np.testing.assert_allclose(
        fitted.predict_proba(X, offset=moved), fitted.predict_proba(X, offset=offset), rtol=1e-12
    )
    one, up = inspection.one_vs_rest(fitted, "elm"), X.assign(a=X["a"] + 1)
    change = [fitted.predict_proba_samples(rows, offset=offset)[..., 1].mean(axis=0) for rows in (up, X)]
    effect = inspection.marginal_effects(one, X, "a", offset=offset).draws["a"]
    np.testing.assert_allclose(effect, change[0] - change[1], atol=1e-13)
    assert inspection.loo(fitted, X, y, offset=moved).n_rows == 240
    with pytest.raises(ValueError, match="what goes with each"):
        inspection.loo(fitted, X, y, offset=offset.to_numpy()[::-1])
    with pytest.raises(ValueError, match="of two classes make it an unpenalized"):
        HorseshoeSelector(HorseshoeProbitClassifier(**BRIEF), cv=3).fit(X, y, offset=offset)
    twice = np.repeat(np.arange(240), 1 + (np.arange(240) % 3 == 0))
    often = HorseshoeProbitClassifier(**BRIEF).fit(X.iloc[twice], y[twice], offset=offset.iloc[twice])
    weighted = HorseshoeProbitClassifier(**BRIEF).fit(X, y, np.bincount(twice), offset=offset)
    np.testing.assert_allclose(often.coef_, weighted.coef_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wide = HorseshoeProbitClassifier(n_iter=10, burn_in=30, random_state=0)
        wide.fit(rng.standard_normal((240, 300)), y, offset=offset)
    assert np.isfinite(wide.coef_draws_).all()
    given = offset.to_numpy()
    for wrong, words in {
        "one": (given[:, 0], "give a column for each in the order of classes_"),
        "order": (offset[LABELS[::-1]], "must be in the order of classes_"),
        "size": (1e7 * given, "no score is beyond"),
        "missing": (np.where(given > 3, np.nan, given), "must be finite numbers; that of row"),
    }.values():
        for ask in (
            lambda wrong: HorseshoeProbitClassifier(**FAST).fit(X, y, offset=wrong),
            lambda wrong: one.predict(X, offset=wrong),
        ):
            with pytest.raises(ValueError, match=words):
                ask(wrong)
    for asked in (fitted, one):
        with pytest.raises(ValueError, match=r"one of each class of the fit \(np.zeros\(\(len\(X\), 3\)\) for none\)"):
            asked.predict(X)
    with pytest.raises(ValueError, match="against takes no model that was fitted with an offset"):
        inspection.against(fitted, "elm", "ash")
