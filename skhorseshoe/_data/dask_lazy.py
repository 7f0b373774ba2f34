"""Methods that stay lazy on Dask collections."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from .validation import is_dask

_Method = TypeVar("_Method", bound=Callable[..., Any])


def by_blocks(method: _Method) -> _Method:
    """A method of a fitted model whose answer for a row depends on it alone: of a Dask collection of rows it returns
    a lazy Dask array of what the ordinary method answers. Its arithmetic is guarded, as by ``guarded``."""

    @functools.wraps(method)
    def answer(model, X, *args, **kwargs):
        if not is_dask(X):
            with np.errstate(all="ignore"):
                return method(model, X, *args, **kwargs)
        from .dask_input import map_rows

        return map_rows(getattr(model, method.__name__), X, args, kwargs)

    return cast(_Method, answer)
