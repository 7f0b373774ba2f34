"""The groups of rows on disk: a number for each row, and the labels in the order in which they are first met, each on a
line of its own as JSON has it."""

import json

import numpy as np
import pandas as pd

from .._utils import atomic_files as _files
from .._utils.names import shorten
from ._rows import LONGEST

CODES, LABELS = "groups.bin", "groups.txt"


class Groups:
    """The groups met so far. labels : those of the rows that are there."""

    def __init__(self, labels=()):
        self.codes = {label: k for k, label in enumerate(labels)}

    def encode(self, values, m, first):
        """The numbers of the groups of m rows from ``first`` on, int32, and the lines of the new ones, uint8."""
        if np.shape(values) != (m,):
            raise ValueError(f"{m} rows from row {first} on need as many groups; got the shape {np.shape(values)}.")
        codes, found = pd.factorize(pd.Series(values))
        if (codes < 0).any():
            raise ValueError(f"The group of row {first + np.argmin(codes)} is missing: leave the row out.")
        found, known = found.tolist(), len(self.codes)
        kinds = str if isinstance(next(iter(self.codes), found[0]), str) else int | float
        for label in found:
            if not isinstance(label, kinds):
                row = first + np.argmax(codes == found.index(label))
                raise ValueError(f"The group of row {row} is {label!r}: groups must be all text or numbers.")
            if isinstance(label, str) and len(label) > LONGEST:
                raise ValueError(f"The group {shorten(label, 30)!r} has {len(label)} letters, of {LONGEST} at most.")
            self.codes.setdefault(label, len(self.codes))
        new = "".join(json.dumps(label) + "\n" for label in [*self.codes][known:])
        numbers = np.array([self.codes[label] for label in found], np.int32)[codes]
        return numbers, np.frombuffer(new.encode("ascii"), np.uint8)


def noted(before, codes, lines):
    """What the manifest has of a block: the checksums of both, and the bytes of the labels with those before."""
    return [_files.checksum(codes.data), _files.checksum(lines.data), before + len(lines)]


def are_noted(block):
    """Whether a block may have this after what all have."""
    return len(block) in (0, 3) and all(_files.is_count(n, 0) for n in block[2:])


def read_labels(folder, n_bytes, cure):
    """The labels in so many bytes."""
    path = folder / LABELS
    with _files.naming(path, cure), _files.open_to_read(path) as file:
        lines = file.read(n_bytes)
        if len(lines) < n_bytes:
            raise ValueError("it is too short")
        labels = [json.loads(line) for line in lines.splitlines()]
        if not {*map(type, labels)} <= {str, bool, int, float} or len({*labels}) < len(labels):
            raise ValueError("it holds something else than labels")
    return labels
