"""Streams, events and recordings of the fake CuPy.

What is put on a stream of its own happens as late as it may: when something waits for it. So memory that is used again
too early, or read without waiting, shows in the results. The main stream does everything at once. While a stream is
recorded nothing happens at all, and once something has spoiled the recording, each call that it would hold raises.
"""

import weakref
from contextlib import contextmanager

import numpy as np

from . import EmulatorError

_STREAMS = weakref.WeakSet()  # beside the main one


class Stream:
    """A stream beside the main one."""

    current = None  # None is the main stream

    def __init__(self, *, non_blocking=False, priority=None):
        if not non_blocking:
            raise EmulatorError("a stream that waits for the main one saves no time")
        self.priority = priority
        self.queue, self.done, self.has_waited = [], 0, False
        _STREAMS.add(self)

    def __enter__(self):
        self.before, Stream.current = Stream.current, self

    def __exit__(self, *error):
        Stream.current = self.before

    def wait_event(self, event):
        if event.graph is not None:
            event.graph.check()
            event.graph.join(event.stream, self)
            return
        self.has_waited = True
        self.queue.append(event.synchronize)

    def put(self, work):
        """Do this later."""
        if not self.has_waited:
            raise EmulatorError("work on a stream that has not waited for what it reads")
        self.queue.append(work)

    def synchronize(self):
        self.run(len(self.queue))

    def run(self, until):
        while self.done < until:
            self.done += 1
            self.queue[self.done - 1]()
            self.queue[self.done - 1] = None
        if self.done == len(self.queue):
            self.queue, self.done, self.has_waited = [], 0, False

    def begin_capture(self):
        if self.queue or Graph.recorded is not None:
            raise EmulatorError("a recording that does not begin by itself")
        Graph.recorded = Graph(self)

    def end_capture(self):
        graph, Graph.recorded = Graph.recorded, None
        graph.check()
        if graph.streams != {self}:
            raise RuntimeError("cudaErrorStreamCaptureUnjoined: the capture has work that nothing has waited for")
        return graph


def synchronize_all():
    """Wait for the device; which no recording survives."""
    if Graph.recorded is not None:
        Graph.recorded.failed = True
    for stream in list(_STREAMS):
        stream.synchronize()


class Graph:
    """What has been recorded. A stream that waits for one of its streams is one of them, until it is waited for."""

    recorded = None  # the one that is recorded now

    def __init__(self, origin):
        self.origin, self.streams, self.work, self.failed = origin, {origin}, [], False

    def check(self):
        if self.failed:
            raise RuntimeError("cudaErrorStreamCaptureInvalidated: operation failed due to a previous error")

    def join(self, waited_for, waits):
        if waits is self.origin:
            self.streams.discard(waited_for)
        self.streams.add(waits)

    def upload(self):
        """To the card, before the first launch."""

    def launch(self):
        refuse_beside()
        for work in self.work:
            work()


class Main:
    """The main stream. What it copies to the host without waiting lands as late as it may."""

    landings = Stream(non_blocking=True)
    synchronize = landings.synchronize

    @classmethod
    def land(cls, work):
        cls.landings.queue.append(work)

    @staticmethod
    def wait_event(event):
        event.synchronize()


class Event:
    def __init__(self, *, disable_timing=False):
        self.stream = self.graph = self.queue = None

    def record(self, stream=None):
        self.stream = None if stream is Main else stream or Stream.current
        self.graph = recording_on(self.stream)
        works = self.stream or Main.landings
        self.queue, self.at = works.queue, len(works.queue)

    def synchronize(self):
        if self.graph is not None:
            raise EmulatorError("waits for what is only recorded")
        works = self.stream or Main.landings
        if self.queue is works.queue:  # another queue: all of that one is done
            works.run(self.at)


def recording_on(stream):
    """The recording that this stream is part of, or None."""
    graph = Graph.recorded
    if graph is None or stream not in graph.streams:
        return None
    graph.check()
    return graph


def later(work):
    """Do this now, or on the current stream, or whenever what is recorded runs."""
    graph = recording_on(Stream.current)
    if graph is not None:
        graph.work.append(work)
    elif Stream.current is None:
        work()
    else:
        Stream.current.put(work)


def refuse_beside():
    """What only the main stream can do here, unless it is recorded."""
    if Stream.current is not None and recording_on(Stream.current) is None:
        raise EmulatorError("only kernels, library calls and copies are emulated on a stream of its own")


def refuse_recording(what, kind=RuntimeError):
    """What CUDA, or CuPy, does not record."""
    if Graph.recorded is not None:
        Graph.recorded.failed |= kind is RuntimeError  # CuPy refuses by itself; CUDA does not hear of it
        raise kind(f"{what} while a stream is capturing")


class Allocator:
    """What arrays have their memory from in a context; None is the pool of all."""

    current = None

    @staticmethod
    @contextmanager
    def using(allocate):
        before, Allocator.current = Allocator.current, allocate
        try:
            yield
        finally:
            Allocator.current = before


def allocated(n_bytes):
    """Asks for new memory."""
    if Allocator.current is not None:
        pointer = Allocator.current(n_bytes)
        if pointer.mem.size != n_bytes:
            raise EmulatorError("memory of another size")
    elif Graph.recorded is not None:
        raise EmulatorError("memory of a recording, from a pool that gives it to others")


def made(compute, *operands):
    """The result of compute() on NumPy arrays. Recorded, it is computed later, unless it is a view of an operand."""
    values, graph = np.asarray(compute()), recording_on(Stream.current)
    if any(np.may_share_memory(values, one) for one in operands if isinstance(one, np.ndarray)):
        return values
    refuse_beside()
    if graph is not None:
        allocated(values.nbytes)
        values[...] = np.nan if values.dtype.kind == "f" else 1
        graph.work.append(lambda: np.copyto(values, compute()))
    return values
