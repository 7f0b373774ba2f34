"""What only the model knows: the likelihood of a row, in Python. ``_backends/core/likelihoods`` has its other half."""

from .probit import PROBIT

__all__ = ["PROBIT"]
