"""prior_scale: the unit in which the prior of each coefficient holds."""

import pickle
import re
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from laws import agree, grid_cdf
from scipy.sparse import csr_array
from scipy.special import log_ndtr
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils._param_validation import InvalidParameterError

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe._posterior.arviz import log_prior

FREE = 2  # the number of a column that is not shrunk
FITS = {  # and rows and columns, the sampler, and the rest of the prior
    "hmc": (60, 5, {"sampler": "hmc"}),
    "gibbs": (60, 5, {"sampler": "gibbs"}),
    "pxda": (60, 5, {"sampler": "pxda", "slab_scale": 2.0}),
    "without an intercept": (60, 5, {"fit_intercept": False, "slab_scale": "per_contrast"}),
    "coordinates of the prior": (20, 40, {"sampler": "hmc"}),
    "coordinates of the prior, a number as slab": (20, 40, {"sampler": "hmc", "slab_scale": 2.0}),
}


def short(**params):
    return HorseshoeProbitClassifier(**{"n_iter": 20, "burn_in": 30, "random_state": 0, "n_chains": 2, **params})


def table(seed, n=60, p=3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.7), 3) + 0.5 * (p == 3)
    return X, X[:, 0] - X[:, 1] + rng.standard_normal(n) > 0


def is_same(ours, theirs, unit, equal=np.array_equal):
    """Whether two fits have one law, in which the coefficients of ours are those of theirs times a unit."""
    same = equal(ours.coef_draws_, theirs.coef_draws_ * unit)
    for name in ("intercept_draws_", "global_scale_draws_", "shrinkage_"):
        same &= equal(getattr(ours, name), getattr(theirs, name))
    facts = ("tau_0", "tau_median", "m_eff", "m_eff_at_tau_0")
    return same and equal([ours.prior_[name] for name in facts], [theirs.prior_[name] for name in facts])


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("free", [None, [FREE]])
@pytest.mark.parametrize("how", FITS)
def test_a_scale_of_the_prior_is_a_scale_of_the_column_to_the_bit(how, free, form, seed):
    n, p, params = FITS[how]
    X, y = table(seed, n, p)
    unit = 2.0 ** (np.arange(p) % 5 - 2)
    ours = short(prior_scale=unit, unpenalized=free, **params).fit(form(X), y)
    theirs = short(prior_scale=np.ones(p), unpenalized=free, **params).fit(form(X * unit), y)
    assert is_same(ours, theirs, unit)
    assert not is_same(ours, short(unpenalized=free, **params).fit(form(X), y), 1.0)


@pytest.mark.parametrize(("n", "p", "sampler"), [(60, 5, "hmc"), (60, 5, "gibbs"), (20, 40, "hmc")])
@pytest.mark.filterwarnings("ignore:groups has")
def test_with_groups_and_an_offset_too(n, p, sampler, seed):
    X, y = table(seed, n, p)
    unit, how = 2.0 ** (np.arange(p) % 3 - 1), {"groups": np.arange(n) % 5, "offset": np.linspace(-1, 1, n)}
    ours = short(prior_scale=unit, unpenalized=[FREE], sampler=sampler).fit(X, y, **how)
    theirs = short(prior_scale=np.ones(p), unpenalized=[FREE], sampler=sampler).fit(X * unit, y, **how)
    assert is_same(ours, theirs, unit)
    assert np.array_equal(ours.group_effect_draws_, theirs.group_effect_draws_)


