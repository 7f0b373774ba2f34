"""What stands for the population where predictions are judged: groups, of which there may be few, and weighted rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from skhorseshoe import HorseshoeProbitClassifier, inspection
from skhorseshoe._posterior.resampling import rows_alone
from skhorseshoe.inspection import calibration, net_benefit, predictive_check
from skhorseshoe.plotting import DecisionCurveDisplay, PosteriorCalibrationDisplay, PredictiveCheckDisplay

N = 240
PATIENT = np.arange(N) // 2
HOSPITAL = PATIENT % 10
THRESHOLDS = [0.2, 0.5]
JUDGES = {"net_benefit": lambda *rows, **more: net_benefit(*rows, THRESHOLDS, **more), "calibration": calibration}


def short():
    return HorseshoeProbitClassifier(n_iter=60, burn_in=60, random_state=0)


def patients(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((N, 3)), columns=["age", "dose", "crp"])
    score = X["age"] + 0.5 * rng.standard_normal(N // 2)[PATIENT] + 0.5 * rng.standard_normal(10)[HOSPITAL]
    return X, np.where(score + rng.standard_normal(N) > 0, "ill", "well")


@pytest.fixture(scope="module")
def rows(seed):
    """That the models have not seen."""
    return patients(seed)


@pytest.fixture(scope="module")
def plain(seed):
    return short().fit(*patients(seed + 1))


@pytest.fixture(scope="module")
def by_hospital(seed):
    return short().fit(*patients(seed + 1), groups=HOSPITAL)


@pytest.fixture(scope="module")
def of_both(seed):
    return short().fit(*patients(seed + 1), groups={"patient": PATIENT, "hospital": HOSPITAL})


@pytest.mark.parametrize("ask", JUDGES.values(), ids=JUDGES)
def test_one_hospital_is_judged_by_its_patients(ask, of_both, rows):
    """As if the hospital were not there; all groups being new, it has no effect on the probabilities either."""
    groups = pd.DataFrame({"patient": PATIENT, "hospital": "Oslo"})
    with pytest.warns(UserWarning, match=r"^groups\['hospital'\] has one label.* So groups\['patient'\] are drawn"):
        one = ask(of_both, *rows, groups=groups, new_groups=True)
    assert "240 rows of one hospital" in one.attrs["header"].replace("\n", " ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patients = ask(of_both, *rows, groups=groups[["patient"]], new_groups=True)
    np.testing.assert_array_equal(one.draws, patients.draws)
    assert (one.draws.std() > 0.01).all()
    with pytest.warns(UserWarning, match=r"So rows are drawn within it"):
        of_rows = ask(of_both, *rows, groups=groups[["hospital"]], new_groups=True)
    assert (of_rows.draws.std() > 0.01).all()


@pytest.mark.parametrize("ask", JUDGES.values(), ids=JUDGES)
def test_where_the_only_factor_has_one_label_rows_are_drawn(ask, by_hospital, rows):
    with pytest.warns(UserWarning, match="^groups has one label in these rows, .* So rows are drawn"):
        one = ask(by_hospital, *rows, groups=np.zeros(N), new_groups=True)
    assert "rows of one group" in one.attrs["header"].replace("\n", " ")
    with pytest.warns(UserWarning, match="intervals are too narrow"):
        alone = ask(by_hospital, *rows)
    np.testing.assert_array_equal(one.draws, alone.draws)


def test_hospitals_of_weight_0_do_not_make_one_several(by_hospital, rows):
    with pytest.warns(UserWarning, match="^groups has one label in these rows"):
        calibration(by_hospital, *rows, sample_weight=HOSPITAL == 3, groups=HOSPITAL, new_groups=True)


@pytest.mark.parametrize("n_groups", [2, 4, 5])
def test_few_groups_are_told(n_groups, of_both, rows):
    groups = {"patient": PATIENT, "hospital": PATIENT % n_groups}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        calibration(of_both, *rows, groups=groups, new_groups=True)
        PosteriorCalibrationDisplay.from_estimator(of_both, *rows, groups=groups, new_groups=True, n_draws=20)
    plt.close("all")
    words = rf"groups['hospital'] has {n_groups} labels in these rows"
    assert [str(w.message).startswith(words) for w in told] == [True, True] * (n_groups < 5)


def test_a_weight_is_drawn_as_so_many_rows_are(seed):
    """The sum of w exponential variables, of mean w and variance w."""
    draws = next(rows_alone(np.array([1.0, 0.0, 9.0, 0.5])).draws(1, seed))
    assert draws.shape == (1000, 4)
    np.testing.assert_allclose(draws.mean(axis=0), [1, 0, 9, 0.5], atol=4.5 * 3 / np.sqrt(1000))
    np.testing.assert_allclose(draws.var(axis=0), [1, 0, 9, 0.5], rtol=0.35)


def repeated(X, y, weight, **by_row):
    again = np.repeat(np.arange(N), weight)
    return X.iloc[again], y[again], {name: values[again] for name, values in by_row.items()}


@pytest.mark.parametrize(
    "ask", [predictive_check, PosteriorCalibrationDisplay.from_estimator], ids=["check", "display"]
)
def test_a_band_without_labels_of_a_factor_is_said_to_be_too_narrow(ask, of_both, rows):
    """Outcomes have an effect of each factor, which rows of a factor without labels do not share."""
    of = {"by": HOSPITAL} if ask is predictive_check else {}
    for left_out, groups in ("patient", {"hospital": HOSPITAL}), ("hospital", {"patient": PATIENT}):
        with pytest.warns(UserWarning, match=rf"^groups\['{left_out}'\] is not given.* the band is too narrow"):
            ask(of_both, *rows, groups=groups, new_groups=True, **of)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(of_both, *rows, groups={"patient": PATIENT, "hospital": HOSPITAL}, new_groups=True, **of)
    plt.close("all")


@pytest.fixture(scope="module")
def weight(seed):
    return np.random.default_rng(seed + 1).integers(0, 4, N)


@pytest.mark.parametrize("ask", [*JUDGES.values(), "expected"], ids=[*JUDGES, "expected"])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_row_of_weight_w_is_judged_as_w_rows(ask, grouped, plain, by_hospital, rows, weight):
    X, y = rows
    model, labels = (by_hospital, {"groups": HOSPITAL}) if grouped else (plain, {})
    many, labels_of_many, again = repeated(X, y, weight, **labels)
    if ask == "expected":
        y, labels_of_many, ask = None, None, net_benefit  # with thresholds of its own
    new = {"new_groups": False} if grouped else {}
    weighted = ask(model, X, y, sample_weight=weight, **labels, **new)
    expected = ask(model, many, labels_of_many, **again, **new)
    assert weighted.attrs["header"] == expected.attrs["header"]
    first = next(iter(expected))
    np.testing.assert_allclose(weighted[first], expected[first], rtol=1e-6, atol=1e-12)
    if grouped or y is None:  # the same draws
        np.testing.assert_allclose(weighted.draws, expected.draws, rtol=1e-6, atol=1e-9)
    else:
        np.testing.assert_allclose(weighted.draws.std(), expected.draws.std(), rtol=4.5 / np.sqrt(1000))


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("ask", JUDGES.values(), ids=JUDGES)
def test_rows_of_weight_0_count_nowhere(ask, grouped, plain, by_hospital, rows, weight):
    """A hospital all of whose rows weigh nothing included."""
    X, y = rows
    weight = np.where(HOSPITAL == 3, 0, weight) / 2
    has, model = weight > 0, by_hospital if grouped else plain
    of = {"groups": HOSPITAL, "new_groups": True} if grouped else {}
    of_some = of | {"groups": HOSPITAL[has]} if grouped else {}
    every = ask(model, X, y, sample_weight=weight, **of)
    some = ask(model, X[has], y[has], sample_weight=weight[has], **of_some)
    np.testing.assert_allclose(every.draws, some.draws, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("by", ["age", "label"])
@pytest.mark.parametrize("new", [None, False, True])
def test_a_check_of_weighted_rows_is_that_of_repeated_ones(by, new, plain, by_hospital, rows, weight):
    X, y = rows
    groups = {} if new is None else {"groups": HOSPITAL}
    model, new = plain if new is None else by_hospital, {} if new is None else {"new_groups": new}
    many, y_many, again = repeated(X, y, weight, label=np.arange(N) % 3, **groups)
    labels = again.pop("label")
    asked = {"bins": 4, "n_draws": 400, **new}
    weighted = predictive_check(
        model, X, y, by if by == "age" else np.arange(N) % 3, sample_weight=weight, **groups, **asked
    )
    expected = predictive_check(model, many, y_many, by if by == "age" else labels, **again, **asked)
    assert weighted.index.tolist() == expected.index.tolist()
    assert weighted["n"].tolist() == expected["n"].tolist()
    shares, ends = ["observed", "predicted"], ["5%", "95%"]
    np.testing.assert_allclose(weighted[shares], expected[shares], rtol=1e-9)
    width = (expected["95%"] - expected["5%"]).to_numpy()
    np.testing.assert_allclose(np.abs(weighted[ends] - expected[ends]).max(axis=1) / width, 0, atol=0.35)
    np.testing.assert_allclose((weighted["95%"] - weighted["5%"]).mean() / width.mean(), 1, atol=0.2)


@pytest.mark.parametrize("grouped", [False, True])
def test_displays_take_weights(grouped, plain, by_hospital, rows, weight):
    X, y = rows
    model, labels = (by_hospital, {"groups": HOSPITAL}) if grouped else (plain, {})
    new = {"new_groups": False} if grouped else {}
    many, y_many, again = repeated(X, y, weight, **labels)
    draw = PosteriorCalibrationDisplay.from_estimator
    shown = draw(model, X, y, sample_weight=weight, **labels, **new)
    expected = draw(model, many, y_many, **again, **new)
    for name in ("predicted", "observed", "counts"):
        np.testing.assert_allclose(getattr(shown, name), getattr(expected, name), rtol=1e-9)
    widths = [np.diff(display.band, axis=0).mean() for display in (shown, expected)]
    assert abs(widths[0] / widths[1] - 1) < 0.1
    np.testing.assert_allclose(shown.calibration["estimate"], expected.calibration["estimate"], rtol=1e-6)
    curve = DecisionCurveDisplay.from_estimator(model, X, y, sample_weight=weight, **labels, **new)
    expected = net_benefit(model, many, y_many, **again, **new)["net_benefit"]
    np.testing.assert_allclose(curve.net_benefit, expected, atol=1e-12)
    PredictiveCheckDisplay.from_estimator(model, X, y, "age", sample_weight=weight, **labels, **new)
    plt.close("all")


def test_successes_of_trials_are_judged(seed):
    """The recipe of the guide: two rows a subject. Without weights the outcomes say nothing."""
    rng = np.random.default_rng(seed)
    X, trials = rng.standard_normal((80, 1)), rng.integers(5, 20, 80)
    successes = rng.binomial(trials, 1 / (1 + np.exp(-1.6 * X[:, 0])))
    both = np.tile(X, (2, 1)), np.repeat(["well", "ill"], 80)
    weight = np.concatenate([successes, trials - successes])
    model = short().fit(*both, sample_weight=weight)
    slope = calibration(model, *both, sample_weight=weight).loc["slope"]
    assert slope["5%"] < 1 < slope["95%"]
    check = predictive_check(model, *both, "x0", level=0.99, sample_weight=weight)
    assert check["n"].sum() == trials.sum()
    assert check["outside"].sum() <= 2


@pytest.mark.parametrize("name", ["net_benefit", "calibration", "predictive_check", "display"])
def test_weights_are_checked(name, plain, rows):
    ask = PosteriorCalibrationDisplay.from_estimator if name == "display" else getattr(inspection, name)
    asked = (plain, *rows, "age") if name == "predictive_check" else (plain, *rows)
    with pytest.raises(ValueError, match=r"0 for all rows|at least one non-zero"):
        ask(*asked, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match=r"inconsistent|shape"):
        ask(*asked, sample_weight=np.ones(N - 1))
    if name in ("predictive_check", "display"):
        with pytest.raises(ValueError, match=r"must hold whole numbers of rows here, and that of row 7 is 0\.5"):
            ask(*asked, sample_weight=np.where(np.arange(N) == 7, 0.5, 1))
    else:
        assert np.isfinite(ask(*asked, sample_weight=np.full(N, 0.5)).to_numpy(float)).all()
