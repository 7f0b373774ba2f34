"""How a fit goes about it: which sampler, on which device, for how many sweeps, and in how much memory."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._backends import device as _device
from .._backends.limits import is_without_factor
from .._data.belonging import sign_of
from .._data.row_blocks import layout
from .._data.validation import made_of
from .._data.weights import arrange
from .._mcmc import group_draws
from .._mcmc.burn_in import AUTO
from .._mcmc.grouped_chains import products_kept
from .._mcmc.run import Settings
from .._utils import memory
from .._utils.memmap import is_on_disk
from .._utils.memory import _addresses_left, check_copy, in_words
from .._utils.names import names_of, printable
from .._utils.threads import count_threads
from ..diagnostics import MIN_ESS_PER_CHAIN
from .parameters import sweeps_of, target_of
from .warnings import Finding
from .watched import MOST_ROWS

_TUNING = 100  # sweeps of burn-in that "hmc" needs to tune itself
_REPEATED = 10  # times as many rows as there are, which "auto" does not make for the sake of whole weights
_ROOM = 2**30  # bytes of the draws that n_iter="auto" keeps
_FEWEST = 4  # times as many draws as the effective ones that are its goal are kept all the same


class Plan(NamedTuple):
    """All that is settled before the rows are opened."""

    settings: Settings
    device: _device.Device  # where the sampler runs
    n_threads: int
    shape: tuple  # of X as the sampler has it
    rows: tuple | None  # X, y, weights, numbers of groups and offsets as the sampler has them; None on a cluster
    copied: int  # bytes of X that are made for the fit
    findings: list  # about what weights cost, and rows that belong together


def plan_fit(params, data, done):
    """The ``Plan``; a ValueError where parameters contradict the data. done : sweeps of earlier fits, to go on with."""
    many, heavy, of_prior = is_without_factor(data.shape[1]), data.times > _REPEATED, fits_prior(params, data)
    sampler, taking = params.sampler, _taking(data, many)
    if sampler == "auto":
        sampler = "hmc" if of_prior else choose(params.burn_in, data.whole and (many or not heavy), many, taking)
    elif sampler not in taking:
        here = " with so many columns" if sampler == "gibbs" else ""
        raise ValueError(f"sampler={sampler!r} does not take {data.more}{here}. Use sampler={taking[0]!r} or 'auto'.")
    of_prior = of_prior and sampler == "hmc"
    settings = {name: value for name, value in vars(params).items() if name in Settings._fields}
    settings |= {"sampler": sampler, "of_prior": of_prior, **_lengths(params, data.shape[1], done)}
    settings = Settings(**settings)
    n_threads = count_threads(params.n_jobs)
    if data.rows is None:
        if data.weighted_by and sampler != "hmc":
            why = "weights (sample_weight, class_weight)"
            raise ValueError(f"sampler={sampler!r} does not take {why} here. Use sampler='hmc' or 'auto'.")
        device = _device.resolve("cpu")._replace(reason="the rows are on a cluster")
        return Plan(settings, device, n_threads, data.shape, None, 0, [])
    X, *labels = data.rows
    device, copied = _choose_device(params, settings.kind, X, data.more), 0
    if X.dtype == np.float16 and device.name == "cpu" and not is_on_disk(X):  # which no kernel reads
        copied = 4 * X.size
        check_copy(copied, "Computing with float16", " Have it on disk (skhorseshoe.disk).")
    y, weight, *more = labels
    found = _costs(data, sampler, heavy) + ([] if data.groups is not None else _belonging(X, y, data.columns))
    X, *labels = arrange(X, y, weight, sampler, *more)
    copied = copied or made_of(data.given, X)
    return Plan(settings, device, n_threads, X.shape, (X, *labels), copied, found)


def fits_prior(params, data):
    """Whether "hmc" takes the coordinates of the prior: clearly more columns than rows, and a slab. On a cluster, where
    rows are many, it does not."""
    return data.more_columns and params.slab_scale is not None


def _taking(data, many):
    """The samplers that take what rows have beside their weights. many : whether columns are too many for a factor."""
    if data.groups is not None and many:
        return ("hmc",)
    return ("hmc", "gibbs") if data.more else ("hmc", "gibbs", "pxda")


def _lengths(params, p, done):
    """How long to sample, and how many draws to keep. done : sweeps of earlier fits."""
    sweeps, target, room = sweeps_of(params.n_iter), target_of(params), None
    if params.n_iter == AUTO and params.max_draws is None:  # nobody has asked for so many that they fill the memory
        room = int(_ROOM / (params.n_chains * (np.dtype(params.draws_dtype).itemsize * p + 24)))
        room = max(room, _FEWEST * int(np.ceil(max(target / params.n_chains, MIN_ESS_PER_CHAIN))))
    return {"n_iter": sweeps + done, "room": room, "target_ess": target}


def choose(burn_in, whole_weights, many, taking=("pxda",)):
    """The sampler for "auto": "hmc", unless burn-in is too short to tune it or the columns are too ``many`` for its
    factors; but only "hmc" can have all weights. taking : those that take what else rows have; the last is the one for
    short burn-in."""
    return "hmc" if ((burn_in == AUTO or burn_in >= _TUNING) and not many) or not whole_weights else taking[-1]


def _costs(data, sampler, heavy):
    """A ``Finding`` where weights make the fit slow."""
    if heavy and sampler != "hmc":
        facts = {"sampler": sampler, "rows": data.shape[0], "repeated": data.times * data.shape[0]}
        return [Finding("repeated rows", [], "sampler='hmc' uses the weights directly.", facts)]
    return []


def _belonging(X, y, columns):
    """A ``Finding`` where rows look as if they belonged together. columns : attributes of a model that names them."""
    names = names_of(SimpleNamespace(**columns))
    sign = sign_of(X, y, names)
    if sign is None:
        return []
    facts = {"size": sign.size}
    if sign.column is None:
        return [Finding("repeats", [], "fit(X, y, groups=...) with a label of each block tells them apart.", facts)]
    name, j = printable(repr(names[sign.column])), sign.column
    told = f"X.drop(columns={name}), y, groups=X[{name}]" if "feature_names_in_" in columns else ""
    told = told or f"numpy.delete(X, {j}, axis=1), y, groups=X[:, {j}]"
    cure = f"If it is one, leave it out of X: fit({told})."
    return [Finding("identifier", [names[j]], cure, facts)]


def _choose_device(params, sampler, X, more):
    """The ``Device``; a ValueError if the sampler cannot have this X, or the device cannot. more : what rows have that
    no GPU takes, or ""."""
    asked = _device.beside(params.device, X)
    if more and asked not in ("auto", "cpu"):
        host = ", and X as an array of the host: X.get()" if _device.on_gpu(X) else ""
        raise ValueError(f"A fit with {more} runs on the CPU, and {asked!r} is asked for: set device='cpu'{host}.")
    if more:
        return _device.resolve("cpu", X.size, issparse(X))._replace(reason=f"rows have {more}")
    if sampler == "prior" and asked == "auto":
        return _device.resolve("cpu", X.size, issparse(X))._replace(reason="X has more columns than rows")
    found = _device.resolve(asked, X.size, issparse(X))
    return found if asked != "auto" else _device.with_room(found, X, params.n_chains, sampler)


def forecast(n, p, n_chains, n_draws, n_threads, sampler, item=8, no_matrix=False):
    """Bytes that a fit allocates beside X: its draws, with ``item`` bytes a coefficient, and its working set.

    no_matrix : whether data augmentation has passes over X in place of X'X.
    """
    q = p + 1
    draws = n_chains * n_draws * (item * q + 16)
    if p > n:  # what is watched of them, in float32, and its next copy; and the rows that are, with their centre
        watched = min(n, MOST_ROWS)
        draws += n_chains * n_draws * 8 * watched + (4 * watched + 16) * q
    if sampler == "prior":
        matrices = 4 * min(n_threads, n_chains) * n * n  # over the rows, of the shrinkage factors
        vectors = (40 * n_chains + 40) * q
        blocks = 4 * n_threads * max(2**20, n)
        return draws, 8 * (matrices + vectors + blocks) + 40 * 2**20
    factors = 4 + n_threads + n_chains if sampler == "hmc" else 7 if is_without_factor(p) else 3 + n_threads
    segments = len(layout(n, p)[1]) - 1
    if segments > 1:  # of each, a thread has its matrix, and those that it has still to add
        factors += 6 * min(n_threads, segments)
    matrices = 8 * q * q * factors
    if no_matrix and sampler != "hmc":
        matrices = 8 * q * n_chains * 40
    sums = 8 * n_chains * min(2**20, 64 * q)
    labels = 4 * n  # as codes, and what they are found by
    return draws, matrices + sums + 56 * 2**20 + labels


def of_groups(n, p, n_chains, n_draws, n_groups, sampler):
    """Bytes of draws, and of the working set, that groups of rows add to the ``forecast``."""
    q, effects = p + 1, n_chains * n_groups
    kept = min(group_draws.ROOM, 4 * n_chains * n_draws * n_groups)
    of_rows = n * (32 * n_chains + 8 * 5)  # what is kept of each row and chain, and where the rows of groups are
    sizes = min(n_groups, int((2 * n) ** 0.5), products_kept(n_groups, q)) if sampler == "gibbs" else 0
    matrices = q * q * (sizes + 2) + 3 * n_groups * q
    return kept + 8 * n_chains * n_draws, of_rows + 8 * 12 * effects + 8 * matrices


def check_memory(n, p, n_chains, n_draws, n_threads, sampler, item=8, no_matrix=False, copied=0, n_groups=0):
    """The forecast in words; raises MemoryError if it cannot fit. copied : bytes of X that are held twice already."""
    draws, working_set = forecast(n, p, n_chains, n_draws, n_threads, sampler, item, no_matrix)
    if n_groups:
        more = of_groups(n, p, n_chains, n_draws, n_groups, sampler)
        draws, working_set = draws + more[0], working_set + more[1]
    words = f"{in_words(draws)} for draws ({n_chains} chains x {n_draws} draws x {p} features) and "
    words += f"{in_words(working_set)} of working space"
    if copied >= 2**20:
        words += f", and has made a copy of X of {in_words(copied)} (avoid it with a C-ordered float array, or CSR),"
    free = min([memory.available(), *_addresses_left(n_threads)])
    if draws + working_set > free:
        if draws > working_set:
            cure = "Keep fewer draws: set max_draws, raise thin, or lower n_chains."
        elif no_matrix and sampler == "hmc":
            cure = f"sampler='pxda' needs none of the {p} x {p} matrices that take the room."
        elif no_matrix:
            cure = "Select columns first, or lower n_chains."
        else:
            size, fewer = (n, "rows") if sampler == "prior" else (p, "columns")
            cure = f"The {size} x {size} matrices are what takes the room: select {fewer} first, or lower n_jobs."
            if 8 * size * size < 2**20:
                cure = "Even a small fit needs about this much: give the process more memory."
        raise MemoryError(f"This fit needs {words} beside X, but only {in_words(max(0, free))} are available. {cure}")
    return words
