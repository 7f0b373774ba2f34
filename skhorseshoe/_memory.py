"""A forecast of what a fit needs, made before it starts."""

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from ._iterative import is_needed
from ._ops import in_words
from ._segments import layout

_MEMINFO = Path("/proc/meminfo")
_THREAD = 136 * 2**20  # bytes of addresses that a thread reserves: its stack, and twice the 64 MiB of an arena
_LIBRARIES = 64 * 2**20, 320 * 2**20  # that code takes beside, where the compiler has been loaded, and where not


def forecast(n, p, n_chains, n_draws, n_threads, sampler, item=8, no_matrix=False):
    """Bytes that a fit allocates beside X: its draws, with ``item`` bytes a coefficient, and its working set.

    no_matrix : whether data augmentation has passes over X in place of X'X.
    """
    q = p + 1
    draws = n_chains * n_draws * (item * q + 16)
    if sampler == "collapsed":
        vectors = 20 * n_chains * q  # scales, variances, noise and products
        blocks = n_threads * (max(2**17, 64 * n) + n * min(n, p))
        return draws, 8 * (2 * n_chains * n * n + vectors + blocks) + 40 * 2**20
    factors = 4 + n_threads + n_chains if sampler == "hmc" else 7 if is_needed(p) else 3 + n_threads
    segments = len(layout(n, p)[1]) - 1
    if segments > 1:  # of each, a thread has its matrix, and those that it has still to add
        factors += 6 * min(n_threads, segments)
    matrices = 8 * q * q * factors
    if no_matrix and sampler != "hmc":
        matrices = 8 * q * n_chains * 40
    sums = 8 * n_chains * min(2**20, 64 * q)
    labels = 4 * n  # as codes, and what they are found by
    return draws, matrices + sums + 40 * 2**20 + labels


def available():
    """Bytes that can still be had: the least of what the system, the container and the limits of the process leave;
    None if unknown. What the system keeps of files, it can give up."""
    limits = []
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
    else:  # Windows, macOS
        with suppress(ImportError):
            limits.append(import_module("psutil").virtual_memory().available)
    limits += _left_by_limits()
    limits += _left_by_container(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    return min(limits) if limits else None


def _left_by_container(root, membership):
    """Bytes that the limits of a container, or of a job of a scheduler, leave; a list, empty without a limit.

    root : where the control groups are, of either version. membership : the file that names those of this process; in a
    container they may be named as they are outside, where only the root is to be seen.
    """
    left = []
    for base, controllers, (limit, used, prefix) in (
        (root, "", ("memory.max", "memory.current", "")),
        (root / "memory", "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")),
    ):
        own = base / _group(membership, controllers)
        for folder in (own, *own.parents):
            if not folder.is_relative_to(base):
                break
            with suppress(OSError, ValueError):  # another version, or no limit
                most, now = (int((folder / name).read_text()) for name in (limit, used))
                stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                files = sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
                left.append(most - now + files)
    return left


def _group(membership, controllers):
    """The control group of this process, as a path from the root of these controllers."""
    with suppress(OSError):
        for line in membership.read_text().splitlines():
            _, names, path = line.split(":", 2)
            if controllers in names.split(","):
                return path.strip("/")
    return ""


def _left_by_limits(*kinds):
    """Bytes that the limits of this process leave, of all kinds (``ulimit -v`` and ``-d``) or some; a list."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return []
    import resource

    size, *_, data, _ = (int(word) * resource.getpagesize() for word in pages.read_text().split())
    used = {"RLIMIT_AS": size, "RLIMIT_DATA": data}
    limits = {kind: resource.getrlimit(getattr(resource, kind))[0] for kind in kinds or used}
    return [limit - used[kind] for kind, limit in limits.items() if limit != resource.RLIM_INFINITY]


def _addresses_left(n_threads):
    """Bytes that a limit of addresses (``ulimit -v``) leaves beside those that are reserved and never used; a list."""
    left = _left_by_limits("RLIMIT_AS")
    return [value - _LIBRARIES["numba" not in sys.modules] - n_threads * _THREAD for value in left]


def check_copy(n_bytes, why, cure=""):
    """Raise MemoryError if a copy of rows of X cannot fit. why : it is made, cure : what to do; for the message."""
    _require(n_bytes, f"{why} copies {in_words(n_bytes)} of X", cure)


def check_memory(n, p, n_chains, n_draws, n_threads, sampler, item=8, no_matrix=False, copied=0):
    """The forecast in words; raises MemoryError if it cannot fit. copied : bytes of X that are held twice already."""
    draws, working_set = forecast(n, p, n_chains, n_draws, n_threads, sampler, item, no_matrix)
    words = f"{in_words(draws)} for draws ({n_chains} chains x {n_draws} draws x {p} features) and "
    words += f"{in_words(working_set)} of working set"
    if copied >= 2**20:
        words += f", and has {in_words(copied)} for a copy of X (CSR, and C-contiguous float32 or float64, need none),"
    known = [] if (free := available()) is None else [free]
    free = min(known + _addresses_left(n_threads), default=None)
    if free is not None and draws + working_set > free:
        if draws > working_set:
            cure = "Keep fewer draws: set max_draws, raise thin, or lower n_chains."
        elif no_matrix and sampler == "hmc":
            cure = f"sampler='pxda' needs none of the {p} x {p} matrices that take the room."
        elif no_matrix:
            cure = "Select columns first, or lower n_chains."
        else:
            size, fewer = (n, "rows") if sampler == "collapsed" else (p, "columns")
            cure = f"The {size} x {size} matrices are what takes the room: select {fewer} first, or lower n_jobs."
            if 8 * size * size < 2**20:
                cure = "Even a small fit needs about this much: give the process more memory."
        raise MemoryError(f"This fit needs {words} beside X, but only {in_words(max(0, free))} are available. {cure}")
    return words


def check_matrices(n, shape, what, cure):
    """Raise a MemoryError if so many matrices of a shape cannot fit. what : needs them, in words."""
    needed = 8 * n * shape[0] * shape[1]
    _require(needed, f"{what} needs {in_words(needed)} for matrices of {shape[0]} x {shape[1]}", f" {cure}")


def check_result(n_rows, n_draws):
    """Raise MemoryError if a float64 result with an entry for each row and draw cannot fit."""
    needed = 8 * int(n_rows) * int(n_draws)
    cure = " Use fewer draws (max_draws), or ask for fewer rows at a time."
    _require(needed, f"The result needs {in_words(needed)} ({n_rows} rows x {n_draws} draws)", cure)


def _require(n_bytes, what, cure):
    """Raise MemoryError if so many bytes cannot be had. what : needs them, in words."""
    free = available()
    if free is not None and n_bytes > free:
        raise MemoryError(f"{what}, but only {in_words(free)} are available.{cure}")
