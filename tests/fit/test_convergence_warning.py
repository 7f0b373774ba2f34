"""The one warning of a fit: what it names, in which order, and advice that can be followed."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, inspection
from skhorseshoe._fit.findings import ChainQuality, Unbounded, of_outcome
from skhorseshoe._fit.parameters import validated
from skhorseshoe._fit.recipe import recipe_of
from skhorseshoe._fit.warning_texts import Finding, text_of
from skhorseshoe.sets import credible_sets

QUANTITIES = ["x0", "x1", "x2", "(intercept)", "(global scale)"]
WELL = np.array([1.0, 1.0, 1.0, 1.0, 1.0])
LEVEL = {"shrunk": np.array(["x1"], object)}


def chains(rhat=WELL, ess=900 * WELL, n_draws=4000, stopped_by="n_iter", is_all=True):
    """Four chains whose first quantities have these diagnostics, and the others good ones."""
    rhat, ess = (np.append(some, good[len(some) :]) for some, good in ((rhat, WELL), (ess, 900 * WELL)))
    limits = np.full(len(rhat), 1.01), np.full(len(rhat), 400)
    return ChainQuality(QUANTITIES, rhat, ess, 4, n_draws, is_all, 1000, 4000, stopped_by, 0.01, *limits)


def said(judged=None, unbounded=None, columns=(), **params):
    """What a classifier says of such chains, after findings about its columns."""
    params = {"n_iter": 4000, "burn_in": 1000, "slab_scale": None, **params}
    judged = (judged or chains())._replace(burn_in=params["burn_in"], sweeps=params["n_iter"])
    params = validated(HorseshoeProbitClassifier(**params))
    found = of_outcome(params, judged, Unbounded(**(unbounded or {})), columns)
    return text_of(found, recipe_of(found, params, judged))


def test_one_warning_names_the_worst_and_points_to_the_caller(breast_cancer, seed):
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=10, random_state=seed)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(*breast_cancer)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    worst = model.summary()["ess"].idxmin()
    for words in (f"'{worst}'", f"R-hat {model.summary().rhat[worst]:.4f} ", "n_iter=", "burn_in="):
        assert words in str(caught[0].message)


def test_one_warning_has_all_causes_in_the_order_of_their_cures(seed):
    """The scale of the columns, what does not bound the coefficients, the length of the chains."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4)) * [1, 1, 1e4, 1]
    X[[3, 70], 3] = 1e6
    y = X[:, 0] + rng.standard_normal(300) > 0
    X[:, 1] = y & (np.arange(300) < 40)
    with pytest.warns(ConvergenceWarning) as caught:
        HorseshoeProbitClassifier(n_iter=10, burn_in=10, random_state=seed).fit(X, y)
    first, last = caught  # before sampling, and of its end
    assert "'x1': one class has no value beyond those of the next" in str(first.message)
    words = [
        "far out",
        "different scales",
        "'x1': all values in one class",
        "have not converged",
        "Fit again with standardize=True",
    ]
    places = [str(last.message).find(some) for some in words]
    assert places == sorted(places)
    assert places[0] > 0


def test_columns_alone_are_no_convergence_warning(weak_problem, seed):
    X = weak_problem[0] * [1, 1, 1e-9]
    with pytest.warns(UserWarning, match="standardize=True") as caught:
        HorseshoeProbitClassifier(n_iter=4000, global_scale=0.1, random_state=seed).fit(X, weak_problem[1])
    assert [w.category for w in caught] == [UserWarning]


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_the_model_is_there_where_the_warning_is_made_an_error(breast_cancer, seed):
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=10, warm_start=True, random_state=seed)
    for n_draws in (40, 80):
        with pytest.raises(ConvergenceWarning, match="Fit again with"):
            model.fit(*breast_cancer)
        assert model.coef_draws_.shape[1] == n_draws
        assert model.predict(breast_cancer[0]).shape == (569,)


@pytest.mark.parametrize(("rhat", "ess", "warns"), [(1.0, 401, 0), (1.0, 399, 1), (1.009, 900, 0), (1.011, 900, 1)])
def test_thresholds_of_the_warning(rhat, ess, warns):
    assert bool(said(chains([rhat], [ess]))) == warns


def test_too_few_draws_to_judge_are_said(weak_problem):
    with pytest.warns(ConvergenceWarning, match="3 draws of each chain are too few"):
        HorseshoeProbitClassifier(n_iter=3, burn_in=0, random_state=0).fit(*weak_problem)


def test_a_target_that_is_not_reached_is_said():
    text = said(chains(), target_ess=5000)
    assert text.startswith("target_ess=5000 has not been reached: after 4000 sweeps")
    assert text.endswith("Fit again with n_iter=30000, thin=3: about 5 minutes.")
    assert "target_ess" not in said(chains(stopped_by="interrupt"), target_ess=5000)
    assert said(chains(), target_ess=5000, warm_start=True).endswith("Fit again with n_iter=24000, which adds draws.")


