"""What ``verbose`` shows, through the logger "skhorseshoe"."""

import logging
import time
from collections import deque
from contextlib import contextmanager, nullcontext
from itertools import pairwise

from .shared_context import Shared
from .warn import warn

logger = logging.getLogger("skhorseshoe")

_SECONDS = 5.0  # between two lines
_PATIENCE, _LONG = 20.0, 2 * 3600  # seconds after which a fit is told to be long, and from how many that are left
_SOON, _MINUTE = 10.0, 60.0  # the same where a line tells that it is not short, and then another one every minute


def visible(verbose):
    """A context in which the logger is heard during a fit: by the application's own handlers if it has any, at its own
    level if it has set one for this logger."""
    return _heard if verbose else nullcontext()


@contextmanager
def _set_up():
    handler, level = logging.StreamHandler(), logger.level
    handler.setFormatter(logging.Formatter("[skhorseshoe] %(message)s"))
    if not logger.hasHandlers():
        logger.addHandler(handler)
    if level == logging.NOTSET:  # that of the root logger counts, which leaves out what is no warning
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)  # if it was added


_heard = Shared(_set_up)


def reporter(verbose, end, line, too_long=None):
    """A function of the number of steps done that logs a line now and then, if that is wanted; or else one if more than
    a minute is left, and then one every minute.

    end : function that returns the number of all steps, as far as it can be told, or None. line : function of the steps
    done and the seconds left, None if not known. too_long : function of the steps done, the seconds a step takes and
    those left, whose words are a warning if hours are left.
    """
    begin = last = time.monotonic()
    first, told, warned = None, None, too_long is None  # told : when the last line was that nobody has asked for
    marks = deque([(0, begin)], maxlen=4)  # the newest reports: how many steps were done, and when

    def report(t):
        nonlocal begin, first, last, told, warned
        now = time.monotonic()
        if first is None:  # in the first step kernels may have been compiled
            begin, first = now, t
        marks.append((t, now))
        if now - last < _SECONDS and (end is None or t != end()):
            return
        # In further steps more of them are compiled, in two one after the other where a phase begins.
        recent = [(after - before) / max(1, n - m) for (m, before), (n, after) in pairwise(marks)]
        last, step = now, min((now - begin) / max(1, t - first), *recent)
        left = None if end is None else step * (end() - t)
        if verbose:
            logger.info(line(t, left))
        elif told is not None and now - told >= _MINUTE:
            told = now
            logger.warning(line(t, left))
        elif told is None and end is not None and now - begin > _SOON and left > _MINUTE:
            told = now
            logger.warning("%s (verbose=1 tells more)", line(t, left))  # to standard error, or the user's handlers
        if not warned and now - begin > _PATIENCE and left > _LONG:
            warned = True
            warn(too_long(t, step, left))

    return report
