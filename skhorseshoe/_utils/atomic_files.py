"""Files that are there as a whole or not at all, and notes in JSON that tell if they are damaged."""

import json
import os
import zlib
from contextlib import suppress


class OtherFormat(ValueError):
    """A note that is whole, but not of the kind that was looked for."""


def put(path, data):
    """Write bytes to a file in one step, after they have reached the disk; returns their checksum."""
    new = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):  # left by a process that was killed, or a link that leads elsewhere
            new.unlink()
        with open(new, "xb") as file:
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
    """Write what JSON can hold, a dict that has a "format", with a checksum."""
    put(path, json.dumps({"checksum": checksum(json.dumps(body).encode()), "body": body}).encode())


def read_note(path, expected):
    """What ``put_note`` wrote, of the format expected; a ValueError or an OSError if the file is anything else."""
    note = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(note, dict) or set(note) != {"checksum", "body"}:
        raise ValueError("it has no checksum")
    if note["checksum"] != checksum(json.dumps(note["body"]).encode()):
        raise ValueError("its checksum is wrong")
    body = note["body"]
    if not isinstance(body, dict) or body.get("format") != expected:
        raise OtherFormat(
            f"{str(path.parent)!r} holds something else that skhorseshoe wrote, such as a checkpoint, rows on disk, or "
            "files of another version: give another folder."
        )
    return body


def strangers(folder, ours):
    """Sorted names in a folder that do not begin with one of ours; those that file managers leave do not count."""
    names = (path.name for path in folder.iterdir())
    return sorted(name for name in names if not name.startswith((*ours, ".", "desktop.ini")))


def checksum(data):
    """Of bytes, in hexadecimal digits."""
    return f"{zlib.crc32(data):08x}"
