"""Progress of a fit, in the logger "skhorseshoe"."""

import logging
import time
from collections import deque
from contextlib import contextmanager, nullcontext
from itertools import pairwise

from .shared_context import Shared
from .warn import warn

logger = logging.getLogger("skhorseshoe")

_SECONDS_BETWEEN_LINES = 5.0  # fewest seconds between two lines
_NEWEST = 100  # number of the last steps, at most, whose mean time the next ones are expected to take
_PATIENCE, _LONG = 20.0, 2 * 3600  # seconds after which a fit warns if more than ``_LONG`` seconds are left
_SOON, _MINUTE = 10.0, 60.0  # seconds after which it logs a line in any case if more than ``_MINUTE`` are left


def visible(verbose):
    """A context in which the logger's lines are shown, by the application's handlers and level if it has set any."""
    return _heard if verbose else nullcontext()


@contextmanager
def _set_up():
    handler, level = logging.StreamHandler(), logger.level
    handler.setFormatter(logging.Formatter("[skhorseshoe] %(message)s"))
    if not logger.hasHandlers():
        logger.addHandler(handler)
    if level == logging.NOTSET:  # the root logger's level, WARNING, would count
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)  # if it was added


_heard = Shared(_set_up)


def reporter(verbose, end, line, too_long=None):
    """A function of the number of steps done that logs a line now and then if ``verbose``. If not, it logs one alone,
    which is shown all the same, and only if more than a minute is left.

    end : function that returns the expected number of all steps, or None. line : function of the steps done and the
    seconds that a step takes that returns the line. too_long : function of the steps done, the seconds a step takes and
    the seconds left that returns the text of a warning, which is given if hours are left.
    """
    begin = last = time.monotonic()
    told, warned = False, too_long is None  # told : whether the line without ``verbose`` was logged
    marks = deque(maxlen=_NEWEST + 1)  # the newest reports: steps done, and time

    def report(t):
        nonlocal begin, last, told, warned
        now = time.monotonic()
        if not marks:  # the first step may have compiled kernels
            begin = now
        marks.append((t, now))
        if now - last < _SECONDS_BETWEEN_LINES and not (verbose and end is not None and t == end()):
            return
        seconds = sorted((stop - start) / max(1, n - m) for (m, start), (n, stop) in pairwise(marks))
        seconds = seconds[:-2] or seconds or [0.0]  # where a phase begins, two steps may compile kernels
        last, seconds_per_step = now, sum(seconds) / len(seconds)
        seconds_left = 0.0 if end is None else seconds_per_step * (end() - t)
        if verbose:
            logger.info(line(t, seconds_per_step))
        elif not told and now - begin > _SOON and seconds_left > _MINUTE:
            told = True
            with _heard:
                logger.info("%s (verbose=1 tells more)", line(t, seconds_per_step))
        if not warned and now - begin > _PATIENCE and seconds_left > _LONG:
            warned = True
            warn(too_long(t, seconds_per_step, seconds_left))

    return report
