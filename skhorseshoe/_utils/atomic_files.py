"""Files that are there as a whole or not at all, and notes in JSON that tell if they are damaged.

Whatever is read or written is a regular file. What is written has one name: another's link leads to nothing of theirs.
"""

import json
import os
import stat
import zlib
from contextlib import contextmanager, suppress

_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # a pipe would have its reader wait for a writer


def damaged(path, why, cure):
    """The error to raise for a file that cannot be used."""
    return ValueError(f"The file {str(path)!r} is damaged or was not written by skhorseshoe ({why}). {cure}")


@contextmanager
def naming(path, cure):
    """A context in which whatever comes of foreign bytes is an error that names the file."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise damaged(path, error, cure) from error


def open_to_write(path, mode):
    """``open``, for a regular file that has no other name and is no link; a ValueError for anything else.

    It is not emptied before that is known.
    """

    def opener(path, flags):
        with suppress(FileNotFoundError):
            _check_own(path, os.lstat(path))
        file = os.open(path, flags & ~os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | _AT_ONCE, 0o666)
        try:
            _check_own(path, os.fstat(file))  # it may be another by now
            if flags & os.O_TRUNC:
                os.truncate(file, 0)
        except BaseException:
            os.close(file)
            raise
        return file

    return open(path, mode, opener=opener)


def _check_own(path, status):
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return
    link, regular = stat.S_ISLNK(status.st_mode), stat.S_ISREG(status.st_mode)
    what = "a symbolic link" if link else "a file with a second name" if regular else "no regular file"
    raise ValueError(f"{str(path)!r} is {what}, so nothing is written there: remove it, or give another folder.")


def open_to_read(path):
    """A regular file, in bytes; an OSError for anything else, of which none is waited for."""
    file = open(path, "rb", opener=lambda path, flags: os.open(path, flags | _AT_ONCE))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("it is no regular file")
    return file


def put(path, data):
    """Write bytes to a file in one step, after they have reached the disk; returns their checksum."""
    new = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):  # left by a process that was killed, or a link that leads elsewhere
            new.unlink()
        with open_to_write(new, "xb") as file:
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


def read_note(path, expected, fields, cure):
    """What ``put_note`` wrote, of the format expected; a ValueError with a cure if the file is anything else.

    fields : what each entry of the body must be, by name; a function of it and of the body, which may raise anything.
    """
    with naming(path, cure):
        with open_to_read(path) as file:
            note = json.loads(file.read().decode())
        if not isinstance(note, dict) or set(note) != {"checksum", "body"}:
            raise ValueError("it has no checksum")
        body = note["body"]
        if note["checksum"] != checksum(json.dumps(body).encode()):
            raise ValueError("its checksum is wrong")
    if not isinstance(body, dict) or body.get("format") != expected:
        raise ValueError(
            f"{str(path.parent)!r} holds something else that skhorseshoe wrote, such as a checkpoint, rows on disk, or "
            "files of another version: give another folder."
        )
    if set(body) != {"format", *fields}:
        raise damaged(path, "it has other entries than it should have", cure)
    for name, is_right in fields.items():
        with suppress(Exception):  # whatever comes of a foreign entry
            if is_right(body[name], body):
                continue
        raise damaged(path, f"its entry {name!r} cannot be right, or does not agree with the others", cure)
    return body


def differences(was, now):
    """What of the entries of a note is not as it was, in words; empty if nothing."""
    return ", ".join(f"{name} (was {was.get(name)}, is {new})" for name, new in now.items() if was.get(name) != new)


def is_count(value, least=0):
    """Whether this entry of a note is a whole number from ``least`` on, which an array can have as its size."""
    return type(value) is int and least <= value < 2**62


def foreign(folder, ours):
    """Sorted names in a folder that do not begin with one of ours; those that file managers leave do not count."""
    names = (path.name for path in folder.iterdir())
    return sorted(name for name in names if not name.startswith((*ours, ".", "desktop.ini")))


def checksum(data):
    """Of bytes, in hexadecimal digits."""
    return f"{zlib.crc32(data):08x}"
