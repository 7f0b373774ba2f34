"""The draws in ArviZ, with either of its two lines: InferenceData of 0.x and DataTree of 1.x."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import halfcauchy, norm

from skhorseshoe import HorseshoeProbitClassifier, inspection
from skhorseshoe._posterior import loo
from skhorseshoe._posterior.grouped_prediction import evenly

arviz = pytest.importorskip("arviz", reason="ArviZ is optional: pip install arviz")
LINE = int(arviz.__version__.split(".")[0])


@pytest.fixture(scope="module")
def labelled(weak_problem):
    X, y = weak_problem
    return pd.DataFrame(X, columns=["age", "dose", "pulse"]), np.where(y == 1, "well", "ill")


@pytest.fixture(scope="module")
def fitted(labelled, seed):
    return HorseshoeProbitClassifier(n_iter=1000, n_chains=3, thin=2, random_state=seed).fit(*labelled)


@pytest.fixture(scope="module")
def data(fitted, labelled):
    return fitted.to_arviz(*labelled)


def log_likelihood(model, X, y):
    eta = model.coef_draws_ @ X.to_numpy().T + model.intercept_draws_[..., None]
    return norm.logcdf(np.where(y == model.classes_[1], 1, -1) * eta)


def test_posterior_is_the_draws_with_names_as_coordinates(data, fitted):
    assert type(data).__name__ == ("InferenceData" if LINE == 0 else "DataTree")
    posterior = data["posterior"]
    assert posterior["coef"].dims == ("chain", "draw", "feature")
    assert posterior["coef"].coords["feature"].values.tolist() == ["age", "dose", "pulse"]
    assert np.array_equal(posterior["coef"].sel(feature="dose").values, fitted.coef_draws_[..., 1])
    for name in ("intercept", "global_scale"):
        assert posterior[name].dims == ("chain", "draw")
        assert np.array_equal(posterior[name].values, getattr(fitted, f"{name}_draws_"))
    assert posterior.attrs["inference_library"] == "skhorseshoe"
    assert posterior.attrs["sampler"] == "hmc"
    assert posterior.attrs["tuning_step"] == fitted.tuning_["step"]


def test_rows_add_their_log_likelihood_and_their_labels(data, fitted, labelled):
    values, y = data["log_likelihood"]["y"], data["observed_data"]["y"]
    assert (values.dims, y.dims) == (("chain", "draw", "row"), ("row",))
    np.testing.assert_allclose(values.values, log_likelihood(fitted, *labelled), rtol=1e-10)
    assert np.array_equal(y.values, (labelled[1] == fitted.classes_[1]).astype(int))
    alone = fitted.to_arviz()
    assert not {"log_likelihood", "observed_data"} & set(alone.groups() if LINE == 0 else alone.children)


def test_prior_densities_are_those_of_the_top_level(data, fitted):
    """Shrunk coefficients have none: scaled by a power, it would change the prior of the global scale."""
    priors = data["log_prior"]
    assert set(priors.data_vars) == {"global_scale", "intercept"}
    expected = halfcauchy.logpdf(fitted.global_scale_draws_)
    np.testing.assert_allclose(priors["global_scale"].values, expected, rtol=1e-8, atol=1e-8)
    assert priors["intercept"].dims == ("chain", "draw")


def test_columns_that_are_not_shrunk_have_their_own_coordinate(labelled, short_fit):
    priors = short_fit(*labelled, unpenalized=["dose"]).to_arviz()["log_prior"]
    assert priors["unpenalized"].coords["unpenalized_feature"].values.tolist() == ["dose"]


@pytest.mark.parametrize("sampler", ["gibbs", "hmc"])
def test_streamed_leave_one_out_is_that_of_arviz(labelled, monkeypatch, sampler, seed):
    """With 900 draws, each as good as independent, the tail has 90 of them by any rounding."""
    X, y = labelled
    monkeypatch.setattr(loo, "relative_efficiency", lambda *args: 1.0)
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    model = HorseshoeProbitClassifier(n_iter=450, burn_in=100, n_chains=2, sampler=sampler, random_state=seed)
    model.fit(X, y, weight)
    own, theirs = inspection.loo(model, X, y, weight), arviz.loo(model.to_arviz(X, y, weight), pointwise=True, reff=1.0)
    of_rows, p = (theirs.loo_i, theirs.p_loo) if LINE == 0 else (theirs.elpd_i, theirs.p)
    # ArviZ 0.x counts draws that equal the least of the tail, as rejected proposals do, among the others.
    tolerance = 1e-2 if LINE == 0 and sampler == "hmc" else 1e-10
    np.testing.assert_allclose(own.elpd_i, of_rows.values, rtol=tolerance)
    np.testing.assert_allclose(own.pareto_k, theirs.pareto_k.values, rtol=0, atol=20 * tolerance)
    assert own.p_loo == pytest.approx(p, rel=tolerance)
    assert own.good_k == pytest.approx(1 - 1 / np.log10(900))  # which ArviZ 0.18 does not tell
    assert own.se == pytest.approx(theirs.se * (np.sqrt(200 / 199) if LINE == 0 else 1), rel=tolerance)


def test_fewer_draws_are_the_same_ones_in_every_group(fitted, labelled):
    some = fitted.to_arviz(*labelled, max_draws=100)
    coef, intercept = some["posterior"]["coef"].values, some["posterior"]["intercept"].values
    assert coef.shape == (3, 33, 3)
    at = evenly(np.arange(1500).reshape(3, 500), 100)[0]
    assert np.array_equal(intercept, fitted.intercept_draws_[:, at])
    assert np.array_equal(coef, fitted.coef_draws_[:, at])
    assert np.array_equal(some["posterior"]["global_scale"].values, fitted.global_scale_draws_[:, at])
    assert np.array_equal(
        some["log_prior"]["intercept"].values, fitted.to_arviz()["log_prior"]["intercept"].values[:, at]
    )
    values = some["log_likelihood"]["y"].values
    np.testing.assert_allclose(values, log_likelihood(fitted, *labelled)[:, at], rtol=1e-10)


def test_a_weighted_row_has_the_term_that_the_fit_has(labelled, seed):
    """A row of weight 2 is left out as a group of two: twice the term, in the log score as well."""
    X, y = labelled
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    model = HorseshoeProbitClassifier(n_iter=200, burn_in=100, random_state=seed).fit(X, y, weight)
    values = model.to_arviz(X, y, weight)["log_likelihood"]["y"].values
    np.testing.assert_allclose(values, weight * log_likelihood(model, X, y), rtol=1e-10)
    with pytest.raises(ValueError, match="sample_weight"):
        model.to_arviz(X, y, weight[1:])
    with pytest.raises(ValueError, match="sample_weight"):
        model.to_arviz(X, y, -weight)
    with pytest.raises(ValueError, match="X and y are needed together"):
        model.to_arviz(sample_weight=weight)


def test_half_a_request_is_refused(fitted, labelled):
    X, y = labelled
    for arguments in ({"X": X}, {"y": y}):
        with pytest.raises(ValueError, match="X and y are needed together"):
            fitted.to_arviz(**arguments)
    with pytest.raises(ValueError, match="'dead'"):
        fitted.to_arviz(X, np.where(y == "ill", "dead", y))
    with pytest.raises(ValueError, match="inconsistent"):
        fitted.to_arviz(X, y[1:])
    with pytest.raises(ValueError, match="max_draws=2"):
        fitted.to_arviz(max_draws=2)


def test_without_arviz_the_error_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        fitted.to_arviz()
