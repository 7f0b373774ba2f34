"""Bayesian probit classification with the horseshoe prior."""

from importlib import import_module

from . import datasets, diagnostics, groups, plotting
from ._classifier import HorseshoeProbitClassifier
from ._versions import show_versions
from .selection import HorseshoeSelector

__all__ = [
    "HorseshoeProbitClassifier",
    "HorseshoeSelector",
    "datasets",
    "diagnostics",
    "disk",
    "groups",
    "plotting",
    "show_versions",
]
__version__ = "0.1.0.dev0"


def __getattr__(name):
    """``skhorseshoe.disk`` when it is asked for: it imports pandas, which a fit does not need."""
    if name == "disk":
        return import_module(".disk", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
