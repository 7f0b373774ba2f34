"""How users call the public names, for a type checker: every type that it infers is stated."""

from typing import Any, assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skhorseshoe import (
    HorseshoeProbitClassifier,
    HorseshoeSelector,
    datasets,
    diagnostics,
    disk,
    inspection,
    plotting,
    sets,
    show_versions,
)

Floats = NDArray[np.float64]


def answers_of_a_model() -> None:
    X, y, coef = datasets.make_sparse_probit(200, 8, random_state=0)
    assert_type(coef, Floats)
    model = HorseshoeProbitClassifier(n_iter=200, sampler="hmc", target_ess=None, random_state=0).fit(X, y)
    assert_type(model, HorseshoeProbitClassifier)
    assert_type(model.predict_proba(X), Floats)
    assert_type(model.predict_interval(X, level=0.5), Floats)
    assert_type(model.predict(X), NDArray[Any])
    assert_type(model.coef_, Floats)
    assert_type(model.summary(sort_by="mean"), pd.DataFrame)
    assert_type(model.summary_of_sets({"both": ["x0", "x1"]}), pd.DataFrame)
    assert_type(diagnostics.convergence(model.coef_draws_), diagnostics.Convergence)
    assert_type(inspection.marginal_effects(model, X, change=0.5), pd.DataFrame)
    effects = inspection.marginal_effects(model, X, change={"x0": 10, "x1": "sd"}, comparison="odds_ratio", by="x2")
    assert_type(inspection.number_needed_to_treat(effects, adverse=True), pd.DataFrame)
    assert_type(inspection.net_benefit(model, X, y, [0.2]), pd.DataFrame)
    assert_type(inspection.calibration(model, X, y), pd.DataFrame)
    assert_type(sets.credible_sets(model, X).sets, pd.DataFrame)
    assert_type(show_versions(), None)


def selection_and_displays(X: pd.DataFrame, y: pd.Series, model: HorseshoeProbitClassifier) -> None:
    selector = HorseshoeSelector(model, rule="fsr", q=0.1, prefit=True).fit(X)
    assert_type(selector, HorseshoeSelector)
    assert_type(inspection.select(model, X), HorseshoeSelector)
    display = plotting.CoefficientsDisplay.from_estimator(model, selected=selector.support_, order="name")
    assert_type(display.plot(top=3), plotting.CoefficientsDisplay)
    assert_type(plotting.CredibleSetsDisplay.from_sets(sets.credible_sets(model, X)), plotting.CredibleSetsDisplay)
    effects = inspection.marginal_effects(model, X, reference={"ward": "a"}, change="pairs")
    assert_type(model.fit(X, y, groups=y, offset=y).group_effects(), pd.DataFrame)
    assert_type(plotting.GroupEffectsDisplay.from_estimator(model, most=9), plotting.GroupEffectsDisplay)
    assert_type(plotting.EffectsDisplay.from_frame(effects), plotting.EffectsDisplay)
    assert_type(plotting.EffectsDisplay.from_estimator(model, X, "ward", reference="a"), plotting.EffectsDisplay)
    rows, labels = disk.convert(X, "folder", y="ill", dtype="float32")
    assert_type(rows, pd.DataFrame | np.memmap[Any, Any])
    assert_type(labels, NDArray[Any] | None)
    _, _, patients = disk.convert(X, "folder", groups="patient")
    assert_type(patients, NDArray[Any])
    assert_type(disk.load("folder", groups=True)[2], NDArray[Any])


def mistakes_are_found() -> None:
    # An ignore that is not needed is an error, so each of these lines must be one.
    HorseshoeProbitClassifier(sampler="nuts")  # type: ignore[arg-type]
    HorseshoeProbitClassifier(n_itr=100)  # type: ignore[call-arg]
    HorseshoeSelector(rule=0.5)  # type: ignore[arg-type]
    inspection.summary(None, level="high")  # type: ignore[arg-type]
    plotting.TraceDisplay.from_estimator(None, worst="3")  # type: ignore[arg-type]
