"""Bayesian probit classification with the horseshoe prior.

HorseshoeProbitClassifier is the classifier, and HorseshoeSelector selects columns by it. plotting has displays,
diagnostics tells whether chains have converged, groups finds correlated columns, disk reads rows from files, and
datasets makes data to try it on. inspection asks a whole Pipeline, in the units of its data.
"""

from importlib import import_module as _import_module

from . import datasets, diagnostics, groups, plotting
from ._classifier import HorseshoeProbitClassifier
from ._show_versions import show_versions
from ._version import __version__ as __version__
from .selection import HorseshoeSelector

__all__ = [
    "HorseshoeProbitClassifier",
    "HorseshoeSelector",
    "datasets",
    "diagnostics",
    "disk",
    "groups",
    "inspection",
    "plotting",
    "show_versions",
]


def __dir__():
    return [*__all__, "__version__"]


def __getattr__(name):
    """Two modules when they are asked for: they import pandas, which a fit does not need."""
    if name in ("disk", "inspection"):
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
