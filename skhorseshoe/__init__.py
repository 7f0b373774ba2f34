"""Bayesian probit classification with the horseshoe prior."""

from . import datasets, diagnostics
from ._classifier import HorseshoeProbitClassifier
from ._versions import show_versions

__all__ = ["HorseshoeProbitClassifier", "datasets", "diagnostics", "show_versions"]
__version__ = "0.1.0.dev0"
