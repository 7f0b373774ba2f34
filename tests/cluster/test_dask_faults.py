"""Workers, roots and users that stop a fit on a Dask cluster: the same draws, or a clear error, and nothing left."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from faults import arrays, at_question, bits, check_that_nothing_is_left, distributed, kill, staff
from laws import repeated
from sklearn.base import clone

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data import dask_input, dask_rows


def kill_first(client, number=signal.SIGKILL):
    """What ``at_question`` calls: end the first of the workers."""
    return lambda shards: kill(client, shards.holders[0].worker, number)


def test_a_killed_worker_changes_nothing(client, data, classifier, expected, monkeypatch, caplog):
    with at_question(monkeypatch, 60, kill_first(client)):
        assert bits(classifier.fit(*arrays(*data))) == expected
    assert "its rows are loaded again" in caplog.text


@pytest.mark.slow
def test_workers_killed_at_any_time_change_nothing(cluster, client, data, seed):
    rng = np.random.default_rng(seed)
    classifier = HorseshoeProbitClassifier(n_iter=100, burn_in=100, n_chains=2, random_state=seed)
    expected = bits(classifier.fit(*data))
    for _ in range(repeated(3, 20)):
        staff(cluster, client, 3)
        pids = list(client.run(os.getpid, on_error="ignore").values())
        timer = threading.Timer(rng.uniform(0.0, 4.0), os.kill, (rng.choice(pids).item(), signal.SIGKILL))
        timer.start()
        assert bits(classifier.fit(*arrays(*data))) == expected
        timer.join()


def test_a_worker_killed_while_it_loads_changes_nothing(client, data, classifier, expected, tmp_path):
    def die_once(block, folder):
        with open(folder / "died", "a") as file:
            file.write("x")
            first = file.tell() == 1
        if first:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    X, y = arrays(*data)
    assert bits(classifier.fit(X.map_blocks(die_once, tmp_path, dtype=X.dtype, meta=X._meta), y)) == expected
    assert (tmp_path / "died").exists()


@pytest.mark.slow
def test_a_worker_killed_once_it_has_loaded_changes_nothing(client, data, classifier, expected, monkeypatch):
    wait_for, killed = dask_input.wait_for, []

    def wait_and_kill(client, futures, *args):
        wait_for(client, futures, *args)
        if not killed:
            killed.extend(next(iter(client.who_has(futures).values())))
            kill(client, killed[0])
            end = time.monotonic() + 60
            while futures[0].status != "error":
                assert time.monotonic() < end
                time.sleep(0.01)

    monkeypatch.setattr(dask_rows, "wait_for", wait_and_kill)
    assert bits(classifier.fit(*arrays(*data))) == expected
    assert killed


def test_a_stopped_worker_is_replaced(client, data, classifier, expected, sizes, monkeypatch, caplog):
    sizes(seconds_silent=3.0)
    stopped, stop = [], kill_first(client, signal.SIGSTOP)
    try:
        with at_question(monkeypatch, 30, lambda shards: stopped.append(stop(shards))):
            assert bits(classifier.fit(*arrays(*data))) == expected
    finally:
        with suppress(ProcessLookupError):  # its nanny may have ended it already
            os.kill(stopped[0], signal.SIGKILL)
    assert "no sign of life" in caplog.text


def test_workers_that_are_lost_again_and_again_are_an_error(client, data, classifier, sizes, monkeypatch):
    sizes(losses=1)
    with (
        at_question(monkeypatch, 30, kill_first(client)),
        pytest.raises(RuntimeError, match=r"lost 1 times in a row, the last at tcp://.*more memory"),
    ):
        classifier.fit(*arrays(*data))


@pytest.mark.slow
def test_rows_that_change_when_loaded_again_are_an_error(client, data, classifier, monkeypatch):
    X, y = arrays(*data)
    noisy = X.map_blocks(lambda block: block + np.random.default_rng().standard_normal(block.shape), meta=X._meta)
    with (
        at_question(monkeypatch, 30, kill_first(client)),
        pytest.raises(ValueError, match="gives other rows each time"),
    ):
        classifier.fit(noisy, y)


@pytest.mark.parametrize("where", ["here", "by address"])
def test_a_client_that_is_closed_during_a_fit_is_named(cluster, client, data, classifier, monkeypatch, where):
    address = cluster if where == "here" else cluster.scheduler_address
    with (
        distributed.Client(address, set_as_default=False) as own,
        own.as_current(),
        at_question(monkeypatch, 20, lambda shards: own.close()),
        pytest.raises(RuntimeError, match=r"the client has been closed.*checkpoint="),
    ):
        classifier.fit(*arrays(*data))


@pytest.fixture
def ctrl_c(no_ctrl_c_before):
    """Sends one to this process, the first for long."""
    return lambda _: signal.raise_signal(signal.SIGINT)


def test_an_interrupt_keeps_the_draws_made_so_far(client, data, classifier, monkeypatch, ctrl_c):
    whole = classifier.fit(*data).coef_draws_
    model = clone(classifier).set_params(n_iter=1000)
    with (
        at_question(monkeypatch, 420, ctrl_c),  # after burn-in, in which a sweep asks at most 22 times
        pytest.warns(UserWarning, match="interrupted"),
    ):
        model.fit(*arrays(*data))
    n = min(len(model.coef_draws_[0]), len(whole[0]))
    assert model.stopped_by_ == "interrupt"
    assert len(model.coef_draws_[0]) < 1000
    np.testing.assert_array_equal(model.coef_draws_[:, :n], whole[:, :n])


def test_an_interrupt_in_burn_in_is_raised_and_leaves_nothing(client, data, classifier, monkeypatch, ctrl_c):
    with at_question(monkeypatch, 20, ctrl_c), pytest.raises(KeyboardInterrupt):
        classifier.fit(*arrays(*data))


KILLED = """
import sys, distributed, dask.array as da, numpy as np
from skhorseshoe import HorseshoeProbitClassifier
address, folder, file, seed = sys.argv[1:]
if __name__ == "__main__":
    data = np.load(file)
    with distributed.Client(address):
        X, y = da.from_array(data["X"], chunks=(3000, -1)), da.from_array(data["y"], chunks=3000)
        settings = {"n_iter": 100_000, "burn_in": 16, "n_chains": 2, "sampler": "hmc", "random_state": int(seed)}
        HorseshoeProbitClassifier(**settings, checkpoint=folder, checkpoint_interval=0).fit(X, y)
