"""Weights of rows and classes: a row of weight w counts as w rows."""

import warnings

import numpy as np
import pytest
from laws import agree

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows
from skhorseshoe._data.weights import is_wide
from skhorseshoe._fit import plan
from skhorseshoe._utils.threads import Threads

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X @ [1.0, -0.5, 0] + 0.3 + rng.standard_normal(80) > 0
    return X, y, rng.integers(0, 4, 80)


def draws(model):
    log_tau = np.log(model.global_scale_draws_)[..., None]
    return np.concatenate([model.coef_draws_, model.intercept_draws_[..., None], log_tau], axis=2)


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_whole_weights_are_repeated_rows_to_the_bit(data, sampler):
    X, y, weight = data
    model = HorseshoeProbitClassifier(n_iter=30, burn_in=30, sampler=sampler, random_state=0)
    weighted = draws(model.fit(X, y, sample_weight=weight))
    repeated = draws(model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)))
    assert np.array_equal(weighted, repeated)


def test_whole_weights_are_repeated_rows_where_rows_are_not_sorted(data, monkeypatch):
    """In law: the sums over rows are rounded in another way, and chains are chaotic."""
    monkeypatch.setattr("skhorseshoe._data.weights._SORTED_SIZE", 0)
    X, y, weight = data
    model = HorseshoeProbitClassifier(n_iter=4000, burn_in=500, random_state=0)
    weighted = draws(model.fit(X, y, sample_weight=weight))
    repeated = draws(model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)))
    assert not np.array_equal(weighted, repeated)
    agree(weighted, repeated)
    agree(np.tanh(weighted) ** 2, np.tanh(repeated) ** 2)


def test_the_log_likelihood_of_the_passes_is_weighted(data):
    X, y, _ = data
    X = np.column_stack([X, np.ones(len(X))])  # in place of an intercept, beside which a row alone is constant
    weight = np.random.default_rng(1).uniform(0.1, 3, len(X))
    coef = np.random.default_rng(2).standard_normal((2, 4))
    everything = Rows(X, y.astype(np.uint8), False, cpu, Threads(1), weight=weight)
    loglik, score = everything.score(coef)
    one_by_one = [Rows(X[[i]], y[[i]].astype(np.uint8), False, cpu, Threads(1)) for i in range(len(X))]
    np.testing.assert_allclose(loglik, sum(w * r.score(coef)[0] for w, r in zip(weight, one_by_one, strict=True)))
    np.testing.assert_allclose(score, sum(w * r.score(coef)[1] for w, r in zip(weight, one_by_one, strict=True)))
    for ask in (lambda r: r.gram(), lambda r: r.information(coef)):
        want = sum(w * ask(r) for w, r in zip(weight, one_by_one, strict=True))
        np.testing.assert_allclose(ask(everything), want, rtol=1e-10)


def test_size_and_share_of_ones_are_weighted(data, seed):
    X, y, _ = data
    weight = np.random.default_rng(seed).uniform(0.1, 5, len(y))
    rows = Rows(X, y.astype(np.uint8), True, cpu, Threads(1), weight=weight)
    assert rows.size() == pytest.approx(weight.sum())
    assert rows.share() == pytest.approx(weight[y].sum() / weight.sum())


def test_rows_count_as_often_as_they_weigh_beside_the_columns():
    X = np.zeros((20, 60))
    assert is_wide(X, None)
    assert is_wide(X, np.full(20, 2.0))
    assert not is_wide(X, np.full(20, 10.0))


