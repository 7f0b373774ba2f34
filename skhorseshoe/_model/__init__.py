"""What only the model knows: the likelihood of a row, and the horseshoe. Their other halves are ``likelihoods`` and
``priors`` of ``_backends/core``.
"""

from .probit import PROBIT

__all__ = ["PROBIT"]
