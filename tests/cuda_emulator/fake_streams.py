"""Streams and events of the fake CuPy.

What is put on a stream of its own happens as late as it may: when something waits for it. So memory that is used again
too early, or read without waiting, shows in the results. The main stream does everything at once.
"""

from . import EmulatorError


class Stream:
    """A stream beside the main one."""

    current = None  # None is the main stream

    def __init__(self, *, non_blocking=False):
        if not non_blocking:
            raise EmulatorError("a stream that waits for the main one saves no time")
        self.queue, self.done, self.has_waited = [], 0, False

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


class Main:
    """The main stream."""

    @staticmethod
    def wait_event(event):
        event.synchronize()


class Event:
    waits = 0  # of the host, or of the main stream

    def __init__(self, *, disable_timing=False):
        self.stream = None

    def record(self, stream=None):
        self.stream = stream or Stream.current
        if self.stream is not None:
            self.queue, self.at = self.stream.queue, len(self.stream.queue)

    def synchronize(self):
        if self.stream is not None and self.queue is self.stream.queue:  # another queue: all of that one is done
            self.stream.run(self.at)


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
