"""The plan of a fit: which sampler, on which device, and for how many sweeps."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import eigsh

from .._backends import device as _device
from .._backends import limits
from .._backends.limits import needs_conjugate_gradients
from .._data.belonging import sign_of
from .._data.validation import copied_bytes
from .._data.weights import arrange
from .._mcmc.burn_in import AUTO
from .._mcmc.prior import PER_CONTRAST
from .._mcmc.run import DIAGONAL, PRIOR_COORDINATES, Settings
from .._model import PROBIT
from .._utils.memmap import is_on_disk
from .._utils.memory import check_copy
from .._utils.names import names_to_warn_of, printable, with_article
from .._utils.threads import count_threads
from ..diagnostics import MIN_ESS_PER_CHAIN
from . import group_findings
from .parameters import DRAWS_PER_EFFECTIVE, sweeps_or_default, target_ess_or_default
from .sparse_input import array_if_as_small, stored_columns, take_columns
from .warning_texts import Finding

_FEWEST_TUNING_SWEEPS = 100  # fewest sweeps of burn-in in which "hmc" can tune itself
_LARGEST_EXPANSION = 10  # largest row expansion that "auto" accepts
_FEWEST_DIAGONAL_COLUMNS = 2000, 50  # fewest columns with a diagonal mass matrix, of an array and of sparse rows
_FEWEST_FREE_COLUMNS = 200  # fewest of an array whose columns hardly correlate
_LARGEST_VARIANCE = 4.5  # largest of a direction of such columns, in units of that of a column; 4 if neighbours have .5
_ROWS_A_COLUMN = 4  # number of rows by which correlations are judged, in units of the columns
_FACTOR_WORK = 16  # numbers of X whose passes take as long as a factor, which takes the cube of the columns
_SPARSE_SHARE = 0.1  # largest share of numbers that are stored with which columns hardly correlate, in so few rows each
_DEFAULT_BYTES_OF_DRAWS = 2**30  # bytes of draws that n_iter="auto" keeps


class Plan(NamedTuple):
    """All that is decided before the rows are opened."""

    settings: Settings
    device: _device.Device  # where the sampler runs
    n_threads: int
    shape: tuple  # of X, repeated where weights are
    rows: tuple | None  # X, y, weights, codes of groups and offsets as the sampler has them; None on a cluster
    copied: int  # bytes of X copied for the fit
    findings: list  # about the cost of weights, groups of rows, and signs of these where none are given
    stored: np.ndarray | None = None  # columns of X that the sampler has, where it does not have the empty ones
    n_own: int = 0  # parameters of the likelihood's own, of which draws are kept too
    n_contrasts: int = 1  # coefficients of a column


def plan_fit(params, data, done):
    """The ``Plan``; a ValueError where parameters contradict the data. done : sweeps of the fit to continue, or 0."""
    settings = {name: value for name, value in vars(params).items() if name in Settings._fields}
    n_own, n_contrasts = params.likelihood.n_own, params.likelihood.n_predictors
    of_draw = data.shape[1] + n_own if n_contrasts == 1 else (data.shape[1] + 1) * len(data.classes)
    settings |= {"kind": choose_kind(params, data), **_sweeps_and_room(params, of_draw, done)}
    settings, n_threads, extras = Settings(**settings), count_threads(params.n_jobs), _checked_extras(params, data)
    if data.rows is None:
        if data.weighted_by and settings.sampler != "hmc":
            why = "weights (sample_weight, class_weight)"
            raise ValueError(f"sampler={settings.sampler!r} does not take {why} here. Use sampler='hmc' or 'auto'.")
        if extras and params.device not in ("auto", "cpu"):
            raise _only_on_host(extras, params.device)
        device = _device.resolve("cpu")._replace(reason="the rows are on a cluster")
        return Plan(settings, device, n_threads, data.shape, None, 0, [], n_own=n_own, n_contrasts=n_contrasts)
    X, y, weight, *more = data.rows
    if settings.kind == PRIOR_COORDINATES and params.device in (AUTO, "cpu"):
        X = array_if_as_small(X)
    device, copied = _choose_device(params, settings.kind_on_device, X, extras), 0
    if device.name == "cpu" and fits_diagonal(settings.kind, params, data, X):
        settings = settings._replace(kind=DIAGONAL)
    if X.dtype == np.float16 and device.name == "cpu" and not is_on_disk(X):  # no kernel reads float16
        copied = 4 * X.size
        check_copy(copied, "Computing with float16", " Have it on disk (skhorseshoe.disk).")
    findings = []
    if data.expansion > _LARGEST_EXPANSION and settings.sampler != "hmc":
        facts = {"sampler": settings.sampler, "rows": data.shape[0], "repeated": data.expansion * data.shape[0]}
        findings = [Finding("repeated rows", [], "sampler='hmc' uses the weights directly.", facts)]
    if data.groups is None:
        findings += _belonging(X, y, data.columns, params.likelihood)
    else:
        findings += group_findings.of_outcomes(data, y, more[0], weight)
    X, *labels = arrange(X, y, weight, settings.sampler, more)
    copied, shape, stored = copied or copied_bytes(data.original_X, X), X.shape, None
    if settings.kind in (PRIOR_COORDINATES, DIAGONAL) and params.slab_scale == PER_CONTRAST and n_contrasts == 1:
        stored = stored_columns(X, data.unpenalized)
    X = X if stored is None else take_columns(X, stored)
    return Plan(settings, device, n_threads, shape, (X, *labels), copied, findings, stored, n_own, n_contrasts)


def choose_kind(params, data):
    """The kind of chains, see ``Settings``, before the numbers of X are seen; ``fits_diagonal`` sees them."""
    sampler, taking = params.sampler, samplers_for(params.likelihood, data)
    if sampler == "auto":
        sampler = "hmc" if prefers_hmc(params, data) else taking[-1]
    elif sampler not in taking:
        what = _what_is_not_taken(sampler, params.likelihood, data)
        raise ValueError(f"sampler={sampler!r} does not take {what}. Use sampler={taking[0]!r} or 'auto'.")
    return PRIOR_COORDINATES if sampler == "hmc" and fits_prior_coordinates(params, data) else sampler


def samplers_for(likelihood, data):
    """The samplers that take these rows; "auto" is the first or the last."""
    is_wide = needs_conjugate_gradients(data.shape[1])
    if not likelihood.has_latents:
        return ("hmc",)
    if likelihood.n_classes > 2:
        return ("hmc",) if is_wide else ("hmc", "gibbs")
    if data.groups is not None and (is_wide or data.groups.levels is not None):  # of several factors
        return ("hmc",)
    return ("hmc", "gibbs") if data.extras else ("hmc", "gibbs", "pxda")


def prefers_hmc(params, data):
    """Whether the sampler "auto" is "hmc": one reason is enough."""
    has_factor = not needs_conjugate_gradients(data.shape[1])  # a Cholesky factor over the columns
    return (
        params.likelihood.n_classes > 2
        or fits_prior_coordinates(params, data)  # data augmentation mixes badly where columns outnumber rows
        or (has_factor and can_tune(params))
        or not data.whole_weights  # others take weights as repeats
        or (has_factor and data.expansion > _LARGEST_EXPANSION)  # which are too many
    )


def _what_is_not_taken(sampler, likelihood, data):
    """What a sampler does not take, in words."""
    what = data.extras if likelihood is PROBIT else _named(likelihood)
    if not likelihood.has_latents:
        return what
    if data.groups is not None and data.groups.levels is not None:
        return what + (" of several factors" if data.groups.slopes is None else " with slopes")
    return what + " with so many columns" * (sampler == "gibbs")


def _named(likelihood):
    """A likelihood in words."""
    return with_article(f"{likelihood.name} likelihood")


def can_tune(params):
    return params.burn_in == AUTO or params.burn_in >= _FEWEST_TUNING_SWEEPS


def fits_prior_coordinates(params, data):
    """Whether "hmc" takes the coordinates of the prior: a slab, clearly more columns than rows, and no cluster."""
    return data.more_columns and params.slab_scale is not None


def fits_diagonal(kind, params, data, X):
    """Whether chains of this kind get a diagonal mass matrix, of "hmc", for rows in memory, of two classes and without
    groups: where factors of a matrix over the columns would take longer than passes over X, or line moves would, which
    read all rows for each column, and hardly any of its numbers. Where columns correlate factors are worth their time.
    """
    (n, p), is_sparse, tunes = X.shape, issparse(X), can_tune(params)
    is_free = is_sparse and tunes and params.sampler == "auto" and kind != PRIOR_COORDINATES
    if not (is_free or kind == "hmc") or data.groups is not None or params.likelihood.n_classes > 2 or is_on_disk(X):
        return False
    is_bounded = is_sparse and tunes and params.slab_scale is not None
    if data.outnumber and not (is_bounded and n > limits.MOST_FACTORED_ROWS):
        return False
    numbers = X.nnz if is_sparse else X.size
    is_cheaper = p**3 > _FACTOR_WORK * numbers or numbers <= _SPARSE_SHARE * n * p
    if is_sparse or p >= _FEWEST_DIAGONAL_COLUMNS[0]:
        return p >= _FEWEST_DIAGONAL_COLUMNS[is_sparse] and is_cheaper
    return p >= _FEWEST_FREE_COLUMNS and is_cheaper and _hardly_correlate(X)


def _hardly_correlate(X):
    """Whether no direction of an array's columns has much more variance than one of them, by evenly spaced rows."""
    sample = X[:: max(1, len(X) // (_ROWS_A_COLUMN * X.shape[1]))]
    with np.errstate(all="ignore"):  # of columns that no float32 holds
        Z = (sample - sample.mean(axis=0, dtype=np.float64)).astype(np.float32)
        Z /= np.sqrt((Z**2).sum(axis=0))
    np.fill_diagonal(C := np.nan_to_num(Z.T @ Z), 1.0)  # of constant columns too
    start = np.random.default_rng(0).standard_normal(len(C)).astype(C.dtype)
    return bool(eigsh(C, k=1, v0=start, tol=1e-2, return_eigenvectors=False)[0] <= _LARGEST_VARIANCE)


def _sweeps_and_room(params, p, done):
    """How long to sample, and how many draws to keep.

    p : number of coefficients, and of the likelihood's own parameters. done : sweeps of the fit to continue, or 0.
    """
    sweeps, target, room = sweeps_or_default(params.n_iter), target_ess_or_default(params), None
    if params.n_iter == AUTO and params.max_draws is None:  # the draws must not fill the memory
        room = int(_DEFAULT_BYTES_OF_DRAWS / (params.n_chains * (np.dtype(params.draws_dtype).itemsize * p + 24)))
        room = max(room, DRAWS_PER_EFFECTIVE * int(np.ceil(max(target / params.n_chains, MIN_ESS_PER_CHAIN))))
    return {"n_iter": sweeps + done, "room": room, "target_ess": target}


def _belonging(X, y, columns, likelihood):
    """A ``Finding`` where rows look as if they belonged together. columns : attributes of a model that names them."""
    labels = "y" if likelihood.averages_exactly else "y == a class"  # as ``_checked_extras`` has it
    names = names_to_warn_of(columns)
    sign = sign_of(X, y, names)
    if sign is None:
        return []
    facts = {"size": sign.size}
    if sign.column is None:
        cure = f"fit(X, {labels}, groups=...) with a label of each block tells them apart."
        return [Finding("repeats", [], cure, facts)]
    name, j = printable(repr(names[sign.column])), sign.column
    if not sign.is_label:
        cure = f"fit(X, {labels}, groups=...) with a label for each row tells them apart."
        return [Finding("blocks", [names[j]], cure, facts)]
    arguments = f"X.drop(columns={name}), {labels}, groups=X[{name}]" if "feature_names_in_" in columns else ""
    arguments = arguments or f"numpy.delete(X, {j}, axis=1), {labels}, groups=X[:, {j}]"
    cure = f"If it is one, leave it out of X: fit({arguments})."
    return [Finding("identifier", [names[j]], cure, facts)]


def _checked_extras(params, data):
    """What rows and likelihood have that no GPU takes, in words or ""; a ValueError for what no fit takes yet."""
    likelihood = params.likelihood
    if likelihood is PROBIT:
        return data.extras
    extras = _named(likelihood)
    if data.rows is None and likelihood.n_classes == 2:
        cure = "Fit on X.compute(), or on rows on disk (skhorseshoe.disk)."
        raise ValueError(f"Rows of a Dask cluster cannot have {extras} yet. {cure}")
    if data.groups is not None and not likelihood.averages_exactly:
        cure = "Leave groups out, or fit y == a class, which has two."
        raise ValueError(f"Groups of rows cannot have {extras} yet. {cure}")
    return extras


def _choose_device(params, kind, X, extras):
    """The ``Device``; a ValueError if the device that is asked for cannot have these rows. kind : of the chains
    where the rows are, None for chains on the host. extras : of ``_checked_extras``."""
    choice = _device.device_for(params.device, X)
    if extras and choice not in ("auto", "cpu"):
        host = ", and X as an array of the host: X.get()" if _device.on_gpu(X) else ""
        raise _only_on_host(extras, choice, host)
    if extras:
        return _device.resolve("cpu", X.size, issparse(X))._replace(reason=f"rows have {extras}")
    if kind is None and choice == "auto":
        return _device.resolve("cpu", X.size, issparse(X))._replace(reason="X has more columns than rows")
    device = _device.resolve(choice, X.size, issparse(X))
    return device if choice != "auto" else _device.with_room(device, X, params.n_chains, kind)


def _only_on_host(extras, device, more=""):
    return ValueError(f"A fit with {extras} runs on the CPU, and {device!r} is asked for: set device='cpu'{more}.")
