"""Checks of the parameters of the classifier, each by itself and in combination."""

import math
import time
from collections.abc import Hashable
from dataclasses import make_dataclass, replace
from numbers import Integral, Real
from os import PathLike

import numpy as np

from .._backends import MAX_CHAINS
from .._backends.device import NAMES
from .._mcmc.burn_in import AUTO
from .._mcmc.prior import PER_CONTRAST, WIDE_PER_CONTRAST
from .._model.horseshoe import LARGEST_SCALE, LEAST_SCALE
from .._utils import sklearn_compat
from .._utils.names import numbers_in_fit, plain
from .._utils.sklearn_compat import StrOptions
from ..diagnostics import MIN_ESS_PER_CHAIN

DEFAULT_SWEEPS = 10_000  # largest number of sweeps after burn-in with n_iter="auto"; target_ess ends most fits earlier
DRAWS_PER_EFFECTIVE = 4  # draws to keep for each effective draw that is asked for, at least
_LARGEST_COUNT = 2**53  # largest number of sweeps or draws: a float still distinguishes it from the next
_MOST_THREADS = 1024
_FEWEST_KEPT_DRAWS = 8  # fewest draws of a chain to keep room for: thinning keeps half, and R-hat needs four


class Interval(sklearn_compat.Interval):
    """An interval of numbers, which True and False are not."""

    def is_satisfied_by(self, value):
        value = _plain(value)  # a small integer type cannot be compared with a large bound
        return not isinstance(value, bool) and super().is_satisfied_by(value)


class _Devices(StrOptions):
    def __str__(self):
        return "'auto', 'cpu', 'cuda' or 'cuda:N' with N from 0 to 15"


