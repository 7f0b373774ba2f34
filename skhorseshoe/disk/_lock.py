"""One writer of a folder at a time. The system gives a lock up when the process that holds it ends, in whatever way."""

import os
import platform
import time
import warnings
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

LOCK = "convert.lock"
_FAR = 2**30  # byte that Windows locks: others can still read those before


@contextmanager
def alone(folder):
    """Hold the lock of a folder; a RuntimeError if another process or thread does."""
    path = folder / LOCK
    file = _locked(path)
    file.truncate(0)
    file.write(f"process {os.getpid()} on {platform.node()} since {time.strftime('%Y-%m-%d %H:%M:%S %z')}")
    file.flush()
    try:
        yield
    finally:
        if fcntl is not None:
            path.unlink(missing_ok=True)
        file.close()
        if fcntl is None:  # where an open file cannot be removed
            with suppress(OSError):
                path.unlink()


def _locked(path):
    """The open file, with its lock."""
    while True:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - closed by alone
        if not _try_lock(file):
            file.seek(0)
            holder = file.read() or "another process"
            file.close()
            raise RuntimeError(
                f"Another conversion to {str(path.parent)!r} is under way: {holder} holds {path.name!r} there. Wait "
                "until it has ended, end it, or give another folder."
            )
        with suppress(FileNotFoundError):  # whoever held it has removed it between the two lines
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()


def _try_lock(file):
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            file.seek(_FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:  # some network drives have no locks
        warnings.warn(
            f"The file system cannot lock {file.name!r} ({error}): make sure that no other conversion writes there.",
            UserWarning,
            stacklevel=8,
        )
    return True
