"""How much memory can still be had, and the errors where something has no room."""

from contextlib import suppress
from importlib import import_module
from math import inf
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_THREAD = 136 * 2**20  # bytes of addresses that a thread reserves: its stack, and twice the 64 MiB of an arena
_LIBRARIES = 64 * 2**20  # that code takes beside


def available():
    """Bytes that can still be had: the least of what the system, the container and the limits of the process leave;
    infinite if unknown. What the system keeps of files, it can give up."""
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
    return [value - _LIBRARIES - n_threads * _THREAD for value in left]


def check_copy(n_bytes, why, cure=""):
    """Raise MemoryError if a copy of rows of X cannot fit. why : it is made, cure : what to do; for the message."""
    _require(n_bytes, f"{why} copies {in_words(n_bytes)} of X", cure)


def check_reading(path, n_bytes):
    """Raise a MemoryError if what is read of a file cannot fit."""
    _require(n_bytes, f"Reading {str(path)!r} takes {in_words(n_bytes)}", " Free memory, or read on a larger machine.")


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
    if n_bytes > (free := available()):
        raise MemoryError(f"{what}, but only {in_words(free)} are available.{cure}")


def in_words(n_bytes):
    """A number of bytes in MiB or GiB."""
    if n_bytes >= 2**60:  # of weights that are no counts
        return f"{n_bytes / 2**30:.1e} GiB"
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{max(1, round(n_bytes / 2**20))} MiB"
