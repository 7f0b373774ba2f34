"""What ``verbose`` shows, through the logger "skhorseshoe"."""

import logging
import threading
import time
from contextlib import contextmanager

logger = logging.getLogger("skhorseshoe")

_SECONDS = 5.0  # between two lines


class _Audience:
    """How many fits want to be heard; the first sets the logger up, the last leaves it as it was."""

    def __init__(self):
        self.lock = threading.Lock()
        self.fits = 0
        self.handler = self.level = None

    def join(self):
        with self.lock:
            self.fits += 1
            if self.fits > 1:
                return
            self.handler, self.level = None, logger.level
            if not logger.hasHandlers():
                self.handler = logging.StreamHandler()
                self.handler.setFormatter(logging.Formatter("[skhorseshoe] %(message)s"))
                logger.addHandler(self.handler)
            if self.level == logging.NOTSET:  # that of the root logger counts, which leaves out what is no warning
                logger.setLevel(logging.INFO)

    def leave(self):
        with self.lock:
            self.fits -= 1
            if self.fits == 0:
                logger.setLevel(self.level)
                if self.handler is not None:
                    logger.removeHandler(self.handler)


_audience = _Audience()


@contextmanager
def visible(verbose):
    """Let the logger be heard during a fit: by the application's own handlers if it has any, at its own level if it has
    set one for this logger."""
    if not verbose:
        yield
        return
    _audience.join()
    try:
        yield
    finally:
        _audience.leave()


def reporter(verbose, burn_in, n_iter):
    """A function of the number of sweeps done that logs a line now and then, if that is wanted."""
    if not verbose:
        return lambda t: None
    begin = last = time.monotonic()
    first = None

    def report(t):
        nonlocal first, last
        now = time.monotonic()
        first = t - 1 if first is None else first
        if now - last < _SECONDS and t < burn_in + n_iter:
            return
        last = now
        left = (now - begin) / (t - first) * (burn_in + n_iter - t)
        phase = "burn-in" if t <= burn_in else "sampling"
        logger.info("%s: sweep %d of %d, about %.0f s left", phase, t, burn_in + n_iter, left)

    return report
