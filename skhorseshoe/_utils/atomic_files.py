"""Files that are there as a whole or not at all, and notes in JSON that tell if they are damaged.

Whatever is read or written is a regular file. What is written has one name: another's link leads to nothing of theirs.
Writers may give the descriptor of the folder, as ``opened`` yields it. They then write into that very folder, and raise
an OSError where the path of a file leads to another one by now.
"""

import json
import os
import stat
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

from .names import shorten

LARGEST = 2**27  # bytes of a note: a folder may be anyone's, and a note is read as a whole
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


def path_of(given, name):
    """A path from the root, with the home folder for its sign; a TypeError or ValueError if the system cannot use it.

    name : of the parameter.
    """
    try:
        path = Path(given).expanduser().absolute()  # the program may change its folder meanwhile
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.stat(path)
    except TypeError as error:
        raise TypeError(f"{name} must be a path, a str or a pathlib.Path; got {given!r}.") from error
    except (ValueError, RuntimeError, OSError) as error:  # a null byte, no such user, too long a name
        raise ValueError(f"{name}={str(given)!r} is no path that can be used: {error}. Give another one.") from error
    return path


def make(folder, name):
    """Make a folder where there is none; a ValueError if that, or writing there, is not possible. name : in words."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{name} cannot be made a folder: {error}.") from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):  # better now than after an hour
        raise ValueError(f"{name} cannot be read and written: give a folder where you may do both.")


@contextmanager
def opened(folder):
    """A context with the descriptor of a folder; None on Windows, where a folder with an open file cannot be moved."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY) if os.open in os.supports_dir_fd else None
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def _within(path, fd):
    """What the system is to be told of a file beside the descriptor of its folder."""
    return path if fd is None else path.name


def remove(path, fd=None):
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(_within(path, fd), dir_fd=fd)


def open_to_write(path, mode, fd=None):
    """``open``, for a regular file that has no other name and is no link; a ValueError for anything else.

    It is not emptied before that is known.
    """
    if fd is not None and not os.path.samestat(os.stat(path.parent), os.fstat(fd)):
        raise OSError(f"another folder has taken the place of {str(path.parent)!r}, or a link leads from there")

    def opener(name, flags):
        with suppress(FileNotFoundError):
            _check_own(path, os.stat(name, dir_fd=fd, follow_symlinks=False))
        file = os.open(name, flags & ~os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | _AT_ONCE, 0o666, dir_fd=fd)
        try:
            _check_own(path, os.fstat(file))  # it may be another by now
            if flags & os.O_TRUNC:
                os.truncate(file, 0)
        except BaseException:
            os.close(file)
            raise
        return file

    return open(_within(path, fd), mode, opener=opener)


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


def put(path, data, fd=None, at_last=lambda: None):
    """Write bytes to a file in one step, after they have reached the disk; returns their checksum.

    at_last : is called before that step, of which an OSError may come though it is done, as from a network drive whose
    answer is lost.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        remove(new, fd)  # left by a process that was killed, or a link that leads elsewhere
        with open_to_write(new, "xb", fd) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        at_last()
        os.replace(_within(new, fd), _within(path, fd), src_dir_fd=fd, dst_dir_fd=fd)
    except BaseException:  # the disk may be full: what is left of the file is not to fill it further
        with suppress(OSError):
            remove(new, fd)
        raise
    if fd is not None:
        with suppress(OSError):  # some network drives cannot; the name too is to outlive a power cut
            os.fsync(fd)
    return checksum(data)


def put_note(path, body, *how):
    """Write what JSON can hold, a dict that has a "format", with a checksum; a ValueError if it is too large.

    how : as in ``put``.
    """
    data = json.dumps({"checksum": checksum(json.dumps(body).encode()), "body": body}).encode()
    if len(data) > LARGEST:
        raise ValueError(
            f"{str(path)!r} would have {len(data)} bytes, more than the {LARGEST} that are read again: shorten the "
            "names of columns, or give rows in larger parts."
        )
    put(path, data, *how)


def read_note(path, expected, fields, cure):
    """What ``put_note`` wrote, of the format expected; a ValueError with a cure if the file is anything else.

    fields : what each entry of the body must be, by name; a function of it and of the body, which may raise anything.
    """
    with naming(path, cure):
        with open_to_read(path) as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        note = json.loads(data.decode())
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
    pairs = ((name, was.get(name), new) for name, new in now.items() if was.get(name) != new)
    return ", ".join(f"{name} (was {shorten(str(old), 300)}, is {shorten(str(new), 300)})" for name, old, new in pairs)


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
