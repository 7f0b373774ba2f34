"""Whether what was saved of a model is all that it had."""

import re

import numpy as np

from .._mcmc.draws import STORED
from .mixin import PosteriorMixin

TO_PREDICT = {"classes_", "device_", "sampler_", "n_features_in_", *(f"{name}_draws_" for name in STORED)}
OF_A_FIT = TO_PREDICT | PosteriorMixin.__annotations__.keys() - {"feature_names_in_"}
OF_A_FIT |= {"_column_means", "_column_sd", "_asked", "_saved_run", "_separated", "_rough", "_fitted_rows", "_factors"}


def check_state(state, params, is_own):
    """Raise a ValueError where attributes of a model are missing, or do not agree with one another.

    A model that is not fitted has none of a fit, and one that a callback was given has what it needs to predict. params
    : names of the parameters. is_own : whether this version has saved it; others may have other attributes.
    """
    has = OF_A_FIT & state.keys()
    wanted = (OF_A_FIT if is_own and has - TO_PREDICT else TO_PREDICT) if has else set()
    missing = sorted((wanted | {*params} if is_own else wanted) - state.keys())
    fault = f"it lacks {', '.join(missing[:5])}" if missing else _at_odds(state) if has else ""
    if fault:
        raise ValueError(
            f"This saved model is damaged, or was changed since: {fault}. Load another copy, or fit the model again."
        )


def _at_odds(state):
    """What of the attributes of a fit cannot be right, in words; "" if nothing."""
    coef, n_features, names = state["coef_draws_"], state["n_features_in_"], state.get("feature_names_in_", ())
    others = [state[f"{name}_draws_"] for name in STORED if name != "coef"]
    rules = {
        "device_": lambda: re.fullmatch(r"cpu|cuda:\d{1,3}", state["device_"]),
        "classes_": lambda: np.shape(state["classes_"]) == (2,),
        "n_features_in_": lambda: np.shape(coef)[2:] == (n_features,) and len(names) in (0, n_features),
        "draws": lambda: coef.size and all(values.shape == coef.shape[:2] for values in others),
    }
    for name, is_right in rules.items():
        try:
            if is_right():
                continue
        except (TypeError, ValueError, AttributeError):  # it is of another type
            pass
        return f"its {name} cannot be right"
    return ""
