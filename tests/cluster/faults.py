"""What tests of Dask clusters share: collections, faults, and the check that nothing is left of a fit.

Tests that import it are skipped where there are no clusters.
"""

import os
import signal
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

if os.name != "posix":
    pytest.skip("signals are those of POSIX", allow_module_level=True)
needs = "needs Dask: pip install 'dask[array,dataframe]' distributed"
delayed = pytest.importorskip("dask", reason=needs).delayed
da = pytest.importorskip("dask.array", reason=needs)
dd = pytest.importorskip("dask.dataframe", reason=needs)
distributed = pytest.importorskip("distributed", reason=needs)

from skhorseshoe._data import dask_rows  # noqa: E402 - imports Dask


def check_that_nothing_is_left(client):
    end = time.monotonic() + 20
    while (left := leftovers(client)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left


def staff(cluster, client, n):
    """Bring the cluster to n workers."""
    end = time.monotonic() + 60
    while len(dask_rows.survey(client)) != n:
        assert time.monotonic() < end, "the cluster did not come to its size"
        cluster.scale(n)  # again and again: a worker that was killed may be given up only now
        time.sleep(0.1)


def leftovers(client):
    """Tasks that the scheduler still knows, and actors that workers still have."""
    tasks = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])
    actors = client.run(lambda dask_worker: list(dask_worker.state.actors), on_error="ignore")
    return tasks + [key for keys in actors.values() for key in keys] + list(client.futures)


def bits(model):
    draws = model.coef_draws_, model.intercept_draws_, model.global_scale_draws_, model.shrinkage_
    return b"".join(array.tobytes() for array in draws)


def arrays(X, y, rows=3_000):
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


def frames(X, y, n=7):
    names = [f"c{j}" for j in range(X.shape[1])]
    return dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=n), dd.from_pandas(pd.Series(y), npartitions=n)


@contextmanager
def at_question(monkeypatch, number, act):
    """Call act(shards) when the sampler asks its question of this number."""
    ask, asked = dask_rows.Shards.ask, []

    def counted(shards, *args, **options):
        asked.append(args[0])
        if len(asked) == number:
            act(shards)
        return ask(shards, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(dask_rows.Shards, "ask", counted)
        yield asked
    assert len(asked) >= number


def kill(client, worker, number=signal.SIGKILL):
    pid = client.run(os.getpid, workers=[worker])[worker]
    os.kill(pid, number)
    return pid


def sparse_chunks(X, y):
    from scipy.sparse import csr_matrix

    X, y = arrays(X, y)
    return X.map_blocks(csr_matrix, meta=csr_matrix((0, 0))), y


def words(y, dtype):
    return pd.Series(np.where(y, "yes", "no")).astype(dtype)
