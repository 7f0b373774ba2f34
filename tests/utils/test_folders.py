"""Folders: what is foreign, what was left in them, what is no file, links, and the lock, which no child holds."""

import errno
import os
import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
from killing import contents

from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._utils import atomic_files
from skhorseshoe._utils.lock import alone

DAMAGED = "is damaged or was not written by skhorseshoe"
ROWS = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
LABELS = np.arange(40) % 2
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


@pytest.fixture(params=["a pipe", "a folder"])
def make(request):
    """What makes something that is no regular file."""
    if request.param == "a pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("needs pipes")
    return os.mkfifo if request.param == "a pipe" else os.mkdir


@pytest.mark.parametrize("name", ["manifest.json", "state-*.npz", "draws-*.npz"])
def test_what_is_no_file_holds_no_fit_up(name, make, fit, tmp_path):
    fit(tmp_path)
    (path,) = tmp_path.glob(name)
    path.unlink()
    make(path)
    with pytest.raises(ValueError, match=f"{path.name}' {DAMAGED}"):
        fit(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", "X-float32.bin", "y.bin"])
def test_what_is_no_file_holds_no_reading_up(name, make, tmp_path):
    disk.convert(ROWS, tmp_path / "rows", y=LABELS)
    (tmp_path / "rows" / name).unlink()
    make(tmp_path / "rows" / name)
    with pytest.raises(ValueError, match=f"{name}' {DAMAGED}"):
        disk.load(tmp_path / "rows")


def begin_rows(folder):
    """A conversion that has failed, and can go on."""
    with pytest.raises(ValueError, match="no rows"):
        disk.convert(ROWS[:0], folder)


def test_what_is_no_file_is_not_written_to(make, tmp_path):
    begin_rows(tmp_path / "rows")
    make(tmp_path / "rows" / "y.bin")
    with pytest.raises(ValueError, match=r"y\.bin' is no regular file"):
        disk.convert(ROWS, tmp_path / "rows")


@pytest.mark.parametrize("name", ["y.bin", "X-float32.bin", "conversion.lock", "manifest.json.new", "manifest.json"])
@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_link_leads_to_nothing_that_is_overwritten(name, link, tmp_path):
    """Someone else who may write to the folder leaves it where a conversion that has failed is to go on."""
    precious, path = tmp_path / "precious", tmp_path / "rows" / name
    begin_rows(tmp_path / "rows")
    data = path.read_bytes() if name == "manifest.json" else b"keys"
    precious.write_bytes(data)
    path.unlink(missing_ok=True)
    getattr(path, link)(precious)
    what = "a symbolic link" if link == "symlink_to" else "a file with a second name"
    with nullcontext() if "manifest" in name else pytest.raises(ValueError, match=f"{name}' is {what}"):
        disk.convert(ROWS, tmp_path / "rows", y=LABELS)
    assert precious.read_bytes() == data


def test_a_link_is_not_followed_where_rows_become_wider(tmp_path):
    (tmp_path / "precious").write_text("keys")

    def parts():
        yield ROWS
        (tmp_path / "rows" / "X-float64.bin").symlink_to(tmp_path / "precious")
        yield ROWS.astype(np.float64) + 0.1

    with pytest.raises(ValueError, match=r"X-float64\.bin' is a symbolic link"):
        disk.convert(parts(), tmp_path / "rows")
    assert (tmp_path / "precious").read_text() == "keys"


def test_a_link_that_is_made_a_moment_later_is_not_followed(tmp_path, monkeypatch):
    """Between the look and the opening: the system refuses it, or, where it cannot, nothing is emptied before."""
    (tmp_path / "precious").write_text("keys")
    (tmp_path / "file").symlink_to(tmp_path / "precious")
    plain = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **how: plain(path))
    with pytest.raises(OSError, match="symbolic links"), atomic_files.open_to_write(tmp_path / "file", "w+b"):
        pass
    assert (tmp_path / "precious").read_text() == "keys"
