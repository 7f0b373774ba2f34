"""Files that are there as a whole or not at all, and notes in JSON that tell if they are damaged."""

import json
import os
import zlib
from contextlib import suppress


def put(path, data):
    """Write bytes to a file in one step, after they have reached the disk; returns their checksum."""
    new = path.with_name(f"{path.name}.new")
    try:
        with open(new, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:  # the disk may be full: what is left of the file is not to fill it further
        with suppress(OSError):
            new.unlink()
        raise
    return checksum(data)


def put_note(path, body):
    """Write what JSON can hold, with a checksum."""
    put(path, json.dumps({"checksum": checksum(json.dumps(body).encode()), "body": body}).encode())


def read_note(path):
    """What ``put_note`` wrote; a ValueError or an OSError if the file is anything else."""
    note = json.loads(path.read_text())
    if not isinstance(note, dict) or set(note) != {"checksum", "body"}:
        raise ValueError("it was not written by skhorseshoe")
    if note["checksum"] != checksum(json.dumps(note["body"]).encode()):
        raise ValueError("its checksum is wrong")
    return note["body"]


def checksum(data):
    """Of bytes, in hexadecimal digits."""
    return f"{zlib.crc32(data):08x}"
