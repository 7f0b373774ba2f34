"""Odd numbers, labels and weights: each is refused by name, with a cure, or gives a model whose numbers are finite."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._mcmc.prior import describe_prior

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2


def fit(X=X, y=Y, sample_weight=None, **params):
    params = {"n_iter": 10, "burn_in": 5, "random_state": 0, "n_jobs": 1, **params}
    return HorseshoeProbitClassifier(**params).fit(X, y, sample_weight=sample_weight)


# Labels ---------------------------------------------------------------------------------------------------------------

MISSING = {
    "text": [*14 * ["a", "b"], "b", np.nan],
    "text, float('nan')": [*14 * ["a", "b"], "b", float("nan")],
    "text in a tuple": (*14 * ("a", "b"), "b", np.nan),
    "bytes": [*14 * [b"a", b"b"], b"b", np.nan],
    "whole numbers": [*14 * [0, 1], 1, np.nan],
    "None": [*14 * ["a", "b"], "b", None],
    "NA": [*14 * ["a", "b"], "b", pd.NA],
    "times": np.array([*14 * ["2020-01-01", "2021-01-01"], "2021-01-01", "NaT"], "datetime64[s]"),
    "times of pandas": pd.Series(pd.to_datetime([*14 * ["2020-01-01", "2021-01-01"], "2021-01-01", None])),
    "times in a list": [*14 * [pd.Timestamp(0), pd.Timestamp(1)], pd.Timestamp(1), pd.NaT],
    "durations": np.array([*14 * [0, 1], 1, "NaT"], "timedelta64[s]"),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_label_is_no_class(kind):
    with pytest.raises(ValueError, match="The label of row 29 is missing: leave such rows out"):
        fit(y=MISSING[kind])


def test_a_missing_label_is_none_of_those_to_compare_with():
    model = fit(y=[*15 * ["a", "nan"]])
    with pytest.raises(ValueError, match="The label of row 29 is missing"):
        model.to_arviz(X, [*14 * ["a", "nan"], "a", np.nan])


@pytest.mark.parametrize("form", ["beside the rows", "with the rows"])
def test_a_missing_label_is_not_written_to_disk(form, tmp_path):
    y = MISSING["text"]
    source, labels = (X, y) if form == "beside the rows" else ([(X, y)], None)
    with pytest.raises(ValueError, match="The label of row 29 is missing"):
        disk.convert(source, tmp_path / "rows", y=labels)


# Numbers that are very large or very small ----------------------------------------------------------------------------


def numbers(model):
    """The fitted attributes that are numbers, by name."""
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            items = value.items() if isinstance(value, dict) else [("", value)]
            for key, one in items:
                if np.asarray(one).dtype.kind == "f":
                    yield f"{name}{key}", np.asarray(one)


@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_every_fitted_number_is_finite_for_columns_of_any_size(scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = fit(X * scale, n_iter=40, burn_in=100, sampler="hmc")
    for name, values in numbers(model):
        assert np.isfinite(values).all(), name


@pytest.mark.parametrize("slab_scale", [None, 2.0])
def test_the_prior_depends_on_the_scale_of_columns_and_of_tau_together(slab_scale):
    """As far as float64 goes."""
    for by in (1e-90, 1.0, 1e90):
        slab = None if slab_scale is None else slab_scale / by
        of = describe_prior(0.3 / by, slab, np.array([1.0, 2.0]) * by, 100, 0.4)
        assert of["m_eff"] == pytest.approx(describe_prior(0.3, slab_scale, np.array([1.0, 2.0]), 100, 0.4)["m_eff"])


WEIGHTS = {
    "1e300 each": np.full(30, 1e300),
    "1e308 each": np.full(30, 1e308),
    "one of 1e30": np.where(np.arange(30) == 7, 1e30, 1.0),
    "1e-300 each": np.full(30, 1e-300),
    "a class of nothing": np.where(Y, 1.0, 1e-30),
}


@pytest.mark.parametrize("sampler", ["auto", "gibbs"])
@pytest.mark.parametrize("how", WEIGHTS)
def test_weights_that_cannot_be_computed_with_are_refused_by_name(how, sampler):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            ValueError, match=r"sample_weight and class_weight add up to .* divide the weights"
        ) as error:
            fit(sample_weight=WEIGHTS[how], sampler=sampler)
    if "one" in how:
        assert "in row 7, is 1e+30" in str(error.value)
    assert "olumn" not in str(error.value)


@pytest.mark.parametrize("weight", [1e-12, 1e12])
def test_every_fitted_number_is_finite_for_weights_that_are_taken(weight):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = fit(sample_weight=np.where(np.arange(30) < 4, weight, 1.0), n_iter=40)
    for name, values in numbers(model):
        assert np.isfinite(values).all(), name


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("method", ["predict_proba", "predict_interval", "predict_proba_samples"])
def test_a_row_that_is_too_large_to_predict_is_told(method):
    large = X.copy()
    large[7] = [1.7e308, 1.7e308, -1.7e308]
    model = fit(X, global_scale=1e3)
    model.coef_draws_[:] = [5.0, 4.0, 5.0]
    with pytest.raises(ValueError, match=r"Row 7 of X is too large to predict: .* on the scale that they had in fit"):
        getattr(model, method)(large)
    large[7] = [1e307, 1e307, -1e307]
    assert np.isfinite(getattr(model, method)(large)).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_whose_sums_overflow_are_refused_without_noise():
    large = X.copy()
    large[:4, :2] = [[1.7e308, -1.7e308]] * 4
    with pytest.raises(ValueError, match=r"too large for .*StandardScaler"):
        fit(large)
    with pytest.raises(ValueError, match="continuous"):
        fit(y=np.where(Y, 1e308, 0.5))


# Messages -------------------------------------------------------------------------------------------------------------

REFUSED = {
    "n_chains=True": ({"n_chains": True}, "'n_chains' parameter .* int in the range .1, 256.. Got True"),
    "n_iter=True": ({"n_iter": True}, "'n_iter' parameter .* Got True"),
    "global_scale=True": ({"global_scale": True}, "'global_scale' parameter .* Got True"),
    "n_jobs": ({"n_jobs": 10**9}, "'n_jobs' parameter .* range .1, 1024.* Got 1000000000"),
    "n_iter": ({"n_iter": 10**400}, "'n_iter' parameter .* range .1, 9007199254740992."),
    "burn_in": ({"burn_in": 10**400}, "'burn_in' parameter"),
    "target_ess": ({"target_ess": 10**400}, "'target_ess' parameter"),
    "unpenalized": ({"unpenalized": np.array(7)}, r"unpenalized must be a list of names .*; got array\(7\)"),
    "few draws": (
        {"target_ess": 1, "max_draws": 2},
        "target_ess=1 .* max_draws=2 keeps too few .*raise max_draws",
    ),
    "class_weight": ({"class_weight": {0: 10**400, 1: 1}}, "class_weight=.* must be positive and finite numbers"),
    "class_weight, text": ({"class_weight": {0: "1", 1: 1}}, "class_weight=.* must be positive and finite numbers"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_a_parameter_is_refused_by_name_with_its_value_and_a_cure(which):
    params, says = REFUSED[which]
    with pytest.raises(ValueError, match=says):
        fit(**params)


def test_a_whole_number_that_no_float_holds_is_refused_with_a_cure():
    large = X.astype(object)
    large[4, 1] = 10**400
    with pytest.raises(ValueError, match=r"X holds a whole number that is too large for float64 .* Divide the column"):
        fit(large)
    with pytest.raises(ValueError, match=r"Column 'b' is not numeric .*too large"):
        fit(pd.DataFrame(large, columns=list("abc")))
    with pytest.raises(ValueError, match=r"sample_weight holds a whole number that is too large .* divide"):
        fit(sample_weight=[10**400, *29 * [1]])
