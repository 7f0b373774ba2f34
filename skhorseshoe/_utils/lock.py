"""One writer of a folder at a time. The system gives a lock up when the process that holds it ends, in whatever way."""

import os
import platform
import time
from contextlib import contextmanager, suppress

from .atomic_files import open_to_write
from .warn import warn

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

_TRIES = 100  # against others that remove the file when they have done
_FAR = 2**30  # byte that Windows locks: others can still read those before
_held = set()  # open files of this process, with their locks


def lock_of(what):
    """Name of the lock's file. what : is done in the folder, in a word."""
    return f"{what}.lock"


@contextmanager
def alone(folder, what):
    """Hold the lock of a folder; a RuntimeError if another process or thread does. what : as in ``lock_of``."""
    path = folder / lock_of(what)
    file = _locked(path, what)
    _held.add(file)
    try:
        with suppress(OSError):  # a full disk: the lock is the system's, this is only what others are told
            file.truncate(0)
            file.write(_note().encode())
        yield
    finally:
        if file in _held:
            _give_up(file, path)


def _note():
    return f"process {os.getpid()} on {platform.node()} since {time.strftime('%Y-%m-%d %H:%M:%S %z')}"


def _give_up(file, path):
    _held.discard(file)
    if fcntl is None:  # where an open file cannot be removed
        file.close()
    with suppress(OSError):  # it is the system's lock that keeps others out
        path.unlink()
    file.close()


def _close_in_child():
    """The system keeps a lock while any process has the open file: the child of its holder, too."""
    while _held:
        _held.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def _locked(path, what):
    """The open file, with its lock."""
    for _ in range(_TRIES):
        file = open_to_write(path, "a+b", buffering=0)
        if not _try_lock(file, what):
            file.seek(0)
            holder = file.read().decode(errors="replace") or "another process"
            file.close()
            raise RuntimeError(
                f"Another {what} is writing to {str(path.parent)!r}: {holder} holds {path.name!r} there. Wait until it "
                "has ended, end it, or give another folder."
            )
        if fcntl is None:
            return file
        with suppress(FileNotFoundError):  # whoever held it has removed it between the two lines
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()
    raise RuntimeError(
        f"{str(path)!r} cannot be locked: the file changes each time that it is opened. Give a folder on another disk."
    )


def _try_lock(file, what):
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            file.seek(_FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:  # some network drives have no locks
        warn(f"The file system cannot lock {file.name!r} ({error}): make sure that no other {what} writes there.")
    return True