BAD, STUCK = chains([1.4], [9]), chains([1.5], [9])
FEW, KEEPS = chains(ess=[390.0], n_draws=150, stopped_by="target_ess"), {"n_iter": 150, "target_ess": 100}
SEPARATED = {"separated": "complete"}
LONG = {"n_iter": 5000, "burn_in": 2000}
# What is judged, columns that nothing bounds, parameters, and what the recipe says.
RECIPES = [
    (chains([1.4], [9], 40), {}, {"n_iter": 40, "burn_in": 10}, "with n_iter=4000, burn_in=2000: about 60 s."),
    (BAD, {}, {}, "Fit again with n_iter=400000, burn_in=200000, thin=40: about 100 minutes."),
    (chains([1.2]), {}, {"burn_in": 50_000, "n_iter": 1000}, "burn_in=100000"),  # never a shorter one
    (chains([1.06], [300]), {}, {}, "n_iter=50000"),  # twice (1.06 - 1) / 0.01 times as many
    (chains([1.4], [9], 10), {}, {"n_iter": 200, "thin": 20}, "with n_iter=20000, burn_in=10000: about"),
    (chains([1.0], [90], 30), {}, {"n_iter": 600, "thin": 20}, "with n_iter=6000, thin=15: about"),
    (chains([1.4], [9], 1), {}, {"n_iter": 100, "thin": 100}, "with n_iter=1000, thin=2: about"),
    (BAD, {}, {"warm_start": True}, "start again with a longer burn_in (now 1000)."),
    (chains([1.05], [90]), {}, {"warm_start": True}, ", which adds draws."),
    (BAD, {}, {"checkpoint": "run"}, "thin=40, checkpoint='<another folder>': about 100 minutes."),
    (chains(is_all=False), {}, {"target_ess": 990, "max_draws": 4000}, "Set max_draws=8000, or leave it out."),
    (chains(ess=[390.0], stopped_by="target_ess"), {}, {"target_ess": 120}, "with target_ess=400, n_iter=10000: about"),
    (chains(ess=[200.0]), {}, {"target_ess": 2000}, "Fit again with n_iter=80000, thin=8: about"),
    (chains(), {}, {"target_ess": 40_000}, "with n_iter=300000, thin=8: about"),  # 10,000 draws could not be worth it
    # Twice the draws that a larger target needs may be kept, and chains that keep others begin anew.
    (FEW, {}, {**KEEPS, "max_draws": 150}, "with target_ess=400, max_draws=400, n_iter=1000: about"),
    (FEW, {}, {**KEEPS, "max_draws": 500}, "with target_ess=400, n_iter=1000: about"),
    (FEW, {}, {**KEEPS, "max_draws": 150, "warm_start": True}, "max_draws=400, n_iter=1000, warm_start=False: about"),
    (FEW, {}, {**KEEPS, "max_draws": 150, "checkpoint": "run"}, "n_iter=1000, checkpoint='<another folder>': about"),
    # Where a chain does not move at all, no figure tells how long; it is no reason for fewer sweeps.
    (chains([np.inf], [9, *4 * [90_000]]), {}, {"n_iter": 50_000}, "with n_iter=100000, burn_in=50000, thin=10: about"),
    # What goes on has every draw as it is.
    (chains(stopped_by="target_ess", ess=[90.0]), {}, {"n_iter": 50_000, "warm_start": True}, "n_iter=500000: about"),
    (chains(), {}, {"target_ess": 5000, "checkpoint": "run"}, "with n_iter=30000: about"),
    (STUCK, SEPARATED, LONG, "Fit again with slab_scale='per_contrast': about"),
    (STUCK, SEPARATED, {**LONG, "slab_scale": 50.0}, "Fit again with slab_scale='per_contrast': about"),
    # Chains of another model begin anew, and in another folder.
    (STUCK, SEPARATED, {**LONG, "warm_start": True}, "slab_scale='per_contrast', warm_start=False: about"),
    (STUCK, SEPARATED, {**LONG, "checkpoint": "run"}, "checkpoint='<another folder>': about"),
    (chains(), LEVEL, {"n_iter": 1000}, "Fit again with slab_scale='per_contrast', n_iter=4000: about 50 s."),
    (chains(ess=20 * WELL), LEVEL, {"n_iter": 1000}, "'per_contrast', n_iter=40000, thin=4: about 7 minutes."),
]


@pytest.mark.parametrize(("judged", "unbounded", "params", "recipe"), RECIPES)
def test_the_recipe_is_one_that_can_be_followed(judged, unbounded, params, recipe):
    text = said(judged, unbounded, **params)
    assert recipe in text
    assert ("complete separation" in text) == (unbounded.get("separated") == "complete")


@pytest.mark.parametrize("params", [
    {"warm_start": True}, {"checkpoint": "run"}, {"warm_start": True, "target_ess": 1e4},
])  # fmt: skip
@pytest.mark.parametrize("rhat", [1.0, 1.05, 1.4])
def test_advice_to_go_on_is_not_given_beside_that_to_begin_anew(params, rhat):
    facts = {"large": "a", "most": 1e4, "small": "b", "least": 1.0, "times": ""}
    text = said(chains([rhat]), columns=[Finding("scales", [], "", facts, {"standardize": True})], **params)
    assert text.count("Fit again") == 1
    assert "Fit again with standardize=True, " in text
    assert said(chains([rhat]), LEVEL, **params).count("Fit again") == 1