CONSTRAINTS = {  # each parameter by itself; scikit-learn checks them
    "n_iter": [Interval(Integral, 1, _LARGEST_COUNT, closed="both"), StrOptions({"auto"})],
    "burn_in": [Interval(Integral, 0, _LARGEST_COUNT, closed="both"), StrOptions({"auto"})],
    "n_chains": [Interval(Integral, 1, MAX_CHAINS, closed="both")],
    "thin": [Interval(Integral, 1, _LARGEST_COUNT, closed="both")],
    "max_draws": [Interval(Integral, 2, _LARGEST_COUNT, closed="both"), None],
    "draws_dtype": [StrOptions({"float64", "float32"})],
    "fit_intercept": ["boolean"],
    "global_scale": [Interval(Real, LEAST_SCALE, LARGEST_SCALE, closed="both"), None],
    "expected_nonzero": [Interval(Real, 0, None, closed="neither"), None],
    "group_scale": [Interval(Real, LEAST_SCALE, LARGEST_SCALE, closed="both"), dict],
    "group_slopes": [dict, None],
    "slab_scale": [Interval(Real, LEAST_SCALE, LARGEST_SCALE, closed="both"), StrOptions({"auto", PER_CONTRAST}), None],
    "unpenalized": ["array-like", None],
    "prior_scale": ["array-like", dict, None],
    "standardize": ["boolean"],
    "ordered": ["boolean", list, tuple, np.ndarray],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "warm_start": ["boolean"],
    "max_time": [Interval(Real, 0, None, closed="left"), None],
    "checkpoint": [str, PathLike, None],
    "checkpoint_interval": [Interval(Real, 0, None, closed="left")],
    "target_ess": [Interval(Real, 0, _LARGEST_COUNT, closed="right"), None],
    "coef_summary": [StrOptions({"mean", "median", "selected"})],
    "credible_level": [Interval(Real, 0, 1, closed="neither")],
    "sampler": [StrOptions({"auto", "hmc", "pxda", "gibbs"})],
    "device": [_Devices(set(NAMES))],
    "n_jobs": [Interval(Integral, 1, _MOST_THREADS, closed="both"), Interval(Integral, None, -1, closed="right"), None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
}

# Of a fit, by name; ``slab_as_given`` is ``slab_scale`` before ``settled``, ``ends_at`` the time when sampling ends.
Parameters = make_dataclass("Parameters", [*CONSTRAINTS, "likelihood", "slab_as_given", "ends_at"], frozen=True)


def _plain(value):
    """A NumPy number as a Python number, which cannot overflow and can be written as JSON."""
    return value.item() if isinstance(value, np.generic) else value


def validated(model):
    """The ``Parameters`` of a classifier; a ValueError where they contradict one another."""
    ends_at = time.monotonic() + model.max_time if model.max_time else -math.inf if model.max_time == 0 else math.inf
    values = (_plain(getattr(model, name)) for name in CONSTRAINTS)
    params = Parameters(*values, model._of_two_classes, model.slab_scale, ends_at)
    n_iter, thin, target, max_draws = params.n_iter, params.thin, target_ess_or_default(params), params.max_draws
    if sweeps_or_default(n_iter) < thin:
        name = f"the {DEFAULT_SWEEPS} sweeps of n_iter='auto'" if n_iter == AUTO else "n_iter"
        raise ValueError(f"thin must not exceed {name} (thin={thin}, n_iter={n_iter}): no draw would be kept.")
    is_thinned = max_draws is not None and max_draws < sweeps_or_default(n_iter) // thin
    # Draws of a chain; thinning halves them whenever there are ``max_draws``.
    fewest = max_draws // 2 if is_thinned else max_draws
    if None not in (target, max_draws) and (max_draws < _FEWEST_KEPT_DRAWS or fewest * params.n_chains < target):
        automatic = " (n_iter='auto')" if params.target_ess is None else ""
        enough = max(_FEWEST_KEPT_DRAWS, math.ceil(target / params.n_chains) * (1 + is_thinned))
        raise ValueError(
            f"max_draws={max_draws} keeps too few draws to tell when target_ess={target}{automatic} is reached: as few "
            f"as {fewest} of each of {params.n_chains} chains. Raise max_draws to {enough} or more, or leave it out."
        )
    if params.checkpoint == "":
        raise ValueError("checkpoint='' names no folder: give its path ('.' is the current one), or None for none.")
    if params.checkpoint is not None and params.warm_start:
        raise ValueError("checkpoint and warm_start=True cannot be combined: raise n_iter and fit again to go on.")
    return params


def settled(params, outnumber, likelihood):
    """The parameters for an X, whose ``slab_scale`` is a number, None, or "per_contrast", and for its classes.

    outnumber : whether X has more columns than rows.
    """
    slab = float(params.slab_scale) if isinstance(params.slab_scale, Real) else params.slab_scale
    if slab == AUTO:
        slab = PER_CONTRAST if outnumber else WIDE_PER_CONTRAST if likelihood.n_predictors > 1 else None
    return replace(params, slab_scale=slab, likelihood=likelihood)


def target_ess_or_default(params):
    """The effective sample size at which sampling ends; None if it goes on for ``n_iter`` sweeps."""
    automatic = params.n_iter == AUTO and params.target_ess is None
    return MIN_ESS_PER_CHAIN * params.n_chains if automatic else params.target_ess


def sweeps_or_default(n_iter):
    """The largest number of sweeps after burn-in."""
    return DEFAULT_SWEEPS if n_iter == AUTO else n_iter


def column_mask(unpenalized, names):
    """``unpenalized``, which holds names, indices or a mask, as a mask (p,) of bool. names : of the p columns."""
    p = len(names)
    mask = np.zeros(p, bool)
    if unpenalized is None:
        return mask
    is_list = isinstance(unpenalized, list | tuple) or np.ndim(unpenalized) > 0
    values = [plain(value) for value in unpenalized] if is_list else [[]]
    kinds = {isinstance(value, bool) for value in values}
    if len(kinds) > 1 or not all(isinstance(value, Hashable) for value in values):
        raise ValueError(f"unpenalized must be a list of names or indices, or a mask; got {unpenalized!r:.80}.")
    if kinds == {True}:
        if len(values) != p:
            raise ValueError(f"unpenalized is a mask of {len(values)} entries, but X has {p} columns.")
        mask[:] = values
    else:
        cure = f" Give names of a table, indices from {-p} to {p - 1}, or a mask."
        mask[numbers_in_fit(values, names, "unpenalized", cure, " Give a mask as booleans.")] = True
    return mask


def scales_of_prior(prior_scale, names, unpenalized):
    """``prior_scale``, a number for each column or a mapping from some, as an array (p,). Where it says nothing, that
    is 1 for a column that is shrunk, and infinite, for the wide prior, for an unpenalised one (unpenalized, (p,) bool).
    """
    p = len(names)
    scales = np.where(unpenalized, np.inf, 1.0)
    if prior_scale is None:
        return scales
    if hasattr(prior_scale, "items"):  # a Series too, which goes by its labels
        keys, values = zip(*prior_scale.items(), strict=True) if len(prior_scale) else ((), ())
        cure = f" Give names of a table, or indices from {-p} to {p - 1}."
        columns = numbers_in_fit(keys, names, "prior_scale", cure)
    else:
        is_list = isinstance(prior_scale, list | tuple) or np.ndim(prior_scale) == 1
        columns, values = range(p), list(prior_scale) if is_list else None
        if values is None or len(values) != p:
            what = f"is {prior_scale!r:.80}" if values is None else f"has {len(values)} entries"
            raise ValueError(
                f"prior_scale {what}, but X has {p} columns. Give a list with a number for each of them, or a mapping "
                "from some of them to numbers."
            )
    for j, value in zip(columns, map(_plain, values), strict=True):
        free = ", or inf, for the wide prior of a column that is not shrunk" if unpenalized[j] else ""
        _check_scale(value, f"prior_scale of column {names[j]!r}", free)
        scales[j] = value
    return scales


def _check_scale(value, which, free=""):
    """Raise a ValueError unless a value is a number that may be a scale, or inf where ``free`` says so."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not (LEAST_SCALE <= value <= LARGEST_SCALE or (free and value == np.inf)):
        limits = f"from {LEAST_SCALE:g} to {LARGEST_SCALE:g}{free}"
        raise ValueError(f"{which} is {value!r:.40}: it must be a number {limits}.")


def scales_of_groups(group_scale, factors):
    """``group_scale`` for the factors with these names: a number for a single one, whose name is None, or a tuple."""
    names = list(factors)
    if not isinstance(group_scale, dict):
        return group_scale if names == [None] else (group_scale,) * len(names)
    if names == [None]:
        raise ValueError(f"group_scale is a dict, {group_scale!r:.80}, and groups has one factor: give a number.")
    if {*group_scale} != {*names}:
        raise ValueError(
            f"group_scale has {list(group_scale)!r:.80}, and groups has the factors {names!r:.80}: give a number for "
            "each of these, or one for all."
        )
    for name, value in group_scale.items():
        _check_scale(value, f"group_scale of {name!r}")
    return tuple(float(group_scale[name]) for name in names)
