"""Rows held by the workers of a Dask cluster: which worker holds which, questions to all, and loss of workers."""

import logging
from dataclasses import dataclass
from time import sleep

import numpy as np
from distributed import CancelledError, wait
from distributed.metrics import time
from distributed.scheduler import KilledWorker

from .._model import PROBIT
from .dask_worker import Shard
from .row_blocks import ADD, Segment, block_bounds, collapse
from .rows import Rows

_logger = logging.getLogger("skhorseshoe")

_FIRST_LOOK, _LOOK = 0.5, 5.0  # seconds without an answer after which to check a worker, at first and at most
_GLANCE = 0.2  # seconds between two checks for a new worker
_HUNG = 30.0  # seconds without a heartbeat after which a worker is lost; workers send one a second, also when busy
_PAUSED = 30.0  # seconds that Dask may pause a worker for its memory, for example while it spills to disk
_STALLED = 1800.0  # seconds without progress after which loading has failed
_REPLACEMENT = 5.0  # seconds to wait for a new worker in place of a lost one
_NO_WORKERS = 60.0  # seconds to wait for a worker if there is none
_TRIES = 5  # losses in a row, without an answer between them, after which a fit fails
_TURNS = 8  # turns in which a worker loads its rows; in one turn, Dask would load nearly all chunks before it frees any
_FULL = 0.8  # share of a worker's memory that may be in use; above it Dask pauses the worker
_KERNELS = 2**27  # bytes that the core and its libraries take on a worker that has not loaded them yet


class DaskRows(Rows):
    """Rows that workers hold; answers the same questions as ``Rows``, with the same bits.

    shards : ``Shards``. shape, dtype : of all of X. The others are as in ``Rows``.
    """

    X = y = weight = held = None  # no process has all of them
    _all_rows, is_sparse = Segment(None, None, None, None, 0), False

    def __init__(
        self, shards, shape, dtype, likelihood, fit_intercept, ops, threads, unpenalized, standardize, prior_scale
    ):
        self.shards, self.shape, self.dtype = shards, shape, dtype
        self.ops, self.threads, self.likelihood = ops, threads, likelihood
        self.bounds, self.edges = block_bounds(shape)
        self._see_columns(fit_intercept, unpenalized, standardize, prior_scale)

    def separation(self, among=None, within=False):
        """None, for not known: linear programmes would have to fetch rows."""

    def _total(self, question, *args, own=None, **options):
        if question is Segment.checksum:  # known since the rows were loaded
            nodes = {(0, number): checksum for number, checksum in self.shards.checksums.items()}
        else:
            likelihood = {} if self.likelihood is PROBIT else {"likelihood": self.likelihood}
            nodes = self.shards.ask(question, *args, **likelihood, **({} if own is None else {"own": own}))
        (total,) = collapse(nodes, len(self.edges) - 1, ADD[question]).values()
        return total


class _WorkerLost(Exception):
    """A worker will not answer; the argument says why."""


@dataclass(eq=False)
class _Holder:
    """An actor on a worker, and the segments that it holds."""

    worker: str
    identity: str  # of the worker's process; a new process may have the address of the old one
    numbers: list  # of its segments
    future: object
    tasks: list  # that load its segments, until they are loaded
    actor: object = None
    paused: float = None  # time since when Dask has paused the worker, or None