@pytest.mark.parametrize("scale", [0.25, pytest.param(40.0, marks=pytest.mark.slow)])
def test_the_posterior_is_that_of_the_weighted_likelihood(scale):
    """One column and a slab: numerical integration over beta, with the prior's scales drawn."""
    X, y = np.array([[1.0], [-1.0], [1.0]]), np.array([1, 0, 0])
    weight = scale * np.array([1.0, 0.5, 0.8])
    model = HorseshoeProbitClassifier(n_iter=8000, slab_scale=1.5, fit_intercept=False, random_state=0)
    got = np.tanh(model.fit(X, y, sample_weight=weight).coef_draws_)
    from scipy.special import log_ndtr

    rng = np.random.default_rng(1)
    spread = abs(rng.standard_cauchy((2, 200_000))).prod(axis=0)  # lambda tau
    beta = np.linspace(-8, 8, 1601)
    prior = np.zeros(len(beta))
    for some in np.array_split(spread, 200):
        prior += (np.exp(-(beta[:, None] ** 2) / 2 / some**2) / some).sum(axis=1)
    log_density = np.log(prior) - beta**2 / 2 / 1.5**2
    log_density += weight[:2].sum() * log_ndtr(beta) + weight[2] * log_ndtr(-beta)
    density = np.exp(log_density - log_density.max())
    density[len(beta) // 2] = 0.0  # the peak of the prior at zero is not on the grid
    want = np.average(np.tanh(beta), weights=density)
    assert abs(got.mean() - want) < 0.02


def test_equal_rows_and_their_order_do_not_matter(data):
    X, y, _ = data
    order = np.random.default_rng(3).permutation(len(X))
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, random_state=0)
    assert np.array_equal(draws(model.fit(X, y)), draws(model.fit(X[order], y[order])))


def test_class_weights_multiply_those_of_the_rows(data):
    X, y, weight = data
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, sampler="hmc", random_state=0)
    by_class = draws(model.set_params(class_weight={False: 2.0, True: 0.5}).fit(X, y, sample_weight=weight))
    by_row = draws(model.set_params(class_weight=None).fit(X, y, sample_weight=weight * np.where(y, 0.5, 2.0)))
    assert np.array_equal(by_class, by_row)


def test_balanced_classes_have_the_same_total(data):
    X, y, weight = data
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, sampler="hmc", random_state=0)
    balanced = draws(model.set_params(class_weight="balanced").fit(X, y, sample_weight=weight))
    factor = np.where(y, weight.sum() / weight[y].sum() / 2, weight.sum() / weight[~y].sum() / 2)
    np.testing.assert_allclose(
        balanced[:, :3], draws(model.set_params(class_weight=None).fit(X, y, sample_weight=weight * factor))[:, :3]
    )


@pytest.mark.parametrize(("sampler", "burn_in", "used"), [("auto", 100, "hmc"), ("auto", 20, "hmc")])
def test_auto_takes_the_sampler_that_can_have_weights(data, sampler, burn_in, used):
    X, y, weight = data
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=burn_in, sampler=sampler, random_state=0)
    assert model.fit(X, y, sample_weight=weight + 0.5).sampler_ == used


@pytest.mark.parametrize(
    ("weight", "params", "message"),
    [
        (0.5, {"sampler": "gibbs"}, "must be integers. Use sampler='hmc'"),
        (-1.0, {}, "[Nn]egative"),
        (np.nan, {}, "NaN"),
        (1.0, {"class_weight": {False: 0.0, True: 1.0}}, "must be positive and finite"),
        (1.0, {"class_weight": {False: np.inf, True: 1.0}}, "must be positive and finite"),
        (1.0, {"class_weight": {3: 1.0}}, "class_weight|classes"),
    ],
)
def test_weights_that_cannot_be_are_refused(data, weight, params, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        HorseshoeProbitClassifier(n_iter=5, burn_in=5, **params).fit(X, y, sample_weight=np.full(len(y), weight))


def test_rows_of_weight_zero_do_not_count_as_a_class(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="only one class without the rows of weight 0, "):
        HorseshoeProbitClassifier().fit(X, y, sample_weight=y.astype(float))


def test_weights_are_routed(data):
    import sklearn
    from sklearn.model_selection import cross_val_score

    X, y, weight = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, random_state=0).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        weighted = cross_val_score(model, X, y, params={"sample_weight": weight.astype(float)}, cv=2)
        plain = cross_val_score(model, X, y, params={"sample_weight": np.ones(len(y))}, cv=2)
    assert (weighted != plain).any()


