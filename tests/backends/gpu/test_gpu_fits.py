"""Whole fits through the back end for GPUs, against the same fits on the CPU.

In the emulator, or on a card with ``pytest -m gpu``.
"""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from cuda_emulator import fake_cupy
from laws import agree

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.dask_worker import Shard
from skhorseshoe._data.row_blocks import Segment, layout


def draws_of(model):
    log_tau = np.log(model.global_scale_draws_)[..., None]
    return np.concatenate([model.coef_draws_, model.intercept_draws_[..., None], log_tau], axis=2)


FITS = {
    "gibbs": {"sampler": "gibbs"},
    "pxda": {"sampler": "pxda"},
    "hmc": {"sampler": "hmc"},
    # In float32 one proposal in some 10^5 is accepted here and rejected there, and the chains part: few sweeps.
    "hmc, short": {"sampler": "hmc", "burn_in": 20, "n_iter": 10},
    "hmc, no burn-in": {"sampler": "hmc", "burn_in": 0, "n_iter": 60},
    "gibbs, other columns": {"sampler": "gibbs", "standardize": True, "unpenalized": [1, 4]},
    "hmc, other columns": {"sampler": "hmc", "standardize": True, "unpenalized": [1, 4], "slab_scale": 2.0},
    "hmc, weights": {"sampler": "hmc", "class_weight": {0: 0.5, 1: 1.7}},
    "hmc, no intercept, 17 chains": {
        "sampler": "hmc",
        "fit_intercept": False,
        "n_chains": 17,
        "burn_in": 20,
        "n_iter": 5,
    },
}


@pytest.mark.parametrize(
    ("fit", "dtype"), [*((fit, "float64") for fit in FITS), ("gibbs", "float32"), ("hmc, short", "float32")]
)
def test_chains_are_those_of_the_cpu(fit, dtype, one_gpu, problem, short_fit):
    X, y = problem
    params = {"burn_in": 70, "n_iter": 20, **FITS[fit]}
    ours, theirs = (short_fit(X.astype(dtype), y, device=device, **params) for device in ("cuda", "cpu"))
    assert (ours.device_, theirs.device_) == ("cuda:0", "cpu")
    # Rounding grows from sweep to sweep, float32's from 1e-7.
    tolerance = 1e-4 if dtype == "float64" else 1e-2
    np.testing.assert_allclose(draws_of(ours), draws_of(theirs), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(ours.shrinkage_, theirs.shrinkage_, atol=tolerance)


def test_float16_is_that_of_the_cpu(one_gpu, problem, short_fit):
    X, y = problem
    few = FITS["hmc, short"]  # as of float32, in which such rows are computed
    ours, theirs = (short_fit(X.astype(np.float16), y, device=device, **few) for device in ("cuda", "cpu"))
    np.testing.assert_allclose(draws_of(ours), draws_of(theirs), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_chains_can_be_gone_on_with_on_a_gpu(sampler, one_gpu, problem, short_fit):
    X, y = problem
    params = {"device": "cuda", "sampler": sampler, "burn_in": 50, "n_chains": 2}
    whole = short_fit(X, y, n_iter=20, **params)
    parts = short_fit(X, y, n_iter=10, warm_start=True, **params)
    with pytest.warns(UserWarning, match="not converged"):
        parts = pickle.loads(pickle.dumps(parts)).fit(X, y)
    np.testing.assert_allclose(draws_of(parts), draws_of(whole), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_posterior_is_that_of_the_cpu(sampler, one_gpu, weak_problem, short_fit):
    X, y = weak_problem
    params = {"sampler": sampler, "n_iter": 2000, "burn_in": 200}
    ours = short_fit(X, y, device="cuda", random_state=1, **params)
    theirs = short_fit(X, y, device="cpu", random_state=2, **{**params, "n_iter": 20_000})
    ours, theirs = draws_of(ours), draws_of(theirs)
    agree(ours, theirs, 4.5)
    for level in (0.05, 0.5, 0.95):
        bound = np.quantile(theirs, level, axis=(0, 1))
        agree((ours < bound).astype(float), (theirs < bound).astype(float), 4.5)


def test_model_fitted_on_a_gpu_answers_where_there_is_none(one_gpu, problem, short_fit, run_python, tmp_path):
    X, y = problem
    model = short_fit(X, y, device="cuda", warm_start=True)
    path, rows = tmp_path / "model.pickle", tmp_path / "rows.npy"
    path.write_bytes(pickle.dumps(model))
    np.save(rows, X[:5])
    code = """
import sys, pickle, numpy as np
sys.modules["cupy"] = None
model = pickle.load(open(sys.argv[1], "rb"))
print(*model.predict_proba(np.load(sys.argv[2]))[:, 1])
"""
    answer = np.array(run_python(code, path, rows).split(), float)
    np.testing.assert_allclose(answer, model.predict_proba(X[:5])[:, 1], rtol=1e-12)
    np.testing.assert_array_equal(answer, model.set_params(device="cpu").predict_proba(X[:5])[:, 1])


@pytest.mark.parametrize("threads_order", ["reverse", "random"])
def test_draws_have_the_same_bits_in_any_order_of_threads(threads_order, problem, short_fit):
    X, y = problem
    models = []
    for order in ("forward", threads_order):
        with fake_cupy.installed(order):
            models.append(short_fit(X.astype(np.float32), y, device="cuda", sampler="hmc", burn_in=4, n_iter=6))
    np.testing.assert_array_equal(*map(draws_of, models))
    assert isinstance(models[0], HorseshoeProbitClassifier)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_worker_with_a_gpu_answers_as_one_without(weighted, one_gpu):
    rng = np.random.default_rng(3)
    n, p = 12_000, 3
    X, y = rng.standard_normal((n, p)), rng.integers(0, 2, n).astype(np.uint8)
    weight = rng.exponential(size=n) if weighted else np.empty(0)
    X.flags.writeable = False
    bounds, edges = layout(n, p)
    starts = bounds[edges]
    segments = [
        Segment(X[a:b], y[a:b], weight[a:b], bounds[(bounds >= a) & (bounds <= b)] - a, int(a))
        for a, b in pairwise(starts)
    ]
    numbers = list(range(len(segments)))
    assert len(numbers) > 2
    ours, theirs = (Shard(segments, numbers, len(numbers), (device,), 1) for device in ("cuda", "cpu"))
    assert ours.checksums() == theirs.checksums()
    beta, centre, scale = rng.standard_normal((2, p + 1)), np.zeros(p), np.ones(p)
    questions = {
        "moments": (),
        "gram": (centre, scale, True, beta),
        "score": (beta,),
        "line": (beta, beta[::-1].copy(), rng.standard_normal((2, 17))),
        "latent": (beta, 3, np.array([1, 2], np.uint32)),
        "misplaced": (beta[:, :p], beta[:, p]),
    }
    for question, args in questions.items():
        (got,), (want,) = (shard.answer(question, *args).values() for shard in (ours, theirs))
        for one, other in zip(got, want, strict=True):
            tolerance = 1e-6 if question == "latent" else 1e-9  # standard variates have the resolution of float32
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=1e3 * tolerance)
