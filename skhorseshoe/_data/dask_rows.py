"""Rows held by the workers of a Dask cluster: who holds which, asking them all, and what to do when one is lost."""

import logging
from dataclasses import dataclass
from time import sleep

import numpy as np
from distributed import CancelledError, wait
from distributed.metrics import time
from distributed.scheduler import KilledWorker

from .dask_worker import Shard
from .row_blocks import ADD, Segment, collapse, layout
from .rows import Rows

_logger = logging.getLogger("skhorseshoe")

_FIRST_LOOK, _LOOK = 0.5, 5.0  # seconds of silence after which to look whether a worker lives, at first and at most
_GLANCE = 0.2  # seconds between two looks for a new worker
_HUNG = 30.0  # seconds without a heartbeat, which come every second or so even while a worker computes
_PAUSED = 30.0  # seconds that a worker may stand still for its memory, such as to write some of it to the disk
_STALLED = 1800.0  # seconds in which no task of a load has ended
_REPLACEMENT = 5.0  # seconds to wait for a new worker in place of one that is lost
_NO_WORKERS = 60.0  # seconds to wait for a worker where there is none
_TRIES = 5  # losses in a row, with no answer between them, that are too many
_TURNS = 8  # in which a worker loads its rows: left to itself, Dask loads nearly all chunks before it gives one up
_FULL = 0.8  # share of a worker's memory that may be in use; Dask pauses it there
_KERNELS = 2**27  # bytes that the core and what it loads take, where it has not been loaded yet


class DaskRows(Rows):
    """Rows that workers hold; the same questions as ``Rows``, with the same bits in the answers.

    shards : ``Shards``. shape, dtype : of all of X. The others are those of ``Rows``.
    """

    def __init__(self, shards, shape, dtype, fit_intercept, ops, threads, *, unpenalized=None, standardize=False):
        self.shards, self.shape, self.dtype = shards, shape, dtype
        self.ops, self.threads = ops, threads
        self.bounds, self.edges = layout(*shape)
        self._see_columns(fit_intercept, unpenalized, standardize)

    X = y = weight = None  # nowhere as a whole
    is_near = False

    def separation(self, among=None):
        """Not known: the programmes would have to fetch rows."""

    def _total(self, question, *args, of=None, **scratch):
        if question is Segment.checksum:  # known since the rows were loaded
            nodes = {(0, number): checksum for number, checksum in self.shards.checksums.items()}
        else:
            nodes = self.shards.ask(question, *args)
        (total,) = collapse(nodes, len(self.edges) - 1, ADD[question]).values()
        return total


class _WorkerLost(Exception):
    """A worker that will not answer; the argument says why."""


@dataclass(eq=False)
class _Holder:
    """An actor on a worker, and the segments that it holds."""

    worker: str
    identity: str  # of the worker's process: a new one may come to have the address of the old
    numbers: list
    future: object
    tasks: list  # until it is loaded
    actor: object = None
    paused: float = None  # since when


