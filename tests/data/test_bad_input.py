"""A clear error for what cannot be used, and finite draws for data that are merely degenerate."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2


def with_entry(value):
    changed = X.copy()
    changed[4, 1] = value
    return changed


@pytest.mark.parametrize(
    ("data", "labels", "error", "says"),
    [
        pytest.param(with_entry(np.nan), Y, ValueError, r"NaN: the first is in row \d+ of column \d", id="nan"),
        pytest.param(with_entry(np.inf), Y, ValueError, r"infinity .* in row \d+ of .* clip them", id="inf"),
        pytest.param(
            pd.DataFrame(with_entry(np.nan), columns=list("abc")),
            Y,
            ValueError,
            r"NaN: .* of column '[abc]'",
            id="name",
        ),
        pytest.param(with_entry(1e200), Y, ValueError, "too large for .*StandardScaler", id="too large to be squared"),
        pytest.param(
            (X * 1e37).astype(np.float32), Y, ValueError, "too large for .*StandardScaler", id="too large for float32"
        ),
        pytest.param(X * 1e-155, Y, ValueError, "too small for float64: its root mean square", id="too small"),
        pytest.param((X * 1e-42).astype("f4"), Y, ValueError, "too small for float32", id="too small for float32"),
        pytest.param(X, np.ones(30), ValueError, "only one class, .*two classes are needed", id="one class"),
        pytest.param(X, np.array([*14 * "aa", None, "b"], object), ValueError, "label of row 28 is missing", id="None"),
        pytest.param(X, pd.Series([*14 * "aa", pd.NA, "b"], dtype="string"), ValueError, "label of row 28", id="NA"),
        pytest.param(X, np.array([*15 * "a", np.nan, *14 * "b"], object), ValueError, "missing|NaN", id="NaN label"),
        pytest.param(X, np.arange(30) % 3, ValueError, "OneVsRestClassifier", id="three classes"),
        pytest.param(X, X[:, 0], ValueError, "continuous", id="numbers for labels"),
        pytest.param(X, np.where(Y, np.nan, 1.0), ValueError, "label of row 1 is missing", id="missing labels"),
        pytest.param(X, Y[:20], ValueError, "inconsistent numbers of samples", id="too few labels"),
        pytest.param(X, None, ValueError, "requires y", id="no labels"),
        pytest.param(
            sp.csr_array(np.where(X > 2, np.nan, X)),
            Y,
            ValueError,
            r"NaN: the first is in row \d+ of column \d\. .*impute",
            id="NaN in sparse rows",
        ),
        pytest.param(
            np.ma.masked_less(X, -1), Y, ValueError, r"X is a masked .* row \d+ of column \d: imp", id="masked"
        ),
        pytest.param(X, np.ma.masked_less(Y, 1), ValueError, r"y is a masked .* row \d+: leave", id="masked labels"),
        pytest.param(X, Y.astype(bool).astype(object), ValueError, r"type bool, such as .*astype\(bool\)", id="bools"),
        pytest.param(X, Y.astype(int).astype(object), ValueError, r"type int, .*astype\(int\)", id="int objects"),
        pytest.param(X, np.array([0, "a"], object)[Y], ValueError, "y mixes int and str", id="labels of two types"),
        pytest.param(X[:, 0], Y, ValueError, "Expected 2D array", id="one dimension"),
        pytest.param(X[:0], Y[:0], ValueError, "0 sample", id="no rows"),
        pytest.param(X[:, :0], Y, ValueError, "0 feature", id="no columns"),
        pytest.param(X + 1j, Y, ValueError, "[Cc]omplex", id="complex"),
        pytest.param(X.astype("datetime64[s]"), Y, ValueError, "dates or durations .*datetime64", id="dates"),
        pytest.param(X.astype("timedelta64[s]"), Y, ValueError, "dates or durations .*timedelta64", id="durations"),
    ],
)
def test_unusable_data_are_refused_without_noise(data, labels, error, says):
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=says):
            model.fit(data, labels)


def test_masked_weights_are_refused():
    weight = np.ma.masked_equal(np.arange(30.0) + 1, 4.0)
    with pytest.raises(ValueError, match=r"sample_weight is a masked array, .* in row 3: leave such rows out"):
        HorseshoeProbitClassifier(n_iter=10, burn_in=5).fit(X, Y, sample_weight=weight)


def test_another_number_of_columns_is_refused_at_predict(short_fit):
    model = short_fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 3"):
        model.predict(X[:, :2])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_iter", 0),
        ("n_iter", 10.0),
        ("n_iter", "10"),
        ("burn_in", -1),
        ("burn_in", None),
        ("n_chains", 0),
        ("n_chains", 257),
        ("thin", 0),
        ("thin", 1.5),
        ("fit_intercept", "yes"),
        ("global_scale", 0),
        ("global_scale", -1.0),
        ("global_scale", np.inf),
        ("global_scale", np.nan),
        ("global_scale", "1"),
        ("coef_summary", "mode"),
        ("credible_level", 0.0),
        ("credible_level", 1.0),
        ("credible_level", 90),
        ("sampler", "nuts"),
        ("device", "tpu"),
        ("n_jobs", 1.5),
        ("n_jobs", 0),
        ("random_state", "today"),
        ("random_state", np.random.default_rng(0)),
        ("verbose", -1),
    ],
)
def test_a_parameter_out_of_range_is_named(name, value):
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter"):
        HorseshoeProbitClassifier(**{"n_iter": 10, "burn_in": 5, name: value}).fit(X, Y)


def test_thin_beyond_n_iter_is_refused():
    with pytest.raises(ValueError, match=r"thin must not exceed n_iter \(thin=11, n_iter=10\)"):
        HorseshoeProbitClassifier(n_iter=10, thin=11).fit(X, Y)


def test_a_fit_that_fails_leaves_the_estimator_unfitted():
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match=r"too large for .*StandardScaler"):
            model.fit(1e200 * X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_fit_that_fails_does_not_mix_with_the_fit_before(short_fit):
    """Either the old model is whole or there is none."""
    model = short_fit(X, Y)
    before = model.predict_proba(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match=r"too large for .*StandardScaler"):
            model.fit(1e200 * X[:, :1], np.where(Y, "yes", "no"))
    try:
        after = model.predict_proba(X)
    except NotFittedError:
        return
    assert np.array_equal(after, before)
    assert list(model.classes_) == [0, 1]


def constant_column(rng):
    return np.column_stack([rng.standard_normal((40, 2)), np.full(40, 3.7)]), rng.integers(2, size=40)


def zero_column(rng):
    return np.column_stack([rng.standard_normal((40, 2)), np.zeros(40)]), rng.integers(2, size=40)


def nothing_but_zeros(rng):
    return np.zeros((40, 2)), rng.integers(2, size=40)


def duplicate_columns(rng):
    X, y, _ = make_sparse_probit(60, 4, random_state=rng.integers(2**31))
    return np.hstack([X, X, -X]), y


def large_duplicate_columns(rng):
    X, y = duplicate_columns(rng)
    return 1e9 * X, y


def very_large_and_very_small_columns(rng):
    X, y, _ = make_sparse_probit(60, 6, random_state=rng.integers(2**31))
    return X * [1e6, 1e-6, 1, 1e6, 1e-6, 1], y


def two_rows(rng):
    return rng.standard_normal((2, 3)), np.array([0, 1])


def one_column(rng):
    return rng.standard_normal((40, 1)), rng.integers(2, size=40)


def twice_as_many_columns_as_rows(rng):
    X, y, _ = make_sparse_probit(20, 40, random_state=rng.integers(2**31))
    return X, y


def perfect_separation(rng):
    X = rng.standard_normal((60, 3))
    return X, (X[:, 0] > 0).astype(int)


def one_positive_in_a_thousand(rng):
    return rng.standard_normal((1000, 3)), (np.arange(1000) == 500).astype(int)


DEGENERATE = [
    constant_column,
    zero_column,
    nothing_but_zeros,
    duplicate_columns,
    large_duplicate_columns,
    very_large_and_very_small_columns,
    two_rows,
    one_column,
    twice_as_many_columns_as_rows,
    perfect_separation,
    one_positive_in_a_thousand,
]


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("sampler", ["gibbs", "pxda", "hmc", "collapsed"])
@pytest.mark.parametrize("data", DEGENERATE, ids=lambda f: f.__name__)
def test_degenerate_data_give_finite_draws_and_probabilities(data, sampler, fit_intercept, dtype, seed, short_fit):
    X, y = data(np.random.default_rng(seed))
    X = X.astype(dtype)
    many = sampler == "collapsed" and len(X) > 100  # whose matrices are as large as the rows are many
    few = {"n_iter": 4, "burn_in": 2, "n_chains": 1} if many else {"n_iter": 200, "burn_in": 100}
    model = short_fit(X, y, **few, fit_intercept=fit_intercept, sampler=sampler)
    for draws in model.coef_draws_, model.intercept_draws_, model.global_scale_draws_:
        assert np.isfinite(draws).all()
    assert np.isfinite(model.shrinkage_).all()
    probability = model.predict_proba(X)
    assert np.isfinite(probability).all()
    assert ((probability >= 0) & (probability <= 1)).all()


@pytest.mark.parametrize("burn_in", [0, 1, 9])
def test_many_constant_columns_do_not_freeze_a_chain_without_burn_in(burn_in, short_fit):
    X = np.zeros((60, 8))
    X[:, 0] = np.random.default_rng(0).standard_normal(60)
    for seed in range(4):
        model = short_fit(X, X[:, 0] > 0.3, sampler="hmc", burn_in=burn_in, n_iter=60, random_state=seed)
        assert (model.global_scale_draws_ > 1e-30).all()
        assert (np.ptp(model.coef_draws_[..., 0], axis=1) > 0).all()


def test_duplicates_share_one_coefficient(seed, short_fit):
    X, y, _ = make_sparse_probit(300, 2, random_state=seed)
    single = short_fit(X, y, n_iter=2000, burn_in=500).coef_[0, 0]
    double = short_fit(np.column_stack([X, X[:, 0]]), y, n_iter=2000, burn_in=500).coef_[0, [0, 2]].sum()
    assert abs(double - single) < 0.2 * single


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_which_columns_count_as_constant(fit_intercept, dtype):
    """Without an intercept a constant is a regressor like any other; a column of zeros never is."""
    constants = np.repeat([[0.0, 3.7, -1e6, 1e-8, *np.linspace(0.1, 1.0, 16)]], 30, axis=0)
    varying = X * [1e6, 1e-6, 1] + [0, 0, 1000]
    model = HorseshoeProbitClassifier(n_iter=8, burn_in=8, fit_intercept=fit_intercept, random_state=0)
    judged = 5 if fit_intercept else 23  # with the global scale, and the intercept
    with pytest.warns(ConvergenceWarning, match=f"of {judged} quantities"):
        model.fit(np.hstack([constants, varying]).astype(dtype), Y)


def test_the_smallest_columns_that_are_taken_give_finite_answers(short_fit):
    for dtype, factor in (("float64", 1e-148), ("float32", 1e-28), ("float16", 1e-3)):
        model = short_fit((X * factor).astype(dtype), Y, standardize=True)
        assert np.isfinite(model.summary()[["mean", "sd", "5%", "95%", "ess"]]).all(axis=None)
        assert np.isfinite([model.prior_["m_eff"], model.prior_["m_eff_at_tau_0"]]).all()


NUMPY_NUMBERS = {
    "n_iter": np.uint8(200),
    "burn_in": np.uint8(150),
    "n_chains": np.int8(3),
    "thin": np.int64(2),
    "max_draws": np.int8(50),
    "slab_scale": np.float32(2),
    "target_ess": np.float32(140),
    "expected_nonzero": np.float16(1.3),
    "n_jobs": np.int8(2),
}


def test_numbers_of_numpy_are_parameters_like_any_other(tmp_path, short_fit):
    """Sums of small integers would overflow, and a checkpoint has no word for them."""
    plain = {name: value.item() for name, value in NUMPY_NUMBERS.items()}
    want = short_fit(X, Y, **plain)
    for checkpoint in (None, tmp_path):
        got = short_fit(X, Y, checkpoint=checkpoint, **NUMPY_NUMBERS)
        np.testing.assert_array_equal(got.coef_draws_, want.coef_draws_)
        assert type(got.n_iter_) is int
