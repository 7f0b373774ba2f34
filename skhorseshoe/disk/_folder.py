"""What a folder of rows holds: X and the codes of y in NumPy's format, and a manifest that says what of them counts."""

import math
import os
import zlib
from itertools import pairwise

import numpy as np
import pandas as pd

from .._utils.atomic_files import damaged, is_count, naming, open_to_read, read_note

MANIFEST, CODES = "manifest.json", "y.npy"
DTYPES = "float16", "float32", "float64"
FORMAT = "skhorseshoe rows 1"
HEADER = 128  # bytes, of NumPy's format: it has room for any number of rows
CURE = "Remove its folder and convert again."


def x_file(dtype):
    """Name of the file of X."""
    return f"X-{dtype}.npy"


def _are_blocks(blocks, manifest):
    """Whether each has an end beyond that of the one before, and two checksums, up to the last row."""
    stops = [0, *(stop for stop, _, _ in blocks)]
    ascend = all(is_count(stop, before + 1) for before, stop in pairwise(stops))
    return ascend and stops[-1] == manifest["rows"] and all(is_count(crc) for block in blocks for crc in block[1:])


def _are_names(names, manifest):
    return manifest["rows"] == 0 or _are_distinct(names) or {*names} == {None}


def _are_distinct(values):
    """Whether these are strings and numbers, each of them there once."""
    plain = (type(value) in (str, bool, int, float) and value == value for value in values)
    return type(values) is list and all(plain) and 0 < len(values) == len({*values})


_FIELDS = {
    "what": lambda what, manifest: type(what) is dict,
    "dtype": lambda dtype, manifest: dtype in DTYPES,
    "rows": lambda rows, manifest: is_count(rows),
    "blocks": _are_blocks,
    "names": _are_names,
    "classes": lambda classes, manifest: (
        classes in (None, []) or (_are_distinct(classes) and len({isinstance(label, str) for label in classes}) == 1)
    ),
    "complete": lambda complete, manifest: type(complete) is bool and (manifest["rows"] > 0 or not complete),
}


def read_manifest(folder):
    """What the manifest says; a ValueError if there is none, or it is damaged or foreign."""
    if not (folder / MANIFEST).exists():
        raise ValueError(f"{str(folder)!r} holds no rows: skhorseshoe.disk.convert writes them.")
    return read_note(folder / MANIFEST, FORMAT, _FIELDS, CURE)


def open_rows(folder, check):
    """X as a read-only memory map, in a frame if its columns have names, and y; check : whether to compare the sums."""
    manifest = read_manifest(folder)
    if not manifest["complete"]:
        raise ValueError(
            f"The conversion to {str(folder)!r} has stopped after {manifest['rows']} rows. The same call of "
            "skhorseshoe.disk.convert goes on with it."
        )
    n, dtype, names, classes = (manifest[name] for name in ("rows", "dtype", "names", "classes"))
    paths = folder / x_file(dtype), folder / CODES
    X, codes = _map(paths[0], dtype, (n, len(names))), _map(paths[1], "uint8", (n,))
    start = 0
    for stop, *sums in manifest["blocks"] if check else ():
        for array, crc, path in zip((X, codes), sums, paths, strict=True):
            if zlib.crc32(array[start:stop].data) != crc:
                raise damaged(path, f"the checksum of rows {start} to {stop - 1} is wrong", CURE)
        start = stop
    if classes is not None and codes.max() >= len(classes):
        raise damaged(paths[1], f"it has the code {codes.max()} of {len(classes)} labels", CURE)
    X = X if None in names else pd.DataFrame(X, columns=names, copy=False)
    return X, None if classes is None else np.array(classes)[codes]


def _map(path, dtype, shape):
    with naming(path, CURE), open_to_read(path) as file:
        size, there = HEADER + math.prod(shape) * np.dtype(dtype).itemsize, os.fstat(file.fileno()).st_size
        if there != size:
            raise ValueError(f"it has {there} bytes, not {size}")
        np.lib.format.read_magic(file)
        if np.lib.format.read_array_header_1_0(file) != (shape, False, np.dtype(dtype)):
            raise ValueError(f"its heading is not that of {shape} of {dtype}")
        return np.memmap(file, dtype, "r", HEADER, shape)
