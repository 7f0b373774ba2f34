"""Folders: what is foreign, what was left in them, links, and the lock, which is held by no child of its holder."""

import errno
import os
import threading
import time

import pytest
from killing import contents

from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._utils.lock import alone

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def fit(problem):
    """A short fit with a checkpoint in a folder."""
    return lambda folder: HorseshoeProbitClassifier(n_iter=9, burn_in=2, checkpoint=folder).fit(*problem)


def test_checkpoints_and_rows_are_not_taken_for_each_other(problem, fit, tmp_path):
    disk.convert(problem[0], tmp_path / "rows")
    fit(tmp_path / "run")
    for use in (fit, disk.load, lambda folder: disk.convert(problem[0], folder)):
        folder = tmp_path / ("rows" if use is fit else "run")
        there = contents(folder)
        with pytest.raises(ValueError, match=f"{folder.name}' holds something else .*another folder"):
            use(folder)
        assert contents(folder) == there


def test_what_file_managers_and_killed_processes_leave_is_ours(problem, fit, tmp_path):
    for kind, use in (("rows", lambda folder: disk.convert(problem[0], folder)), ("run", fit)):
        folder = tmp_path / kind
        folder.mkdir()
        for name in (".DS_Store", "desktop.ini", "manifest.json.new"):
            (folder / name).write_text("")
        use(folder)
        assert (folder / "manifest.json").stat().st_size
        assert (folder / ".DS_Store").exists()


def test_without_locks_a_fit_warns_and_goes_on(fit, tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="locks of POSIX")

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.warns(UserWarning, match=r"cannot lock .*No locks available.*no other fit"):
        assert fit(tmp_path).n_iter_ == 9


def test_one_of_many_threads_has_the_lock(tmp_path):
    inside, most = [], []

    def work():
        while len(most) < 200:
            try:
                with alone(tmp_path, "fit"):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except RuntimeError:
                time.sleep(0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(most) >= 200
    assert set(most) == {1}


@fork
def test_the_child_of_a_killed_holder_does_not_hold_the_lock(tmp_path):
    reading, writing = os.pipe()
    holder = os.fork()
    if holder == 0:
        with alone(tmp_path, "fit"):
            if os.fork() == 0:
                os.close(writing)
                os.read(reading, 1)  # lives until the test has ended
            os._exit(0)  # as if killed
    os.waitpid(holder, 0)
    assert (tmp_path / "fit.lock").read_text().startswith(f"process {holder} on ")
    with alone(tmp_path, "fit"):
        os.close(writing)
    os.close(reading)


@fork
def test_a_child_that_leaves_the_block_leaves_the_lock(tmp_path):
    with alone(tmp_path, "fit"):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            with pytest.raises(RuntimeError, match="Another fit is writing to"), alone(tmp_path, "fit"):
                pass
    if child == 0:
        os._exit(0)
    assert not list(tmp_path.iterdir())
