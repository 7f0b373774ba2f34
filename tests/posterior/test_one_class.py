"""The model of one of more than two classes and the rest: its probabilities are those of all classes."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from by_hand import COMPARED
from matplotlib import pyplot as plt
from matplotlib.text import Text
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting, sets
from skhorseshoe._backends._cpu import predict as cpu
from skhorseshoe._posterior import average_changes


@pytest.fixture(scope="module")
def table(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"age": rng.normal(60, 12, 150), "ward": rng.choice(list("aab"), 150), "sex": rng.integers(0, 2, 150)}
    )
    score = np.column_stack([0.05 * (X["age"] - 60), X["ward"] == "b", np.zeros(150)]) + rng.standard_normal((150, 3))
    return X, {
        "several": np.array(["ash", "elm", "oak"])[score.argmax(axis=1)],
        "ordered": np.digitize(score[:, 0], [-0.8, 0.1, 0.9]),
    }


@pytest.fixture(scope="module", params=["several", "ordered"])
def fit(request, table):
    """A fit, its rows and labels."""
    X, y = table[0], table[1][request.param]
    steps = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["ward"]), remainder="passthrough")
    classifier = HorseshoeProbitClassifier(ordered=request.param == "ordered", n_iter=30, burn_in=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(steps, classifier).fit(X, y), X, y


def test_probabilities_are_those_of_the_class_among_all(fit):
    model, X, _ = fit
    for size in (1, 40):
        far = X.assign(age=60 + size * (X["age"] - 60))
        proba, ends = model.predict_proba(far), inspection.predict_interval(model, far, 0.8)
        samples = inspection.predict_proba_samples(model, far, max_draws=40)
        for k, label in enumerate(model.classes_):
            one = pickle.loads(pickle.dumps(inspection.one_vs_rest(model, label)))
            assert one.classes_.tolist() == [False, True]
            np.testing.assert_allclose(one.predict_proba(far)[:, 1], proba[:, k], rtol=1e-9, atol=1e-15)
            np.testing.assert_allclose(one.predict_proba(far).sum(axis=1), 1, atol=1e-12)
            np.testing.assert_allclose(inspection.predict_interval(one, far, 0.8), ends[:, k], rtol=1e-9, atol=1e-15)
            own = inspection.predict_proba_samples(one, far, max_draws=40)
            np.testing.assert_allclose(own, samples[..., k], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("comparison", "weighted"),
    [("odds_ratio", False), ("ratio", True), pytest.param("difference", False, marks=pytest.mark.slow)],
)
def test_effects_are_those_of_a_loop_by_hand(fit, comparison, weighted, monkeypatch, seed):
    model, X, _ = fit
    weight = np.random.default_rng(seed).integers(0, 3, 150).astype(float) if weighted else None
    before = inspection.predict_proba_samples(model, X)
    after = inspection.predict_proba_samples(model, X.assign(age=X["age"] + 10))
    in_b, in_a = (inspection.predict_proba_samples(model, X.assign(ward=ward)) for ward in "ba")
    asked = {"change": {"age": 10}, "reference": {"ward": "a"}, "comparison": comparison, "sample_weight": weight}
    compare = COMPARED[comparison]
    for k, label in enumerate(model.classes_):
        one = inspection.one_vs_rest(model, label)
        for rows_of_coef in (48, 1):
            monkeypatch.setattr(cpu, "_ROWS_AT_A_TIME", rows_of_coef)
            draws = inspection.marginal_effects(one, X, **asked).draws
            own = [np.average(p[..., k], axis=0, weights=weight) for p in (after, before, in_b, in_a)]
            np.testing.assert_allclose(draws["age"], compare(*own[:2]), rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(draws.iloc[:, 1], compare(*own[2:]), rtol=1e-12, atol=1e-12)
        if weighted:
            continue
        within = inspection.marginal_effects(one, X, "age", by="sex", **{**asked, "reference": None}).draws
        for sex in (0, 1):
            own = [p[X["sex"] == sex, :, k].mean(axis=0) for p in (after, before)]
            np.testing.assert_allclose(within[f"age | sex: {sex}"], compare(*own), rtol=1e-12, atol=1e-12)


def test_offsets_are_added_to_all_cuts(table):
    X, y = table[0][["age", "sex"]], table[1]["ordered"]
    offset = np.random.default_rng(0).standard_normal(150)
    model = HorseshoeProbitClassifier(ordered=True, standardize=True, n_iter=20, burn_in=20, random_state=0)
    model.fit(X, y, offset=offset)
    ends = [model.predict_proba_samples(rows, offset=offset) for rows in (X.assign(age=X["age"] + 5), X)]
    for k in range(4):
        one = inspection.one_vs_rest(model, k)
        np.testing.assert_allclose(one.predict_proba_samples(X, offset=offset), ends[1][..., k], rtol=1e-9, atol=1e-15)
        effect = inspection.marginal_effects(one, X, "age", change=5, offset=offset).draws["age"]
        np.testing.assert_allclose(effect, (ends[0] - ends[1])[..., k].mean(axis=0), atol=1e-13)


def test_what_one_class_gains_others_lose(fit, monkeypatch):
    model, X, _ = fit
    monkeypatch.setattr(average_changes, "_NUMBERS_HELD", 1)
    ones = [inspection.one_vs_rest(model, label) for label in model.classes_]
    effects = [inspection.marginal_effects(one, X, change="sd", max_draws=40) for one in ones]
    np.testing.assert_allclose(sum(effect.draws for effect in effects), 0, atol=1e-13)
    assert f"P(y = {model.classes_[0]})" in effects[0].attrs["header"]
    assert len(inspection.number_needed_to_treat(effects[1], adverse=True))
    for label, effect in zip(model.classes_, effects, strict=True):  # the one that grows with age, and the highest
        assert (effect.loc["age", "mean"] > 0) == (label in ("ash", 3)) or label in (1, 2)


def test_a_class_beside_the_rest_is_judged_by_its_labels(fit):
    model, X, y = fit
    proba = model.predict_proba(X)
    for k, label in enumerate(model.classes_):
        one, is_one = inspection.one_vs_rest(model, label), y == label
        acts = proba[:, k] >= 0.3
        wanted = (acts & is_one).mean() - 3 / 7 * (acts & ~is_one).mean()
        assert inspection.net_benefit(one, X, is_one, [0.3])["net_benefit"].item() == pytest.approx(wanted)
        expected = inspection.net_benefit(one, X, thresholds=[0.3])["net_benefit"].item()
        assert expected == pytest.approx((acts * (proba[:, k] - 3 / 7 * (1 - proba[:, k]))).mean())
        check = inspection.predictive_check(one, X, is_one, "ward")
        np.testing.assert_allclose(check["observed"], pd.Series(is_one).groupby(X["ward"]).mean())
        np.testing.assert_allclose(check["predicted"], pd.Series(proba[:, k]).groupby(X["ward"]).mean())
        shown = plotting.PosteriorCalibrationDisplay.from_estimator(one, X, is_one)
        np.testing.assert_allclose(shown.calibration, inspection.calibration(one, X, is_one))
        assert abs(inspection.calibration(one, X, is_one).loc["intercept", "estimate"]) < 0.5  # of the rows of the fit
        assert len(plotting.DecisionCurveDisplay.from_estimator(one, X, is_one).net_benefit)
        with pytest.raises(ValueError, match=rf"whether y = {label}: y must be True or False for each row"):
            inspection.net_benefit(one, X, y)


def test_coefficients_are_those_of_the_class(fit):
    model, X, _ = fit
    if model[-1].coef_draws_.ndim > 3:
        own = inspection.summary(inspection.one_vs_rest(model, "elm"))
        pd.testing.assert_frame_equal(pd.DataFrame(own), pd.DataFrame(inspection.summary(model, of="elm")))
        assert "favour 'elm' beside the mean of all classes" in " ".join(own.attrs["header"].split())
        return
    for made in (inspection.one_vs_rest(model, True), inspection.at_least(model, 1.0)):  # equal to a class
        assert made[-1]._outcomes[1].endswith("= 1")
    means = [inspection.summary(inspection.one_vs_rest(model, label))["mean"].iloc[0] for label in (0, 1, 3)]
    np.testing.assert_allclose(means, inspection.summary(model)["mean"].iloc[0])
    for label, words in {0: "favour higher classes", 1: "favour higher classes", 3: "favour y = 3"}.items():
        one = inspection.one_vs_rest(model, label)
        assert words in " ".join(inspection.summary(one).attrs["header"].split())
        columns = one[:-1].transform(X)
        for display in (
            plotting.CoefficientsDisplay.from_estimator(one),
            plotting.CredibleSetsDisplay.from_sets(sets.credible_sets(one[-1], columns)),
        ):
            assert display.ax_.get_xlabel().endswith(f"(positive {words.replace('favour', 'favours')})")


def test_tables_and_displays_name_the_class_that_they_are_of(fit):
    model, X, y = fit
    cases = [(inspection.one_vs_rest(model, y[0]), y == y[0], f"y = {y[0]}", f"y != {y[0]}")]
    if model[-1].coef_draws_.ndim == 3:
        cases.append((inspection.at_least(model, 2), y >= 2, "y >= 2", "y < 2"))
    for one, truth, event, other in cases:
        effects = inspection.marginal_effects(one, X, max_draws=40)
        displays = {
            plotting.EffectsDisplay.from_frame(effects): [event],
            plotting.ProbabilityIntervalDisplay.from_estimator(one, X, truth): [f"in truth {event}", f"truth {other}"],
            plotting.PosteriorCalibrationDisplay.from_estimator(one, X, truth): [f"observed share of {event}"],
            plotting.DecisionCurveDisplay.from_estimator(one, X, truth): [f"the probability of {event} from which"],
            plotting.PredictiveCheckDisplay.from_estimator(one, X, truth, by="age"): [f"share of {event}: observed"],
        }
        tables = [inspection.number_needed_to_treat(effects, adverse=True)]
        if not hasattr(one[-1], "_predictors"):
            displays[plotting.ContributionsDisplay.from_estimator(one, X[:1])] = [f"probability of {event}"]
            tables += [inspection.contributions(one, X[:1], terms=terms) for terms in ("auto", None)]
        written = {tuple(words): [t.get_text() for t in d.figure_.findobj(Text)] for d, words in displays.items()}
        plt.close("all")
        for words, texts in written.items():
            assert all(any(word in text for text in texts) for word in words)
        headers = [" ".join(table.attrs["header"].split()) for table in tables]
        assert all(event in header for header in headers)
        assert "True" not in " ".join([*headers, *(text for texts in written.values() for text in texts)])


def test_what_one_class_does_not_tell_is_refused(fit, problem, fitted):
    model, X, y = fit
    middle = model.classes_[1]
    one = inspection.one_vs_rest(model, middle)
    for ask in (inspection.contributions, plotting.PriorDisplay.from_estimator, inspection.select):
        with pytest.raises(ValueError, match=r"no function of one score.*inspection\.(at_least|against)"):
            ask(one, X)
    with pytest.raises(ValueError, match="the log score of a row"):
        inspection.loo(one, X, y == middle)
    with pytest.raises(ValueError, match="y must be True or False for each row"):  # 1 is equal to True
        one.score(X, y)
    others = [inspection.at_least(model, 1)] if middle == 1 else [inspection.against(model, "elm", "ash")]
    for each in [*others, *(inspection.one_vs_rest(model, label) for label in model.classes_)]:
        with pytest.raises(ValueError, match=r"to_arviz takes no model of .* the prior is that of all classes"):
            each[-1].to_arviz()
    with pytest.raises(ValueError, match="one_vs_rest takes one of"):
        inspection.one_vs_rest(model, "fir")
    with pytest.raises(ValueError, match="a model of two is its own"):
        inspection.one_vs_rest(fitted, True)


def test_ordered_classes_in_groups_have_the_probabilities_of_all(seed):
    """Of groups that the fit has seen, of new ones, and of both, with one factor and two."""
    rng, n = np.random.default_rng(seed), 90
    X, groups, wards = rng.standard_normal((n, 2)), rng.integers(0, 9, n), rng.integers(0, 4, n)
    y = np.digitize(X[:, 0] + groups / 4 + rng.standard_normal(n), [0.5, 1.5])
    settings = {"ordered": True, "n_iter": 40, "burn_in": 40, "random_state": 0}
    for factors in (groups, {"patient": groups, "ward": wards}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HorseshoeProbitClassifier(**settings).fit(X, y, groups=factors)
        model._group_stride, effects = 4, model.group_effect_draws_  # as of a fit with many groups
        kept = (
            (lambda v: {k: e[:, 3::4] for k, e in v.items()}) if isinstance(effects, dict) else (lambda v: v[:, 3::4])
        )
        model.group_effect_draws_ = kept(effects)
        some_new = {"patient": np.where(groups > 4, groups, -1), "ward": wards}
        given = factors if factors is groups else some_new
        for options in ({}, {"groups": given, "new_groups": False}, {"groups": given, "new_groups": True}):
            proba, ends = model.predict_proba(X, **options), model.predict_interval(X, 0.8, **options)
            for k in range(3):
                one = inspection.one_vs_rest(model, k)
                np.testing.assert_allclose(one.predict_proba(X, **options)[:, 1], proba[:, k], rtol=1e-9, atol=1e-15)
                np.testing.assert_allclose(one.predict_interval(X, 0.8, **options), ends[:, k], rtol=1e-9, atol=1e-15)
        effect = [
            inspection.marginal_effects(one, X)["mean"]
            for one in map(lambda k: inspection.one_vs_rest(model, k), range(3))
        ]
        above = [inspection.marginal_effects(inspection.at_least(model, k), X)["mean"] for k in (1, 2)]
        for ours, right in zip(effect, (-above[0], above[0] - above[1], above[1]), strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="no function of one score"):
        inspection.one_vs_rest(model, 1).predict_interval(X, of_one=True)
    of_lowest = plotting.GroupEffectsDisplay.from_estimator(inspection.one_vs_rest(model, 0), factor="patient")
    assert of_lowest.ax_.get_xlabel().endswith("(positive favours higher classes)")
