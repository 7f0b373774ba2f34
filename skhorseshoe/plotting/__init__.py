"""Displays in scikit-learn's pattern: ``from_estimator`` computes, ``plot`` only draws and imports Matplotlib.

Shades differ in lightness, and what matters differs in shape or line style too, so that nothing is lost in grey or to
colour-blind readers. What is drawn is an attribute, to be restyled with Matplotlib's own methods.
"""

from ._chains import AutocorrelationDisplay, TraceDisplay
from ._checks import DecisionCurveDisplay, PredictiveCheckDisplay
from ._coefficients import CoefficientsDisplay, CredibleSetsDisplay, ShrinkageDisplay
from ._contributions import ContributionsDisplay
from ._effects import EffectsDisplay, GroupEffectsDisplay
from ._prior import PriorDisplay
from ._probabilities import PosteriorCalibrationDisplay, ProbabilityIntervalDisplay
from ._selection import ModelSizeDisplay, SelectionPathDisplay

__all__ = [
    "AutocorrelationDisplay",
    "CoefficientsDisplay",
    "ContributionsDisplay",
    "CredibleSetsDisplay",
    "DecisionCurveDisplay",
    "EffectsDisplay",
    "GroupEffectsDisplay",
    "ModelSizeDisplay",
    "PosteriorCalibrationDisplay",
    "PredictiveCheckDisplay",
    "PriorDisplay",
    "ProbabilityIntervalDisplay",
    "SelectionPathDisplay",
    "ShrinkageDisplay",
    "TraceDisplay",
]
