"""The groups of rows on disk: a code for each row, and the labels in order of appearance, each as a line of JSON."""

import json

import numpy as np
import pandas as pd

from .._utils import atomic_files as _files
from .._utils.names import shorten
from ._conversion import LETTERS

CODES, LABELS = "groups.bin", "groups.txt"


class GroupEncoder:
    """The groups so far. labels : of the groups of the rows that are written."""

    def __init__(self, labels=()):
        self.codes = {label: k for k, label in enumerate(labels)}

    def encode(self, values, m, first):
        """The codes of the groups of m rows from ``first`` on, int32, and the lines of new groups, uint8."""
        if np.shape(values) != (m,):
            raise ValueError(f"{m} rows from row {first} on need as many groups; got the shape {np.shape(values)}.")
        codes, labels = pd.factorize(pd.Series(values))
        if (codes < 0).any():
            raise ValueError(f"The group of row {first + np.argmin(codes)} is missing: leave the row out.")
        labels, known = labels.tolist(), len(self.codes)
        kinds = str if isinstance(next(iter(self.codes), labels[0]), str) else int | float
        for label in labels:
            if not isinstance(label, kinds):
                row = first + np.argmax(codes == labels.index(label))
                raise ValueError(f"The group of row {row} is {label!r}: groups must be all text or numbers.")
            if isinstance(label, str) and len(label) > LETTERS:
                raise ValueError(f"The group {shorten(label, 30)!r} has {len(label)} letters, of {LETTERS} at most.")
            self.codes.setdefault(label, len(self.codes))
        new = "".join(json.dumps(label) + "\n" for label in [*self.codes][known:])
        numbers = np.array([self.codes[label] for label in labels], np.int32)[codes]
        return numbers, np.frombuffer(new.encode("ascii"), np.uint8)


def block_entries(start, codes, lines):
    """The entries of a block in the manifest: the checksums of both, and the end of its lines. start : of the lines."""
    return [_files.checksum(codes.data), _files.checksum(lines.data), start + len(lines)]


def are_block_entries(block):
    """Whether these can be the entries of a block about groups, if any."""
    return len(block) in (0, 3) and all(_files.is_count(n, 0) for n in block[2:])


def read_labels(folder, n_bytes, cure):
    """The labels in the first ``n_bytes`` of the file."""
    path = folder / LABELS
    with _files.naming(path, cure), _files.open_to_read(path) as file:
        lines = file.read(n_bytes)
        if len(lines) < n_bytes:
            raise ValueError("it is too short")
        labels = [json.loads(line) for line in lines.splitlines()]
        if not {*map(type, labels)} <= {str, bool, int, float} or len({*labels}) < len(labels):
            raise ValueError("it holds something else than labels")
    return labels
