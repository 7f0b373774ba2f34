"""Bayesian probit classification with the horseshoe prior.

HorseshoeProbitClassifier is the classifier, and HorseshoeSelector selects columns by it. plotting has displays,
diagnostics tells whether chains have converged, sets finds sets of columns that are correlated, disk reads rows
from files, and datasets makes data to try it on. inspection asks a whole Pipeline, in the units of its data, and terms
asks of columns that belong together, such as the levels of a category. export writes a model for other servers.
"""

from . import datasets, diagnostics, disk, export, inspection, plotting, sets, terms
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
    "export",
    "inspection",
    "plotting",
    "sets",
    "show_versions",
    "terms",
]


def __dir__():
    return [*__all__, "__version__"]
