"""Whole fits through the back end for GPUs, against the same fits on the CPU."""

import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest
from card import KEY, NONE, SHORT, assert_all_close, on_card
from cuda_emulator import fake_cupy
from laws import all_draws

from skhorseshoe._data.dask_worker import Shard
from skhorseshoe._data.row_blocks import Segment, block_bounds

OTHER_COLUMNS = {"standardize": True, "unpenalized": [1, 4], "prior_scale": {1: 2.0, 2: 0.3}}
ITERATIVE = {"burn_in": 8, "n_iter": 6, "n_chains": 3, **OTHER_COLUMNS}
FITS = {
    "gibbs": {"sampler": "gibbs"},
    "pxda": {"sampler": "pxda", "fit_intercept": False},
    "hmc": {"sampler": "hmc"},
    "hmc, no burn-in": {"sampler": "hmc", "burn_in": 0, "n_iter": 6},
    "gibbs, other columns": {"sampler": "gibbs", **OTHER_COLUMNS},
    "hmc, all options": {"sampler": "hmc", "slab_scale": 2.0, "class_weight": {0: 0.5, 1: 1.7}, **OTHER_COLUMNS},
    "hmc, nothing shrunk": {"sampler": "hmc", "unpenalized": [True] * 8},
    "gibbs, nothing shrunk": {"sampler": "gibbs", "unpenalized": [True] * 8},
    "hmc, 17 chains": {"sampler": "hmc", "fit_intercept": False, "n_chains": 17, "burn_in": 5, "n_iter": 2},
    "gibbs, conjugate gradients": {"sampler": "gibbs", **ITERATIVE},
    "pxda, conjugate gradients": {"sampler": "pxda", **ITERATIVE},
}
# In float32 one proposal in some 10^5 is accepted here and rejected there, and the chains part: few sweeps.
SINGLE = ("gibbs", "float32"), ("hmc", "float32"), ("hmc", "float16")


@pytest.mark.parametrize(("fit", "dtype"), [*((fit, "float64") for fit in FITS), *SINGLE])
def test_chains_are_those_of_the_cpu(fit, dtype, one_gpu, problem, short_fit, sizes):
    if "gradients" in fit:
        sizes(columns_of_a_cholesky_factor=0)
    X, y = problem
    params = {"burn_in": 10, "n_iter": 3, **FITS[fit]}
    ours, theirs = (short_fit(X.astype(dtype), y, device=device, **params) for device in ("cuda", "cpu"))
    assert (ours.device_, theirs.device_) == ("cuda:0", "cpu")
    tolerance = 1e-4 if dtype == "float64" else 1e-2  # rounding grows from sweep to sweep, float32's from 1e-7
    np.testing.assert_allclose(all_draws(ours), all_draws(theirs), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(ours.shrinkage_, theirs.shrinkage_, atol=tolerance)


@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
def test_an_automatic_burn_in_is_that_of_the_cpu(sampler, one_gpu, problem, short_fit, extended, stop_at, tmp_path):
    extended(14, 12)
    length = {"burn_in": "auto", "n_iter": 2}
    ours, theirs = (short_fit(*problem, device=device, sampler=sampler, **length) for device in ("cuda", "cpu"))
    assert ours.burn_in_ == theirs.burn_in_ > 14
    np.testing.assert_allclose(all_draws(ours), all_draws(theirs), rtol=1e-4, atol=1e-4)
    params = {"device": "cuda", "sampler": sampler, "checkpoint": tmp_path, "checkpoint_interval": 0, **length}
    stop_at(7, ArithmeticError())  # while it looks at the chains
    with pytest.raises(ArithmeticError):
        short_fit(*problem, **params)
    ours = short_fit(*problem, **params)
    np.testing.assert_allclose(all_draws(ours), all_draws(theirs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_chains_go_on_after_a_pickle_wherever_the_rows_are(sampler, one_gpu, problem, short_fit):
    params = {"device": "cuda", "sampler": sampler, **SHORT}
    whole = short_fit(*problem, **{**params, "n_iter": 10})
    parts = pickle.loads(pickle.dumps(short_fit(*problem, warm_start=True, **params)))
    parts.fit(on_card(problem[0]), problem[1])
    np.testing.assert_allclose(all_draws(parts), all_draws(whole), rtol=1e-9)


def test_a_model_of_a_gpu_answers_where_there_is_none(one_gpu, problem, short_fit):
    X, y = problem
    model = short_fit(X, y, device="cuda", warm_start=True, **SHORT)
    stored = pickle.dumps(model)
    with fake_cupy.installed():
        sys.modules["cupy"] = None
        answer = pickle.loads(stored).predict_proba(X[:5])
    np.testing.assert_allclose(answer, model.predict_proba(X[:5]), rtol=1e-12)
    np.testing.assert_array_equal(answer, model.set_params(device="cpu").predict_proba(X[:5]))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_worker_with_a_gpu_answers_as_one_without(weighted, one_gpu):
    rng = np.random.default_rng(3)
    n, p = 12_000, 3
    X, y = rng.standard_normal((n, p)), rng.integers(0, 2, n).astype(np.uint8)
    weight = rng.exponential(size=n) if weighted else NONE
    X.flags.writeable = False
    bounds, edges = block_bounds((n, p))
    segments = [
        Segment(X[a:b], y[a:b], weight[a:b], bounds[(bounds >= a) & (bounds <= b)] - a, int(a))
        for a, b in pairwise(bounds[edges])
    ]
    assert len(segments) > 2
    numbers = list(range(len(segments)))
    ours, theirs = (Shard(segments, numbers, len(numbers), (device, 0), 1) for device in ("cuda", "cpu"))
    assert ours.checksums() == theirs.checksums()
    beta, centre, scale = rng.standard_normal((2, p + 1)), np.zeros(p), np.ones(p)
    questions = {
        Segment.moments: (),
        Segment.gram: (centre, scale, True, beta),
        Segment.score: (beta,),
        Segment.line: (beta, beta[::-1].copy(), rng.standard_normal((2, 17))),
        Segment.latent: (beta, 3, np.array(KEY)),
        Segment.misplaced: (beta[:, :p], beta[:, p]),
    }
    for question, args in questions.items():
        (got,), (want,) = (shard.partial_sums(question, *args).values() for shard in (ours, theirs))
        tolerance = 1e-6 if question is Segment.latent else 1e-9  # standard variates have the resolution of float32
        assert_all_close(got, want, rtol=tolerance, atol=1e3 * tolerance)
