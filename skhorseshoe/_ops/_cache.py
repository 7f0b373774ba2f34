"""Numba's cache of compiled kernels, made one that can fail without ending a fit, and that knows all sources."""

from contextlib import suppress
from pathlib import Path
from zlib import crc32

# Kernels inline one another across files, and Numba looks at the time stamp of one file.
_SOURCES = crc32(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))


def made_safe(function):
    """Have a compiled function compile anew where its cache cannot be read or is of other sources, and go on where it
    cannot be written.

    Numba raises what the disk or the unpickling raises: where the disk is full, the files are another user's, or a file
    was cut off. What is damaged is replaced by the next saving. Attributes of Numba that are not public are touched; in
    a version that has none of them the cache stays as Numba has it.
    """
    cache = getattr(function, "_cache", None)
    load, save = getattr(cache, "load_overload", None), getattr(cache, "save_overload", None)
    if load is None or save is None:
        return function
    if (file := getattr(cache, "_cache_file", None)) is not None:
        file._source_stamp = file._source_stamp, _SOURCES

    def load_or_compile(*args):
        with suppress(Exception):  # a damaged pickle may raise anything
            return load(*args)
        return None

    def save_if_possible(*args):
        try:
            save(*args)
        except OSError:  # no room or no right: what is there stays
            pass
        except Exception:  # the index, to which it adds, is damaged: begin a new one
            with suppress(Exception):
                cache.flush()
                save(*args)

    cache.load_overload, cache.save_overload = load_or_compile, save_if_possible
    return function
