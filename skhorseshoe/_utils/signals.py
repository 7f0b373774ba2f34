"""Signals while a run goes on, so that no sweep is cut in two.

The first Ctrl-C is noted, and SIGTERM waits for the end of the sweep where the application has a handler for it; the
second of either acts as always.
"""

import math
import os
import signal
import time
from contextlib import contextmanager, nullcontext, suppress

_TWICE = 2.0  # seconds: the second of two ends a search even if the first has ended the fit before
_replaced = []  # number of a signal, our handler, and the one before


class _Ear:
    """Hears Ctrl-C: it tells whether there was one, and in ``twice`` whether there was a second one."""

    last = -math.inf  # when any fit of this process has heard one

    def __init__(self):
        self.heard = self.twice = False

    def __call__(self):
        return self.heard

    def hear(self, number, frame):
        now = time.monotonic()
        self.twice = self.heard or now - _Ear.last < _TWICE
        self.heard, _Ear.last = True, now
        if self.twice:
            raise KeyboardInterrupt


class _Later:
    """The application's handler of a signal, which is called when this is; the second of two signals does not wait."""

    def __init__(self, handler):
        self.handler, self.waiting = handler, None

    def __call__(self):
        arguments, self.waiting = self.waiting, None
        if arguments is not None:
            self.handler(*arguments)

    def hear(self, number, frame):
        if self.waiting is None:
            self.waiting = number, frame
        else:
            self()
            self.handler(number, frame)


@contextmanager
def listening():
    """Yields a function that tells whether there was a Ctrl-C, and by ``twice`` whether there were two.

    Only Python's own handler is replaced, and only in the main thread: elsewhere signals belong to someone else.
    """
    ear = _Ear()
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with _handled(signal.SIGINT, ear.hear) if is_ours else nullcontext():
        yield ear


@contextmanager
def held_back():
    """Yields a function that calls the application's handler of SIGTERM, if it has come; so does the end.

    Only a handler of Python's is replaced, and only in the main thread: what the system does, it does at once.
    """
    later = _Later(signal.getsignal(signal.SIGTERM))
    try:
        with _handled(signal.SIGTERM, later.hear) if callable(later.handler) else nullcontext():
            yield later
    finally:
        later()


@contextmanager
def _handled(number, ours):
    """A context in which a signal has another handler, unless someone else sets one meanwhile."""
    mine = number, ours, signal.getsignal(number)
    with suppress(ValueError):  # only the main thread may set one
        signal.signal(number, ours)
        _replaced.append(mine)
    try:
        yield
    finally:
        if mine in _replaced:
            _replaced.remove(mine)
            _give_back(*mine)


def _give_back(number, ours, before):
    if signal.getsignal(number) == ours:
        signal.signal(number, before)


def _give_back_in_child():
    """No run goes on in a child that is forked meanwhile."""
    while _replaced:
        _give_back(*_replaced.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_back_in_child)