def test_classes_that_separate_are_told_although_the_chains_have_converged():
    """The coefficients then have no mean, and so what they have is of the draws at hand."""
    text = said(chains(), SEPARATED)
    assert "have no mean" in text
    assert text.endswith("Fit again with slab_scale='per_contrast': about 50 s.")


def test_what_has_no_recipe_has_no_advice():
    assert "Fit again" not in said(chains(), {"free": np.array(["x1"], object)}, slab_scale=2)


def test_the_worst_has_failed_and_above_all_does_not_move():
    assert "'x0' with R-hat 1.500" in said(chains([1.5, 1.0], [600, 450]))
    for ess in (4.0, np.nan):
        assert "2 of 5 quantities. The worst is 'x1' with R-hat inf" in said(chains([1.2, np.inf], [20, ess]))


def test_sums_that_have_converged_are_told_before_the_advice():
    text = said(BAD._replace(are_sums_well=True))
    assert text.index("have not converged") < text.index("summary_of_sets") < text.index("Fit again with")


def test_separated_classes_are_told_where_claims_are_made(seed):
    """Also where all chains have converged: that the coefficients have no bound no R-hat can tell."""
    X = np.random.default_rng(seed).standard_normal((40, 5))
    y = X[:, 0] - X[:, 1] > 0
    for slab, says in ((None, True), (2, False)):
        model = HorseshoeProbitClassifier(slab_scale=slab, n_iter=400, burn_in=200, random_state=seed).fit(X, y)
        assert ("complete separation" in str(model.summary())) == says
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            HorseshoeSelector(model, rule="fsr", prefit=True).fit(X)
            credible_sets(model, X)
        assert ["complete separation" in str(warning.message) for warning in caught] == 2 * [True] * says


def test_the_slab_that_is_advised_is_one_for_columns_in_any_unit(seed):
    """Where columns are wide, slab_scale=2 bounds nothing, and may be what the model has."""
    X = 50 * np.random.default_rng(seed).standard_normal((40, 5))
    model = HorseshoeProbitClassifier(slab_scale=2, n_iter=400, burn_in=200, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, X[:, 0] - X[:, 1] > 0)
    says = "slab_scale='per_contrast' bounds them"
    assert says in " ".join(model.summary().attrs["header"].split())
    with pytest.warns(UserWarning, match=says):
        HorseshoeSelector(model, rule="fsr", prefit=True).fit(X)


@pytest.mark.parametrize("slab", [None, 2])
def test_unpenalized_columns_that_separate_are_not_called_collinear(slab, seed):
    X = np.random.default_rng(seed).standard_normal((120, 4))
    model = HorseshoeProbitClassifier(slab_scale=slab, unpenalized=[0, 1], n_iter=400, random_state=seed)
    with pytest.warns(ConvergenceWarning, match="'x0', 'x1': unpenalized columns separate the classes") as caught:
        model.fit(X, X[:, 0] + X[:, 1] > 0)
    assert "collinear" not in str(caught[0].message)


def test_without_an_intercept_a_slab_is_as_near_for_any_offset(seed):
    """It bounds what a column does between its ends; how far these are from zero changes no scale."""
    X = 1000 + np.random.default_rng(seed).standard_normal((60, 2))
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, fit_intercept=False, random_state=seed)
    with pytest.warns(ConvergenceWarning, match=r"complete separation.*slab_scale='per_contrast'") as caught:
        model.fit(X, X[:, 0] > X[:, 1])
    assert "standardize" not in str(caught[0].message)
    with pytest.warns(ConvergenceWarning) as caught:
        model.set_params(slab_scale=2).fit(X, X[:, 0] > X[:, 1])
    assert "separation" not in str(caught[0].message)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_column_without_a_name_is_told_by_its_place(sparse, seed):
    """Steps with sparse output keep no names; the Pipeline knows them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"ward": rng.choice(list("abcdef"), 600)})
    y = (rng.random(600) < 0.4) & (X["ward"] != "c")
    clf = HorseshoeProbitClassifier(n_iter=20, burn_in=20, random_state=0)
    model = make_pipeline(OneHotEncoder(sparse_output=sparse), clf)
    with pytest.warns(UserWarning, match="Column 'x2'") as caught:
        model.fit(X, y)
    told = [str(one.message) for one in caught if "'x2'" in str(one.message)]
    assert all("(x2 is column 2, counted from 0. Behind the steps of a Pipeline, " in words for words in told)
    assert all("skhorseshoe.inspection.summary(pipeline).index[2] is its name.)" in words for words in told)
    assert inspection.summary(model).index[2] == "ward_c"
    with pytest.warns(UserWarning, match="Column 'x2'") as caught:  # here it is a name
        clf.fit(pd.DataFrame(model[:-1].transform(X) @ np.eye(6), columns=[f"x{j}" for j in range(6)]), y)
    assert not any("counted from" in str(one.message) for one in caught)
