"""How a fit goes about it: which sampler, on which device, for how many sweeps, and in how much memory."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._backends import device as _device
from .._backends.limits import is_without_factor
from .._data.row_blocks import layout
from .._data.validation import made_of
from .._data.weights import arrange
from .._mcmc.burn_in import AUTO
from .._mcmc.run import Settings
from .._utils import memory
from .._utils.memmap import is_on_disk
from .._utils.memory import _addresses_left, check_copy, in_words
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
    rows: tuple | None  # X, y and weights as the sampler has them; None on a cluster
    copied: int  # bytes of X that are made for the fit
    findings: list  # about what weights cost


def plan_fit(params, data, done):
    """The ``Plan``; a ValueError where parameters contradict the data. done : sweeps of earlier fits, to go on with."""
    many, heavy, of_prior = is_without_factor(data.shape[1]), data.times > _REPEATED, fits_prior(params, data)
    sampler = params.sampler
    if sampler == "auto":
        sampler = "hmc" if of_prior else choose(params.burn_in, data.whole and (many or not heavy), many)
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
    device, copied = _choose_device(params, settings.kind, X), 0
    if X.dtype == np.float16 and device.name == "cpu" and not is_on_disk(X):  # which no kernel reads
        copied = 4 * X.size
        check_copy(copied, "Computing with float16", " Have it on disk (skhorseshoe.disk).")
    X, *labels = arrange(X, *labels, sampler)
    copied = copied or made_of(data.given, X)
    return Plan(settings, device, n_threads, X.shape, (X, *labels), copied, _costs(data, sampler, heavy))


def fits_prior(params, data):
    """Whether "hmc" takes the coordinates of the prior: clearly more columns than rows, and a slab. On a cluster, where
    rows are many, it does not."""
    return data.more_columns and params.slab_scale is not None


def _lengths(params, p, done):
    """How long to sample, and how many draws to keep. done : sweeps of earlier fits."""
    sweeps, target, room = sweeps_of(params.n_iter), target_of(params), None
    if params.n_iter == AUTO and params.max_draws is None:  # nobody has asked for so many that they fill the memory
        room = int(_ROOM / (params.n_chains * (np.dtype(params.draws_dtype).itemsize * p + 24)))
        room = max(room, _FEWEST * int(np.ceil(max(target / params.n_chains, MIN_ESS_PER_CHAIN))))
    return {"n_iter": sweeps + done, "room": room, "target_ess": target}


def choose(burn_in, whole_weights, many):
    """The sampler for "auto": "hmc", unless burn-in is too short to tune it or the columns are too ``many`` for its
    factors; but only "hmc" can have all weights."""
    return "hmc" if ((burn_in == AUTO or burn_in >= _TUNING) and not many) or not whole_weights else "pxda"


def _costs(data, sampler, heavy):
    """A ``Finding`` where weights make the fit slow."""
    if heavy and sampler != "hmc":
        facts = {"sampler": sampler, "rows": data.shape[0], "repeated": data.times * data.shape[0]}
        return [Finding("repeated rows", [], "sampler='hmc' uses the weights directly.", facts)]
    return []


def _choose_device(params, sampler, X):
    """The ``Device``; a ValueError if the sampler cannot have this X, or the device cannot."""
    asked = _device.beside(params.device, X)
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


def check_memory(n, p, n_chains, n_draws, n_threads, sampler, item=8, no_matrix=False, copied=0):
    """The forecast in words; raises MemoryError if it cannot fit. copied : bytes of X that are held twice already."""
    draws, working_set = forecast(n, p, n_chains, n_draws, n_threads, sampler, item, no_matrix)
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
