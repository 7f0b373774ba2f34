"""What ``verbose`` shows, through the logger "skhorseshoe"."""

import logging
import time
from contextlib import contextmanager, nullcontext

from .shared_context import Shared
from .warn import warn

logger = logging.getLogger("skhorseshoe")

_SECONDS = 5.0  # between two lines
_PATIENCE, _LONG = 20.0, 2 * 3600  # seconds after which a fit is told to be long, and from how many that are left


def visible(verbose):
    """A context in which the logger is heard during a fit: by the application's own handlers if it has any, at its own
    level if it has set one for this logger."""
    return _heard if verbose else nullcontext()


@contextmanager
def _set_up():
    handler, level = None, logger.level
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[skhorseshoe] %(message)s"))
        logger.addHandler(handler)
    if level == logging.NOTSET:  # that of the root logger counts, which leaves out what is no warning
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)


_heard = Shared(_set_up)


def reporter(verbose, burn_in, n_iter):
    """A function of the number of sweeps done that logs a line now and then, if that is wanted, and warns if the fit
    will take hours."""
    begin = last = time.monotonic()
    first, warned, end = None, False, burn_in + n_iter

    def report(t):
        nonlocal begin, first, last, warned
        now = time.monotonic()
        if first is None:  # in the first sweep kernels may have been compiled
            begin, first = now, t
        if now - last < _SECONDS and t < end:
            return
        last, sweep = now, (now - begin) / max(1, t - first)
        left = sweep * (end - t)
        if verbose:
            phase = "burn-in" if t <= burn_in else "sampling"
            logger.info("%s: sweep %d of %d, about %.0f s left", phase, t, end, left)
        if not warned and now - begin > _PATIENCE and left > _LONG:
            warned = True
            warn(
                f"At {sweep:.2g} s a sweep, the {end - t} sweeps that are left of {end} take about {_in_words(left)}. "
                "To shorten it, set target_ess or reduce rows or columns; checkpoint saves progress, verbose=1 reports "
                "progress, and Ctrl-C ends the fit with the draws so far."
            )

    return report


def _in_words(seconds):
    hours = seconds / 3600
    return f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
