"""A warning that points to the user's own line, through however many functions it comes."""

import sys
import warnings

_OURS = "skhorseshoe", "sklearn", "contextlib"


def warn(message, category=UserWarning):
    """A warning at the innermost call that is neither this library's nor scikit-learn's."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
