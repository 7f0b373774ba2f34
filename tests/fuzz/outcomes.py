"""Cases of rows that belong together, classes with and without an order, slopes, offsets, and questions about them."""

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from data import NUMBERS, SAMPLERS, THINGS, on_purpose, pick

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, inspection

LABELS = [(0, 1), (0, 1, 2), (1, 2, 3, 9), ("a", "b", "c"), (False, True), ("low", "mid", "high", "top")]


def now_and_then(rng, usual, odd):
    """One of what is usual; in one case of eight of what is odd."""
    return pick(rng, odd if rng.integers(8) == 0 else usual)


def outcomes(rng, folder):
    """A fit of some of these together, most often as it should be."""
    n, p = int(rng.integers(12, 40)), int(pick(rng, [1, 2, 3, 5, 50]))
    names = [f"c{j}" for j in range(p)]
    X, classes = rng.standard_normal((n, p)).round(int(rng.integers(1, 8))), pick(rng, LABELS)
    y = np.array(classes)[np.append(np.arange(len(classes)), rng.integers(0, len(classes), n))[:n]]
    order, made = list(classes), pick(rng, [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)])
    groups, slopes = groups_of(rng, n, names)
    scales = [2.5, 1.0, 1e-3, 1e3]
    given = {"n_iter": int(pick(rng, [8, 30, 110])), "burn_in": int(pick(rng, [0, 8, 100])), "n_chains": 2, "n_jobs": 1}
    given |= {"sampler": now_and_then(rng, ["auto", "hmc"], SAMPLERS), "random_state": 0}
    given |= {"ordered": now_and_then(rng, [False, order, order[::-1]], [True, order[:-1]])}
    given |= {"slab_scale": pick(rng, ["per_contrast", None, 1.0]), "draws_dtype": pick(rng, ["float32", "float64"])}
    given |= {"unpenalized": pick(rng, [None, ["c0"], names]), "prior_scale": pick(rng, [None, {"c0": 2.0}])}
    given |= {"group_scale": now_and_then(rng, scales, [{"ward": 1.0, "doctor": 2.0}]), "group_slopes": slopes}
    given |= {"thin": int(rng.integers(1, 3)), "max_draws": pick(rng, [None, None, 60])}
    given |= {"fit_intercept": bool(rng.integers(8)), "standardize": bool(rng.integers(2))}
    offsets = [rng.standard_normal(n), rng.standard_normal((n, len(classes)))]
    by_class = given["ordered"] is False and len(classes) > 2
    rows = {"groups": groups, "sample_weight": now_and_then(rng, [None], [rng.uniform(0, 3, n).round(1)])}
    rows["offset"] = now_and_then(rng, [None, None, offsets[by_class]], offsets)
    X = sp.csr_array(X) if rng.integers(6) == 0 and not slopes else made(X, columns=names)
    if sp.issparse(X):
        given |= {"unpenalized": None, "prior_scale": None}
    with_defaults = {name for name, value in given.items() if value is None and name != "slab_scale"}
    given = {name: value for name, value in given.items() if name not in with_defaults}
    model = HorseshoeProbitClassifier(**given).fit(X, y, **rows)
    for _ in range(4):
        try:
            ask(rng, model, X, y, rows)
        except Exception as error:
            if not on_purpose(error):
                raise
    return model


def groups_of(rng, n, names):
    """Groups of the rows in some form, or None; and slopes, or None."""
    ward, doctor = rng.integers(0, rng.integers(2, 5), n), rng.integers(0, rng.integers(2, 5), n) + 10
    if rng.integers(6) == 0:
        doctor = 100 * ward + doctor  # nested
    both = {"ward": ward, "doctor": doctor}
    usual = [None, ward, ward.astype(str), both, pd.DataFrame(both), {"ward": ward}, pd.Series(ward, dtype="category")]
    spoilt = ward.astype(object)
    spoilt[rng.integers(n)] = pick(rng, [*NUMBERS, *THINGS])
    groups = now_and_then(rng, usual, [spoilt, np.arange(n), np.zeros(n), {"ward": spoilt}])
    slopes = {
        pick(rng, ["ward", "ward", "doctor"]): [str(name) for name in rng.permutation(names)[: rng.integers(1, 3)]]
    }
    return groups, slopes if isinstance(groups, dict | pd.DataFrame) and rng.integers(2) else None


def ask(rng, model, X, y, rows):
    """One of the questions; probabilities must be numbers."""
    few = slice(0, int(rng.integers(1, 6)))
    all_rows = {name: value for name, value in rows.items() if value is not None}
    by_row = {name: cut(value, few) for name, value in all_rows.items() if name != "sample_weight"}
    if "groups" in by_row:
        kind = rng.integers(4)
        by_row |= {"groups": [by_row["groups"], fresh(by_row["groups"]), None, by_row["groups"]][kind]}
        by_row |= {"new_groups": bool(kind)}
    asked, scored = X[few], {name: value for name, value in all_rows.items() if name != "sample_weight"}
    alone = {name: value for name, value in all_rows.items() if name != "groups"}
    column, level = f"{'x' if sp.issparse(X) else 'c'}{rng.integers(X.shape[1])}", y[rng.integers(len(y))]
    comparison, rule = (
        pick(rng, ["difference", "ratio", "odds_ratio"]),
        pick(rng, ["fsr", "interval", "shrinkage", "dss"]),
    )
    numbers = {
        "predict_proba": lambda: model.predict_proba(asked, **by_row),
        "decision_function": lambda: model.decision_function(asked, **by_row),
        "predict_interval": lambda: model.predict_interval(asked, **by_row),
        "predict_proba_samples": lambda: model.predict_proba_samples(asked, **by_row),
        "with_prevalence": lambda: inspection.with_prevalence(model, 0.3).predict_proba(asked, **by_row),
        "at_least": lambda: inspection.at_least(model, level).predict_proba(asked, **by_row),
        "one_vs_rest": lambda: inspection.one_vs_rest(model, level).predict_proba(asked, **by_row),
    }
    words = {
        "summary": lambda: model.summary(sort_by=pick(rng, [None, "mean", "lfsr"])),
        "group_effects": lambda: model.group_effects(pick(rng, [None, "ward", "doctor"])),
        "to_arviz": lambda: model.to_arviz(),
        "loo": lambda: inspection.loo(model, X, y, **all_rows),
        "marginal_effects": lambda: inspection.marginal_effects(model, X, [column], comparison=comparison, **alone),
        "contributions": lambda: inspection.contributions(model, asked, X),
        "predictive_check": lambda: inspection.predictive_check(model, X, y, column, n_draws=20, **scored),
        "sensitivity": lambda: inspection.sensitivity(model, X, y, **all_rows),
        "net_benefit": lambda: inspection.net_benefit(model, X, y, **scored),
        "calibration": lambda: inspection.calibration(model, X, y, **scored),
        "select": lambda: HorseshoeSelector(model, prefit=True, rule=rule).fit(X, y).get_support(),
    }
    name = pick(rng, [*numbers, *words])
    if name in words:
        str(words[name]())
    else:
        assert np.isfinite(numbers[name]()).all(), f"{name} is not finite"


def cut(values, rows):
    if isinstance(values, dict):
        return {name: column[rows] for name, column in values.items()}
    return values[rows]


def fresh(groups):
    """Groups of which the fit has seen none."""
    if isinstance(groups, dict):
        return {name: fresh(column) for name, column in groups.items()}
    if isinstance(groups, pd.DataFrame):
        return groups.apply(fresh)
    return np.array([f"new {k}" if groups.dtype.kind == "U" else 900 + k for k in range(len(groups))])
