"""Bayesian probit classification with the horseshoe prior."""

from . import datasets, diagnostics, plotting
from ._classifier import HorseshoeProbitClassifier

__all__ = ["HorseshoeProbitClassifier", "datasets", "diagnostics", "plotting"]
__version__ = "0.1.0.dev0"
