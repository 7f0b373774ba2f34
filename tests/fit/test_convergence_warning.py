"""The one ConvergenceWarning of a fit: what it names, and advice that can be followed."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit import warnings as _warnings

NONE_UNBOUNDED = _warnings.Unbounded(*np.empty((3, 0), int))


@pytest.fixture(scope="module")
def judged(weak_problem, seed):
    """A well-mixed model, to be given other diagnostics."""
    return HorseshoeProbitClassifier(n_iter=4000, random_state=seed).fit(*weak_problem)


def warning_of(
    judged,
    monkeypatch,
    informative=(True, True, True),
    separated=False,
    unbounded=NONE_UNBOUNDED,
    **diagnostics,
):
    for name, values in diagnostics.items():
        monkeypatch.setattr(judged, name, np.array(values))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warnings.warn_if_unconverged(judged, np.array(informative), separated, unbounded)
    return [str(w.message) for w in caught]


def test_an_easy_problem_does_not_warn(weak_problem, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HorseshoeProbitClassifier(n_iter=4000, random_state=seed).fit(*weak_problem)


def test_one_warning_names_the_worst_and_points_to_the_caller(breast_cancer, seed):
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=10, random_state=seed)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(*breast_cancer)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    worst = model.summary()["ess"].idxmin()
    assert f"The worst is '{worst}' with R-hat {model.summary().rhat[worst]:.4f} " in text
    assert f"sample size of {model.summary().ess[worst]:.0f} " in text
    assert "n_iter (now 40)" in text
    assert "burn_in (now 10)" in text


def test_the_model_is_there_where_the_warning_is_made_an_error(breast_cancer, seed):
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=10, warm_start=True, random_state=seed)
    for n_draws in (40, 80):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            with pytest.raises(ConvergenceWarning, match=r"Fit again with n_iter=\d+, which adds draws"):
                model.fit(*breast_cancer)
        assert model.coef_draws_.shape[1] == n_draws
        assert model.predict(breast_cancer[0]).shape == (569,)


@pytest.mark.parametrize("ess", [4.0, np.nan])
def test_chains_that_do_not_move_are_the_worst(judged, monkeypatch, ess):
    (text,) = warning_of(judged, monkeypatch, rhat_=[1.2, np.inf, 1.0], ess_=[20, ess, 900])
    assert "2 of 5 quantities. The worst is 'x1' with R-hat inf" in text


def test_the_worst_feature_is_named_by_its_column(judged, monkeypatch):
    monkeypatch.setattr(judged, "feature_names_in_", np.array(["age", "dose", "sex"], dtype=object), raising=False)
    (text,) = warning_of(judged, monkeypatch, rhat_=[1.0, 1.2, 1.0], ess_=[900, 20, 900])
    assert "1 of 5 quantities" in text
    assert "'dose' with R-hat 1.200" in text


def test_the_worst_is_one_that_failed(judged, monkeypatch):
    (text,) = warning_of(judged, monkeypatch, rhat_=[1.5, 1.0, 1.0], ess_=[600, 450, 900])
    assert "'x0' with R-hat 1.500" in text


@pytest.mark.parametrize(("rhat", "ess", "expected"), [(1.0, 401, 0), (1.0, 399, 1), (1.009, 900, 0), (1.011, 900, 1)])
def test_thresholds_of_the_warning(judged, monkeypatch, rhat, ess, expected):
    assert len(warning_of(judged, monkeypatch, rhat_=[1.0, 1.0, rhat], ess_=[900, 900, ess])) == expected


def test_constant_columns_are_left_out_of_the_warning(judged, monkeypatch):
    bad = {"rhat_": [1.0, 2.0, 1.0], "ess_": [900, 5, 900]}
    assert not warning_of(judged, monkeypatch, informative=(True, False, True), **bad)
    (text,) = warning_of(judged, monkeypatch, informative=(False, True, True), **bad)
    assert "1 of 4 quantities" in text
    assert "'x1' with R-hat 2.000" in text


def test_too_few_draws_to_judge_is_a_warning_of_its_own(weak_problem):
    with pytest.warns(ConvergenceWarning, match="3 draws of each chain are too few"):
        HorseshoeProbitClassifier(n_iter=3, burn_in=0).fit(
            np.random.default_rng(0).standard_normal((30, 3)), np.arange(30) % 2
        )


def test_a_target_that_is_not_reached_is_said(weak_problem, seed):
    says = r"target_ess=50000 has not been reached: after 4000 sweeps .* Raise n_iter \(now 4000\) about \d-fold"
    with pytest.warns(ConvergenceWarning, match=says):
        model = HorseshoeProbitClassifier(target_ess=50_000, n_iter=4000, random_state=seed).fit(*weak_problem)
    assert model.stopped_by_ == "n_iter"


def test_a_target_beyond_the_draws_that_are_kept_is_refused(weak_problem):
    with pytest.raises(ValueError, match=r"max_draws=250 draws of each of 4 chains, 1000 in all: raise max_draws"):
        HorseshoeProbitClassifier(target_ess=5000, max_draws=250).fit(*weak_problem)


def test_a_target_missed_by_the_draws_that_are_kept_asks_for_more_of_them(judged, monkeypatch):
    for name, value in {"target_ess": 990, "max_draws": 4000, "moments_": {}}.items():
        monkeypatch.setattr(judged, name, value)
    (text,) = warning_of(judged, monkeypatch, rhat_=[1.0, 1.0, 1.0], ess_=[900, 900, 900])
    assert text.endswith("max_draws=4000 keeps. Raise max_draws to 8000, or leave it out.")


@pytest.mark.parametrize(
    ("slab_scale", "widest", "says"),
    [
        (None, 5.0, "Set slab_scale=2, which bounds those that are shrunk and converges much faster."),
        (None, 5000.0, "much faster, once the columns are scaled (standardize=True)."),
        (2.0, 5000.0, "much faster, once the columns are scaled (standardize=True)."),
        (50.0, 5.0, "much faster; slab_scale=50 is too wide."),
    ],
)
def test_classes_that_are_separated_have_a_cure_that_works(judged, monkeypatch, slab_scale, widest, says):
    monkeypatch.setattr(judged, "slab_scale", slab_scale)
    (text,) = warning_of(judged, monkeypatch, separated=widest, rhat_=[1.5, 1.0, 1.0], ess_=[9, 900, 900])
    assert text.endswith(says)
    assert "-fold" not in text


def test_a_slab_that_is_far_is_no_bound_to_separated_classes(seed):
    """The slab is one for a unit of X, and there are many in a column."""
    X = 1000 * np.random.default_rng(seed).standard_normal((300, 2))
    y = X.sum(axis=1) > 0
    with pytest.warns(ConvergenceWarning, match="separate the classes completely.* once the columns are scaled"):
        HorseshoeProbitClassifier(n_iter=300, burn_in=300, slab_scale=2, random_state=seed).fit(X, y)


LEVEL = _warnings.Unbounded(np.array([1]), np.array([1.0]), np.array([], int))  # x1, of zeros and ones
SCALED_LEVEL = LEVEL._replace(spans=np.array([28.3]))


@pytest.mark.parametrize(("worst", "advised"), [(1, False), (0, True)])
def test_more_sweeps_are_advised_beside_a_level_if_another_column_needs_them(judged, monkeypatch, worst, advised):
    ess = np.full(3, 900.0)
    ess[worst] = 20
    given = {"rhat_": [1.0, 1.0, 1.0], "ess_": ess, "shrinkage_": [0.5, 0.5, 0.5]}
    (text,) = warning_of(judged, monkeypatch, unbounded=LEVEL, **given)
    assert "Column 'x1': all values in one class lie on one side" in text
    assert ("about 24-fold" in text) == advised


def test_a_level_that_is_noise_to_the_model_is_not_named_by_the_warning(judged, monkeypatch):
    given = {"rhat_": [1.0, 1.0, 1.0], "ess_": [900, 900, 900]}
    assert warning_of(judged, monkeypatch, unbounded=LEVEL, shrinkage_=[0.5, 0.94, 0.5], **given)
    assert not warning_of(judged, monkeypatch, unbounded=LEVEL, shrinkage_=[0.5, 0.96, 0.5], **given)


@pytest.mark.parametrize(("slab_scale", "standardize"), [(None, False), (2.0, False), (None, True), (2.0, True)])
def test_a_slab_is_no_cure_for_a_level_that_was_scaled(judged, monkeypatch, slab_scale, standardize):
    monkeypatch.setattr(judged, "slab_scale", slab_scale)
    monkeypatch.setattr(judged, "standardize", standardize)
    given = {"rhat_": [1.0, 1.0, 1.0], "ess_": [900, 900, 900], "shrinkage_": [0.5, 0.5, 0.5]}
    (text,) = warning_of(judged, monkeypatch, unbounded=SCALED_LEVEL, **given)
    assert "within 10 of one another; here they lie 28.3 apart" in text
    assert ("standardize=False" in text) == standardize
    assert ("differ from run to run" in text) == (slab_scale is None)


def test_r_hat_counts_in_how_many_sweeps_are_advised(judged, monkeypatch):
    (text,) = warning_of(judged, monkeypatch, rhat_=[1.06, 1.0, 1.0], ess_=[300, 900, 900])
    assert "about 8-fold" in text  # 1.2 times (1.06 - 1) / 0.01


ADVICE = {
    "as given": ({"n_iter": 40}, r"Raise n_iter \(now 40\) about \d+-fold, and burn_in \(now 10\) to 1000\.$"),
    "many draws": ({"n_iter": 500, "burn_in": 0}, r"-fold, and thin \(now 1\) in proportion"),
    "thinned away": ({"n_iter": 200, "thin": 20}, r"Lower thin \(now 20\), which leaves only 10 draws"),
    "thinned to nothing": (
        {"n_iter": 200, "thin": 100},
        r"2 draws of each chain are too few .* Lower thin \(now 100\)",
    ),
    "warm start": ({"n_iter": 40, "warm_start": True}, r"Fit again with n_iter=\d+, which adds draws\. R-hat"),
    "checkpoint": ({"n_iter": 40, "checkpoint": True}, r"the run continues from the checkpoint\. A longer burn_in"),
}


@pytest.mark.parametrize("case", ADVICE)
def test_the_advice_is_one_that_can_be_followed(case, breast_cancer, tmp_path):
    params, says = ADVICE[case]
    params = {"burn_in": 10, "random_state": 0, **params}
    if "checkpoint" in params:
        params["checkpoint"] = tmp_path
    with pytest.warns(ConvergenceWarning, match=says):
        HorseshoeProbitClassifier(**params).fit(*breast_cancer)


@pytest.mark.parametrize(("rhat", "anew"), [(1.05, False), (1.4, True)])
def test_chains_that_have_not_met_are_not_to_go_on(judged, monkeypatch, rhat, anew):
    monkeypatch.setattr(judged, "warm_start", True)
    (text,) = warning_of(judged, monkeypatch, rhat_=[rhat, 1.0, 1.0], ess_=[90, 900, 900])
    assert "Fit again with n_iter=" in text
    assert ("start again with a longer burn_in (now 1000)" in text) == anew


def test_of_a_short_burn_in_no_multiple_is_advised(judged, monkeypatch):
    monkeypatch.setattr(judged, "burn_in", 0)
    (text,) = warning_of(judged, monkeypatch, rhat_=[1.5, 1.0, 1.0], ess_=[9, 900, 900])
    assert text.endswith("so that memory does not grow, and burn_in (now 0) to 1000.")
