"""Ctrl-C while a run goes on: the first is noted, so that no sweep is cut in two; the second acts as always."""

import math
import signal
import threading
import time
from contextlib import contextmanager

_TWICE = 2.0  # seconds: the second of two ends a search even if the first has ended the fit before


class _Ear:
    last = -math.inf  # when any fit of this process has heard one

    def __init__(self):
        self.heard = self.twice = False

    def __call__(self):
        return self.heard

    def again(self):
        return self.twice

    def hear(self, number, frame):
        now = time.monotonic()
        self.twice = self.heard or now - _Ear.last < _TWICE
        self.heard, _Ear.last = True, now
        if self.twice:
            raise KeyboardInterrupt


@contextmanager
def listening():
    """Yields a function that tells whether there was a Ctrl-C, and whether there was one ``again``.

    Only Python's own handler is replaced, and only in the main thread: elsewhere signals belong to someone else.
    """
    ear = _Ear()
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield ear
        return
    signal.signal(signal.SIGINT, ear.hear)
    try:
        yield ear
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
