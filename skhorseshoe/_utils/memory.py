"""How much memory is available, and errors if it is too little."""

from contextlib import suppress
from importlib import import_module
from math import inf
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
# Bytes of addresses that are reserved and hardly used: by BLAS at its first call; by a thread for its own memory, and
# as much again for a moment; and for its stack, where the system does not say how large that is.
_BLAS_BYTES, _ARENA_BYTES, _STACK_BYTES = 32 * 2**20, 64 * 2**20, 8 * 2**20


def available():
    """Available bytes: the least that the system, the container and the limits of the process leave; infinite if
    unknown. Cached files count as available."""
    limits = []
    if _MEMINFO.exists():
        lines = _MEMINFO.read_text().splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    else:  # Windows, macOS
        with suppress(ImportError):
            limits.append(import_module("psutil").virtual_memory().available)
    limits += _left_by_limits()
    limits += _left_by_container(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    return min(limits, default=inf)


def _left_by_container(root, membership):
    """Bytes that each limit of a container, or of a scheduler's job, leaves; a list, empty without a limit.

    root : folder of the control groups, of either version. membership : file that names those of this process. In a
    container it may have their names outside, while only the root is visible.
    """
    remaining = []
    for base, controllers, (limit, used, prefix) in (
        (root, "", ("memory.max", "memory.current", "")),
        (root / "memory", "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")),
    ):
        group = base / _group(membership, controllers)
        for folder in (group, *group.parents):
            if not folder.is_relative_to(base):
                break
            with suppress(OSError, ValueError):  # another version, or no limit
                limit_bytes, used_bytes = (int((folder / name).read_text()) for name in (limit, used))
                stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                files = sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
                remaining.append(limit_bytes - used_bytes + files)
    return remaining


def _group(membership, controllers):
    """The control group of this process: its path from the root of these controllers."""
    with suppress(OSError):
        for line in membership.read_text().splitlines():
            _, names, path = line.split(":", 2)
            if controllers in names.split(","):
                return path.strip("/")
    return ""


def _left_by_limits(*kinds):
    """Bytes that the limits of this process leave; a list. kinds : of limits; none for ``ulimit -v`` and ``-d``."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return []
    import resource

    size, *_, data, _ = (int(word) * resource.getpagesize() for word in pages.read_text().split())
    used = {"RLIMIT_AS": size, "RLIMIT_DATA": data}
    limits = {kind: resource.getrlimit(getattr(resource, kind))[0] for kind in kinds or used}
    return [limit - used[kind] for kind, limit in limits.items() if limit != resource.RLIM_INFINITY]


def addresses_left(n_threads):
    """Bytes that a limit of addresses (``ulimit -v``) leaves, without those that are reserved but never used; a
    list. n_threads : the calling one included."""
    left = _left_by_limits("RLIMIT_AS")
    if not left:
        return []
    import resource

    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    thread = _ARENA_BYTES + (_STACK_BYTES if stack == resource.RLIM_INFINITY else stack)
    reserved = _BLAS_BYTES + (n_threads - 1) * thread + (_ARENA_BYTES if n_threads > 1 else 0)
    return [n_bytes - reserved for n_bytes in left]


def check_copy(n_bytes, why, cure=""):
    """Raise a MemoryError if a copy of rows of X cannot fit. why : reason for the copy, for the message."""
    _demand(n_bytes, f"{why} copies {size_text(n_bytes)} of X", cure)


def check_reading(path, n_bytes):
    """Raise a MemoryError if so many bytes of a file cannot be read."""
    _demand(n_bytes, f"Reading {str(path)!r} takes {size_text(n_bytes)}", " Free memory, or read on a larger machine.")


def check_matrices(n, shape, purpose, cure):
    """Raise a MemoryError if ``n`` matrices of a shape cannot fit. purpose : what needs them, in words."""
    needed = 8 * n * shape[0] * shape[1]
    _demand(needed, f"{purpose} needs {size_text(needed)} for matrices of {shape[0]} x {shape[1]}", f" {cure}")


def check_result(n_rows, n_draws):
    """Raise a MemoryError if a float64 result with an entry for each row and draw cannot fit."""
    needed = 8 * int(n_rows) * int(n_draws)
    cure = " Use fewer draws (max_draws), or ask for fewer rows at a time."
    _demand(needed, f"The result needs {size_text(needed)} ({n_rows} rows x {n_draws} draws)", cure)


def _demand(n_bytes, need, cure):
    """Raise a MemoryError if so many bytes are not available. need : what needs them, in words."""
    if n_bytes > (free := available()):
        raise MemoryError(f"{need}, but only {size_text(free)} are available.{cure}")


def size_text(n_bytes):
    """A number of bytes in MiB or GiB."""
    if n_bytes >= 2**60:  # with weights that are no counts
        return f"{n_bytes / 2**30:.1e} GiB"
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{max(1, round(n_bytes / 2**20))} MiB"
