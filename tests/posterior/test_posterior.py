"""What a fitted model tells about single rows, and the summary in words."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from laws import peak_memory
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import predict
from skhorseshoe._posterior import predict as _predict
from skhorseshoe._posterior.grouped_prediction import evenly

METHODS = ("predict_proba_samples", "predict_interval", "predict_proba")


@pytest.fixture(scope="module")
def named(problem, short_fit):
    X, y = problem
    return short_fit(pd.DataFrame(X, columns=list("abcdefgh")), y, n_iter=100, burn_in=100)


def test_samples_are_the_probabilities_under_every_draw(fitted, problem):
    X, _ = problem
    eta = X @ fitted.coef_draws_.reshape(-1, 8).T + fitted.intercept_draws_.ravel()
    samples = fitted.predict_proba_samples(X)
    assert samples.dtype == np.float64
    np.testing.assert_allclose(samples, norm.cdf(eta), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(samples.mean(axis=1), fitted.predict_proba(X)[:, 1], rtol=1e-12)


@pytest.mark.parametrize("level", [None, 0.5])
def test_interval_holds_that_share_of_the_samples(fitted, problem, level):
    samples, interval = fitted.predict_proba_samples(problem[0]), fitted.predict_interval(problem[0], level=level)
    level = fitted.credible_level if level is None else level
    assert interval.shape == (200, 2)
    expected = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=1).T
    assert np.array_equal(interval, expected)


@pytest.mark.parametrize("n_draws", [1, 2, 3, 450])
@pytest.mark.parametrize("level", [1e-6, 0.3, 0.5, 0.9, 1 - 1e-12])
def test_quantiles_of_probabilities_need_those_of_few_draws(n_draws, level, seed):
    eta = np.random.default_rng(seed).standard_normal((20, n_draws)).round(1)
    ends, taken = [(1 - level) / 2, (1 + level) / 2], []
    got = cpu.quantiles(eta.copy(), ends, lambda values: taken.append(values.size) or norm.cdf(values))
    assert np.array_equal(got, np.quantile(norm.cdf(eta), ends, axis=1).T)
    assert sum(taken) == 20 * 4  # the two draws beside each end
    assert np.array_equal(cpu.quantiles(eta.copy(), ends), np.quantile(eta, ends, axis=1).T)


@pytest.mark.parametrize("max_draws", [3, 10, 449])
def test_fewer_draws_are_spread_evenly_over_all_chains(fitted, problem, max_draws):
    places = evenly(np.arange(450).reshape(3, 150), max_draws)
    assert max_draws - 3 < places.size <= max_draws
    assert np.array_equal(places, places[0] + np.array([[0], [150], [300]]))
    gaps = np.diff(places[0])
    assert len(gaps) == 0 or np.ptp(gaps) <= 1
    assert abs(places[0, 0] - (149 - places[0, -1])) <= 1
    every = fitted.predict_proba_samples(problem[0])
    few = fitted.predict_proba_samples(problem[0], max_draws=max_draws)
    np.testing.assert_allclose(few, every[:, places.ravel()], rtol=1e-9, atol=1e-15)
    assert np.array_equal(fitted.predict_proba_samples(problem[0], max_draws=450), every)


@pytest.mark.parametrize("level", [0, 1, 90, "high"])
def test_level_is_checked(fitted, problem, level):
    with pytest.raises(ValueError, match=r"level .*got"):
        fitted.predict_interval(problem[0], level=level)


@pytest.mark.parametrize("method", METHODS)
def test_a_row_does_not_depend_on_the_rows_with_it(fitted, problem, seed, method):
    X, rng = problem[0], np.random.default_rng(seed)
    answer = getattr(fitted, method)
    whole = answer(X)
    assert np.array_equal(answer(X[7:8]), whole[7:8])
    for _ in range(5):
        subset = rng.choice(200, size=rng.integers(1, 200))
        assert np.array_equal(answer(X[subset]), whole[subset])


@pytest.mark.parametrize(("n_draws", "p"), [(1, 1), (601, 300), (7, 40_000), (8, 3)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_linear_predictors_are_those_of_the_library(n_draws, p, dtype, seed):
    """Draws, rows and columns of any number, in tiles and what is left of them, and draws in their own dtype."""
    rng = np.random.default_rng(seed)
    X, coef = rng.standard_normal((11, p)), rng.standard_normal((n_draws, p)).astype(dtype)
    out = np.full((11, n_draws), np.nan)
    predict.linear_predictors(X, coef, out)
    np.testing.assert_allclose(out, X @ coef.T.astype(np.float64), rtol=0, atol=1e-12 * p)


@pytest.mark.parametrize("rows", [np.asarray, np.float32, csr_array], ids=["float64", "float32", "sparse"])
def test_draws_in_float32_answer_as_the_same_numbers_in_float64(fitted, problem, rows):
    X, narrow, wide = rows(problem[0]), copy.copy(fitted), copy.copy(fitted)
    narrow.coef_draws_ = fitted.coef_draws_.astype(np.float32)
    wide.coef_draws_ = narrow.coef_draws_.astype(np.float64)
    for method in METHODS:
        np.testing.assert_allclose(getattr(narrow, method)(X), getattr(wide, method)(X), rtol=0, atol=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_neither_threads_nor_working_memory_change_an_answer(fitted, problem, method):
    alone, shared = (clone(fitted).set_params(n_jobs=n) for n in (1, 3))
    for model in (alone, shared):
        vars(model).update({name: value for name, value in vars(fitted).items() if name.endswith("_")})
    whole = getattr(alone, method)(problem[0])
    assert np.array_equal(getattr(shared, method)(problem[0]), whole)
    with sklearn.config_context(working_memory=0.02):  # blocks of 5 rows
        np.testing.assert_allclose(getattr(fitted, method)(problem[0]), whole, rtol=0, atol=1e-12)


def test_memory_of_intervals_does_not_grow_with_rows_times_draws(fitted, seed):
    X = np.random.default_rng(seed).standard_normal((20_000, 8))
    fitted.predict_interval(X[:100])
    assert (
        peak_memory(lambda: fitted.predict_interval(X)) < 8 * X.size + 2 * 20_000 * 8 + 8 * 2**20 < 8 * 20_000 * 450 / 4
    )


def test_samples_that_cannot_fit_are_refused_before_the_first(fitted, problem, free_memory, monkeypatch):
    free_memory(8 * 200 * 450 - 1)
    monkeypatch.setattr(_predict, "each_predictor", None)
    with pytest.raises(MemoryError, match="200 rows x 450 draws"):
        fitted.predict_proba_samples(problem[0])


def test_a_model_that_is_not_fitted_says_so(problem):
    model = HorseshoeProbitClassifier()
    for method in METHODS:
        with pytest.raises(NotFittedError):
            getattr(model, method)(problem[0])
    for method in (model.summary, model.to_arviz):
        with pytest.raises(NotFittedError):
            method()


def test_answers_leave_the_model_as_it_was(fitted, problem):
    before = pickle.dumps(fitted)
    for method in METHODS:
        getattr(fitted, method)(problem[0])
    fitted.summary(sort_by="mean"), fitted.to_arviz(*problem)
    assert pickle.dumps(fitted) == before


def words(frame):
    """The header without the ends of its lines."""
    return " ".join(frame.attrs["header"].split())


def test_header_says_prior_sampler_draws_and_convergence(named):
    frame = named.summary()
    prior, worst, least = named.prior_, frame["rhat"], frame["ess"]
    matter = ((frame["5%"] > 0) | (frame["95%"] < 0)).iloc[:8].sum()
    converged = worst.max() <= 1.01 and least.min() >= 400
    for part in (
        f"4 chains of 100 draws, {'converged' if converged else 'NOT converged'}; {matter} of 8 columns clearly matter",
        "horseshoe, tau ~ half-Cauchy(1)",
        "hmc (step ",
        "burn_in=100, thin=1, ended by n_iter after 100 sweeps",
        f"worst R-hat {worst.max():.3f} ({worst.idxmax()})",
        f"smallest ess {least.min():.0f} ({least.idxmin()})",
        f"{(1 - named.shrinkage_).sum():.1f} of 8 shrunk coefficients",
        f"the prior expected {prior['m_eff']:.1f} ({prior['m_eff_at_tau_0']:.1f} for tau = {prior['tau_0']:.3g})",
    ):
        assert part in words(frame)
    assert max(map(len, frame.attrs["header"].split("\n"))) <= 79


@pytest.mark.parametrize("columns", [40, 200])
def test_no_column_is_left_out_of_what_is_printed(named, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pd.option_context("display.max_columns", 0, "display.width", 40):  # as in a terminal of this width
        table = repr(named.summary()).partition("\n\n")[2]
    assert all(name in table for name in named.summary())
    assert ("\\" in table) == (columns == 40)  # the mark of a table that goes on below


def test_header_says_what_was_chosen(problem, short_fit):
    model = short_fit(*problem, expected_nonzero=2, slab_scale=1.5, n_iter=3, burn_in=5, thin=3)
    header = words(model.summary())
    assert f"half-Cauchy({model.prior_['tau_0']:.3g}) from expected_nonzero=2, slab of standard deviation 1.5" in header
    assert "Sampler: pxda Draws: burn_in=5, thin=3, ended" in header
    assert "4 chains of 1 draws, too few to tell" in header
    assert "worst R-hat unknown, smallest ess unknown" in header


def test_header_survives_what_keeps_the_table_a_summary(named):
    frame = named.summary()
    header = frame.attrs["header"]
    assert isinstance(frame, pd.DataFrame)
    for derived in (frame.round(2), frame[["mean"]], frame.loc["b":"d"], pickle.loads(pickle.dumps(frame))):
        assert repr(derived).startswith(header)
        assert derived._repr_html_().startswith("<pre>4 chains")
    assert not frame.to_csv().startswith(header[:8])
    frame.attrs["header"] = "<b>"
    assert "<pre>&lt;b&gt;</pre>" in frame._repr_html_()
    table = repr(frame).partition("\n\n")[2]
    frame.attrs.clear()
    assert repr(frame) == table


@pytest.mark.parametrize(("column", "sign"), [("mean", 1), ("shrinkage", -1)])
def test_summary_is_sorted_by_size_with_the_others_last(named, column, sign):
    """What is shrunk least comes first."""
    frame = named.summary(sort_by=column)
    assert list(frame.index[-2:]) == ["(intercept)", "(global scale)"]
    assert (frame[column].iloc[:-2].abs().diff().dropna() * sign <= 0).all()
    pd.testing.assert_frame_equal(frame.loc[named.summary().index], named.summary())


def test_the_summary_is_of_the_fit_whatever_is_set_afterwards(problem, short_fit):
    model = short_fit(*problem)
    before = model.summary()
    model.set_params(burn_in=7, thin=9, expected_nonzero=3, fit_intercept=False)
    pd.testing.assert_frame_equal(model.summary(), before)
    assert model.summary().attrs["header"] == before.attrs["header"]


def test_summary_cannot_be_sorted_by_what_it_does_not_hold(named):
    with pytest.raises(ValueError, match=r"sort_by='size'.*mean, sd, 5%"):
        named.summary(sort_by="size")


def test_a_level_whose_ends_have_one_name_is_refused(named):
    with pytest.raises(ValueError, match=r"level .*got 1e-07"):
        named.summary(level=1e-7)
    low, high = named.summary(level=1e-5).columns[2:4]
    assert float(low[:-1]) < 50 < float(high[:-1])
