"""Methods whose answer is lazy for Dask collections."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from .input_table import is_dask, refuse_dask

_Method = TypeVar("_Method", bound=Callable[..., Any])


def by_blocks(method: _Method) -> _Method:
    """Decorator of methods of a fitted model whose answer for a row depends on that row alone. For a Dask collection
    the method returns a lazy Dask array of the answers. Its arithmetic is guarded, as by ``guarded``."""

    names = [*inspect.signature(method).parameters][2:]  # of the arguments after the rows

    @functools.wraps(method)
    def answer(model, X, *args, **kwargs):
        if not is_dask(X):
            with np.errstate(all="ignore"):
                return method(model, X, *args, **kwargs)
        arguments = {**dict(zip(names, args, strict=False)), **kwargs}
        refuse_dask(X, groups=arguments.get("groups"), offset=arguments.get("offset"))
        from .dask_input import map_rows

        return map_rows(getattr(model, method.__name__), X, args, kwargs)

    return cast(_Method, answer)
