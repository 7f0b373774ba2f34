"""Checks of counts that users give."""

from numbers import Integral


def check_count(name, value, smallest=1, optional=False):
    """Raise an error unless the value is a whole number, at least the smallest, or None where it is optional."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number; got {value!r}.")
    if value < smallest:
        raise ValueError(f"{name} must be at least {smallest}; got {value}.")
