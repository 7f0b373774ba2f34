"""The groups of rows on disk: a code for each row, and the labels in order of appearance, each as a line of JSON."""

import json

from .._utils import atomic_files as _files

CODES, LABELS = "groups.bin", "groups.txt"


def block_entries(start, codes, lines):
    """The entries of a block in the manifest: the checksums of both, and the end of its lines. start : of the lines."""
    return [_files.checksum(codes.data), _files.checksum(lines.data), start + len(lines)]


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