def nearly(ours, theirs):
    return np.allclose(ours, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("params", [{}, {"slab_scale": 2.0}, {"fit_intercept": False}, {"unpenalized": [FREE]}])
def test_with_standardize_it_is_a_scale_of_the_standardised_column(params, seed):
    X, y = table(seed)
    X, unit = X * [1.0, 30.0, 0.2], np.array([0.1, 3.0, 0.7])
    size = X.std(axis=0)
    ours = short(prior_scale=unit, standardize=True, n_iter=5, burn_in=5, sampler="gibbs", **params).fit(X, y)
    scaled = X * unit / size
    theirs = short(prior_scale=[1.0] * 3, n_iter=5, burn_in=5, sampler="gibbs", **params).fit(scaled, y)
    assert is_same(ours, theirs, unit / size, nearly)


def test_one_is_the_default_and_a_wide_prior_is_that_of_a_column_that_is_not_shrunk(seed):
    X, y = table(seed)
    for free, given in (None, [1, 1, 1]), (None, {}), ([FREE], [1, 1, np.inf]), ([FREE], {FREE: np.inf}):
        plain = short(unpenalized=free).fit(X, y)
        assert is_same(short(unpenalized=free, prior_scale=given).fit(X, y), plain, 1.0)
    assert "prior_scale" not in plain.summary().attrs["header"]


@pytest.mark.parametrize("how", [
    {"sampler": "hmc"}, {"sampler": "gibbs"}, {"sampler": "pxda"}, {"sampler": "hmc", "slab_scale": 1.0},
])  # fmt: skip
def test_an_unpenalised_column_has_a_normal_prior_of_that_standard_deviation(how, seed):
    """Three rows and a column that are far apart; columns of zeros leave the law to it alone."""
    x, s = np.array([1.0, 0.5, -2.0]), 0.6
    y, grid = np.array([1, 0, 0]), np.linspace(-6, 6, 4001) * s
    X = np.column_stack([x, np.zeros((3, 4 if "slab_scale" in how else 0))])
    how = {"unpenalized": [0], "fit_intercept": False, "n_iter": 2000, "burn_in": 200, "n_chains": 4, **how}
    model = short(**{**how, "random_state": seed}, prior_scale={0: s}).fit(X, y)
    cdf = grid_cdf(grid, log_ndtr(np.outer(grid, x * (2 * y - 1))).sum(axis=1) + norm.logpdf(grid, scale=s))
    uniform = cdf(model.coef_draws_[..., 0])  # if the law is right
    wanted = np.random.default_rng(seed).random((50, 2000))
    for power in (1, 2):
        agree(uniform[..., None] ** power, wanted[..., None] ** power)


def test_a_narrow_prior_is_no_reason_for_small_steps(seed):
    X, y = table(seed, 20, 40)
    steps = [
        short(sampler="hmc", unpenalized=[FREE], prior_scale={FREE: s}, burn_in=100).fit(X, y).tuning_["n_steps"]
        for s in (1.0, 1e-6)
    ]
    assert steps[1] < 4 * steps[0]


def test_the_log_prior_is_that_of_the_fit(seed):
    X, y = table(seed)
    X[:, FREE] *= 7
    for params, sd in ({}, 0.3), ({"standardize": True}, 0.3 / X[:, FREE].std()):
        model = short(unpenalized=[1, FREE], prior_scale={FREE: 0.3}, **params).fit(X, y)
        found = log_prior(model, 40)["unpenalized"]
        np.testing.assert_allclose(found[..., 1], norm.logpdf(model.coef_draws_[..., FREE], scale=sd), rtol=1e-9)
        wide = norm.logpdf(model.coef_draws_[..., 1], scale=100 / X[:, 1].std())
        np.testing.assert_allclose(found[..., 0], wide, rtol=1e-9)


def test_names_numbers_and_lists_mean_the_same_columns(seed):
    X, y = table(seed)
    frame = pd.DataFrame(X, columns=["age", "dose", "sex"])
    forms = {"dose": 2}, {1: 2.0}, {-2: np.float32(2)}, [1, 2, 1], (1, 2, 1), np.array([1, 2, 1])
    forms += pd.Series({"sex": 1, "dose": 2}), MappingProxyType({"dose": 2})
    models = [short(prior_scale=form).fit(frame, y) for form in forms]
    assert all(model.prior_["prior_scale"].tolist() == [1, 2, 1] for model in models)
    assert all(is_same(model, models[0], 1.0) for model in models)
    assert "with a prior_scale for 1 of 3 columns" in models[0].summary().attrs["header"].replace("\n" + 13 * " ", " ")
    for model in models:
        loaded = pickle.loads(pickle.dumps(model))
        assert is_same(loaded.fit(frame[["age", "dose", "sex"]], y), model, 1.0)
    found = GridSearchCV(short(), {"prior_scale": [None, {"dose": 2}]}, cv=2).fit(frame, y).best_estimator_
    assert is_same(clone(found).fit(frame, y), found, 1.0)


@pytest.mark.parametrize(("given", "says"), [
    ([1, 2], "has 2 entries, but X has 3 columns. Give a list with a number for each"),
    ([], "has 0 entries"), (np.ones((1, 3)), r"is array\(.*but X has 3"), ({1, 2, 3}, r"is \{1, 2, 3\}, but X has 3"),
    (np.array(2.0), r"is array\(2\.\), but"), ([[1], [2], [3]], r"'age' is \[1\]: it must be a number"),
    ([1, 0, 1], "'dose' is 0: it must be a number from 1e-100 to"), ([1, -2, 1], "'dose' is -2"),
    ([1, np.nan, 1], "'dose' is nan"), ([1, np.inf, 1], r"'dose' is inf: it .* to 1e\+100\.$"),
    ([1, "2", 1], "'dose' is '2'"), ([1, None, 1], "'dose' is None"), ([1, True, 1], "'dose' is True"),
    ({"sex": 0}, "'sex' is 0: .*or inf, for the wide prior of a column that is not shrunk"),
    ({"Dose": 2}, "there is no 'Dose' among the 3 columns of X. Did you mean 'dose'"),
    ({3: 2}, "there is no 3 among the 3 columns of X. Give names of a table, or indices from -3 to 2"),
    ({"dose": 2, 1: 2}, r"has a column more than once: \['dose', 1\]"), ({"dose": [2]}, r"'dose' is \[2\]"),
    (pd.Series([1, 2], ["dose", "dose"]), "has a column more than once"),
])  # fmt: skip
def test_what_is_no_scale_is_refused(given, says, seed):
    X, y = table(seed)
    with pytest.raises(ValueError, match=f"^prior_scale(:| of column)? ?{says}"):
        short(prior_scale=given, unpenalized=["sex"]).fit(pd.DataFrame(X, columns=["age", "dose", "sex"]), y)


def test_names_need_a_table_that_has_them_and_one_number_is_no_list(seed):
    X, y = table(seed)
    with pytest.raises(ValueError, match=r"no 'dose' among the 3 columns of X\. Give names of a table"):
        short(prior_scale={"dose": 2}).fit(X, y)
    for given in (2.0, "dose"):
        with pytest.raises(InvalidParameterError, match=r"'prior_scale' parameter .* must be an array-like"):
            short(prior_scale=given).fit(X, y)
    with pytest.raises(ValueError, match="'x1' of X is too large for its prior_scale: its root mean square times that"):
        short(prior_scale={1: 1e60}).fit(X * [1, 1e100, 1], y)


def test_another_scale_is_another_run(seed, tmp_path):
    X, y = table(seed)
    said = re.escape("prior_scale (was [[1, 2.0]], is [])")
    for how in {"warm_start": True}, {"checkpoint": tmp_path}:
        model = short(prior_scale={1: 2}, **how).fit(X, y)
        with pytest.raises(ValueError, match=said):
            clone_of(model).set_params(prior_scale=None).fit(X, y)
        model.set_params(prior_scale=[1, 2, 1], n_iter=10 if "warm_start" in how else 30).fit(X, y)
        assert is_same(model, short(prior_scale={1: 2}, n_iter=30).fit(X, y), 1.0)


def clone_of(model):
    return pickle.loads(pickle.dumps(model))


def test_columns_that_are_empty_keep_their_place(seed):
    """The sampler does not have them where X is sparse and wide."""
    X, y = table(seed, 10, 40)
    X[:, 5:35], given = 0.0, {1: 0.5, 20: 3.0, 38: 2.0}
    fits = [
        short(prior_scale=given, slab_scale="per_contrast", n_iter=200).fit(form(X), y)
        for form in (csr_array, np.asarray)
    ]
    assert all(np.flatnonzero(model.prior_["prior_scale"] != 1).tolist() == [1, 20, 38] for model in fits)
    assert fits[0].prior_["m_eff"] == pytest.approx(fits[1].prior_["m_eff"])
    assert "with a prior_scale for 3 of 40 columns" in " ".join(fits[0].summary().attrs["header"].split())


def test_a_selector_takes_it_along(seed):
    X, y = table(seed)
    frame = pd.DataFrame(X, columns=["age", "dose", "sex"])
    chosen = HorseshoeSelector(short(prior_scale={"age": 1e-6}, n_iter=300), rule="interval").fit(frame, y)
    assert chosen.get_support().tolist()[:2] == [False, True]


@pytest.mark.filterwarnings(*(f"error:.*{text}" for text in ("one class has", "different scales", "separat", "slab")))
def test_what_the_prior_bounds_or_scales_is_no_cause_for_a_warning(seed):
    """A column that separates the classes is bounded, and columns of different units are of one with their scales."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.tile([-1.0, 1.0], 20), rng.standard_normal((40, 2)) * [1, 1e6]])
    y, params = X[:, 0] > 0, {"unpenalized": [0], "fit_intercept": False}
    short(prior_scale={0: 1.5, 2: 1e-6}, **params).fit(X, y)
    with pytest.warns(UserWarning, match="different scales: .* of 'x2', times its prior_scale, is [1-9]"):
        short(prior_scale={0: 1.5, 2: 0.9}, **params).fit(X, y)
    with (
        pytest.warns(ConvergenceWarning, match="give it a prior_scale"),
        pytest.warns(UserWarning, match="one class has"),
    ):
        short(prior_scale={0: 50, 2: 1e-6}, **params).fit(X, y)
