"""Copies to the host through pinned memory, while the next sweeps run."""

from collections import deque

import cupy as cp
from cupyx import empty_pinned

from .. import MAX_CHAINS
from .lapack import VERDICT

_MOST_SETS = 32  # largest number of sets of values on their way
_MOST_PINNED_BYTES = 2**26  # largest size of these sets, in bytes


class Outbox:
    """Brings values to the host in the order of the calls of ``put``; the host does not wait.

    They are copied on another stream. A set is handed over when its memory is needed, many sweeps later, or by
    ``flush``.
    """

    def __init__(self):
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.under_way, self.spare = deque(), []

    def put(self, use, values):
        """Call use(*values) later, with arrays of the host that are valid until it returns."""
        values = [cp.ascontiguousarray(v) if isinstance(v, cp.ndarray) else v for v in values]
        size = sum(v.nbytes for v in values if isinstance(v, cp.ndarray))
        while len(self.under_way) >= max(2, min(_MOST_SETS, _MOST_PINNED_BYTES // max(1, size))):
            self._hand_over()
        pinned = self.spare.pop() if self.spare else [_pinned_like(v) for v in values]
        ready, arrived = (cp.cuda.Event(disable_timing=True) for _ in range(2))
        ready.record()
        self.stream.wait_event(ready)
        for i, value in enumerate(values):
            if isinstance(value, cp.ndarray):
                value.get(stream=self.stream, out=pinned[i], blocking=False)
            else:
                pinned[i] = value
        arrived.record(self.stream)
        self.under_way.append((arrived, pinned, use, values))  # values must not be freed before they are copied

    def flush(self):
        """Hand over all sets."""
        while self.under_way:
            self._hand_over()
        VERDICT.raise_if_bad()

    def _hand_over(self):
        arrived, pinned, use, _ = self.under_way[0]
        arrived.synchronize()
        use(*pinned)
        self.under_way.popleft()  # only now: if the wait is interrupted, the set stays
        self.spare.append(pinned)


class Watch:
    """As ``cpu.Watch``, one step late: while the host waits for the flags of a step, the GPU computes the next."""

    def __init__(self):
        self.pinned = empty_pinned((2, 2 * MAX_CHAINS), bool)
        self.arrived = [cp.cuda.Event(disable_timing=True) for _ in range(2)]

    def any_left(self, flags, step):
        current, last = step % 2, (step - 1) % 2
        stream = cp.cuda.get_current_stream()
        flags.get(stream=stream, out=self.pinned[current, : len(flags)], blocking=False)
        self.arrived[current].record(stream)
        if step == 0:
            return True
        self.arrived[last].synchronize()
        return bool(self.pinned[last, : len(flags)].any())


def _pinned_like(value):
    return empty_pinned(value.shape, value.dtype) if isinstance(value, cp.ndarray) else None
