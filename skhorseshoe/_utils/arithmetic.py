"""Arithmetic whose overflow and underflow are meant, or are seen in what comes out, whatever ``np.seterr`` asks for."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def guarded(function: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """A public function within which NumPy says nothing of floating-point errors."""

    @wraps(function)
    def inside(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return inside
