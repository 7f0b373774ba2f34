"""Degenerate data and extreme numbers: the draws and all that is made of them are finite."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._model.horseshoe import describe_prior
from skhorseshoe.datasets import make_sparse_probit

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2


def noise(rng, *more):
    """Two columns, and more, that the labels do not depend on."""
    X = np.column_stack([rng.standard_normal((40, 2)), *(np.full(40, value) for value in more)])
    return X, rng.integers(2, size=40)


def probit(rng, n, p):
    return make_sparse_probit(n, p, random_state=rng.integers(2**31))[:2]


def duplicates(rng, factor=1.0):
    X, y = probit(rng, 60, 4)
    return factor * np.hstack([X, X, -X]), y


def scaled(rng):
    X, y = probit(rng, 60, 6)
    return X * [1e6, 1e-6, 1, 1e6, 1e-6, 1], y


def separated(rng):
    X = rng.standard_normal((60, 3))
    return X, (X[:, 0] > 0).astype(int)


DEGENERATE = {
    "a constant column": lambda rng: noise(rng, 3.7),
    "a column of zeros": lambda rng: noise(rng, 0.0),
    "nothing but zeros": lambda rng: (np.zeros((40, 2)), rng.integers(2, size=40)),
    "duplicate columns": duplicates,
    "large duplicate columns": lambda rng: duplicates(rng, 1e9),
    "columns of very different scales": scaled,
    "two rows": lambda rng: (rng.standard_normal((2, 3)), np.array([0, 1])),
    "one column": lambda rng: (rng.standard_normal((40, 1)), rng.integers(2, size=40)),
    "more columns than rows": lambda rng: probit(rng, 20, 40),
    "separated classes": separated,
    "one row of a class": lambda rng: (rng.standard_normal((1000, 3)), (np.arange(1000) == 500).astype(int)),
}


@pytest.mark.parametrize(
    ("dtype", "fit_intercept"), [("float32", True), pytest.param("float64", False, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("sampler", ["gibbs", "pxda", "hmc"])
@pytest.mark.parametrize("data", DEGENERATE)
def test_degenerate_data_give_finite_draws(data, sampler, dtype, fit_intercept, seed, short_fit):
    X, y = DEGENERATE[data](np.random.default_rng(seed))
    X = X.astype(dtype)
    model = short_fit(X, y, n_iter=40, burn_in=60, fit_intercept=fit_intercept, sampler=sampler)
    for draws in model.coef_draws_, model.intercept_draws_, model.global_scale_draws_, model.shrinkage_:
        assert np.isfinite(draws).all()
    probability = model.predict_proba(X)
    assert ((probability >= 0) & (probability <= 1)).all()


@pytest.mark.parametrize("burn_in", [0, 9])
def test_constant_columns_do_not_freeze_a_chain(burn_in, short_fit):
    X = np.zeros((60, 8))
    X[:, 0] = np.random.default_rng(0).standard_normal(60)
    for seed in range(4):
        model = short_fit(X, X[:, 0] > 0.3, sampler="hmc", burn_in=burn_in, n_iter=60, random_state=seed)
        assert (model.global_scale_draws_ > 1e-30).all()
        assert (np.ptp(model.coef_draws_[..., 0], axis=1) > 0).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_which_columns_count_as_constant(fit_intercept):
    """Without an intercept a constant is a regressor like any other; a column of zeros never is."""
    constants = np.repeat([[0.0, 3.7, -1e6, 1e-8, *np.linspace(0.1, 1.0, 16)]], 30, axis=0)
    varying = X * [1e6, 1e-6, 1] + [0, 0, 1000]
    model = HorseshoeProbitClassifier(n_iter=8, burn_in=8, fit_intercept=fit_intercept, random_state=0)
    judged = 5 if fit_intercept else 23  # with the global scale, and the intercept
    with pytest.warns(ConvergenceWarning, match=f"of {judged} quantities"):
        model.fit(np.hstack([constants, varying]).astype("float32"), Y)


@pytest.mark.parametrize(("dtype", "factor"), [
    ("float64", 1e140), ("float64", 1e-148), ("float32", 1e-28), ("float16", 1e-3),
])  # fmt: skip
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_every_number_is_finite_for_columns_of_any_size(dtype, factor, short_fit):
    check_numbers(short_fit((X * factor).astype(dtype), Y, burn_in=100, sampler="hmc"))


@pytest.mark.parametrize("weight", [1e-12, 1e12])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_every_number_is_finite_for_weights_of_any_size(weight, short_fit):
    model = short_fit(X[4:], Y[4:], class_weight={0: weight, 1: 1.0})
    check_numbers(model)


def check_numbers(model):
    """All fitted attributes and the table are finite."""
    table = {f"summary {name}": model.summary()[name] for name in ("mean", "sd", "5%", "95%", "ess")}
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    for name, values in (table | fitted | fitted["prior_"]).items():
        if np.asarray(values).dtype.kind == "f":
            assert np.isfinite(values).all(), name


@pytest.mark.parametrize("slab_scale", [None, 2.0])
def test_the_prior_knows_scales_of_columns_and_tau_together(slab_scale):
    columns = np.array([1.0, 2.0])
    want = describe_prior(0.3, slab_scale, columns, 100, 0.4)["m_eff"]
    for by in (1e-90, 1e90):
        slab = slab_scale and slab_scale / by
        assert describe_prior(0.3 / by, slab, columns * by, 100, 0.4)["m_eff"] == pytest.approx(want)


NUMPY_NUMBERS = {
    "n_iter": np.uint8(200), "burn_in": np.uint8(150), "n_chains": np.int8(3), "thin": np.int64(2),
    "n_jobs": np.int8(2), "max_draws": np.int8(94), "slab_scale": np.float32(2),
    "target_ess": np.float32(140), "expected_nonzero": np.float16(1.3),
}  # fmt: skip


def test_numbers_of_numpy_are_parameters_like_any_other(tmp_path, short_fit):
    """Sums of small integers would overflow, and a checkpoint cannot write them."""
    want = short_fit(X, Y, **{name: value.item() for name, value in NUMPY_NUMBERS.items()})
    for checkpoint in (None, tmp_path):
        got = short_fit(X, Y, checkpoint=checkpoint, **NUMPY_NUMBERS)
        np.testing.assert_array_equal(got.coef_draws_, want.coef_draws_)
        assert type(got.n_iter_) is int
