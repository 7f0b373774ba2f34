"""What happens to the folder of a checkpoint while a fit writes to it: nothing is lost, and nothing else is touched."""

import itertools
import os
import shutil
import time
from contextlib import nullcontext

import numpy as np
import pytest
from killing import contents, killed_before, named, one_warning
from laws import same_draws

from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._fit import checkpoint

by_folder = pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="Windows keeps a folder in use where it is")
SWEEPS = 20  # of burn-in and after it


@pytest.fixture(scope="module")
def problem(problem):
    return problem[0][:40], problem[1][:40]


def classifier(folder, n_iter=SWEEPS, **params):
    params = {"burn_in": SWEEPS, "sampler": "gibbs", "random_state": 0, "n_jobs": 1, "checkpoint_interval": 0, **params}
    return HorseshoeProbitClassifier(n_iter=n_iter, checkpoint=folder, **params)


@pytest.fixture(scope="module")
def whole(problem):
    return classifier(None).fit(*problem)


@pytest.fixture(scope="module")
def longer(problem):
    return classifier(None, SWEEPS + 5).fit(*problem)


# Answers that are lost ------------------------------------------------------------------------------------------------


REPLIES = {
    "done": lambda k: True,
    "not done": lambda k: False,
    "the first done": lambda k: k == 0,
    "done at times": lambda k: k % 3 == 1,
}


slow = pytest.mark.slow


