"""Streams and events of the fake CuPy.

What is put on a stream of its own happens as late as it may: when something waits for it. So memory that is used again
too early, or read without waiting, shows in the results. The main stream does everything at once.
"""

import weakref

import numpy as np

from . import EmulatorError

_STREAMS = weakref.WeakSet()  # beside the main one


class Stream:
    """A stream beside the main one."""

    current = None  # None is the main stream

    def __init__(self, *, non_blocking=False):
        if not non_blocking:
            raise EmulatorError("a stream that waits for the main one saves no time")
        self.queue, self.done, self.has_waited = [], 0, False
        _STREAMS.add(self)

    def __enter__(self):
        self.before, Stream.current = Stream.current, self

    def __exit__(self, *error):
        Stream.current = self.before

    def wait_event(self, event):
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


def synchronize_all():
    """Wait for the device."""
    for stream in list(_STREAMS):
        stream.synchronize()


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
        self.stream = self.queue = None

    def record(self, stream=None):
        self.stream = None if stream is Main else stream or Stream.current
        works = self.stream or Main.landings
        self.queue, self.at = works.queue, len(works.queue)

    def synchronize(self):
        works = self.stream or Main.landings
        if self.queue is works.queue:  # another queue: all of that one is done
            works.run(self.at)


def later(work):
    """Do this now, or on the current stream."""
    if Stream.current is None:
        work()
    else:
        Stream.current.put(work)


def refuse_beside():
    """What only the main stream can do here."""
    if Stream.current is not None:
        raise EmulatorError("only kernels, library calls and copies are emulated on a stream of its own")


def made(compute, *operands):
    """The result of compute() on NumPy arrays: by the main stream, unless it is a view of an operand."""
    values = np.asarray(compute())
    if not any(np.may_share_memory(values, one) for one in operands if isinstance(one, np.ndarray)):
        refuse_beside()
    return values
