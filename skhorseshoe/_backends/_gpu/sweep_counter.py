"""The number of a sweep: the host's, or in a recorded sweep, which has the same arguments each time, the GPU's own."""

import threading
from contextlib import contextmanager

import cupy as cp
import numpy as np

ATTEMPTS = 3  # to record, in a fit


class _Clock(threading.local):
    """Of the fit that this thread is making."""

    zero = None  # (1,) uint32, for sweeps that the host counts
    attempts = ATTEMPTS  # that are left
    counted = None  # while a sweep is recorded: where the GPU counts, and the number that the host has for this sweep

    @contextmanager
    def recording(self, count, sweep):
        """A context in which ``sweep`` stands for the number in ``count`` (1,), at the time when a kernel runs."""
        self.counted = count, sweep
        try:
            yield
        finally:
            self.counted = None

    def arguments(self, sweep):
        """Where a kernel reads what it adds, and to what."""
        if self.counted is not None:
            count, start = self.counted
            return count, sweep - start
        if self.zero is None:
            self.zero = cp.zeros(1, cp.uint32)
        return self.zero, sweep


CLOCK = _Clock()


def random_arguments(key, sweep, *purpose):
    """The last arguments of every kernel that draws: the sweep, the purpose where it takes one, and the key."""
    since, sweep = CLOCK.arguments(sweep)
    return (since, *(np.uint32(value) for value in (sweep, *purpose, *key)))
