"""The way to the host: at once, or through pinned memory while the next sweeps run."""

from collections import deque

import cupy as cp
from cupyx import empty_pinned

from .. import MAX_CHAINS
from .lapack import VERDICT

_MOST = 32  # sets of values on their way
_PINNED = 2**26  # bytes of them


class Outbox:
    """Values that leave for the host in the order in which they were put; the host does not wait for them.

    They are copied on a stream of their own. A set is handed over when the room is needed, which is many sweeps later,
    or when all are asked for.
    """

    def __init__(self):
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.under_way, self.spare = deque(), []

    def put(self, use, values):
        """Call use(*values) some time, with arrays of the host that are its own only until it returns."""
        values = [cp.ascontiguousarray(v) if isinstance(v, cp.ndarray) else v for v in values]
        size = sum(v.nbytes for v in values if isinstance(v, cp.ndarray))
        while len(self.under_way) >= max(2, min(_MOST, _PINNED // max(1, size))):
            self._hand_over()
        landing = self.spare.pop() if self.spare else [_room_for(v) for v in values]
        ready, arrived = (cp.cuda.Event(disable_timing=True) for _ in range(2))
        ready.record()
        self.stream.wait_event(ready)
        for i, value in enumerate(values):
            if isinstance(value, cp.ndarray):
                value.get(stream=self.stream, out=landing[i], blocking=False)
            else:
                landing[i] = value
        arrived.record(self.stream)
        self.under_way.append((arrived, landing, use, values))  # values: they must not be freed before they are copied

    def flush(self):
        """Hand over everything."""
        while self.under_way:
            self._hand_over()
        VERDICT.raise_if_bad()

    def _hand_over(self):
        arrived, landing, use, _ = self.under_way[0]
        arrived.synchronize()
        use(*landing)
        self.under_way.popleft()  # not before: if the wait is interrupted, the values are still to come
        self.spare.append(landing)


class Watch:
    """As ``cpu.Watch``, one step late: while the host waits for the flags of a step, the GPU works on that step."""

    def __init__(self):
        self.landing = empty_pinned((2, 2 * MAX_CHAINS), bool)
        self.arrived = [cp.cuda.Event(disable_timing=True) for _ in range(2)]

    def any_left(self, flags, step):
        now, before = step % 2, (step - 1) % 2
        stream = cp.cuda.get_current_stream()
        flags.get(stream=stream, out=self.landing[now, : len(flags)], blocking=False)
        self.arrived[now].record(stream)
        if step == 0:
            return True
        self.arrived[before].synchronize()
        return bool(self.landing[before, : len(flags)].any())


def _room_for(value):
    return empty_pinned(value.shape, value.dtype) if isinstance(value, cp.ndarray) else None
