"""A warning that points to the user's own line, through however many functions it comes."""

import sys
import warnings
from weakref import WeakKeyDictionary

from joblib import Parallel

_PASSED = "skhorseshoe", "sklearn", "joblib", "contextlib"
_WORKERS = "multiprocessing", "threading", "concurrent", "distributed"  # where no line is the user's
_OF_MANY = "sklearn.model_selection._validation"
_FOLDS = "_fit_and_score_over_thresholds", "_fit_classifier_calibrator_pair"  # where the last fit is in the same module
_said = WeakKeyDictionary()  # messages, by what has run the fits


def warn(message, category=UserWarning):
    """A warning at the innermost call that is no library's; in a worker, at this library's outermost one."""
    level = outermost = 1
    for level, frame in enumerate(_callers(), start=2):
        package = _module(frame).partition(".")[0]
        if package not in _PASSED:
            level = outermost if package in _WORKERS else level
            break
        if package == "skhorseshoe":
            outermost = level
    warnings.warn(message, category, stacklevel=level)


def warn_once(message, category=UserWarning):
    """``warn``, but not again in the same search. Python's own filters forget what they have shown whenever filters
    change, which they do around every fit of a search."""
    runs = (frame.f_locals.get("self") for frame in _callers() if _module(frame) == "joblib.parallel")
    run = next((one for one in runs if isinstance(one, Parallel)), None)  # none in a worker
    if run is None or message not in _said.setdefault(run, set()):
        warn(message, category)
        if run is not None:
            _said[run].add(message)  # not where the warning is made an error, which each fit has to raise


def is_one_of_many():
    """Whether this is a fit of a search or a cross-validation of scikit-learn's, those of thresholds too."""
    return any(_module(frame) == _OF_MANY or frame.f_code.co_name in _FOLDS for frame in _callers())


def _callers():
    """The frames from the caller of the function that asks on, innermost first."""
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame):
    return frame.f_globals.get("__name__", "")
