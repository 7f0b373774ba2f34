"""The names that scikit-learn keeps private and that its own third-party guide tells estimators to use."""

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

__all__ = ["Interval", "StrOptions", "_check_sample_weight", "_fit_context"]
