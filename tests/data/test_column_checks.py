"""Columns to warn of: a coefficient that nothing bounds, values far out, and columns far from zero."""

import functools
import re
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from laws import peak_memory, plain_columns
from scipy.sparse import csr_array, issparse

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.column_checks import extremes, far_out, find_one_sided, sample, step_of, widest
from skhorseshoe._data.row_blocks import Segment
from skhorseshoe._fit import findings
from skhorseshoe._mcmc.draws import Draws

CURE = "Fit again with slab_scale='per_contrast'"
ONE_SIDE = "all values in one class lie on one side"
WITH_INTERCEPT, WITHOUT = {"level", "level_0", "touches", "negative", "apart"}, {"level", "level_0", "negative"}


def sides(n=60):
    """Columns that separate the classes and that do not, by name, and y."""
    rng = np.random.default_rng(0)
    number, y = np.arange(n), np.arange(n) % 2
    level, level_0 = np.isin(number, [5, 41]) * 1.0, np.isin(number, [0, 30, n - 2]) * 1.0
    X = {
        "noise": rng.standard_normal(n),
        "level": level,  # occurs in class 1 only
        "level_0": level_0,
        "constant": np.full(n, 3.0),
        "zeros": np.zeros(n),
        "touches": np.where(number < 2, 2.0, np.where(y, 2.0, 1.0) + rng.random(n)),
        "negative": -level,
        "apart": np.where(y, 5.0, 4.0),
        "mixed": level + level_0,
    }
    return pd.DataFrame(X), y.astype(np.uint8)


def named(X, low, high):
    return {X.columns[j] for j in find_one_sided(low, high)}


@pytest.mark.parametrize("block", [1, 10**6])
@pytest.mark.parametrize(("kind", "fit_intercept"), [(np.asarray, True), (np.float16, False), (csr_array, True)])
def test_separating_columns(kind, fit_intercept, block, sizes):
    X, y = sides()
    sizes(numbers_of_a_check=block * X.shape[1])
    found = named(X, *extremes(kind(X.to_numpy()), y, fit_intercept))
    assert found == (WITH_INTERCEPT if fit_intercept else WITHOUT)


@pytest.mark.parametrize("cuts", [[7], list(range(1, 60))])
def test_separating_columns_in_pieces_of_the_rows(cuts):
    """As workers of a cluster hold them; a piece may have rows of one class only."""
    X, y = sides()
    pieces = zip(np.split(X.to_numpy(), cuts), np.split(y, cuts), strict=True)
    low, high = functools.reduce(widest, (extremes(rows, labels, True) for rows, labels in pieces))
    assert named(X, low, high) == WITH_INTERCEPT


def test_separating_columns_on_a_gpu(one_gpu):
    X, y = sides()
    assert named(X, *extremes(one_gpu.to_device(X.to_numpy()), y, True)) == WITH_INTERCEPT


def test_a_column_is_read_until_its_classes_overlap():
    class Counted(np.ndarray):
        rows = 0

        def __getitem__(self, at):
            if isinstance(at, slice):
                Counted.rows += at.stop - at.start
            return np.asarray(self)[at]

    X = np.random.default_rng(0).standard_normal((10_000, 300))
    low, high = extremes(X.view(Counted), (np.arange(10_000) % 2).astype(np.uint8), True)
    assert not len(find_one_sided(low, high))
    assert Counted.rows < 5000


