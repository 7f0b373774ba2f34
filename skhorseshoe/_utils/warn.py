"""A warning that points to the user's own line, through however many functions it comes."""

import sys
import warnings
from weakref import WeakKeyDictionary

import numpy as np
from joblib import Parallel

_PASSED = "skhorseshoe", "sklearn", "joblib", "contextlib"
_WORKERS = "multiprocessing", "threading", "concurrent", "distributed"  # where no line is the user's
_OF_MANY = "sklearn.model_selection._validation"
_FOLDS = "_fit_and_score_over_thresholds", "_fit_classifier_calibrator_pair"  # where the last fit is in the same module
_HELD_OUT = "test", "val_idx"  # names of the rows that are left out
_said = WeakKeyDictionary()  # causes, by what has run the fits


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


def warn_once(message, category, cause):
    """``warn``, but not again of this cause in the same search. Python's own filters forget what they have shown
    whenever filters change, which they do around every fit of a search."""
    runs = (frame.f_locals.get("self") for frame in _callers() if _module(frame) == "joblib.parallel")
    run = next((one for one in runs if isinstance(one, Parallel)), None)  # none in a worker
    if run is None or cause not in _said.setdefault(run, set()):
        warn(message, category)
        if run is not None:
            _said[run].add(cause)  # not where the warning is made an error, which each fit has to raise


def fold_of():
    """Which fit of a search or a cross-validation of scikit-learn's this is, in words, those of thresholds and
    calibrations too; "" for a fit by itself."""
    for frame in _callers():
        if _module(frame) == _OF_MANY or frame.f_code.co_name in _FOLDS:
            known = frame.f_locals
            if known.get("split_progress"):
                return "fold {} of {}".format(known["split_progress"][0] + 1, known["split_progress"][1])
            held_out = next((known[name] for name in _HELD_OUT if known.get(name) is not None), ())
            return f"the fold without {_rows(np.asarray(held_out))}"
    return ""


def _rows(numbers):
    if len(numbers) == 0:
        return "some rows"
    if len(numbers) > 1 and (np.diff(numbers) == 1).all():
        return f"rows {numbers[0]} to {numbers[-1]}"
    more = f" and {len(numbers) - 3} others" if len(numbers) > 3 else ""
    return f"row{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:3]))}{more}"


def _callers():
    """The frames from the caller of the function that asks on, innermost first."""
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame):
    return frame.f_globals.get("__name__", "")
