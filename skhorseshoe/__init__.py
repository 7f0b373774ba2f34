"""Bayesian probit classification with the horseshoe prior."""

from . import datasets, diagnostics, plotting
from ._classifier import HorseshoeProbitClassifier
from ._versions import show_versions
from .selection import HorseshoeSelector

__all__ = ["HorseshoeProbitClassifier", "HorseshoeSelector", "datasets", "diagnostics", "plotting", "show_versions"]
__version__ = "0.1.0.dev0"