"""


def saved_draws(folder):
    """How many draws of each chain a checkpoint holds."""
    manifest = folder / "manifest.json"
    draws = json.loads(manifest.read_text())["body"]["draws"] if manifest.exists() else []
    return draws[-1][-1] if draws else 0


def test_a_killed_root_leaves_a_checkpoint_that_goes_on(cluster, client, data, classifier, seed, tmp_path):
    X, y = data
    np.savez(tmp_path / "data.npz", X=X, y=y)
    folder = tmp_path / "checkpoint"
    arguments = cluster.scheduler_address, folder, tmp_path / "data.npz", seed
    root = subprocess.Popen([sys.executable, "-c", KILLED, *map(str, arguments)])
    end = time.monotonic() + 120
    while not saved_draws(folder):
        assert root.poll() is None, "the fit ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.02)
    root.kill()
    root.wait()
    model = clone(classifier).set_params(n_iter=saved_draws(folder) + 10)
    whole = bits(model.fit(X, y))
    assert bits(model.set_params(checkpoint=folder).fit(*arrays(X, y))) == whole


def test_a_checkpoint_made_in_memory_goes_on_on_a_cluster(client, data, classifier, expected, tmp_path):
    clone(classifier).set_params(n_iter=5, checkpoint=tmp_path).fit(*data)
    model = clone(classifier).set_params(checkpoint=tmp_path)
    assert bits(model.fit(*arrays(*data))) == expected
    assert bits(model.fit(*data)) == expected


@pytest.mark.slow
def test_two_clients_at_once_have_the_draws_of_one(cluster, client, data, classifier, expected):
    def fit(_):
        with distributed.Client(cluster, set_as_default=False) as own, own.as_current():
            return bits(clone(classifier).fit(*arrays(*data)))

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(fit, range(2), timeout=120)) == [expected] * 2


@pytest.mark.slow
def test_an_encrypted_cluster_gives_the_same_draws_and_recovers(data, classifier, expected, monkeypatch):
    pytest.importorskip("cryptography", reason="makes the certificates: pip install cryptography")
    security = distributed.security.Security.temporary()
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "security": security}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, security=security) as client:
        assert all(address.startswith("tls://") for address in dask_rows.survey(client))
        with at_question(monkeypatch, 20, kill_first(client)):
            assert bits(classifier.fit(*arrays(*data))) == expected
        check_that_nothing_is_left(client)
