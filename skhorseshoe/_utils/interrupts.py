"""Ctrl-C and SIGTERM during a run, so that no sweep is interrupted.

The first Ctrl-C is noted. If the application has a handler for SIGTERM, it is called at the end of the sweep. The
second signal of either kind acts as always.
"""

import math
import os
import signal
import time
from contextlib import contextmanager, nullcontext, suppress

_TWICE = 2.0  # seconds within which a second Ctrl-C ends a search, also if the first has ended a fit
_replaced = []  # number of a signal, our handler, and the earlier one


class _CtrlC:
    """Handler that notes Ctrl-C. Calling it tells whether there was one, ``twice`` whether there was a second one."""

    last = -math.inf  # time of the last Ctrl-C in any fit of this process

    def __init__(self):
        self.pressed = self.twice = False

    def __call__(self):
        return self.pressed

    def handle(self, number, frame):
        now = time.monotonic()
        self.twice = self.pressed or now - _CtrlC.last < _TWICE
        self.pressed, _CtrlC.last = True, now
        if self.twice:
            signal.signal(number, signal.default_int_handler)  # the context that would do it may be cut short
            raise KeyboardInterrupt


class _Deferred:
    """Handler that defers the application's handler until this object is called; a second signal does not wait."""

    def __init__(self, handler):
        self.handler, self.waiting = handler, None

    def __call__(self):
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            number, frame = waiting
            self.handler(number, frame)

    def handle(self, number, frame):
        if self.waiting is None:
            self.waiting = number, frame
        else:
            self()
            self.handler(number, frame)


@contextmanager
def ctrl_c_noted():
    """Yields a function that tells whether there was a Ctrl-C; its ``twice`` tells whether there were two.

    Only Python's own handler is replaced, and only in the main thread: other handlers belong to the application.
    """
    ctrl_c = _CtrlC()
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with _handled(signal.SIGINT, ctrl_c.handle) if is_ours else nullcontext():
        yield ctrl_c


@contextmanager
def sigterm_deferred():
    """Yields a function that calls the application's handler if SIGTERM has come; the end of the context does so too.

    Only a handler in Python is deferred, and only in the main thread: the system's default action is immediate.
    """
    deferred = _Deferred(signal.getsignal(signal.SIGTERM))
    try:
        with _handled(signal.SIGTERM, deferred.handle) if callable(deferred.handler) else nullcontext():
            yield deferred
    finally:
        deferred()


@contextmanager
def _handled(number, ours):
    """A context in which our handler replaces that of a signal, unless someone else sets one meanwhile."""
    replaced = number, ours, signal.getsignal(number)
    with suppress(ValueError):  # only the main thread may set one
        signal.signal(number, ours)
        _replaced.append(replaced)
    try:
        yield
    finally:
        if replaced in _replaced:
            _replaced.remove(replaced)
            _give_back(replaced)


def _give_back(replaced):
    number, ours, earlier = replaced
    if signal.getsignal(number) == ours:
        signal.signal(number, earlier)


def _give_back_in_child():
    """Restore all handlers in a child that is forked during a run: the run does not go on there."""
    while _replaced:
        _give_back(_replaced.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_back_in_child)
