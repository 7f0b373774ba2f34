"""A fit that is killed by the system at any moment goes on to the draws of an uninterrupted one."""

import itertools
import os
import signal
import time

import numpy as np
import pytest
from killing import killed_before
from laws import repeated, same_draws

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a signal of POSIX")
MOMENTS = 3  # at which a run is killed, before it is to end by itself
LONGEST = 0.5  # seconds from the begin of a fit to its end by a signal
INTERVAL = 0.02  # seconds between writes, so that a slow disk leaves time for sweeps of every kind


@pytest.mark.parametrize("n_runs", [1, pytest.param(repeated(2, 17), marks=pytest.mark.slow)])
def test_sigkill_at_random_moments_changes_nothing(n_runs, tmp_path, seed):
    X, y, _ = make_sparse_probit(400, 12, random_state=0)
    params = {"n_iter": 400, "burn_in": 200, "n_jobs": 1, "random_state": 0}
    whole = HorseshoeProbitClassifier(**params).fit(X, y)
    rng = np.random.default_rng(seed)
    for k in range(n_runs):
        model = HorseshoeProbitClassifier(**params, checkpoint=tmp_path / str(k), checkpoint_interval=INTERVAL)
        for _ in range(MOMENTS):
            if not (pid := os.fork()):
                try:
                    model.fit(X, y)
                finally:
                    os._exit(0)
            time.sleep(rng.uniform(0, LONGEST))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        assert same_draws(model.set_params(checkpoint_interval=600.0).fit(X, y), whole)


def test_killed_between_any_two_writes_it_goes_on(problem, tmp_path):
    """The manifest names only what is there, whichever file was the last to reach the disk."""
    params = {"n_iter": 4, "burn_in": 2, "sampler": "hmc", "random_state": 0, "n_jobs": 1}
    whole = HorseshoeProbitClassifier(**params).fit(*problem)
    for k in itertools.count():
        model = HorseshoeProbitClassifier(**params, checkpoint=tmp_path / str(k), checkpoint_interval=0.0)
        if not killed_before(k, "replace", lambda model=model: model.fit(*problem)):
            break
        assert same_draws(model.fit(*problem), whole)
    assert k > 10