class Shards:
    """The segments of a collection, each held by one worker. A context, at whose end the workers hold nothing.

    task_of : function of a segment's number that returns the Delayed ``Segment``. sizes : bytes of the segments, by
    number. chunk : bytes of the largest chunk of X. working_set : bytes that an answer takes on a worker. device :
    where workers compute, the first two arguments of ``device.resolve``.
    """

    def __init__(self, client, task_of, sizes, chunk, working_set, device):
        self.client, self.task_of, self.sizes, self.device = client, task_of, sizes, device
        self.piece = 2 * max(chunk, max(sizes))  # bytes that a thread needs to make a segment
        self.working_set = working_set
        self.holders, self.checksums = [], {}

    def __enter__(self):
        try:
            self._load(range(len(self.sizes)), self._workers(_NO_WORKERS))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error):
        for holder in self.holders:
            _release(holder)
        self.holders = []

    def ask(self, question, *args, **options):
        """The answers of all segments to a question, as nodes of the tree. Replaces workers that are lost meanwhile."""
        nodes, waiting, losses = {}, list(self.holders), 0
        while waiting:
            lost = {}
            calls = [(holder, _call(holder, "partial_sums", question, *args, **options)) for holder in waiting]
            for holder, call in calls:
                try:
                    nodes |= self._answer(holder, call)
                except _WorkerLost as why:
                    lost[holder] = why
            waiting, losses = [], losses + bool(lost)
            if lost:
                n_alive = len(self.holders) - len(lost)
                self._replace(lost, losses)
                waiting = self.holders[n_alive:]
        return nodes

    def _answer(self, holder, call):
        """The result of a call; waits as long as the worker is alive."""
        patience = _FIRST_LOOK
        while True:
            if isinstance(call, Exception):
                raise _WorkerLost(str(call))
            try:
                return call.result(timeout=patience)
            except TimeoutError:
                self._check(holder)
                patience = min(2 * patience, _LOOK)
            except (OSError, CancelledError, KeyError) as error:  # KeyError: a new worker at the address of the old
                raise _WorkerLost(f"{type(error).__name__}: {error}") from error
            except Exception as error:
                self._check(holder)  # if the worker is lost, the error means no more
                error.add_note(f"Raised by the worker at {holder.worker}.")
                raise

    def _check(self, holder):
        """The state of the worker; raises ``_WorkerLost`` if it is gone, or has sent no heartbeat for long."""
        state = survey(self.client).get(holder.worker)
        if state is None or state["identity"] != holder.identity:
            raise _WorkerLost("it has left the cluster")
        if state["silent"] > _HUNG:
            raise _WorkerLost(f"no sign of life for {state['silent']:.0f} s")
        return state

    def _check_loading(self, holder):
        """``_check``, and raise a ``MemoryError`` if Dask has paused the worker for its memory."""
        state = self._check(holder)
        holder.paused = (holder.paused or time()) if state["paused"] else None
        if holder.paused and time() - holder.paused > _PAUSED:
            raise MemoryError(
                f"Worker {holder.worker} takes {state['used'] / 2**30:.3f} GiB of its memory limit of "
                f"{state['memory'] / 2**30:.3f} GiB, and Dask lets it load no more. Add workers, give them more "
                "memory, or make the chunks smaller."
            )

    def _replace(self, lost, losses):
        """Load the segments of lost workers onto others. lost : reasons, by ``_Holder``."""
        numbers = sorted(number for holder in lost for number in holder.numbers)
        gone = {holder.identity: holder.worker for holder in lost}
        for holder, why in lost.items():
            _logger.warning("Worker %s is lost (%s): its rows are loaded again on another.", holder.worker, why)
            _release(holder)
        self.holders = [holder for holder in self.holders if holder not in lost]
        if losses >= _TRIES:
            worker, why = next((holder.worker, why) for holder, why in lost.items())
            raise RuntimeError(
                f"Workers were lost {losses} times in a row, the last at {worker} ({why}). A worker that is lost again "
                "and again has mostly been killed for its memory: its log tells. Give the workers more memory, or the "
                "cluster more workers."
            )
        for state in survey(self.client).values():
            if state["identity"] in gone:
                _remove(self.client, gone[state["identity"]])
        busy = {holder.worker for holder in self.holders}
        workers = self._workers(_REPLACEMENT, busy) if busy else {}
        self._load(numbers, workers or self._workers(_NO_WORKERS), losses)

    def _workers(self, seconds, without=()):
        """The states of the living workers, from ``survey``; waits for one."""
        end = time() + seconds
        while True:
            alive = {w: s for w, s in survey(self.client).items() if w not in without and s["silent"] <= _HUNG}
            if alive or (without and time() > end):
                return alive
            if time() > end:
                raise RuntimeError(
                    f"The scheduler at {self.client.scheduler.address} has had no worker for {seconds:.0f} s. Start "
                    "workers, or see in their logs why they have ended."
                )
            sleep(_GLANCE)

    def _load(self, numbers, workers, losses=0):
        """Load segments onto workers in proportion to their threads, neighbours together."""
        n_loaded, lost = len(self.holders), {}
        for worker, share in list(self._shares(list(numbers), workers)):  # check the room of all workers first
            self.holders.append(self._submit(worker, share, workers[worker]))  # after an error the context releases it
        for holder in self.holders[n_loaded:]:
            try:
                self._await_loading(holder)
            except _WorkerLost as why:
                lost[holder] = why
        if lost:
            self._replace(lost, losses + 1)

    def _shares(self, numbers, workers):
        """Yield pairs of a worker and the numbers of its segments."""
        names = sorted(workers)
        threads = np.cumsum([0] + [workers[name]["threads"] for name in names])
        edges = np.rint(threads / threads[-1] * len(numbers)).astype(int)
        for name, first, last in zip(names, edges[:-1], edges[1:], strict=True):
            share = numbers[first:last]
            if share:
                self._check_room(share, name, workers[name])
                yield name, share

    def _check_room(self, numbers, worker, state):
        """Raise a MemoryError if a worker has no room for the segments of these numbers."""
        rows = sum(self.sizes[number] for number in numbers)
        more = _KERNELS + max(rows / _TURNS + state["threads"] * self.piece, self.working_set)
        used, limit, end = state["used"], state["memory"], time() + _REPLACEMENT
        while limit and used + rows + more > _FULL * limit:
            if time() > end:
                rows, more, used, limit = (f"{size / 2**30:.3f} GiB" for size in (rows, more, used, limit))
                raise MemoryError(
                    f"Worker {worker} would have to hold {rows} of rows, and {more} while it loads them and computes, "
                    f"beside {used} that its process takes now and Dask cannot write to the disk. Its memory limit is "
                    f"{limit}, of which {_FULL:.0%} may be used. Add workers, or give them more memory; smaller chunks "
                    "and float32 columns take less."
                )
            sleep(_GLANCE)  # the scheduler may not know yet of memory that was just freed
            used = survey(self.client).get(worker, state)["used"]

    def _submit(self, worker, numbers, state):
        # A task that is strictly bound to a worker would wait for ever if the worker dies. So only the actor, which is
        # released then, is bound strictly. Names are new each time, since restrictions hold only for new names.
        tasks = []
        for turn, segments in enumerate(np.array_split(numbers, _TURNS)):
            share = [self.task_of(number) for number in segments.tolist()]
            tasks += self.client.compute(share, priority=-turn, workers=[worker], allow_other_workers=True)
        n, n_threads = len(self.sizes), state["threads"]
        future = self.client.submit(
            Shard, tasks, numbers, n, self.device, n_threads, actor=True, workers=[worker], pure=False
        )
        return _Holder(worker, state["identity"], numbers, future, tasks)

    def _await_loading(self, holder):
        """Wait for an actor to be loaded, and release the tasks that have loaded its segments."""
        wait_for(self.client, [holder.future], holder.tasks, lambda: self._check_loading(holder))
        try:
            holder.actor = holder.future.result(timeout=_LOOK)
        except (OSError, CancelledError, TimeoutError) as error:
            raise _WorkerLost(f"{type(error).__name__}: {error}") from error
        except KilledWorker as error:
            raise RuntimeError(f"Workers died again and again, loading rows for {holder.worker}: {error}") from error
        except Exception:  # of the rows; or the worker was lost with a new actor
            self._check(holder)
            raise
        for task in holder.tasks:
            task.release()
        holder.tasks = []
        for number, checksum in self._answer(holder, _call(holder, "checksums")).items():
            if self.checksums.setdefault(number, checksum) != checksum:
                raise ValueError(
                    f"The rows loaded again on {holder.worker} are not those that the fit began with: the collection "
                    "gives other rows each time it is computed. Seed its random numbers, or persist() or save it first."
                )


