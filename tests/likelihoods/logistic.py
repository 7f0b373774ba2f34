"""The logistic likelihood, which the package does not have, from Python; its other half is ``logistic.hpp``."""

from pathlib import Path

import numpy as np
from scipy import special

from skhorseshoe import HorseshoeProbitClassifier

MACROS = f'FURTHER_HEADER="{Path(__file__).with_suffix(".hpp").as_posix()}"', "FURTHER=Logistic"


class Logistic:
    """P(y = 1) = 1 / (1 + exp(-eta))."""

    name, number, has_latents, averages_exactly, series = "logistic", 2, False, False, None
    n_classes, n_predictors, n_own, largest_information, typical_information = 2, 1, 0, 0.25, 0.15

    def probability(self, eta, ops=None, out=None):
        return special.expit(eta, out=out)

    def log_density(self, t, out=None):
        return special.log_expit(t, out=out)

    def predictor(self, p):
        return special.logit(p)

    def density(self, eta):
        return special.expit(eta) * special.expit(-eta)

    information = density

    def information_at(self, p):
        return p * (1 - p)

    def shrunk_by(self, variance):
        return np.sqrt(1 + np.pi / 8 * variance)


LOGISTIC = Logistic()


class HorseshoeLogisticClassifier(HorseshoeProbitClassifier):
    """Fits with the core that was compiled with ``MACROS``."""

    _of_two_classes = LOGISTIC