def table(seed, n=400, rare=0):
    """Columns a and b, y that depends on a, and a level "rare" of so many rows of one class."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 2)), columns=["a", "b"])
    y = X["a"] + rng.standard_normal(n) > 0
    if rare:
        X["rare"] = np.isin(np.arange(n), np.flatnonzero(y)[:rare]) * 1.0
    return X, y


def short_model(seed=0, **params):
    return HorseshoeProbitClassifier(**{"n_iter": 300, "burn_in": 300, "random_state": seed, **params})


@pytest.mark.parametrize(("scaled", "slab_scale", "cure"), [
    (False, None, CURE), (False, 2.0, None), (True, None, CURE), (True, 2.0, CURE), (True, 0.2, None),
    (True, "per_contrast", None), (False, 50, CURE),
])  # fmt: skip
def test_a_level_of_one_class_is_named_with_its_cure(scaled, slab_scale, cure, seed, said):
    """Whether or not the chains look well."""
    X, y = table(seed, 2000, rare=4)
    X["rare"] /= X["rare"].std() if scaled else 1.0
    model = short_model(seed, slab_scale=slab_scale, n_iter=60, burn_in=60)
    texts = said(model, X, y, f"Column 'rare': {ONE_SIDE}")
    assert [cure in text for text in texts] == [True] * (cure is not None)


def early(model, X, y, words):
    """The warnings with these words of a fit that an error ends in its first sweep."""
    with warnings.catch_warnings(record=True) as caught, suppress(InterruptedError):
        warnings.simplefilter("always")
        model.fit(X, y)
        pytest.fail("the fit has ended")
    return [str(w.message) for w in caught if words in str(w.message)]


@pytest.mark.parametrize(("rare", "slab_scale", "told"), [(40, None, 1), (40, 2.0, 0), (2, None, 0)])
def test_a_level_that_nothing_bounds_is_told_before_sampling(rare, slab_scale, told, seed, stop_at, said):
    """Where it is not one of few rows, as one by chance may be; in a search the warning at the end will do."""
    stop_at(1, InterruptedError)
    model = short_model(seed, slab_scale=slab_scale)
    texts = early(model, *table(seed, 2000, rare), "'rare': one class has no value beyond")
    assert len(texts) == told
    assert all("slab_scale='per_contrast' bounds it" in text for text in texts)


def test_sampling_ends_without_columns_that_nothing_bounds(seed):
    """Their chains may never agree. What is noise to the model is waited for."""
    X, y = table(seed, 3000, rare=60)
    with_it = HorseshoeProbitClassifier(standardize=True, random_state=seed).fit(X, y)
    without = HorseshoeProbitClassifier(standardize=True, random_state=seed).fit(X[["a", "b"]], y)
    assert with_it.stopped_by_ == "target_ess"
    others = with_it.summary().drop(index=["rare", "(global scale)"])
    assert others["rhat"].max() <= 1.01
    assert others["ess"].min() >= 400
    assert with_it.n_iter_ < 10 * without.n_iter_
    draws = draws_of(with_it)
    draws.coef[..., 2] = np.linspace(0, 1, draws.n)  # has not converged
    for shrinkage, enough in ((0.9, True), (0.96, False)):
        draws.kappa.total = np.full(3, shrinkage * draws.kappa.weight)
        assert draws.suffice(400, {2: 0.0}) == draws.suffice(400, {2: np.nan}) == enough
        assert not draws.suffice(400)
        assert not draws.suffice(400, {2: 1.0})  # the intercept where the column is 1


def draws_of(model):
    """The ``Draws`` of a model, as its run had them."""
    n_chains, n_draws, p = model.coef_draws_.shape
    draws = Draws(n_chains, n_draws, plain_columns(p))
    draws.coef[:], draws.intercept[:] = model.coef_draws_, model.intercept_draws_
    draws.global_scale[:], draws.n_offered, draws.kappa.weight = model.global_scale_draws_, n_draws, 1
    return draws


@pytest.mark.parametrize(("n", "p", "params", "told"), [
    (20, 40, {}, 1), (20, 40, {"sampler": "hmc"}, 1), (20, 40, {"slab_scale": 2.0}, 0), (20, 20, {}, 0),
    (20, 22, {"unpenalized": [0, 1]}, 0), (20, 22, {"unpenalized": [0]}, 1), (20, 40, {"slab_scale": "auto"}, 0),
])  # fmt: skip
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_more_columns_than_rows_are_told_to_need_a_slab_before_sampling(n, p, params, told, kind, stop_at):
    stop_at(1, InterruptedError)
    X = kind(np.random.default_rng(0).standard_normal((n, p)))
    model = short_model(**{"slab_scale": None, **params})
    texts = early(model, X, np.arange(n) % 2, f"more columns ({p}) than rows ({n}), and no slab")
    assert len(texts) == told
    assert all("slab_scale='per_contrast' bounds them" in text for text in texts)


def test_a_level_that_is_noise_to_the_model_is_not_named(seed, said):
    """Two rows of a common class say nothing, so the posterior keeps the coefficient at zero."""
    model = short_model(seed, global_scale=1e-9)
    assert not said(model, *table(seed, 2000, rare=2), ONE_SIDE)
    assert model.shrinkage_[2] > 0.95


@pytest.mark.parametrize("slab_scale", [None, 2.0])
def test_a_level_that_is_not_shrunk_has_another_cure(slab_scale, seed, said):
    model = short_model(seed, slab_scale=slab_scale, unpenalized=["rare"])
    (text,) = said(model, *table(seed, 300, rare=10), f"Column 'rare': {ONE_SIDE}")
    assert "slab_scale does not bound an unpenalized one" in text


def test_a_level_that_nothing_bounds_is_not_called_collinear(seed, said, monkeypatch):
    monkeypatch.setattr(findings, "LOOSE", 0.0)
    for free, times in (["rare"], 0), (["b"], 1):
        model = short_model(seed, n_iter=20, burn_in=20, unpenalized=free)
        assert len(said(model, *table(seed, 300, rare=20), "columns are collinear")) == times


def test_separation_by_an_unpenalized_column_is_told_once(seed, said):
    """The prior alone bounds it, and chains of a few columns can mix well over a prior."""
    X = np.column_stack([np.tile([-1.0, 1.0], 20), np.random.default_rng(seed).standard_normal(40)])
    model = HorseshoeProbitClassifier(n_iter=4000, unpenalized=[0], fit_intercept=False, random_state=seed)
    (text,) = said(model, X, X[:, 0] > 0, "Remove the column from unpenalized")
    assert "'x0'" in text
    assert ("R-hat" in text) == (model.rhat_.max() > 1.01 or model.ess_.min() < 400)


@pytest.mark.parametrize(("dtype", "distance", "told"), [
    ("float64", 1e9, False), ("float64", 1e14, True), ("float32", 1e3, False), ("float32", 1e5, True),
])  # fmt: skip
def test_columns_too_far_from_zero_are_named(dtype, distance, told, seed, said):
    X = np.random.default_rng(seed).standard_normal((200, 3)) + np.array([0, distance, 0])
    texts = said(short_model(n_iter=5, burn_in=5), X.astype(dtype), X[:, 0] > 0.5, "from zero")
    assert len(texts) == told
    for text in texts:
        assert re.match(r"Column 'x1' lies up to \de\+", text)
        assert ("give X as float64" in text) == (dtype == "float32")


def spreads(seed, n=5000):
    """Columns without values far out, and with them, by name."""
    rng = np.random.default_rng(seed)
    number = np.arange(n)
    usual = {
        "normal": rng.standard_normal(n),
        "skew": np.exp(2 * rng.standard_normal(n)),
        "heavy": rng.standard_t(3, n),
        "score": rng.integers(0, 5, n),
        "rare level": number == 17,
        "many zeros": np.where(rng.random(n) < 0.97, 0.0, np.exp(rng.standard_normal(n))),
        "a quantile beside the zeros": np.where(number % 10 < 9, 0.0, np.where(number % 20 == 9, 1e-9, -1.0)),
        "constant": np.ones(n),
        "far from zero": 1e9 + rng.standard_normal(n),
    }
    typed = {
        "typing errors": np.where(np.isin(number, [5, 80, 4000]), 1e6, rng.standard_normal(n)),
        "one": np.where(number == 3, -1e5, rng.random(n)),
        "errors in counts": np.where(np.isin(number, [7, 900]), 1e6, rng.poisson(0.5, n)),
        "code": np.where(number % 400 == 7, 999_999, rng.integers(20, 90, n)),
    }
    return pd.DataFrame({**usual, **typed}).astype(float), set(typed)


def test_values_far_out_are_found_in_a_sample(seed):
    X, wanted = spreads(seed)
    found, _ = far_out(sample(X.to_numpy(), 0, step_of(X.shape)), X.std().to_numpy())
    assert {X.columns[j] for j in found} == wanted


def test_values_far_out_are_found_in_few_rows(seed):
    X = np.random.default_rng(seed).standard_normal((20, 50))
    X[3, 10] = 1e4
    for weight in (None, np.full(20, 0.3)):
        which, usual = far_out(sample(X, 0, step_of(X.shape)), X.std(axis=0), weight)
        assert which.tolist() == [10]
        assert 1 < usual[0] < 6


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_the_sample_is_the_same_in_pieces(kind):
    X = np.column_stack([np.arange(1000.0), np.random.default_rng(0).standard_normal((1000, 3))])
    whole = sample(X, 0, 7)
    assert (whole[:, 0] // 7 == np.arange(len(whole))).all()  # one of each seven
    parts = [Segment(kind(X[a:b]), None, None, None, a) for a, b in ((0, 3), (3, 4), (4, 600), (600, 1000))]
    pieces = [part.sample(cpu, None, 7)[0] for part in parts]
    np.testing.assert_array_equal(np.concatenate([p.toarray() if issparse(p) else p for p in pieces]), whole)


def test_the_sample_of_a_gpu(one_gpu):
    X = np.random.default_rng(0).standard_normal((50, 3))
    np.testing.assert_array_equal(sample(one_gpu.to_device(X), 0, 4), sample(X, 0, 4))


@pytest.mark.parametrize("period", [5, 64])
def test_the_sample_follows_no_period_of_the_rows(period):
    number = np.arange(1000 * period)
    rows = sample(number[:, None], 0, step_of((len(number), 1)))
    shares = np.bincount(rows[:, 0] % period, minlength=period) / len(rows)
    assert abs(shares - 1 / period).max() < 0.05


def test_the_sample_is_small():
    assert step_of((10**9, 100)) == 10**6
    assert step_of((999, 10)) == 1
    assert 10_000 // step_of((10_000, 10**6)) in range(60, 65)


def test_many_sparse_columns_are_never_dense_together():
    X = scipy.sparse.random(80, 300_000, density=1e-5, format="csr", random_state=0)
    found = []
    peak = peak_memory(lambda: found.extend(far_out(sample(X, 0, step_of(X.shape)), np.ones(300_000))[0]))
    assert not found
    assert peak < 64 * 300_000 * 8 / 2


@pytest.mark.parametrize("standardize", [True, False])
def test_values_far_out_are_named_once_with_a_cure(standardize, seed, said):
    """Scaling, which is none, is not advised."""
    X, y = table(seed)
    X.loc[[7, 200], "b"] = 1e6
    model = short_model(n_iter=5, burn_in=5, standardize=standardize)
    texts = said(model, X, y)
    (far,) = [text for text in texts if "far out" in text]
    assert far.startswith("Column 'b' has values far out: the standard deviation of 'b' is 7.1e+04, but nine in")
    assert "Clip them" in far
    assert not any("different scales" in text for text in texts)
    assert not said(model, X.clip(-5, 5), y, "far out")


@pytest.mark.parametrize("how", ["equal rows", "weights"])
def test_values_of_many_rows_are_not_far_out(how, seed, said):
    """Equal rows of a small X become one that counts as many."""
    rng = np.random.default_rng(seed)
    few = np.append(rng.standard_normal(100), [1000.0, 1000.0])
    y, times = np.append(rng.random(100) < 0.5, [False, True]), np.append(np.ones(100, int), [50, 50])
    model = short_model(n_iter=5, burn_in=5, sampler="hmc")
    if how == "weights":
        assert not said(model, few[:, None], y, "far out", sample_weight=times)
    else:
        assert not said(model, np.repeat(few, times)[:, None], np.repeat(y, times), "far out")
    assert said(model, few[:, None], y, "far out")


def test_the_column_that_stands_out_most_is_told(seed, said):
    """Not the one whose standard deviation is the largest."""
    X, y = table(seed)
    X["c"] = 1e6 * np.random.default_rng(seed + 1).standard_normal(400)
    X.loc[[7, 200], ["b", "c"]] = 1e4, 2e9
    low, high = np.quantile(X["b"], [0.05, 0.95], method="nearest")
    (text,) = said(short_model(n_iter=5, burn_in=5), X, y, "far out")
    assert text.startswith("Columns 'b', 'c' have values far out: the standard deviation of 'b' is 7.1e+02, but")
    assert f"lie within {high - low:.2g}." in text