def _call(holder, method, *args, **options):
    """The future of a call to an actor, or an exception if the actor is known to be lost."""
    try:
        return getattr(holder.actor, method)(*args, **options)
    except (RuntimeError, ValueError) as error:  # depending on the version of Dask
        return error


def _release(holder):
    for future in (holder.future, *holder.tasks):
        future.release()
    if holder.actor is not None:
        holder.actor._future.release()


def wait_for(client, futures, tasks, check):
    """Wait for futures while ``check`` does not raise and more and more of ``tasks``, which they need, are done."""
    done, since, patience = -1, time(), _FIRST_LOOK
    while True:
        try:
            wait(futures, timeout=patience)
            return
        except (TimeoutError, ValueError):  # a ValueError: the client was closed, and check raises
            check()
        except CancelledError:
            return
        patience = min(2 * patience, _LOOK)
        n_done = sum(task.done() for task in tasks)
        if n_done != done:
            done, since = n_done, time()
        elif time() - since > _STALLED:
            raise RuntimeError(
                f"No rows have been loaded for {_STALLED / 60:.0f} minutes ({done} of {len(tasks)} tasks are done). "
                f"See on the dashboard, {client.dashboard_link}, what the workers wait for."
            )


def survey(client):
    """The state of each worker, by address: seconds since its last heartbeat, threads, whether Dask has paused it for
    its memory, bytes in use that Dask cannot spill, their limit, and identity."""

    def look(dask_scheduler):
        from distributed.metrics import time

        return {
            address: {
                "silent": time() - state.last_seen,
                "threads": state.nthreads,
                "paused": state.status.name == "paused",
                "used": state.memory.unmanaged,
                "memory": state.memory_limit,
                "identity": state.server_id,
            }
            for address, state in dask_scheduler.workers.items()
        }

    try:
        return client.run_on_scheduler(look)
    except (OSError, AttributeError, RuntimeError) as error:  # the latter two if the client was closed
        why = error if isinstance(error, OSError) else "the client has been closed"
        raise RuntimeError(
            f"The scheduler of {client} cannot be reached ({why}): it has ended, or the network has. Start a cluster "
            "and fit again; with checkpoint= the run goes on where it was."
        ) from error


def _remove(client, worker):
    """Remove a worker that does not answer from the scheduler, where it would still own the rows."""

    async def remove(dask_scheduler):
        await dask_scheduler.remove_worker(worker, stimulus_id="skhorseshoe-lost", close=True)

    client.run_on_scheduler(remove)
