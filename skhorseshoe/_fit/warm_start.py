"""Warm starts: what a fitted model keeps of its chains, and whether these may go on."""

from numbers import Integral

import numpy as np

from .._mcmc.draws import STORED
from .._mcmc.prior import SLAB_TEXT, SLABS
from .._mcmc.run import DIAGONAL
from .._utils.atomic_files import differences
from .._utils.warn import warn

_OF_SETTINGS = "sampler", "burn_in", "n_chains", "thin", "max_draws", "draws_dtype"


def earlier(model):
    """What a fitted model keeps of its chains, with the draws; None, and a warning, if it keeps nothing."""
    if not hasattr(model, "coef_draws_"):
        return None
    saved = vars(model).get("_saved_run")  # which the copy of a model for a callback does not have
    if saved is None:
        warn(
            "warm_start=True finds no chains to go on with: a fit without warm_start=True keeps none, nor does a model "
            "that is made of a fitted one. So this fit starts anew, without its draws."
        )
        return None
    draws = {name: getattr(model, f"{name}_draws_") for name in STORED}
    return {**saved, "draws": {**saved["draws"], **draws}}


def check_same(saved, now):
    """Raise a ValueError that names what has changed since the chains began. now : of ``dependencies``."""
    if different := differences(saved["what"], now):
        raise ValueError(
            "warm_start=True continues the chains of the last fit, but these have changed since: "
            f"{different}. Fit with warm_start=False, or a clone of the estimator, to start anew."
        )


def check_seed(saved, problem, random_state):
    """Warn if ``random_state`` is a whole number, and the chains have begun with another seed."""
    if isinstance(random_state, Integral) and not np.array_equal(saved["key"], problem.key):
        warn(
            f"random_state={random_state} has no effect: warm_start=True continues the chains of the last fit with the "
            "seed that they began with. Fit with warm_start=False to start anew."
        )


def dependencies(params, problem, settings):
    """All that the draws depend on, except the seed and the number of sweeps, by the name that a user gave it.

    params : those of the classifier. tau_0 follows from one of two of them, and from the rows, which have checksums.
    """
    rows, columns, slab_scale = problem.rows, problem.rows.columns, problem.fixed.slab_scale
    return {
        "likelihood": rows.likelihood.name,
        **{name: getattr(settings, name) for name in _OF_SETTINGS},
        "fit_intercept": columns.fit_intercept,
        "global_scale": None if params.global_scale == 1 else params.global_scale,  # None is 1
        "expected_nonzero": params.expected_nonzero,
        "slab_scale": SLAB_TEXT.format(SLABS[params.slab_scale]) if np.ndim(slab_scale) else slab_scale,
        "standardize": columns.standardize,
        "unpenalized": np.flatnonzero(columns.unpenalized).tolist(),
        "prior_scale": [[int(j), float(columns.prior_scale[j])] for j in np.flatnonzero(columns.has_own_scale)],
        "shape of X": rows.shape,
        "dtype of X": rows.dtype.name,
        "group_scale": None if rows.groups is None else rows.groups.scale,
        "names of groups": None if rows.groups is None else list(rows.groups.names),
        "place of X": "memory" if settings.kind == DIAGONAL else None,  # on disk the chains are others
        **{f"checksum of {name}": value for name, value in rows.checksums().items()},
    }
