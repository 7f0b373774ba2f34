"""The model of a population with another share of events than the sample, and of next month's, by an offset."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, log_ndtr
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import log_loss

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.inspection import at_least, contributions, loo, marginal_effects, summary, with_prevalence


def bayes(p, share, in_fit):
    """The probability in the population, from the densities of a row in both classes."""
    in_class, in_other = p / in_fit, (1 - p) / (1 - in_fit)
    return share * in_class / (share * in_class + (1 - share) * in_other)


def test_thinned_rows_give_the_probabilities_of_the_population(seed):
    """One in thirty of the other rows is kept. Bins of rows have the true means within four standard deviations."""
    rng, kept = np.random.default_rng(seed), 1 / 30
    X = rng.standard_normal((60_000, 2))
    eta = X @ [1.0, -0.7] - 0.3
    truth = expit(log_ndtr(eta) - log_ndtr(-eta) + np.log(kept))  # so that the sample is probit
    y = rng.random(60_000) < truth
    sample = y | (rng.random(60_000) < kept)
    model = HorseshoeProbitClassifier(n_iter=400, burn_in=200, random_state=seed).fit(X[sample], y[sample])
    corrected = with_prevalence(model, y.mean())
    order = np.argsort(truth)[::10]  # from the least to the largest, in bins of 600
    samples = corrected.predict_proba_samples(X[order])
    means = samples.reshape(10, 600, -1).mean(axis=1)
    true_means = truth[order].reshape(10, 600).mean(axis=1)
    assert true_means[-1] > 10 * true_means[0]
    assert (abs(means.mean(axis=1) - true_means) < 4 * means.std(axis=1)).all()
    assert (means.std(axis=1) < 0.25 * true_means).all()


@pytest.mark.parametrize("share", [1e-4, 0.03, 0.9])
def test_answers_are_corrected_draw_by_draw(fitted, problem, share):
    X, in_fit = problem[0], problem[1].mean()
    corrected = with_prevalence(fitted, share)
    draws = fitted.predict_proba_samples(X)
    expected = bayes(draws, share, in_fit)
    np.testing.assert_allclose(corrected.predict_proba_samples(X), expected, rtol=1e-9, atol=1e-13)
    proba = corrected.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], expected.mean(axis=1), rtol=1e-9)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    ends = np.quantile(expected, [0.05, 0.95], axis=1).T
    np.testing.assert_allclose(corrected.predict_interval(X), ends, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(norm.cdf(corrected.decision_function(X)), proba[:, 1], rtol=1e-9)
    assert np.array_equal(corrected.predict(X), (proba[:, 1] > 0.5).astype(int))
    again = pickle.loads(pickle.dumps(corrected))
    assert np.array_equal(again.predict_proba(X), proba)
    assert np.array_equal(with_prevalence(corrected, in_fit).coef_, fitted.coef_)
    np.testing.assert_allclose(with_prevalence(corrected, in_fit).predict_proba(X), fitted.predict_proba(X), rtol=1e-9)


def test_rows_far_out_keep_small_probabilities_and_are_never_nan(fitted, problem):
    X = problem[0] * np.array([[1.0], [30.0], [1e9], [1e150]])[np.arange(200) % 4]
    corrected = with_prevalence(fitted, 0.01)
    proba = corrected.predict_proba(X)
    assert np.isfinite(proba).all()
    assert 0 <= proba[np.arange(200) % 4 == 1].min() < 1e-30
    assert np.isfinite(corrected.decision_function(X)).all()


def test_effects_are_of_the_population_and_coefficients_of_the_fit(model, patients):
    X = patients[0]
    corrected = with_prevalence(model, 0.05)
    more = corrected.predict_proba(X.assign(dose=X["dose"] + 1)) - corrected.predict_proba(X)
    effects = marginal_effects(corrected, X)
    np.testing.assert_allclose(effects.loc["dose", "mean"], more[:, 1].mean(), rtol=1e-9)
    assert abs(effects.loc["dose", "mean"]) < 0.7 * abs(marginal_effects(model, X).loc["dose", "mean"])
    row = contributions(corrected, X[:1])
    assert row.attrs["reference"]["probability"][0] < 0.2
    pd.testing.assert_frame_equal(summary(corrected), summary(model), check_exact=True)
    assert "of a population in which a share of 0.05 is" in summary(corrected).attrs["header"].replace("\n", " ")
    inner, Z = corrected[-1], model[:-1].transform(X)
    chosen = [HorseshoeSelector(one, prefit=True).fit(Z).get_support() for one in (inner, model[-1])]
    assert np.array_equal(*chosen)


def test_a_further_fit_is_of_its_rows(fitted, problem):
    corrected = deepcopy(with_prevalence(fitted, 0.01))
    plain = clone(fitted).fit(*problem)
    assert np.array_equal(corrected.fit(*problem).predict_proba(problem[0]), plain.predict_proba(problem[0]))
    assert loo(corrected, *problem).elpd_loo < 0


def test_what_the_correction_cannot_say_is_refused(fitted, problem, visits, short_fit):
    X, y = problem
    with pytest.raises(ValueError, match=r"of a population .* is that of the model that was fitted"):
        loo(with_prevalence(fitted, 0.1), X, y)
    for share in (0, 1, 5, True, "few"):
        with pytest.raises(ValueError, match=r"share must be between 0 and 1 .*got"):
            with_prevalence(fitted, share)
    grouped = short_fit(visits[0], visits[1], n_iter=8, burn_in=4)
    grouped.fit(visits[0], visits[1], groups=visits[2])
    with pytest.raises(ValueError, match="hide how groups differ"):
        with_prevalence(grouped, 0.1)
    ordered = short_fit(X, np.digitize(X[:, 0], [-0.5, 0.5]), ordered=True, sampler="hmc")
    with pytest.raises(ValueError, match="with_prevalence is not for a fit to 3 classes: fit y >= a class"):
        with_prevalence(ordered, 0.1)
    with pytest.raises(ValueError, match="of y >= 2 within"):
        with_prevalence(at_least(ordered, 2), 0.1)


def test_the_last_score_as_an_offset_leaves_the_change_to_fit(seed):
    """Of the intercept and of one coefficient, within four standard deviations; and better than the last model."""
    rng = np.random.default_rng(seed)
    X, old = rng.standard_normal((9000, 4)), slice(0, 6000)
    new, later = slice(6000, 7500), slice(7500, 9000)
    score = X @ [1.0, -0.7, 0.3, 0.0] - 0.5
    score[6000:] += 0.7 * X[6000:, 1] - 0.5
    y = score + rng.standard_normal(9000) > 0
    last, change = (HorseshoeProbitClassifier(n_iter=200, burn_in=100, random_state=seed) for _ in range(2))
    last.fit(X[old], y[old])
    offset = last.decision_function(X)
    change.fit(X[new], y[new], offset=offset[new])
    draws = np.column_stack([change.coef_draws_.reshape(-1, 4), change.intercept_draws_.ravel()])
    assert (abs(draws.mean(axis=0) - [0.0, 0.7, 0.0, 0.0, -0.5]) < 4 * draws.std(axis=0) + 0.05).all()
    losses = [
        log_loss(y[later], p)
        for p in (change.predict_proba(X[later], offset=offset[later]), last.predict_proba(X[later]))
    ]
    assert losses[0] < losses[1] - 0.02
