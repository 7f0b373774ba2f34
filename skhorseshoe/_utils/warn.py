"""Warnings that point to the user's own line."""

import sys
import warnings
from weakref import WeakKeyDictionary

import numpy as np
from joblib import Parallel

_LIBRARIES = "skhorseshoe", "sklearn", "joblib", "contextlib"  # packages whose lines are not the user's
_WORKERS = "multiprocessing", "threading", "concurrent", "distributed"  # packages that run workers
_VALIDATION = "sklearn.model_selection._validation"  # module whose functions fit once for each fold
# The same in modules that make the last fit too.
_FOLDS = "_fit_and_score_over_thresholds", "_fit_classifier_calibrator_pair"
_HELD_OUT = "test", "val_idx"  # their local variables with the rows that are left out
_said = WeakKeyDictionary()  # causes that were warned of, by the ``Parallel`` that runs the fits


def warn(message, category=UserWarning):
    """Warn at the innermost call that is no library's; in a worker, at this library's outermost call."""
    level = outermost = 1
    for level, frame in enumerate(_callers(), start=2):
        package = _module_of(frame).partition(".")[0]
        if package not in _LIBRARIES:
            level = outermost if package in _WORKERS else level
            break
        if package == "skhorseshoe":
            outermost = level
    warnings.warn(message, category, stacklevel=level)


def warn_once(message, category, cause):
    """``warn``, but only once for a cause in a search. Python's own filters forget which warnings they have shown
    whenever filters change, and scikit-learn changes them around every fit of a search."""
    runs = (frame.f_locals.get("self") for frame in _callers() if _module_of(frame) == "joblib.parallel")
    run = next((obj for obj in runs if isinstance(obj, Parallel)), None)  # none in a worker
    if run is None or cause not in _said.setdefault(run, set()):
        warn(message, category)
        if run is not None:
            _said[run].add(cause)  # not reached if warnings are errors, so that each fit raises one


def fold_of():
    """Which fit of a search, cross-validation, threshold tuning or calibration this is, in words; "" if none."""
    for frame in _callers():
        if _module_of(frame) == _VALIDATION or frame.f_code.co_name in _FOLDS:
            variables = frame.f_locals
            if variables.get("split_progress"):
                return "fold {} of {}".format(variables["split_progress"][0] + 1, variables["split_progress"][1])
            held_out = next((variables[name] for name in _HELD_OUT if variables.get(name) is not None), ())
            return f"the fold without {_rows(np.asarray(held_out))}"
    return ""


def is_text_behind_numbers():
    """Whether scikit-learn, in a call above in this process, has put numbers in place of labels that are text."""
    for frame in _callers():
        if _module_of(frame).startswith("sklearn."):
            owners = (frame.f_locals.get(name) for name in ("le", "self"))  # an encoder, an ensemble
            found = [getattr(owner, "__dict__", {}).get("classes_") for owner in owners]  # no property, of an older fit
            if any(isinstance(classes, np.ndarray) and classes.dtype.kind in "OUT" for classes in found):
                return True
    return False


def _rows(numbers):
    if len(numbers) == 0:
        return "some rows"
    if len(numbers) > 1 and (np.diff(numbers) == 1).all():
        return f"rows {numbers[0]} to {numbers[-1]}"
    more = f" and {len(numbers) - 3} others" if len(numbers) > 3 else ""
    return f"row{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:3]))}{more}"


def _callers():
    """The frames above the function that calls this one, innermost first."""
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module_of(frame):
    return frame.f_globals.get("__name__", "")