@pytest.mark.parametrize("names", ["manifest.json", ""], ids=["manifest", "all"])
@pytest.mark.parametrize("is_done", REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize(
    "sweep",
    [
        pytest.param(SWEEPS - 9, id="burn-in", marks=slow),
        pytest.param(SWEEPS + 9, id="sampling"),
        pytest.param(None, id="at the end", marks=slow),
    ],
)
def test_a_renaming_that_is_said_to_have_failed_loses_no_state(
    problem, whole, longer, tmp_path, watched_sampler, ended_at, monkeypatch, names, is_done, sweep
):
    """As a network drive says it whose answer was lost, from some moment to the end of the process on."""
    plain, calls, lost = os.replace, itertools.count(), []

    def replace(old, new, **where):
        is_lost = lost and str(new).endswith(names)
        if not is_lost or is_done(next(calls)):
            plain(old, new, **where)
        if is_lost:
            raise OSError(5, "Input/output error")

    def watch(t):
        if t == (2 * SWEEPS - 9 if sweep is None else sweep):
            lost.append(True)

    end = watched_sampler(watch) if sweep is None else ended_at(sweep + 7, tmp_path, watch)
    monkeypatch.setattr(os, "replace", replace)
    with one_warning("Input/output error"), end or nullcontext():
        assert same_draws(classifier(tmp_path).fit(*problem), whole)
    there = contents(tmp_path).keys()
    assert named(tmp_path) <= there
    states = [name for name in there if name.startswith("state-")]
    assert len(states) <= 3  # what it may have to go on from, and no more
    monkeypatch.undo()
    assert same_draws(classifier(tmp_path).fit(*problem), whole)
    assert same_draws(classifier(tmp_path, SWEEPS + 5).fit(*problem), longer)
    assert contents(tmp_path).keys() == named(tmp_path)  # the rest has gone with the first write


def test_what_is_written_twice_has_the_same_bytes(monkeypatch):
    arrays = {"b": np.arange(9.0).reshape(3, 3)[:, :2], "a": np.array(3)}
    first = checkpoint._packed(arrays)
    monkeypatch.setattr(time, "localtime", lambda *args: time.gmtime(2e9))
    assert checkpoint._packed(arrays) == first


# Files that others remove or change -----------------------------------------------------------------------------------


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def link(path):
    os.replace(path, path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def empty(path):
    for one in path.parent.iterdir():
        if one.name != "fit.lock":
            one.unlink()


@pytest.mark.parametrize("spoil", [os.unlink, truncate, link, empty], ids=["removed", "cut", "a link", "all removed"])
@pytest.mark.parametrize("params", [{}, {"max_draws": 15}], ids=["all draws", "some draws"])
@pytest.mark.filterwarnings("error", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_draws_that_are_gone_are_written_again(problem, tmp_path, watched_sampler, spoil, params):
    def watch(t):
        if t in (SWEEPS + 5, SWEEPS + 11, 2 * SWEEPS - 3):
            spoil(min(tmp_path.glob("run/draws-*.npz")))

    watched_sampler(watch)
    classifier(tmp_path / "run", **params).fit(*problem)
    watched_sampler(lambda t: None)
    resumed = classifier(tmp_path / "run", SWEEPS + 5, **params).fit(*problem)
    assert same_draws(resumed, classifier(None, SWEEPS + 5, **params).fit(*problem))
    assert not any(path.is_symlink() for path in (tmp_path / "run").iterdir())


# A folder that is no longer there -------------------------------------------------------------------------------------

PRECIOUS = {"fit.lock": b"1", "draws-1.npz": b"2", "state-99.npz.new": b"3", "manifest.json": b"4", "letter": b"5"}


def replace_by_link(folder):
    folder.symlink_to(folder.parent / "other", target_is_directory=True)


def leave(folder):
    """No other is made."""


def replace_by_folder(folder):
    shutil.copytree(folder.parent / "other", folder)


@by_folder
@pytest.mark.parametrize("replace", [replace_by_link, replace_by_folder, leave])
@pytest.mark.parametrize("comes_back", [False, True])
def test_a_folder_that_is_moved_away_is_one_warning_and_nothing_else_is_written_to(
    problem, whole, tmp_path, watched_sampler, replace, comes_back
):
    folder, moved, other = tmp_path / "run", tmp_path / "moved", tmp_path / "other"
    other.mkdir()
    for name, data in PRECIOUS.items():
        (other / name).write_bytes(data)

    def watch(t):
        if t == SWEEPS + 5:
            folder.rename(moved)
            replace(folder)
        if t == 2 * SWEEPS - 5 and comes_back:
            if folder.exists():
                folder.rename(tmp_path / "out of the way")
            moved.rename(folder)

    watched_sampler(watch)
    said = "No such file" if replace is leave else "another folder has taken the place of"
    with one_warning(said):
        assert same_draws(classifier(folder).fit(*problem), whole)
    assert contents(other) == PRECIOUS
    at = folder if comes_back else moved
    assert contents(at).keys() == named(at)  # the lock is removed, too
    watched_sampler(lambda t: None)
    assert same_draws(classifier(at).fit(*problem), whole)


@by_folder
@pytest.mark.parametrize("replace", [replace_by_link, replace_by_folder])
@pytest.mark.parametrize("k", [1, 3, 4])
def test_a_conversion_does_not_go_on_in_another_folder(tmp_path, sizes, replace, k):
    folder, moved, other = tmp_path / "run", tmp_path / "moved", tmp_path / "other"
    sizes(bytes_to_a_manifest=1)
    other.mkdir()
    for name in ("X-float32.bin", "X-float64.bin", "y.bin", "manifest.json", "conversion.lock"):
        (other / name).write_bytes(b"mine")
    there = contents(other)
    rows = [np.full((3, 2), float(i)) for i in range(3)] + [np.full((3, 2), 0.1)] * 3  # wider from here on

    def parts():
        for i, part in enumerate(rows):
            if i == k:
                folder.rename(moved)
                replace(folder)
            yield part

    with pytest.raises(OSError, match=r"another folder has taken the place of .*run'"):
        disk.convert(parts(), folder)
    assert contents(other) == there
    assert contents(folder) == there
    X, _ = disk.convert(rows, moved)
    np.testing.assert_array_equal(X, np.concatenate(rows))


@pytest.mark.parametrize("fd", [True, False])
def test_the_program_may_change_its_own_folder(problem, whole, tmp_path, watched_sampler, monkeypatch, fd):
    """Also on a system that opens no files relative to a folder."""
    if not fd:
        monkeypatch.setattr(os, "supports_dir_fd", set())
    monkeypatch.chdir(tmp_path)
    watched_sampler(lambda t: os.chdir("/"))
    assert same_draws(classifier("run").fit(*problem), whole)
    assert contents(tmp_path / "run").keys() == named(tmp_path / "run")


# Paths, and files that are too large ----------------------------------------------------------------------------------


def test_what_has_no_room_in_memory_is_not_read(problem, tmp_path, free_memory):
    """A file of any size takes no room on the disk."""
    disk.convert(problem[0], tmp_path / "rows", y=np.where(problem[1], "a" * 1000, "b"))
    classifier(tmp_path / "run").fit(*problem)
    free_memory(2**17)
    with pytest.raises(MemoryError, match=r"Reading '.*rows/y\.bin' takes .* are available"):
        disk.load(tmp_path / "rows")
    free_memory(2**40)
    os.truncate(*tmp_path.glob("run/state-*.npz"), 2**43)
    with pytest.raises(MemoryError, match=r"Reading '.*run/state-\d+\.npz' takes 8192\.0 GiB, but only"):
        classifier(tmp_path / "run").fit(*problem)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a signal of POSIX")
def test_killed_between_any_two_writes_it_goes_on(problem, tmp_path):
    """The manifest names only what is there, whichever file was the last to reach the disk."""
    params = {"n_iter": 4, "burn_in": 2, "sampler": "hmc"}
    whole = classifier(None, **params).fit(*problem)
    for k in itertools.count():
        model = classifier(tmp_path / str(k), **params)
        if not killed_before(k, "replace", lambda model=model: model.fit(*problem)):
            break
        assert same_draws(model.fit(*problem), whole)
    assert k > 10
