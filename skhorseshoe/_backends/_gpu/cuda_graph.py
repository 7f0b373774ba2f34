"""Sweeps of few columns, whose kernels take less time than it takes to launch them: recorded as one CUDA graph."""

import logging
from contextlib import suppress

import cupy as cp
import numpy as np

from .csr import Csr
from .csr_chunks import Parts
from .gaussian import fits_one_block
from .host_streaming import Streamed
from .memory import SPARSE_ROWS
from .sweep_counter import CLOCK

_LOG = logging.getLogger("skhorseshoe")


def recorded(sweep, rows, q):
    """As ``cpu.recorded``: a ``Recorded`` where all kernels of a sweep are ours, and it keeps little memory."""
    X = rows.held[0]
    stays = not isinstance(X, (Streamed, Parts)) and not (isinstance(X, Csr) and X.shape[0] > SPARSE_ROWS)
    if not stays or not fits_one_block(q):
        return sweep
    return Recorded(sweep)


class Recorded:
    """A function from a state, a named tuple of float64 arrays and the number ``sweep``, to the next one.

    The first call launches kernel by kernel, which compiles them all. The second one records: CUDA notes the kernels
    and their arguments and runs none. From then on a call is a launch of the whole. A recording reads and writes the
    same memory each time. So the state is copied to where it reads, temporary arrays have memory that nobody else gets
    as long as the recording is there, and the number of the sweep is counted on the GPU.

    What another thread of the process does can spoil a recording, as when it waits for the whole GPU. So it is tried
    again in the next sweeps.
    """

    def __init__(self, sweep):
        self.sweep = sweep
        self.calls = 0
        self.graph = None
        self.held = []  # the memory of temporary arrays
        self.last = None  # the state that the next launch goes on from

    def __call__(self, state):
        self.calls += 1
        if self.graph is None and self.calls > 1 and CLOCK.attempts > 0:
            self._record(state)
        if self.graph is None:
            return self.sweep(state)
        if state is not self.last:
            self._put(state)
        self.graph.launch()
        self.last = _views(self.memory.copy(), state._replace(sweep=state.sweep + 1))
        return self.last

    def _record(self, state):
        try:
            self.count = cp.zeros(1, cp.uint32)
            self.memory = cp.empty(sum(value.size for value in _arrays(state)))
            self.given = _views(self.memory, state)
            self.count += 1  # compiles the kernel
            self._put(state)
            stream = cp.cuda.Stream(non_blocking=True)  # the main one cannot be recorded
            with stream, cp.cuda.using_allocator(self._allocate):
                graph = self._recording(stream)
                graph.upload()  # a launch that finds no room would end the fit
                stream.synchronize()
            self.graph = graph
        except (RuntimeError, cp.cuda.memory.OutOfMemoryError) as error:
            self.held, CLOCK.attempts = [], CLOCK.attempts - 1
            cp.get_default_memory_pool().free_all_blocks()  # for the next attempt, which asks the driver for memory
            if CLOCK.attempts == 0:
                words = str(error)  # a log that keeps the error itself keeps arrays alive
                _LOG.warning("Sweeps are not launched as a whole, but kernel by kernel, which takes longer: %s", words)

    def _allocate(self, n_bytes):
        """As CuPy asks for memory. Not from a pool: where memory is short it gives up what recorded kernels use."""
        self.held.append(cp.cuda.Memory(n_bytes))
        return cp.cuda.MemoryPointer(self.held[-1], 0)

    def _recording(self, stream):
        stream.begin_capture()
        try:
            self._advance()
        except BaseException:
            with suppress(RuntimeError):  # which only says that something has gone wrong before
                stream.end_capture()
            raise
        return stream.end_capture()

    def _put(self, state):
        for value, place in zip(_arrays(state), _arrays(self.given), strict=True):
            place[...] = value
        self.count[...] = np.uint32(state.sweep)

    def _advance(self):
        """What is recorded: a sweep from the state in ``memory`` to the next one there."""
        with CLOCK.recording(self.count, self.given.sweep):
            new = self.sweep(self.given)
        for value, place in zip(_arrays(new), _arrays(self.given), strict=True):
            if value is not place:
                place[...] = value
        self.count += 1


def _arrays(state):
    return [value for value in state if isinstance(value, cp.ndarray)]


def _views(memory, state):
    """The state with its arrays in ``memory``, one after the other."""
    fields, start = {}, 0
    for name, value in state._asdict().items():
        if isinstance(value, cp.ndarray):
            fields[name] = memory[start : start + value.size].reshape(value.shape)
            start += value.size
    return state._replace(**fields)