class Shards:
    """The segments of a collection, each held by one worker. A context: at its end the workers hold nothing.

    task_of : function of a segment's number that gives the Delayed ``Segment``. sizes : its bytes, by number.
    chunk : bytes of the largest chunk of X. n_columns : of X. device : where workers compute, as arguments of
    ``device.resolve``.
    """

    def __init__(self, client, task_of, sizes, chunk, n_columns, device):
        self.client, self.task_of, self.sizes, self.device = client, task_of, sizes, device
        self.piece = 2 * max(chunk, *sizes)  # in the making; a thread has one
        self.working_set = 32 * (n_columns + 1) ** 2
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

    def ask(self, question, *args):
        """The answers of all segments to a question, as nodes of the tree; lost workers are replaced meanwhile."""
        nodes, waiting, losses = {}, list(self.holders), 0
        while waiting:
            lost = {}
            calls = [(holder, _call(holder, "answer", question, *args)) for holder in waiting]
            for holder, call in calls:
                try:
                    nodes |= self._answer(holder, call)
                except _WorkerLost as why:
                    lost[holder] = why
            waiting, losses = [], losses + bool(lost)
            if lost:
                before = len(self.holders) - len(lost)
                self._replace(lost, losses)
                waiting = self.holders[before:]
        return nodes

    def _answer(self, holder, call):
        """The result of a call; waits as long as the worker lives."""
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
                self._check(holder)  # of one that is lost, an error says nothing else
                error.add_note(f"Raised by the worker at {holder.worker}.")
                raise

    def _check(self, holder):
        """Raise ``_WorkerLost`` if the worker is gone or has not been heard of for long."""
        state = survey(self.client).get(holder.worker)
        if state is None or state["identity"] != holder.identity:
            raise _WorkerLost("it has left the cluster")
        if state["silent"] > _HUNG:
            raise _WorkerLost(f"no sign of life for {state['silent']:.0f} s")
        return state

    def _check_loading(self, holder):
        """The same, and a ``MemoryError`` if Dask has stopped the worker, for its memory, from loading any more."""
        state = self._check(holder)
        holder.paused = (holder.paused or time()) if state["paused"] else None
        if holder.paused and time() - holder.paused > _PAUSED:
            raise MemoryError(
                f"Worker {holder.worker} takes {state['used'] / 2**30:.3f} GiB of its memory limit of "
                f"{state['memory'] / 2**30:.3f} GiB, and Dask lets it load no more. Add workers, give them more "
                "memory, or make the chunks smaller."
            )

    def _replace(self, lost, losses):
        """Load what lost workers held onto others. lost : why, by ``_Holder``."""
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
        others = self._workers(_REPLACEMENT, busy) if busy else {}
        self._load(numbers, others or self._workers(_NO_WORKERS), losses)

    def _workers(self, seconds, without=()):
        """What ``survey`` tells of the living workers; waits for one."""
        end = time() + seconds
        while True:
            there = {w: s for w, s in survey(self.client).items() if w not in without and s["silent"] <= _HUNG}
            if there or (without and time() > end):
                return there
            if time() > end:
                raise RuntimeError(
                    f"The scheduler at {self.client.scheduler.address} has had no worker for {seconds:.0f} s. Start "
                    "workers, or see in their logs why they have ended."
                )
            sleep(_GLANCE)

    def _load(self, numbers, workers, losses=0):
        """Load segments onto workers, as many as their threads can take, neighbours together."""
        before, lost = len(self.holders), {}
        for worker, share in list(self._shares(list(numbers), workers)):  # all have room before one begins
            self.holders.append(self._submit(worker, share, workers[worker]))  # after an error the context gives it up
        for holder in self.holders[before:]:
            try:
                self._await_loading(holder)
            except _WorkerLost as why:
                lost[holder] = why
        if lost:
            self._replace(lost, losses + 1)

    def _shares(self, numbers, workers):
        """Pairs of a worker and the numbers of its segments."""
        names = sorted(workers)
        threads = np.cumsum([0] + [workers[name]["threads"] for name in names])
        edges = np.rint(threads / threads[-1] * len(numbers)).astype(int)
        for name, first, last in zip(names, edges[:-1], edges[1:], strict=True):
            share = numbers[first:last]
            if share:
                self._check_room(share, name, workers[name])
                yield name, share

    def _check_room(self, numbers, worker, state):
        """Raise a MemoryError if a worker cannot hold segments of these numbers beside what it holds already."""
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
            sleep(_GLANCE)  # what was given up a moment ago has not been reported yet
            used = survey(self.client).get(worker, state)["used"]

    def _submit(self, worker, numbers, state):
        # Hard restrictions on tasks whose worker dies would leave them waiting for ever: only the actor, which is
        # released then, has one. Names are fresh each time, since restrictions hold for new names only.
        tasks = []
        for turn, part in enumerate(np.array_split(numbers, _TURNS)):
            share = [self.task_of(number) for number in part.tolist()]
            tasks += self.client.compute(share, priority=-turn, workers=[worker], allow_other_workers=True)
        arguments = tasks, numbers, len(self.sizes), self.device, state["threads"]
        future = self.client.submit(Shard, *arguments, actor=True, workers=[worker], pure=False)
        return _Holder(worker, state["identity"], numbers, future, tasks)

    def _await_loading(self, holder):
        """Wait for an actor to be loaded, and give up the tasks that it was loaded from."""
        wait_for(self.client, [holder.future], holder.tasks, lambda: self._check_loading(holder))
        try:
            holder.actor = holder.future.result(timeout=_LOOK)
        except (OSError, CancelledError, TimeoutError) as error:
            raise _WorkerLost(f"{type(error).__name__}: {error}") from error
        except KilledWorker as error:
            raise RuntimeError(f"Workers died again and again, loading rows for {holder.worker}: {error}") from error
        except Exception:  # of the rows, or of an actor that went with its worker as soon as it was there
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


def _call(holder, method, *args):
    """What will be the result of a call to an actor; an exception where it is known to be lost."""
    try:
        return getattr(holder.actor, method)(*args)
    except (RuntimeError, ValueError) as error:  # by the version of Dask
        return error


def _release(holder):
    for future in (holder.future, *holder.tasks):
        future.release()
    if holder.actor is not None:
        holder.actor._future.release()


def wait_for(client, futures, tasks, check):
    """Wait for futures, as long as ``check`` does not raise and tasks, which they need, go on ending."""
    done, since, patience = -1, time(), _FIRST_LOOK
    while True:
        try:
            wait(futures, timeout=patience)
            return
        except (TimeoutError, ValueError):  # a ValueError: the client has been closed, as check will say
            check()
        except CancelledError:
            return
        patience = min(2 * patience, _LOOK)
        now = sum(task.done() for task in tasks)
        if now != done:
            done, since = now, time()
        elif time() - since > _STALLED:
            raise RuntimeError(
                f"No rows have been loaded for {_STALLED / 60:.0f} minutes ({done} of {len(tasks)} tasks are done). "
                f"See on the dashboard, {client.dashboard_link}, what the workers wait for."
            )


def survey(client):
    """Of each worker, by address: seconds since its last sign of life, threads, whether Dask has stopped it for its
    memory, bytes in use that Dask cannot spill and their limit, identity."""

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
    except (OSError, AttributeError, RuntimeError) as error:  # the latter two where the client has been closed
        why = error if isinstance(error, OSError) else "the client has been closed"
        raise RuntimeError(
            f"The scheduler of {client} cannot be reached ({why}): it has ended, or the network has. Start a cluster "
            "and fit again; with checkpoint= the run goes on where it was."
        ) from error


def _remove(client, worker):
    """Take a worker that does not answer off the scheduler's books, where it would still own the rows."""

    async def remove(dask_scheduler):
        await dask_scheduler.remove_worker(worker, stimulus_id="skhorseshoe-lost", close=True)

    client.run_on_scheduler(remove)
