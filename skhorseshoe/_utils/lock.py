"""One writer of a folder at a time. The system releases the lock when its process ends, in whatever way."""

import os
import platform
import time
from contextlib import contextmanager, suppress

from filelock import FileLock, Timeout

from .atomic_files import open_to_write, opened, remove
from .warn import warn


def lock_of(task):
    """Name of the lock's file. task : what is done in the folder, in a word."""
    return f"{task}.lock"


@contextmanager
def alone(folder, task):
    """Hold the lock of a folder, and yield its descriptor as ``opened`` does; a RuntimeError if another process or
    thread holds the lock. task : as in ``lock_of``."""
    path = folder / lock_of(task)
    with opened(folder) as fd:
        open_to_write(path, "ab", fd).close()  # refuses a link: filelock would empty a file that has a second name
        lock = FileLock(path, thread_local=False, fallback_to_soft=False)
        _acquire(lock, path, task)
        try:
            with suppress(OSError), open_to_write(path, "wb", fd) as file:  # the error of another process quotes it
                file.write(f"process {os.getpid()} on {platform.node()} since {time.strftime('%F %T %z')}".encode())
            yield fd
        finally:
            if lock.is_locked:  # not in a child that was forked meanwhile
                with suppress(OSError):
                    remove(path, fd)
                lock.release()


def _acquire(lock, path, task):
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        holder = ""
        with suppress(OSError):  # on Windows nobody else can read a locked file
            holder = path.read_text(errors="replace")
        raise RuntimeError(
            f"Another {task} is writing to {str(path.parent)!r}: {holder or 'another process'} holds {path.name!r} "
            "there. Wait until it has ended, end it, or give another folder."
        ) from error
    except OSError as error:  # some network drives have no locks
        warn(f"The file system cannot lock {str(path)!r} ({error}): make sure that no other {task} writes there.")
