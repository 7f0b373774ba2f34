"""Slopes of groups: fits, answers beside what follows from the draws, and what is refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from laws import same_draws
from scipy.sparse import csr_array
from scipy.special import ndtr
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting, terms
from skhorseshoe._posterior import sensitivity
from skhorseshoe._posterior.arviz import log_prior

RNG = np.random.default_rng(1)
N = 400
PATIENT, DOCTOR = RNG.integers(0, 25, N), RNG.integers(0, 8, N)
X = pd.DataFrame({"a": RNG.standard_normal(N), "time": 3 * RNG.random(N) + 5, "c": RNG.standard_normal(N)})
GROUPS = pd.DataFrame({"patient": [f"p{k:02d}" for k in PATIENT], "doctor": DOCTOR})
B = RNG.standard_normal((25, 2)) @ [[1.0, 0.4], [0.0, 0.9]]
Y = X["a"] + B[PATIENT, 0] + (B[PATIENT, 1] + 0.3) * (X["time"] - 6.5) + RNG.standard_normal(N) > 0
SLOPES, FAST = {"patient": ["time"]}, {"burn_in": 60, "n_chains": 2}
pytestmark = pytest.mark.filterwarnings("ignore")


def fit(X=X, groups=GROUPS, n_iter=40, group_slopes=SLOPES, **params):
    made = HorseshoeProbitClassifier(random_state=0, n_iter=n_iter, group_slopes=group_slopes, **FAST | params)
    return made.fit(X, Y, groups=groups)


@pytest.fixture(scope="module")
def model():
    return fit(n_iter=150)


def test_effects_scales_and_the_correlation_find_what_rows_were_made_of(model):
    frame = model.group_effects("patient")
    assert frame.index.tolist() == np.unique(GROUPS["patient"]).tolist()
    assert np.corrcoef(frame["mean"], B[:, 0])[0, 1] > 0.8
    assert np.corrcoef(frame["time: mean"], B[:, 1])[0, 1] > 0.6
    rows = model.summary().index.tolist()[-4:]
    assert rows == ["(patient scale)", "(patient:time scale)", "(doctor scale)", "(patient, patient:time correlation)"]
    assert 0.5 < model.summary().loc["(patient:time scale)", "mean"] < 1.7
    assert "slopes of time" in model.summary().attrs["header"]


@pytest.mark.parametrize("known", [(), ("doctor",), ("patient",), ("patient", "doctor")])
def test_predictions_know_groups_and_their_slopes(model, known):
    flat = {name: values.ravel() for name, values in model.group_scale_draws_.items()}
    eta = X.to_numpy() @ model.coef_draws_.reshape(-1, 3).T + model.intercept_draws_.ravel()
    x = (X["time"] - X["time"].mean()).to_numpy()[:, None]
    effects = {name: values.reshape(eta.shape[1], -1).T for name, values in model.group_effect_draws_.items()}
    variance = np.ones(eta.shape)
    if "patient" in known:
        eta += effects["patient"][PATIENT] + x * effects["patient:time"][PATIENT]
    else:
        s, t, r = flat["patient"], flat["patient:time"], model.group_correlation_draws_["patient, patient:time"].ravel()
        variance += s**2 + 2 * x * r * s * t + x**2 * t**2
    if "doctor" in known:
        eta += effects["doctor"][DOCTOR]
    else:
        variance += flat["doctor"] ** 2
    groups = GROUPS[list(known)] if known else None
    found = model.predict_proba(X, groups=groups, new_groups=False)[:, 1]
    np.testing.assert_allclose(found, ndtr(eta / np.sqrt(variance)).mean(axis=1), rtol=1e-5)
    wide = model.predict_interval(X[:20], groups=None if groups is None else groups[:20], new_groups=False, of_one=True)
    narrow = model.predict_interval(X[:20], groups=None if groups is None else groups[:20], new_groups=False)
    if known != ("patient", "doctor"):
        assert np.diff(wide).mean() > np.diff(narrow).mean()


@pytest.mark.parametrize("change", ["time", "a"])
def test_effects_are_averaged_over_groups_with_their_slopes(model, change):
    def mean_probability(X):
        return model.predict_proba_samples(X).mean(axis=0)

    more = X.assign(**{change: X[change] + 0.5})
    expected = mean_probability(more) - mean_probability(X)
    frame = inspection.marginal_effects(model, X, features=[change], change=0.5)
    np.testing.assert_allclose(
        frame.loc[change, ["mean", "sd"]].astype(float), [expected.mean(), expected.std()], rtol=1e-2
    )
    assert "Sigma" in frame.attrs["header"]


def test_slopes_behind_a_pipeline_have_its_names():
    pipe = make_pipeline(StandardScaler(), HorseshoeProbitClassifier(random_state=0, n_iter=40, burn_in=20))
    slopes = {"patient": [1, 2], "doctor": [0]}
    pipe.set_params(horseshoeprobitclassifier__group_slopes=slopes)
    pipe.fit(X, Y, horseshoeprobitclassifier__groups=GROUPS)
    own, numbered = inspection.summary(pipe), pipe[-1].summary()
    names = ["patient", "patient:time", "patient:c", "doctor", "doctor:a"]
    assert own.index[5:10].tolist() == [f"({name} scale)" for name in names]
    assert own.index[10:].tolist() == [
        "(patient, patient:time correlation)",
        "(patient, patient:c correlation)",
        "(patient:time, patient:c correlation)",
        "(doctor, doctor:a correlation)",
    ]
    assert (own.to_numpy() == numbered.to_numpy())[:, :4].all()
    assert "slopes of time, c ~" in " ".join(own.attrs["header"].split())
    assert inspection.sensitivity(pipe).index.tolist() == own.index.tolist()
    assert numbered.index[6] == "(patient:x1 scale)"  # the classifier is as it was
    alike = GROUPS.rename(columns={"doctor": "patient:time"})  # the name that a slope would have
    pipe.set_params(horseshoeprobitclassifier__group_slopes={"patient": [1]})
    pipe.fit(X, Y, horseshoeprobitclassifier__groups=alike)
    assert inspection.summary(pipe).index[5:8].tolist() == [
        "(patient scale)",
        "(patient:x1 scale)",
        "(patient:time scale)",
    ]


@pytest.mark.slow
def test_more_columns_than_rows_have_slopes():
    wide = np.column_stack([X, np.random.default_rng(0).standard_normal((N, 2 * N))])
    made = fit(wide, group_slopes={"patient": [1]}, n_iter=300, burn_in=150)
    frame = made.group_effects("patient")
    assert np.corrcoef(frame["x1: mean"], B[:, 1])[0, 1] > 0.5
    assert abs(made.coef_[0, 3:]).max() < 0.3 < made.coef_[0, 0]
    assert made.summary()["rhat"].max() < 1.15
    proba = made.predict_proba(wide, groups=GROUPS, new_groups=False)[:, 1]
    assert ((proba > 0.5) == Y).mean() > 0.75


def test_a_single_factor_need_not_be_named():
    made = fit(groups=GROUPS[["patient"]], n_iter=20)
    pd.testing.assert_frame_equal(pd.DataFrame(made.group_effects()), pd.DataFrame(made.group_effects("patient")))
    assert "groups of 'patient'" in made.group_effects(0.5).attrs["header"]
    plotting.GroupEffectsDisplay.from_estimator(made)


def test_sparse_rows_have_the_same_posterior(model):
    sparse = fit(csr_array(X.to_numpy()), group_slopes={"patient": [1]}, n_iter=150)
    (name,) = {*sparse.group_scale_draws_} - {*GROUPS}
    ours, theirs = (one.group_scale_draws_[of].mean() for one, of in ((model, "patient:time"), (sparse, name)))
    np.testing.assert_allclose(ours, theirs, rtol=0.15)
    proba = sparse.predict_proba(csr_array(X.to_numpy()), groups=GROUPS, new_groups=False)
    np.testing.assert_allclose(proba, model.predict_proba(X, groups=GROUPS, new_groups=False), atol=0.08)


@pytest.mark.slow
def test_a_column_in_another_unit_has_slopes_in_that_unit():
    shifted = X.assign(time=60 * X["time"] - 100)
    ours, other = (fit(of, standardize=True, n_iter=300) for of in (X, shifted))
    ratio = other.group_scale_draws_["patient:time"].mean() / ours.group_scale_draws_["patient:time"].mean()
    np.testing.assert_allclose(60 * ratio, 1, rtol=0.1)
    groups = GROUPS[:50]
    found = [
        one.predict_proba(of[:50], groups=groups, new_groups=False)[:, 1] for one, of in ((ours, X), (other, shifted))
    ]
    np.testing.assert_allclose(*found, atol=0.06)


def test_saved_continued_and_resumed_fits_have_the_same_draws(model, tmp_path):
    loaded = pickle.loads(pickle.dumps(model))
    ends = [one.predict_interval(X[:5], groups=GROUPS[:5], new_groups=False) for one in (model, loaded)]
    assert (ends[0] == ends[1]).all()
    whole, warm = fit(), fit(n_iter=15, warm_start=True)
    for more in (10, 15):
        warm.set_params(n_iter=more).fit(X, Y, groups=GROUPS)
    assert same_draws(warm, whole)
    fit(n_iter=15, checkpoint=tmp_path)
    assert same_draws(fit(checkpoint=tmp_path), whole)
    with pytest.raises(ValueError, match="names of groups"):
        warm.set_params(group_slopes={"patient": ["c"]}).fit(X, Y, groups=GROUPS)


def test_skops_loads_columns_of_slopes_as_a_list():
    """An Index it could not load again, and it asks for trust in a range."""
    made = fit(n_iter=10, group_slopes={"patient": pd.Index(["time"]), "doctor": range(2)}, warm_start=True)
    saved, trusted = skops.io.dumps(made), ["skhorseshoe._classifier.HorseshoeProbitClassifier"]
    assert skops.io.get_untrusted_types(data=saved) == trusted
    loaded = skops.io.loads(saved, trusted=trusted)
    assert loaded.group_slopes == {"patient": ["time"], "doctor": [0, 1]}
    assert same_draws(loaded, made)
    assert same_draws(*(one.set_params(n_iter=5).fit(X, Y, groups=GROUPS) for one in (loaded, made)))


def test_other_answers_take_slopes_or_refuse_them(model):
    plotting.GroupEffectsDisplay.from_estimator(model, factor="patient")
    assert terms.summary(model, X).index.tolist() == list(X)
    assert {"group_scale_patient", "group_scale_doctor"} <= log_prior(model, None).keys()
    moved = sensitivity.sensitivity(fit(n_iter=300), X, Y, groups=GROUPS)
    assert (moved[["prior", "likelihood", "likelihood_error"]] > 0).all(axis=None)  # that of the correlation too
    with pytest.raises(ValueError, match="group_slopes"):
        inspection.contributions(model, X[:1])
    for new_groups in (True, False):
        assert len(inspection.predictive_check(model, X, Y, "a", groups=GROUPS, new_groups=new_groups))


def test_the_log_prior_is_of_deviations_and_correlations(model):
    """Those have half-t laws, and a power of a density depends on its coordinates."""
    grid, place = copy.copy(model), np.linspace(0.0025, 0.9975, 200)
    s, t, r = np.meshgrid([0.2, 1.0, 4.0], place / (1 - place), np.linspace(-0.995, 0.995, 200), indexing="ij")
    grid.group_scale_draws_ = {"patient": s.reshape(1, -1), "patient:time": t.reshape(1, -1), "doctor": np.ones((1, 1))}
    grid.group_correlation_draws_ = {"patient, patient:time": r.reshape(1, -1)}
    density = np.exp(log_prior(grid, None)["group_scale_patient"]).reshape(s.shape) * (1 + t) ** 2
    of_s = density.sum(axis=(1, 2))
    np.testing.assert_allclose(of_s / of_s[0], (1 + s[:, 0, 0] ** 2 / 2) ** -1.5 / (1 + 0.2**2 / 2) ** -1.5, rtol=0.02)


def test_two_factors_and_several_columns_have_slopes():
    made = fit(group_slopes={"patient": ["time", "c"], "doctor": ["a"]}, n_iter=20)
    assert [*made.group_correlation_draws_] == [
        "patient, patient:time",
        "patient, patient:c",
        "patient:time, patient:c",
        "doctor, doctor:a",
    ]
    assert made.predict_proba(X, groups=GROUPS, new_groups=False).shape == (N, 2)


@pytest.mark.parametrize(
    ("slopes", "groups", "match"),
    [
        ({"patient": ["age"]}, GROUPS, "no 'age' among"),
        ({"ward": ["time"]}, GROUPS, "'ward'.*'patient', 'doctor'"),
        ({"patient": ["time"]}, PATIENT, "no names.*groups=frame"),
        ({"patient": "time"}, GROUPS, "a list of columns"),
        ({"patient": []}, GROUPS, "a list of columns"),
        ({"patient": (name for name in ["time"])}, GROUPS, "a list of columns"),
        ({}, GROUPS, "empty dict"),
        ({"patient": ["time", "time"]}, GROUPS, "more than once"),
        ({"patient": ["of_patient"]}, GROUPS, "constant within each label"),
        ({"pair": ["time", "a"]}, {"pair": np.arange(N) // 2}, "600 effects.*400 rows"),
        ({"patient": ["time"]}, None, "no groups"),
        ({"global": ["time"]}, {"global": PATIENT}, "column named 'global'"),
        ({0: ["time"]}, pd.DataFrame(PATIENT), r"columns named \[0\]: names of factors are text"),
    ],
)
def test_slopes_that_cannot_be_are_refused(slopes, groups, match):
    table = X.assign(of_patient=PATIENT % 3)
    with pytest.raises(ValueError, match=match):
        HorseshoeProbitClassifier(group_slopes=slopes).fit(table, Y, groups=groups)


def test_samplers_and_shapes_that_take_no_slopes_say_so():
    with pytest.raises(ValueError, match="with slopes"):
        fit(sampler="gibbs")


def test_a_series_names_its_factor_and_slopes_are_rounded_as_means_are(model):
    patient = GROUPS["patient"]
    alone = fit(groups=patient)
    assert same_draws(alone, fit(groups=GROUPS[["patient"]]))
    np.testing.assert_array_equal(
        alone.predict_proba(X[:9], groups=patient[:9], new_groups=False),
        alone.predict_proba(X[:9], groups=GROUPS[["patient"]][:9], new_groups=False),
    )
    with pytest.raises(ValueError, match="groups has no names"):
        fit(groups=patient.to_numpy())
    printed = model.group_effects("patient").to_markdown().splitlines()[-1].split(" | ")[1:]
    lengths = [len(text.strip("- |").partition(".")[2]) for text in printed]
    assert len(printed) == 8
    assert max(lengths) <= 3
