"""What only the model knows: the likelihood of a row, and the horseshoe. Their other halves are ``likelihoods`` and
``priors`` of ``_backends/core``.
"""

from .multinomial_probit import MultinomialProbit
from .ordered_probit import OrderedProbit
from .probit import PROBIT

__all__ = ["PROBIT", "likelihood_of"]


def likelihood_of(of_two, n_classes, is_ordered):
    """The likelihood of so many classes. of_two : that of two classes."""
    if n_classes == 2:
        return of_two
    return OrderedProbit(n_classes) if is_ordered else MultinomialProbit(n_classes)
