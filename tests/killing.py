"""What tests of folders share: processes that are killed, and what they leave."""

import json
import os
import signal
from contextlib import contextmanager

import pytest


def killed_before(k, name, work):
    """Whether a process that does this work is killed, before it calls the function ``name`` of ``os`` for the k-th
    time, counted from 0."""
    pid = os.fork()
    if pid == 0:
        calls, plain = iter(range(k)), getattr(os, name)

        def kill(*args, **kwargs):
            if next(calls, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            plain(*args, **kwargs)

        setattr(os, name, kill)
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@contextmanager
def one_warning(words):
    """That what is written meets this, among other warnings about the chains."""
    with pytest.warns(UserWarning, match=f"could not be written: .*{words}") as caught:
        yield
    assert sum("could not be written" in str(one.message) for one in caught) == 1


def named(folder):
    """The manifest of a checkpoint, and the files that it names."""
    body = json.loads((folder / "manifest.json").read_text())["body"]
    return {"manifest.json", body["state"][0], *(name for name, *_ in body["draws"])}


def contents(folder):
    """The files of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
