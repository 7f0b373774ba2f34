"""What ``verbose`` shows, through the logger "skhorseshoe"."""

import logging
import time
from contextlib import contextmanager

logger = logging.getLogger("skhorseshoe")

_SECONDS = 5.0  # between two lines


@contextmanager
def visible(verbose):
    """Let the logger be heard during a fit, if the application has not configured logging itself."""
    if not verbose or logger.hasHandlers():
        yield
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[skhorseshoe] %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


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
