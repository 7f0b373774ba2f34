"""Arithmetic that may overflow or underflow on purpose, whatever ``np.seterr`` says."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


def guarded(function: Callable[_Arguments, _Answer]) -> Callable[_Arguments, _Answer]:
    """The function, within which NumPy ignores floating-point errors."""

    @wraps(function)
    def inside(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Answer:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return inside
