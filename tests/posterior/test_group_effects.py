"""Answers of models with groups of rows: given the group, of the groups, and averaged over them."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from scipy.stats import halfcauchy, norm
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from skhorseshoe import HorseshoeSelector, inspection, terms
from skhorseshoe._posterior import summary
from skhorseshoe._posterior.dss import weighted_root
from skhorseshoe._posterior.grouped_prediction import population
from skhorseshoe.diagnostics import convergence
from skhorseshoe.sets import credible_sets

ON_AVERAGE = "averaged over groups"


def in_one_line(frame):
    return " ".join(frame.attrs["header"].split())


def averaged(model):
    return model.coef_draws_ / np.sqrt(1 + model.group_scale_draws_[..., None] ** 2)


def test_the_summary_has_the_scale_of_the_groups_and_what_they_share(of_patients):
    frame, s = of_patients.summary(), of_patients.group_scale_draws_
    assert frame.index[-3:].tolist() == ["(intercept)", "(global scale)", "(group scale)"]
    row, checks = frame.loc["(group scale)"], convergence(s[..., None])
    assert row["mean"] == pytest.approx(s.mean())
    assert (row["rhat"], row["ess"]) == pytest.approx((checks.rhat[0], checks.ess_bulk[0]))
    assert np.isnan(row["prob_positive"])
    share = s**2 / (1 + s**2)
    low, high = np.quantile(share, [0.05, 0.95])
    words = in_one_line(frame)
    assert f"{share.mean():.2f} (90 % interval {low:.2f} to {high:.2f})" in words
    assert "coefficients are given the group" in words
    assert frame.loc["pulse", "mean"] == pytest.approx(of_patients.coef_draws_[..., 0].mean())
    assert of_patients.summary(sort_by="mean").index[-1] == "(group scale)"


def test_moments_of_all_draws_leave_the_scale_of_the_groups(visits, of_patients):
    X, y, groups = visits
    model = clone(of_patients).set_params(max_draws=60).fit(X, y, groups=groups)
    assert model.moments_ is not None
    frame = model.summary()
    np.testing.assert_allclose(frame["mean"].to_numpy()[:-1], model.moments_["mean"])
    assert frame.loc["(group scale)", "mean"] == pytest.approx(model.group_scale_draws_.mean())
    assert "mean and sd are of all, but those of (group scale);" in in_one_line(frame)


def test_effects_of_groups(of_patients, monkeypatch):
    whole = of_patients.group_effects(0.8)
    monkeypatch.setattr(summary, "_DRAWS_AT_A_TIME", 1000)  # so that groups are taken a few at a time
    frame = of_patients.group_effects(0.8)
    pd.testing.assert_frame_equal(frame, whole)
    draws = of_patients.group_effect_draws_
    np.testing.assert_allclose(frame["mean"], of_patients.group_effect_moments_["mean"])
    np.testing.assert_allclose(frame["sd"], of_patients.group_effect_moments_["sd"])
    np.testing.assert_allclose(frame[["10%", "90%"]].T, np.quantile(draws, [0.1, 0.9], axis=(0, 1)), rtol=1e-6)
    assert frame.index.tolist() == of_patients.groups_.tolist()
    assert "60 groups" in in_one_line(frame)
    assert "intraclass correlation" in in_one_line(frame)


def test_without_groups_there_are_no_effects(fitted):
    with pytest.raises(ValueError, match="fitted without groups"):
        fitted.group_effects()
    assert "(group scale)" not in fitted.summary().index
    assert population(fitted) is fitted


def test_marginal_effects_are_of_new_groups(of_patients, visits):
    X, _, _ = visits
    frame = inspection.marginal_effects(of_patients, X, "pulse")
    more = of_patients.predict_proba_samples(X.assign(pulse=X["pulse"] + 1)) - of_patients.predict_proba_samples(X)
    assert frame["mean"].iloc[0] == pytest.approx(more.mean(), rel=1e-9)
    assert ON_AVERAGE in in_one_line(frame)


def test_contributions_are_averaged_over_groups(of_patients, visits):
    X, _, _ = visits
    for asked in ("auto", None):
        frame = inspection.contributions(of_patients, X[:2], terms=asked)
        expected = averaged(of_patients)[..., 0].mean() * (X["pulse"].iloc[0] - X["pulse"].mean())
        assert frame.loc[(0, "pulse"), "mean"] == pytest.approx(expected, rel=1e-6)
        assert ON_AVERAGE in in_one_line(frame)
    parts = inspection.contributions(of_patients, X[:1])["mean"]
    assert parts[(0, "(probability)")] == pytest.approx(of_patients.predict_proba(X[:1])[0, 1], rel=1e-9)


def test_sizes_and_sets_are_averaged_over_groups(of_patients, visits):
    X, _, _ = visits
    sd = X["pulse"].std(ddof=0)
    frame = terms.summary(of_patients)
    assert frame.loc["pulse", "mean"] == pytest.approx(abs(averaged(of_patients)[..., 0]).mean() * sd, rel=1e-6)
    assert ON_AVERAGE in in_one_line(frame)
    sets = credible_sets(of_patients, X).sets
    assert sets.loc["pulse", "mean"] == pytest.approx(averaged(of_patients)[..., 0].mean() * sd, rel=1e-6)
    assert ON_AVERAGE in in_one_line(sets)
    sums = of_patients.summary_of_sets({"both": ["pulse", "dose"]})  # of coefficients, which are given the group
    assert sums.loc["both", "mean"] == pytest.approx(of_patients.coef_draws_[..., :2].sum(axis=-1).mean())
    assert "given the group" in in_one_line(sums)


@pytest.mark.parametrize("rule", ["dss", "interval", "fsr", "shrinkage"])
def test_a_selector_hands_groups_on_and_judges_averages(of_patients, visits, rule):
    X, y, groups = visits
    selector = HorseshoeSelector(clone(of_patients), rule=rule, q=0.2).fit(X, y, groups=groups)
    assert np.array_equal(selector.estimator_.group_effect_draws_, of_patients.group_effect_draws_)
    same = inspection.select(of_patients, X, rule=rule, q=0.2)
    assert np.array_equal(selector.support_, same.support_)
    assert same.estimator_ is of_patients
    if rule == "fsr":
        sized = averaged(of_patients) * X.std(ddof=0).to_numpy()
        wrong = 1 - np.maximum((sized > 0.1).mean(axis=(0, 1)), (sized < -0.1).mean(axis=(0, 1)))
        np.testing.assert_allclose(same.error_, np.maximum(wrong, 1 / np.minimum(of_patients.ess_, 360)))


def test_folds_are_fitted_with_their_groups(of_patients, visits):
    X, y, groups = visits
    splits = list(GroupKFold(3).split(X, y, groups))
    with pytest.raises(ValueError, match="cv fits anew: give the groups"):
        inspection.select(of_patients, X, y, cv=splits)
    selector = inspection.select(of_patients, X, y, cv=splits, groups=groups)
    assert selector.sizes_["n_rows"] == 600
    assert selector.support_[0]
    same = inspection.select(of_patients, X, y, cv=GroupKFold(3), groups=groups)
    assert np.array_equal(same.sizes_["difference"], selector.sizes_["difference"])


def test_the_log_likelihood_of_rows_is_refused(of_patients, visits):
    X, y, _ = visits
    pytest.importorskip("arviz")
    with pytest.raises(ValueError, match="Hold out whole groups"):
        of_patients.to_arviz(X, y)


def test_arviz_has_the_groups(of_patients):
    pytest.importorskip("arviz")
    data = of_patients.to_arviz(max_draws=90)
    posterior, prior = data["posterior"], data["log_prior"]
    assert posterior["group_scale"].shape == (3, 30)
    assert posterior["group_effect"].shape == (3, 30, 60)
    assert posterior["group"].values.tolist() == of_patients.groups_.tolist()
    s = posterior["group_scale"].values
    np.testing.assert_allclose(prior["group_scale"].values, halfcauchy.logpdf(s))
    fewer = copy(of_patients)
    fewer.group_effect_draws_, fewer._group_stride = of_patients.group_effect_draws_[:, 1::2], 2
    assert "group_effect" not in fewer.to_arviz()["posterior"]


def test_a_model_with_an_offset_answers_with_one(visits, of_patients):
    X, y, groups = visits
    offset = np.linspace(-1, 1, 600)
    model = clone(of_patients).fit(X, y, groups=groups, offset=offset)
    frame = inspection.marginal_effects(model, X, "pulse", offset=offset)
    raised = model.predict_proba_samples(X.assign(pulse=X["pulse"] + 1), offset=offset)
    expected = (raised - model.predict_proba_samples(X, offset=offset)).mean()
    assert frame["mean"].iloc[0] == pytest.approx(expected, rel=1e-9)
    for ask in (inspection.marginal_effects, inspection.select):
        with pytest.raises(ValueError, match="fitted with an offset"):
            ask(model, X)
    with pytest.raises(ValueError, match="contributions takes no model that was fitted with an offset"):
        inspection.contributions(model, X[:2])
    with pytest.raises(ValueError, match="cv takes no offset"):
        HorseshoeSelector(clone(model), cv=3).fit(X, y, groups=groups, offset=offset)
    assert inspection.select(model, X, offset=offset).support_[0]


def test_information_of_rows_with_an_offset(visits, of_patients):
    X, y, groups = visits
    offset = np.linspace(-1, 1, 600)
    model = clone(of_patients).set_params(n_iter=10).fit(X, y, groups=groups, offset=offset)
    average = population(model)
    R, centre = weighted_root(average, X.to_numpy(), np.empty(0), offset=offset)
    root = np.sqrt(1 + model.group_scale_draws_.ravel() ** 2)
    eta = (X.to_numpy() @ model.coef_draws_.reshape(-1, 4).T + model.intercept_draws_.ravel() + offset[:, None]) / root
    weight = (norm.pdf(eta) ** 2 / norm.cdf(eta) / norm.cdf(-eta)).mean(axis=1)
    rows = np.column_stack([X - centre, np.ones(600)])
    np.testing.assert_allclose(R.T @ R, rows.T @ (weight[:, None] * rows), rtol=1e-6, atol=1e-9)


def test_loo_takes_the_offset_of_the_fit(visits, of_patients):
    X, y, _ = visits
    offset = np.linspace(-1, 1, 600)
    model = clone(of_patients).fit(X, y, offset=offset)
    found = inspection.loo(model, X, y, offset=offset)
    own = np.where(y, model.predict_proba(X, offset=offset)[:, 1], model.predict_proba(X, offset=offset)[:, 0])
    assert found.elpd_loo < np.log(own).sum() < found.elpd_loo + 5 * found.p_loo
    with pytest.raises(ValueError, match="fitted with an offset"):
        inspection.loo(model, X, y)
