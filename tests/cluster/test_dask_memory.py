"""Workers with little memory: the draws of any other fit, or an error that says what is missing; nothing is left."""

import os
import time

import numpy as np
import pytest
from faults import bits, check_that_nothing_is_left, da, distributed, staff

from skhorseshoe import HorseshoeProbitClassifier

MIB = 2**20
ROWS = 400_000  # of 100 columns, 153 MiB
CHUNK = 20_000


@pytest.fixture(scope="module")
def cluster():
    """One worker, whose nanny kills it at 95 % of its memory, of which the process itself takes some. Dask gives up a
    task at its second death, not at its fourth, before each of which a process starts."""
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 900 * MIB}
    with distributed.LocalCluster(**options, scheduler_kwargs={"allowed_failures": 1}) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        staff(cluster, client, 1)
        yield client
        check_that_nothing_is_left(client)


@pytest.fixture(scope="module")
def classifier(seed):
    return HorseshoeProbitClassifier(n_iter=2, burn_in=2, n_chains=2, sampler="gibbs", random_state=seed)


def some_rows(act=None, block_info=None):
    """A chunk; act : what else to do where it is made."""
    first, last = block_info[None]["array-location"][0]
    if act is not None:
        act(first)
    return np.random.default_rng(first).standard_normal((last - first, 100), np.float32)


def collection(n=ROWS, act=None):
    chunks = da.core.normalize_chunks((CHUNK, -1), (n, 100), dtype=np.float32)
    X = da.map_blocks(some_rows, act, chunks=chunks, dtype=np.float32, meta=np.zeros((0, 100), np.float32))
    y = np.random.default_rng(0).integers(0, 2, n)
    return X, y


def pids(client):
    return list(client.run(os.getpid, on_error="ignore").values())


def fill():
    """Take memory until the nanny ends the process."""
    taken = []
    for _ in range(40):
        taken.append(np.ones(4 * MIB))
        time.sleep(0.05)
    time.sleep(30)
    raise AssertionError("the nanny has not ended the process")


@pytest.mark.slow
def test_rows_that_have_room_give_the_draws_of_memory(client, classifier):
    before, (X, y) = pids(client), collection()
    expected = bits(classifier.fit(X.compute(scheduler="sync"), y))
    for _ in range(2):  # nothing is left of the first
        assert bits(classifier.fit(X, y)) == expected
    assert pids(client) == before


def test_rows_without_room_are_refused_before_a_worker_is_killed(client, classifier):
    before = pids(client)
    X, y = collection(4 * ROWS)
    with pytest.raises(MemoryError, match=r"Worker tcp://.* 0.598 GiB of rows.* 0.879 GiB, .*Add workers"):
        classifier.fit(X, y)
    assert pids(client) == before


@pytest.mark.slow
def test_chunks_that_kill_every_worker_are_an_error(client, classifier):
    X, y = collection(act=lambda first: fill() if first == 5 * CHUNK else None)
    ends = "died again and again", "mostly been killed for its memory", "has had no worker for"
    with pytest.raises(RuntimeError, match="|".join(ends)):  # by how soon its nanny starts another
        classifier.fit(X, y)


@pytest.mark.slow
def test_a_worker_that_dask_has_paused_is_an_error(client, classifier, sizes):
    sizes(seconds_paused=3.0)

    def hoard(first):
        if first == 5 * CHUNK:
            worker = distributed.get_worker()
            worker.hoard = np.ones(int(0.88 * 900 * MIB - worker.monitor.get_process_memory()) // 8)

    X, y = collection(act=hoard)
    try:
        with pytest.raises(MemoryError, match=r"Worker tcp://.* of its memory limit of 0.879 GiB.* load no more"):
            classifier.fit(X, y)
    finally:
        client.run(lambda dask_worker: dask_worker.__dict__.pop("hoard", None) is None)
