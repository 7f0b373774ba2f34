"""PSIS-LOO in blocks of rows: the smoothing against known laws, and the rows that it takes."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from laws import peak_memory
from scipy.special import log_ndtr
from scipy.stats import genpareto, norm
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._posterior import loo as psis
from skhorseshoe._posterior.grouped_prediction import GivenRows, evenly
from skhorseshoe.disk import convert
from skhorseshoe.inspection import loo, predict_proba_samples

pytestmark = pytest.mark.filterwarnings("ignore:.*Pareto k")  # of rows that single draws decide


def test_extreme_rows_have_no_nan():
    rng = np.random.default_rng(0)
    loglik = np.array(
        [
            np.full(500, -1e-300),  # certain under all draws
            np.full(500, -1e6),
            -1e-13 * rng.exponential(size=500),
            -np.exp(12 * rng.standard_normal(500)),  # ratios that float64 cannot hold side by side
            np.repeat([-1.0, -2.0], 250),  # a tail of equal ratios
            np.where(np.arange(500) < 3, -900.0, -0.1),
        ]
    )
    elpd, k, given_all = psis.without_each(loglik.copy(), psis.tail_length(500, 1.0))
    assert np.isfinite(elpd).all()
    assert np.isfinite(given_all).all()
    assert not np.isnan(k).any()
    np.testing.assert_allclose(elpd[:2], [-1e-300, -1e6], rtol=1e-10, atol=1e-12)
    assert k[:3].tolist() == [0, 0, 0]
    assert (k[3:] > 0.7).all()
    assert elpd[4] == pytest.approx(-np.log(np.exp([1.0, 2.0]).mean()))  # the harmonic mean, as nothing is smoothed
    assert (elpd <= given_all + 1e-12).all()


def test_heavy_tails_of_equal_weights_do_not_count(seed):
    """A row that all draws are nearly sure of: as left out or not, it has nearly the same score."""
    tail = genpareto.rvs(1.0, size=1000, random_state=seed)
    loglik = -np.outer([0.009, 0.9], tail / np.ptp(tail))
    elpd, k, given_all = psis.without_each(loglik, psis.tail_length(1000, 1.0))
    assert k[0] == 0
    assert k[1] > 0.5
    assert abs(elpd - given_all)[0] < 1e-4


@pytest.fixture(scope="module")
def result(fitted, problem):
    return loo(fitted, *problem)


def of_rows(model, X, y, weight=None, max_draws=None):
    """What ``loo`` says of rows once they have passed for those of the fit."""
    return psis.leave_one_out(model, GivenRows(X), np.asarray(y) == 1, weight, max_draws)


def test_a_row_scores_the_same_wherever_it_is(fitted, problem, result, tmp_path):
    X, y = problem
    order = np.random.default_rng(0).permutation(len(y))
    moved = loo(fitted, X[order], y[order])
    assert np.array_equal(moved.elpd_i, result.elpd_i[order])
    assert np.array_equal(moved.pareto_k, result.pareto_k[order])
    on_disk = np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape)
    on_disk[:] = X
    assert np.array_equal(loo(fitted, on_disk, y).elpd_i, result.elpd_i)
    np.testing.assert_allclose(loo(fitted, sp.csr_array(X), y).elpd_i, result.elpd_i, rtol=1e-9)
    pieces = [of_rows(fitted, X[i : i + 1], y[i : i + 1]) for i in range(3)]
    assert [piece.elpd_i[0] for piece in pieces] == result.elpd_i[:3].tolist()
    assert np.isnan(pieces[0].se)


def test_sums_are_those_of_the_rows(fitted, problem, result):
    X, y = problem
    p = predict_proba_samples(fitted, X)
    p = np.where(y[:, None], p, 1 - p).mean(axis=1)
    assert result.elpd_loo == pytest.approx(result.elpd_i.sum())
    assert result.p_loo == pytest.approx((np.log(p) - result.elpd_i).sum())
    assert result.se == pytest.approx(np.sqrt(200) * result.elpd_i.std(ddof=1))
    assert result.n_high_k == (result.pareto_k > result.good_k).sum()
    assert result.n_draws == fitted.intercept_draws_.size
    assert f"{result.elpd_loo:.2f}" in repr(result)
    assert 0 < result.r_eff < 2


def test_weights_multiply_the_terms_of_rows(fitted, problem):
    X, y = problem
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    found = of_rows(fitted, X, y, weight, max_draws=300)
    eta = X @ fitted.coef_draws_.reshape(-1, 8).T + fitted.intercept_draws_.ravel()
    at = evenly(np.arange(eta.shape[1]).reshape(3, -1), 300).ravel()
    loglik = weight[:, None] * norm.logcdf(np.where(y, 1, -1)[:, None] * eta[:, at])
    expected, k, _ = psis.without_each(loglik, psis.tail_length(300, found.r_eff))
    np.testing.assert_allclose(found.elpd_i, expected, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found.pareto_k, k, rtol=1e-6)
    assert (found.elpd_i[weight == 0] == 0).all()
    without = of_rows(fitted, X[weight > 0], y[weight > 0], weight[weight > 0], max_draws=300)
    assert (found.elpd_loo, found.se) == pytest.approx((without.elpd_loo, without.se))


def test_rows_beside_the_predictor_take_little_memory(fitted, problem):
    n = 40_000
    X, y = np.tile(problem[0], (n // 200, 1)), np.tile(problem[1], n // 200)
    with pytest.warns(UserWarning, match=r"is above 0.* of 200 rows"):  # what it says where rows are not to be trusted
        of_rows(fitted, X[:200].clip(-3, 3), 1 - y[:200], max_draws=150)
    peak = peak_memory(lambda: of_rows(fitted, X, y, max_draws=150))
    assert peak < 60 * n + 2**22  # a number for each row and draw would be 48 MB


OTHERS = {
    "fewer": (lambda X, y: (X[:150], y[:150]), "150 rows, and the fit had 200"),
    "others": (lambda X, y: (X + 0.01, y), "the mean of 'x0' is"),
    "wider": (lambda X, y: (X.mean(axis=0) + 1.01 * (X - X.mean(axis=0)), y), "the standard deviation of 'x0' is"),
    "other labels": (lambda X, y: (X, np.where(np.arange(200) == y.argmax(), 1 - y, y)), "the share of 1 among them"),
    "weighted": (lambda X, y: (X, y, np.full(200, 2.0)), "they count as 400 by their weights, and in the fit as 200"),
}


@pytest.mark.parametrize(("change", "says"), OTHERS.values(), ids=OTHERS)
def test_rows_that_were_not_fitted_are_refused(change, says, fitted, problem):
    for ask in (lambda *rows: loo(fitted, *rows), fitted.to_arviz):
        with pytest.raises(ValueError, match=f"{says}.*log_loss"):
            ask(*change(*problem))


def test_the_rows_of_the_fit_are_known_in_any_form(problem, short_fit):
    X, y = problem
    weight = np.arange(200) % 3
    model = short_fit(X, y, n_iter=100)
    for rows in (X, X.astype(np.float32), sp.csr_array(X), pd.DataFrame(X)):
        assert loo(model, rows, y).n_draws == 400
    model = HorseshoeProbitClassifier(n_iter=100, burn_in=20, class_weight={0: 1, 1: 2}).fit(X, y, weight)
    assert loo(model, X[::-1], y[::-1], (weight * (1 + y))[::-1]).n_draws == 400
    with pytest.raises(ValueError, match="sample_weight must be the weights of the fit, times its class weights"):
        loo(model, X, y, weight)


@pytest.mark.parametrize(("most", "used"), [(100, 102), (101, 102), (102, 102), (104, 102), (105, 105)])
def test_the_least_number_of_draws_can_be_asked_of_any_number_of_chains(most, used, fitted, problem):
    assert len(fitted.intercept_draws_) == 3
    assert loo(fitted, *problem, max_draws=most).n_draws == used


def test_what_cannot_be_computed_is_refused(fitted, problem, short_fit):
    X, y = problem
    with pytest.raises(ValueError, match="needs 100 draws, not 99"):
        loo(fitted, X, y, max_draws=99)
    with pytest.raises(ValueError, match="labels that fit has not seen: \\[2\\]"):
        loo(fitted, X, y + 1)
    with pytest.raises(ValueError, match="inconsistent"):
        loo(fitted, X, y[1:])
    with pytest.raises(ValueError, match="sample_weight"):
        loo(fitted, X, y, -np.ones(len(y)))
    with pytest.raises(ValueError, match="max_draws must be a positive integer"):
        loo(fitted, X, y, max_draws=0)
    beyond = 1e160 * np.sign(fitted.coef_)
    with pytest.raises(ValueError, match="Row 0 of X is so far on the wrong side"):
        of_rows(fitted, beyond, [0])
    lazy = type("Array", (), {"__module__": "dask.array.core"})()
    with pytest.raises(TypeError, match="not a Dask collection"):
        loo(fitted, lazy, y)
    with pytest.raises(TypeError, match="HorseshoeProbitClassifier is wanted"):
        loo(StandardScaler().fit(X), X, y)


FORMS = {
    "array": lambda X, folder: X,
    "float32": lambda X, folder: X.astype(np.float32),
    "sparse": lambda X, folder: sp.csr_array(np.where(abs(X) > 1, X, 0)),
    "mostly empty": lambda X, folder: sp.hstack([sp.csr_array(X * (abs(X) > 1)), sp.csr_array((len(X), 400))], "csr"),
    "long, on disk": lambda X, folder: convert(np.tile(X, (50, 1)), folder / "rows")[0],
}


@pytest.fixture(params=[pytest.param(form, marks=[pytest.mark.slow] * ("long" in form)) for form in FORMS])
def with_offset(request, problem, short_fit, tmp_path):
    """A model, its rows, of which the sampler may have had others, and what goes with them."""
    X = FORMS[request.param](problem[0], tmp_path)
    rng, n = np.random.default_rng(0), X.shape[0]
    y, weight, offset = np.resize(problem[1], n), rng.uniform(0.5, 1.5, n), rng.standard_normal(n)
    model = HorseshoeProbitClassifier(n_iter=25, burn_in=10, random_state=0).fit(X, y, weight, offset=offset)
    return model, X, {"y": y, "sample_weight": weight, "offset": offset}


def test_what_goes_with_each_row_is_that_of_the_fit(with_offset):
    model, X, of_rows = with_offset
    ask = partial(loo, model, max_draws=100)
    order, whole = np.random.default_rng(1).permutation(X.shape[0]), ask(X, **of_rows).elpd_loo
    moved = {name: values[order] for name, values in of_rows.items()}
    assert ask(X[order], **moved).elpd_loo == pytest.approx(whole)
    assert ask(X.astype(np.float32), **of_rows).elpd_loo == pytest.approx(whole, rel=1e-4)
    for name in of_rows:
        for other in (moved[name], of_rows[name][::-1]):
            with pytest.raises(ValueError, match="in the fit"):
                ask(X, **of_rows | {name: other})
    with pytest.raises(ValueError, match="in the fit"):
        ask(X[order], **of_rows)
    for other in (lambda o: 0 * o, lambda o: o + 0.01, lambda o: -o, lambda o: 1.01 * o):
        with pytest.raises(ValueError, match=r"The offset must be that of the fit, .* this is another: its mean"):
            ask(X, **of_rows | {"offset": other(of_rows["offset"])})


def test_rows_that_trade_labels_are_told_from_others(problem, short_fit):
    X, y = problem
    model, order = short_fit(X, y), np.arange(200)
    pair = [y.argmin(), y.argmax()]
    order[pair] = order[pair[::-1]]
    for ask in (partial(loo, model), model.to_arviz):
        with pytest.raises(ValueError, match=r"went with other rows of X.*y.loc\[X.index\]"):
            ask(X[order], y)
    loaded = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="went with other rows of X"):
        loo(loaded, X, y[order])
    for name in ("paired_means", "offset"):  # models of older versions
        del loaded._fitted_rows[name]
    assert loo(loaded, X[order], y).n_draws == 160


def test_rows_of_weight_0_do_not_count(problem, short_fit):
    X, y = problem
    weight = (np.arange(200) % 4 > 0).astype(float)
    model = short_fit(X[weight > 0], y[weight > 0])
    all_rows = loo(model, X, y, weight)
    assert repr(all_rows) == repr(loo(model, X[weight > 0], y[weight > 0]))
    assert repr(loo(model, X, np.where(weight > 0, y, 2), weight)) == repr(all_rows)  # 2 is of no row that counts
    with pytest.raises(ValueError, match=r"labels that fit has not seen: \[2\]"):
        loo(model, X, np.where(weight > 0, 2, y), weight)
    assert "of 150 rows" in repr(all_rows)


@pytest.fixture(scope="module")
def grouped_rows():
    rng = np.random.default_rng(2)
    group = rng.permutation(np.repeat(np.arange(15), 6))
    X = rng.standard_normal((90, 2))
    return X, X[:, 0] + rng.standard_normal(15)[group] + rng.standard_normal(90) > 0, group


def fit_groups(X, y, group):
    return HorseshoeProbitClassifier(random_state=0, n_iter=1500, burn_in=200).fit(X, y, groups=group)


def mean_of_marginals(model, X, y):
    """The log of the mean over draws of the probability of the outcomes of a new group; (1,) by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    eta = X @ model.coef_draws_.reshape(-1, X.shape[1]).T + model.intercept_draws_.ravel()
    u = model.group_scale_draws_.ravel() * nodes[:, None]
    total = sum(log_ndtr(np.where(one, 1, -1) * (row + u)) for one, row in zip(y, eta, strict=True))
    return np.log(weights @ np.exp(total) / weights.sum()).T


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_leaving_out_a_group_is_fitting_without_it(grouped_rows):
    X, y, group = grouped_rows
    found = loo(fit_groups(X, y, group), X, y, groups=group)
    assert (len(found.elpd_i), found.n_rows, found.left_out) == (15, 15, "groups")
    assert "PSIS-LOO of 15 groups" in repr(found)
    for g in (0, 7, 14):
        left = group == g
        without = fit_groups(X[~left], y[~left], group[~left])
        expected = np.log(np.exp(mean_of_marginals(without, X[left], y[left])).mean())
        assert abs(found.elpd_i[g] - expected) < 0.15  # of two sets of some 1000 effective draws


@pytest.mark.filterwarnings("ignore")
def test_groups_that_are_not_those_of_the_fit_are_refused(grouped_rows):
    X, y, group = grouped_rows
    model = HorseshoeProbitClassifier(random_state=0, n_iter=50, burn_in=100).fit(X, y, groups=group)
    with pytest.raises(ValueError, match="groups must be those of the fit"):
        loo(model, X, y, groups=group + 1)
    with pytest.raises(ValueError, match=r"loo\(..., groups=groups\)"):
        loo(model, X, y)
    several = model.fit(X, y, groups={"a": group, "b": group // 3})
    with pytest.raises(ValueError, match=r"by several factors.* cv=list\(GroupKFold\(\)\.split"):
        loo(several, X, y, groups={"a": group, "b": group // 3})
