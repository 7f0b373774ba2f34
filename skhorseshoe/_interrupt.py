"""Ctrl-C while a run goes on: the first is noted, so that no sweep is cut in two; the second acts as always."""

import signal
import threading
from contextlib import contextmanager


class _Ear:
    def __init__(self):
        self.heard = 0

    def __call__(self):
        return self.heard > 0

    def again(self):
        return self.heard > 1

    def hear(self, number, frame):
        self.heard += 1
        if self.heard > 1:
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
