"""Files that are complete or absent, and notes: JSON files with a checksum.

Only regular files are read and written, and never through links. Writers may pass the descriptor of the folder, as
``opened`` yields it. They then write into that very folder, and raise an OSError if the path leads to another by now.
"""

import errno
import json
import os
import stat
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

from .names import shorten

_OF_FILES = {None, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO}  # there is no such regular file
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # without it, opening a pipe waits for a writer


def damaged(path, why, cure):
    """The error to raise for a file that cannot be used."""
    return ValueError(f"The file {str(path)!r} is damaged or was not written by skhorseshoe ({why}). {cure}")


@contextmanager
def naming(path, cure):
    """A context that turns any error from foreign bytes into one that names the file.

    Errors of the system, such as a lack of permission or of open files, stay as they are: the file may be in order."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and (is_foreign(error) or error.errno not in _OF_FILES):
            raise
        raise damaged(path, error, cure) from error


def is_foreign(error):
    """Whether an OSError comes neither from the system nor from here, as from a handler of signals: TimeoutError()."""
    return error.errno is None and type(error) is not OSError


def path_of(value, name):
    """The absolute path, with ``~`` expanded; a TypeError or ValueError if it is of no use. name : of the parameter."""
    try:
        path = Path(value).expanduser().absolute()  # the working folder may change meanwhile
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.stat(path)
    except TypeError as error:
        raise TypeError(f"{name} must be a path, a str or a pathlib.Path; got {value!r}.") from error
    except (ValueError, RuntimeError, OSError) as error:  # a null byte, no such user, too long a name
        raise ValueError(f"{name}={str(value)!r} is no path that can be used: {error}. Give another one.") from error
    return path


def make(folder, name):
    """Make a folder if there is none; a ValueError if that, or writing there, is not possible. name : in words."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{name} cannot be made a folder: {error}.") from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):  # better to know now than after an hour
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
    """The path of a file for calls that take the descriptor of its folder, or None."""
    return path if fd is None else path.name


def remove(path, fd=None):
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(_within(path, fd), dir_fd=fd)


def open_to_write(path, mode, fd=None):
    """``open``, for a regular file that has one name and is no link; a ValueError for anything else, which stays as it
    is."""
    if fd is not None and not os.path.samestat(os.stat(path.parent), os.fstat(fd)):
        raise OSError(f"another folder has taken the place of {str(path.parent)!r}, or a link leads from there")

    def opener(name, flags):
        with suppress(FileNotFoundError):
            _check_only_name(path, os.stat(name, dir_fd=fd, follow_symlinks=False))
        file = os.open(name, flags & ~os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | _AT_ONCE, 0o666, dir_fd=fd)
        try:
            _check_only_name(path, os.fstat(file))  # the name may be of another file by now
            if flags & os.O_TRUNC:
                os.truncate(file, 0)
        except BaseException:
            os.close(file)
            raise
        return file

    return open(_within(path, fd), mode, opener=opener)


def _check_only_name(path, status):
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return
    link, regular = stat.S_ISLNK(status.st_mode), stat.S_ISREG(status.st_mode)
    kind = "a symbolic link" if link else "a file with a second name" if regular else "no regular file"
    raise ValueError(f"{str(path)!r} is {kind}, so nothing is written there: remove it, or give another folder.")


def open_to_read(path):
    """Open a regular file for reading bytes; an OSError for anything else, without waiting."""
    file = open(path, "rb", opener=lambda path, flags: os.open(path, flags | _AT_ONCE))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("it is no regular file")
    return file


def put(path, data, fd=None, at_last=lambda: None):
    """Write bytes to a file in one step, after they have reached the disk; returns their checksum.

    at_last : is called before that step. The step may raise an OSError although it is done, for example if the answer
    of a network drive is lost.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        remove(new, fd)  # of a process that was killed, or a link that leads elsewhere
        with open_to_write(new, "xb", fd) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        at_last()
        os.replace(_within(new, fd), _within(path, fd), src_dir_fd=fd, dst_dir_fd=fd)
    except BaseException:  # the disk may be full: leave no incomplete file
        with suppress(OSError):
            remove(new, fd)
        raise
    if fd is not None:
        with suppress(OSError):  # so that the name outlives a power cut; some network drives cannot
            os.fsync(fd)
    return checksum(data)


def put_note(path, body, fd=None, at_last=lambda: None):
    """Write a dict of JSON types, with a "format", and its checksum. fd, at_last : as in ``put``."""
    put(path, json.dumps({"checksum": checksum(json.dumps(body).encode()), "body": body}).encode(), fd, at_last)


def read_note(path, expected, cure):
    """The dict that ``put_note`` wrote, in the expected format; a ValueError with a cure if the file is another."""
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
    return body


def differences(was, now):
    """The entries of a note that have changed, in words; empty if none."""
    pairs = ((name, was.get(name), new) for name, new in now.items() if was.get(name) != new)
    return ", ".join(f"{name} (was {shorten(str(old), 300)}, is {shorten(str(new), 300)})" for name, old, new in pairs)


def foreign(folder, ours):
    """Sorted names in a folder that begin with none of the prefixes ``ours``, without those of file managers."""
    names = (path.name for path in folder.iterdir())
    return sorted(name for name in names if not name.startswith((*ours, ".", "desktop.ini")))


def checksum(data):
    return f"{zlib.crc32(data):08x}"
