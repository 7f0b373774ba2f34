"""Several factors of rows, nested or crossed: fits, answers, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from laws import agrees_with_gold, load_gold, same_draws
from scipy.special import ndtr

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting
from skhorseshoe._posterior import sensitivity

RNG = np.random.default_rng(1)
N = 400
X = pd.DataFrame(RNG.standard_normal((N, 3)), columns=list("abc"))
GROUPS = pd.DataFrame({"patient": [f"p{k:02d}" for k in RNG.integers(0, 30, N)], "doctor": RNG.integers(0, 12, N)})
U = {"patient": RNG.standard_normal(30), "doctor": 0.7 * RNG.standard_normal(12)}
CODES = {name: np.unique(GROUPS[name], return_inverse=True)[1] for name in GROUPS}
Y = X["a"] + sum(U[name][codes] for name, codes in CODES.items()) + RNG.standard_normal(N) > 0
pytestmark = pytest.mark.filterwarnings("ignore")


def fit(groups=GROUPS, n_iter=60, **params):
    model = HorseshoeProbitClassifier(random_state=0, n_iter=n_iter, burn_in=100, **params)
    return model.fit(X, Y, groups=groups)


@pytest.fixture(scope="module")
def model():
    return fit(n_iter=150)


def test_one_column_gives_the_bits_of_an_array():
    of_array = fit(GROUPS["doctor"].to_numpy())
    for groups in (GROUPS[["doctor"]], {"doctor": GROUPS["doctor"].tolist()}):
        assert (fit(groups).group_effect_draws_ == of_array.group_effect_draws_).all()


def test_a_dict_a_frame_and_polars_are_the_same(model):
    polars = pytest.importorskip("polars")
    short = fit()
    for groups in ({name: GROUPS[name].to_numpy() for name in GROUPS}, polars.from_pandas(GROUPS)):
        assert same_draws(fit(groups), short)


@pytest.mark.parametrize("known", [(), ("doctor",), ("patient",), ("patient", "doctor")])
def test_predictions_know_any_of_the_factors(model, known):
    eta = X.to_numpy() @ model.coef_draws_.reshape(-1, 3).T + model.intercept_draws_.ravel()
    variance = 1.0
    for name, labels in model.groups_.items():
        if name in known:
            eta += model.group_effect_draws_[name].reshape(-1, len(labels))[:, CODES[name]].T
        else:
            variance = variance + model.group_scale_draws_[name].ravel() ** 2
    expected = ndtr(eta / np.sqrt(variance)).mean(axis=1)
    groups = GROUPS[list(known)] if known else None
    np.testing.assert_allclose(model.predict_proba(X, groups=groups, new_groups=False)[:, 1], expected, rtol=1e-6)
    if known:  # labels that fit has not seen are averaged over
        renamed = GROUPS.copy()
        for name in GROUPS.columns.difference(known):
            renamed[name] = "new" if name == "patient" else -1
        found = model.predict_proba(X, groups=renamed, new_groups=False)[:, 1]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_effects_and_scales_find_what_the_rows_were_made_of(model):
    for name, of_factor in U.items():
        frame = model.group_effects(name)
        assert (frame.index.tolist(), frame.index.name) == (np.unique(GROUPS[name]).tolist(), name)
        assert np.corrcoef(frame["mean"], of_factor)[0, 1] > 0.7
    assert "share of the" in model.group_effects("doctor").attrs["header"]
    assert model.summary().index[-2:].tolist() == ["(patient scale)", "(doctor scale)"]
    assert "patient 30, s ~ half-Cauchy(1); share of the variance" in " ".join(model.summary().attrs["header"].split())


def test_saved_continued_and_resumed_fits_have_the_same_draws(model, tmp_path):
    loaded = pickle.loads(pickle.dumps(model))
    ends = [one.predict_interval(X[:5], groups=GROUPS[:5], new_groups=False) for one in (model, loaded)]
    assert (ends[0] == ends[1]).all()
    whole = fit(n_iter=40)
    warm = fit(n_iter=15, warm_start=True)
    for more in (10, 15):
        warm.set_params(n_iter=more).fit(X, Y, groups=GROUPS)
    assert same_draws(warm, whole)
    fit(n_iter=15, checkpoint=tmp_path)
    assert same_draws(fit(n_iter=40, checkpoint=tmp_path), whole)
    with pytest.raises(ValueError, match="levels"):
        warm.fit(X, Y, groups=GROUPS.assign(doctor=GROUPS["doctor"] // 2))


def test_wide_rows_have_factors_too():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((60, 120))
    groups = {"family": np.arange(60) // 3, "batch": np.arange(60) % 4}
    made = HorseshoeProbitClassifier(random_state=0, n_iter=40, burn_in=100).fit(wide, wide[:, 0] > 0, groups=groups)
    assert made.group_effect_draws_["family"].shape == (4, 40, 20)
    assert (made.shrinkage_ > 0).all()


def test_other_answers_take_several_factors(model):
    plotting.GroupEffectsDisplay.from_estimator(model, factor="doctor")
    plotting.PosteriorCalibrationDisplay.from_estimator(model, X, Y, groups=GROUPS[["doctor"]], new_groups=True)
    assert inspection.marginal_effects(model, X).index.tolist() == list("abc")
    by_doctors = inspection.calibration(model, X, Y, groups=GROUPS, new_groups=True, random_state=0)
    alone = inspection.calibration(model, X, Y, groups=GROUPS[["doctor"]], new_groups=True, random_state=0)
    pd.testing.assert_frame_equal(by_doctors, alone)  # whole groups of the factor with the fewest are drawn
    data = pytest.importorskip("arviz") and model.to_arviz()
    assert data.posterior["group_effect_doctor"].dims[-1] == "group_doctor"
    assert "group_scale_patient" in data.log_prior
    rows, draws = inspection.sensitivity(model, X, Y, groups=GROUPS), dict(sensitivity._answers(model))
    assert rows.index.tolist() == [*draws] == model.summary().index.tolist()
    assert (draws["(doctor scale)"] == np.log(model.group_scale_draws_["doctor"])).all()
    scaled = fit(group_scale={"doctor": 0.5, "patient": 2.0})
    assert scaled.prior_["group_scale"] == {"patient": 2.0, "doctor": 0.5}


D, P = GROUPS["doctor"], GROUPS["patient"]
REFUSED = {
    r"groups\['b'\] has one label, 0": {"a": D, "b": 0 * D},
    "put the same rows together": {"a": P, "b": P + "x"},
    r"groups\['b'\] has the shape \(5,\)": {"a": D, "b": P[:5]},
    "names of factors are text": {1: D, 2: P},
    "groups has a column named 'global'": {"global": D, "b": P},
    "no two rows belong together": {"a": np.arange(N), "b": D},
    "more effects than there are rows": {"a": np.arange(N) // 2, "b": (np.arange(N) * 7 % N) // 2, "c": D},
    "an empty dict": {},
    "8 at most": {str(k): D for k in range(9)},
    "If these are names of columns": ["patient", "doctor"],
    "all as factors, a table or a dict": GROUPS.to_numpy(),
}


def test_rows_of_fractional_weight_are_rows():
    """Their weights are a twelfth each, and sum to less than the number of labels."""
    HorseshoeProbitClassifier(n_iter=9, burn_in=9).fit(X, Y, groups=GROUPS, sample_weight=np.full(N, 1 / 12))


@pytest.mark.parametrize("match", REFUSED)
def test_factors_that_cannot_be_are_refused(match):
    with pytest.raises(ValueError, match=match):
        fit(REFUSED[match])


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"group_scale": {"patient": 1.0}}, "group_scale has"),
        ({"group_scale": {"patient": 1.0, "doctor": -1}}, "group_scale of 'doctor' is -1"),
        ({"sampler": "gibbs"}, "does not take groups of several factors"),
    ],
)
def test_parameters_that_do_not_go_with_factors_are_refused(params, match):
    with pytest.raises(ValueError, match=match):
        fit(**params)


def test_questions_about_other_factors_are_refused(model):
    with pytest.raises(ValueError, match="fitted with the factors"):
        model.group_effects("nurse")
    with pytest.raises(ValueError, match="groups has 'nurse'"):
        model.predict_proba(X, groups={"nurse": D})
    with pytest.raises(ValueError, match="groups has no names"):
        model.predict_proba(X, groups=D.to_numpy())
    of_name = model.predict_proba(X, groups=D, new_groups=False)  # a Series has the name of its factor
    np.testing.assert_array_equal(of_name, model.predict_proba(X, groups={"doctor": D}, new_groups=False))
    with pytest.raises(
        ValueError, match=r"row 2 in groups\['patient'\] is missing.*any label that the fit has not seen"
    ):
        model.predict_proba(X, groups={"patient": P.where(np.arange(N) != 2, None)})
    with pytest.raises(ValueError, match=r"groups\['doctor'\] holds text"):
        model.predict_proba(X, groups={"doctor": P})
    with pytest.warns(UserWarning, match=r"30 of 30 \(patient\), 12 of 12 \(doctor\)"):
        model.predict_proba(X, groups=GROUPS)
    with pytest.raises(ValueError, match="one factor, which has no name"):
        fit(D).group_effects("doctor")


@pytest.mark.parametrize("known", [(), ("doctor",)])
def test_the_interval_for_one_new_group_is_that_of_simulated_ones(model, known):
    rows, groups = X[:3], GROUPS[list(known)][:3] if known else None
    eta = rows.to_numpy() @ model.coef_draws_.reshape(-1, 3).T + model.intercept_draws_.ravel()
    u = 0.0
    for name, labels in model.groups_.items():
        if name in known:
            eta += model.group_effect_draws_[name].reshape(-1, len(labels))[:, CODES[name][:3]].T
        else:
            s = model.group_scale_draws_[name].ravel()
            u = u + s * RNG.standard_normal((1000, len(s)))
    simulated = ndtr(eta[:, None] + u).reshape(3, -1)
    found = model.predict_interval(rows, 0.8, groups=groups, new_groups=False, of_one=True)
    shares = [(simulated < end[:, None]).mean(axis=1) for end in found.T]
    np.testing.assert_allclose(shares, [[0.1] * 3, [0.9] * 3], atol=0.003)
    known_rows = model.predict_interval(rows, groups=GROUPS[:3], new_groups=False, of_one=True)
    assert (known_rows == model.predict_interval(rows, groups=GROUPS[:3], new_groups=False)).all()


@pytest.mark.slow
def test_classes_in_schools_crossed_with_questions_agree_with_nuts():
    gold = load_gold("factors_400x4")
    settings = {name: gold[name].tolist() for name in ("slab_scale", "global_scale", "unpenalized")}
    groups = dict(zip(("school", "class", "question"), gold["levels"].T, strict=True))
    model = HorseshoeProbitClassifier(random_state=0, n_iter=3000, burn_in=500, **settings)
    agrees_with_gold(model.fit(gold["X"], gold["y"], groups=groups), gold)
