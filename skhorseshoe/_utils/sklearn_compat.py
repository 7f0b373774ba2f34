"""Private names of scikit-learn that its guide for third parties tells estimators to use, and names that older versions
do not have."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.utils._optional_dependencies import check_matplotlib_support as check_matplotlib_support
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils.validation import _check_sample_weight as _check_sample_weight
from sklearn.utils.validation import _get_feature_names as _get_feature_names

if TYPE_CHECKING:  # scikit-learn has no types, nor has what its decorators return
    _Method = TypeVar("_Method", bound=Callable[..., Any])

    def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]: ...
else:
    from sklearn.base import _fit_context as _fit_context

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin

    HAS_CALLBACKS = True
except ImportError:  # scikit-learn below 1.9

    class CallbackSupportMixin:
        """Nothing to support."""

    HAS_CALLBACKS = False
