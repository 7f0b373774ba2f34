"""Saving and loading of a classifier, and checks of the saved state."""

import re
from os import PathLike, fspath

import numpy as np

from .. import _version
from .._mcmc.draws import STORED
from .._utils.names import are_names, plain
from .._utils.warn import warn
from .mixin import PosteriorMixin

TO_PREDICT = {"classes_", "device_", "sampler_", "n_features_in_", *(f"{name}_draws_" for name in STORED)}
OF_SLOPES = "group_correlation_draws_", "_group_slopes"
OF_GROUPS = "groups_", "group_scale_draws_", "group_effect_draws_", "group_effect_moments_", "_group_stride"
_BY_FACTOR = OF_GROUPS[:3]
OF_SOME_FITS = (
    *("feature_names_in_", "_column_labels", "_has_offset", "ordered_classes_", "_own_draws", *OF_GROUPS, *OF_SLOPES),
    *("_derived", "_odds_factor", "_others_excluded", "_predictors", "_favours", "_outcomes"),  # of models made of one
)
OF_A_FIT = TO_PREDICT | PosteriorMixin.__annotations__.keys() - {*OF_SOME_FITS}
OF_A_FIT |= {"_column_means", "_column_sd", "_fit_facts", "_saved_run", "_separated", "_rough"}
OF_A_FIT |= {"_fitted_rows", "_factors", "_dependent"}


def check_state(state, params, is_own):
    """Raise a ValueError if attributes of a model are missing, or do not agree with one another.

    A model that is not fitted has no attributes of a fit; one from a callback has those that it needs to predict.
    params : names of parameters. is_own : whether this version has saved it; other versions may have other attributes.
    """
    fit_attributes = OF_A_FIT & state.keys()
    required = (OF_A_FIT if is_own and fit_attributes - TO_PREDICT else TO_PREDICT) if fit_attributes else set()
    if fit_attributes - TO_PREDICT and "groups_" in state:
        required = required | {*OF_GROUPS}
    missing = sorted((required | {*params} if is_own else required) - state.keys())
    fault = f"it lacks {', '.join(missing[:5])}" if missing else _at_odds(state) if fit_attributes else ""
    if fault:
        raise ValueError(
            f"This saved model is damaged, or was changed since: {fault}. Load another copy, or fit the model again."
        )


def _fit_groups(state):
    """Whether the attributes about groups agree with one another."""
    several, (chains, n_draws) = isinstance(state["groups_"], dict), state["coef_draws_"].shape[:2]

    def by_name(values):
        return values if several else {None: values}

    sizes, scales = {name: len(labels) for name, labels in by_name(state["groups_"]).items()}, []
    if "_group_slopes" in state:  # a factor has several effects
        scales += state["group_correlation_draws_"].values()
        factors, of = [*sizes], state["_group_slopes"]["factor"]
        sizes = {name: sizes[factors[k]] for name, k in zip(state["group_scale_draws_"], of, strict=True)}
    if "group_scale_draws_" in state:
        scales += [by_name(state["group_scale_draws_"])[name] for name in sizes]
    fits = all(np.shape(draws) == (chains, n_draws) for draws in scales)
    if "group_effect_draws_" not in state:
        return fits
    effects, stride = by_name(state["group_effect_draws_"]), state["_group_stride"]
    for name, n in sizes.items():
        kept, moments = effects[name].shape[1], [state["group_effect_moments_"][which] for which in ("mean", "sd")]
        fits = fits and stride >= 1 and effects[name].shape == (chains, kept, n) and kept * stride <= n_draws
        fits = fits and all(by_name(values)[name].shape == (n,) for values in moments)
    return fits


def _at_odds(state):
    """An attribute of a fit that is invalid, in words; "" if none is."""
    coef, n_features, names = state["coef_draws_"], state["n_features_in_"], state.get("feature_names_in_", ())
    small_draws = [state[f"{name}_draws_"] for name in STORED if name not in ("coef", "intercept")]
    of_classes = np.shape(coef)[2:3] if np.ndim(coef) > 3 else ()  # of several classes without an order
    classes = of_classes or np.shape(state.get("ordered_classes_", (0, 1)))
    rules = {
        "device_": lambda: re.fullmatch(r"cpu|cuda:\d{1,3}", state["device_"]),
        "classes_": lambda: np.shape(state["classes_"]) == classes,
        "_own_draws": lambda: (
            "ordered_classes_" not in state
            or state["_own_draws"].shape == (*coef.shape[:2], len(state["classes_"]) - 2)
        ),
        "n_features_in_": lambda: np.shape(coef)[2:] == (*of_classes, n_features) and len(names) in (0, n_features),
        "groups_": lambda: "groups_" not in state or _fit_groups(state),
        "draws": lambda: (
            coef.size
            and all(values.shape == coef.shape[:2] for values in small_draws)
            and state["intercept_draws_"].shape == (*coef.shape[:2], *of_classes)
        ),
    }
    for name, is_valid in rules.items():
        try:
            if is_valid():
                continue
        except (TypeError, ValueError, AttributeError, KeyError):  # it is of another type
            pass
        return f"its {name} cannot be right"
    return ""


def _plain_state(name, value):
    """A path as text, names of pandas as a list: a POSIX path cannot be loaded on Windows, skops requires trust in each
    type, and it saves a pandas Index, but cannot load it."""
    value = fspath(value) if isinstance(value, PathLike) else value
    if name == "prior_scale" and hasattr(value, "items"):
        return {plain(key): plain(number) for key, number in value.items()}
    if name == "group_slopes" and isinstance(value, dict):
        return {factor: [*map(plain, names)] if are_names(names) else names for factor, names in value.items()}
    return np.asarray(value).tolist() if hasattr(value, "to_numpy") else value


class SavedMixin:
    """Pickling of a classifier."""

    def __getstate__(self):
        """The state, with the version that saves it."""
        plain = {name: _plain_state(name, value) for name, value in super().__getstate__().items()}
        return {**plain, "_skhorseshoe_version": _version.__version__}

    def __setstate__(self, state):
        if not isinstance(state, dict) or "n_iter" not in state:
            raise ValueError(
                "This is not the saved state of a HorseshoeProbitClassifier: parameters are missing. The file was "
                "damaged or written by something else; fit the model again."
            )
        saved, version = state.pop("_skhorseshoe_version", "unknown"), _version.__version__
        if saved != version:
            warn(
                f"This model was saved by skhorseshoe {saved} and is being loaded by skhorseshoe {version}: what it "
                "predicts may differ. Fit it again, or install the version that saved it."
            )
        check_state(state, self._get_param_names(), saved == version)
        super().__setstate__(state)