@pytest.mark.parametrize("sampler", ["gibbs", "pxda", "collapsed"])
def test_weights_that_make_too_many_rows_are_refused_before_they_are_made(sampler, weak_problem):
    X, y = weak_problem
    with pytest.raises(MemoryError, match=r"copies .* of X, but only .* are available. Use sampler='hmc'"):
        HorseshoeProbitClassifier(sampler=sampler).fit(X, y, sample_weight=np.full(len(y), 1e12))


@pytest.mark.parametrize(("class_weight", "sampler", "told"), [
    (None, "auto", False), ({0: 1, 1: 3}, "auto", False),
    ({0: 1, 1: 2.5}, "auto", True), ({0: 1, 1: 2.5}, "hmc", False),
])  # fmt: skip
def test_weights_that_make_a_wide_table_slow_are_said(class_weight, sampler, told, monkeypatch):
    monkeypatch.setattr(plan, "_SLOW", 40)
    X = np.random.default_rng(0).standard_normal((20, 60))
    model = HorseshoeProbitClassifier(class_weight=class_weight, sampler=sampler, n_iter=4, burn_in=4, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0] > 0)
    said = [w for w in caught if "not integers, so the sampler is 'hmc', whose matrices are 60 x 60" in str(w.message)]
    assert len(said) == told
    assert all(w.filename == __file__ for w in said)


@pytest.mark.parametrize(("sampler", "times", "used"), [
    ("auto", 2, "pxda"), ("auto", 50, "hmc"), ("pxda", 50, "pxda"), ("hmc", 50, "hmc"),
])  # fmt: skip
def test_auto_repeats_no_row_many_times(sampler, times, used, weak_problem):
    """With a short burn-in it takes a sampler that needs none, unless that would have many times the rows."""
    X, y = weak_problem
    model = HorseshoeProbitClassifier(sampler=sampler, n_iter=4, burn_in=0, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=np.full(len(y), times))
    assert model.sampler_ == used
    said = [w for w in caught if "repeats each row as often" in str(w.message)]
    assert [f"{len(y)} rows become {50 * len(y)}. sampler='hmc'" in str(w.message) for w in said] == [True] * (
        used == "pxda" and times == 50
    )
    assert all(w.filename == __file__ for w in said)


@pytest.mark.parametrize("weights", ["class_weight", "sample_weight"])
def test_the_cure_for_slow_weights_is_no_false_discovery(weights, monkeypatch):
    monkeypatch.setattr(plan, "_SLOW", 40)
    X = np.random.default_rng(0).standard_normal((20, 60))
    y = np.where(X[:, 0] > 0, "case", "control")
    model = HorseshoeProbitClassifier(n_iter=4, burn_in=4, random_state=0)
    given = {}
    if weights == "class_weight":
        model.set_params(class_weight={"case": 1.5, "control": 1})
    else:
        given = {"sample_weight": np.linspace(0.5, 1.5, 20)}
    with pytest.warns(UserWarning, match=f"The weights .{weights}. are not integers") as caught:
        model.fit(X, y, **given)
    text = next(str(w.message) for w in caught if "not integers" in str(w.message))
    assert ("Without class_weight" in text) == (weights == "class_weight")
    assert ("Integer weights are much faster" in text) == (weights == "sample_weight")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_summary_says_that_rows_were_weighted(weak_problem):
    X, y = weak_problem
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, random_state=0)
    assert "Weights" not in model.fit(X, y).summary().attrs["header"]
    weighted = model.fit(X, y, sample_weight=np.full(len(y), 0.5)).summary().attrs["header"]
    assert f"Weights:     sample_weight: {len(y)} rows count as {len(y) / 2:g}\n" in weighted
    balanced = model.set_params(class_weight="balanced").fit(X, y).summary().attrs["header"]
    assert f"Weights:     class_weight='balanced': {len(y)} rows count as {len(y)}\n" in balanced
