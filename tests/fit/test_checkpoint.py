"""checkpoint: a run that goes on from its folder has the draws of an uninterrupted one, to the bit."""

import errno
import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from killing import contents, named, one_warning
from laws import same_draws

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit.checkpoint import Checkpoint
from skhorseshoe._mcmc.adaptation_window import Window
from skhorseshoe._mcmc.draws import Draws
from skhorseshoe._mcmc.hmc_burn_in import HmcChains


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def problem(problem):
    """Few rows."""
    return problem[0][:40], problem[1][:40]


def classifier(folder, sampler="hmc", **params):
    params = {"n_iter": 60, "burn_in": 45, "random_state": 0, "n_jobs": 1, **params}
    return HorseshoeProbitClassifier(sampler=sampler, checkpoint=folder, **params)


@pytest.fixture(scope="module")
def whole(problem):
    return classifier(None).fit(*problem)


@pytest.fixture(scope="module")
def finished(problem, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    classifier(folder).fit(*problem)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """A folder with a run that has ended."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.mark.parametrize(
    ("sampler", "sweeps"),
    [
        *(("hmc", sweeps) for sweeps in (1, 4, 20, 45, 104)),
        *(pytest.param("hmc", sweeps, marks=pytest.mark.slow) for sweeps in (3, 11, 31, 44, 46, 61)),
        *((sampler, sweeps) for sampler in ("gibbs", "pxda") for sweeps in (31, 61)),
    ],
)
def test_a_run_that_ended_early_goes_on_to_the_same_draws(problem, tmp_path, sampler, sweeps, ended_at):
    with ended_at(sweeps, tmp_path / "run"):
        classifier(tmp_path / "run", sampler, thin=2, checkpoint_interval=0).fit(*problem)
    resumed = classifier(tmp_path / "run", sampler, thin=2, n_jobs=2).fit(*problem)
    whole = classifier(None, sampler, thin=2).fit(*problem)
    assert same_draws(resumed, whole)
    assert resumed.tuning_ == whole.tuning_


CUT = {
    "a window of burn-in ends": (HmcChains, "_next_phase", 2),
    "the reference is found": (HmcChains, "_set_reference", 2),
    "burn-in looks at a state": (Window, "add", 12),
    "a draw is kept": (Draws, "add", 7),
}


@pytest.mark.parametrize(("when", "error"), list(zip(CUT, [MemoryError, SystemExit] * 2, strict=True)))
def test_a_sweep_that_an_error_cuts_in_two_is_not_written(problem, whole, tmp_path, when, error, monkeypatch):
    """As where memory ends, or where a signal's handler raises."""
    owner, name, number = CUT[when]
    original, calls = getattr(owner, name), itertools.count(1)

    def cut(*args, **kwargs):
        original(*args, **kwargs)
        if next(calls) == number:
            raise error

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, cut)
        with pytest.raises(error):
            classifier(tmp_path, checkpoint_interval=0).fit(*problem)
    assert same_draws(classifier(tmp_path).fit(*problem), whole)


def test_what_ended_a_run_is_said_whatever_the_last_write_meets(problem, tmp_path, stop_at, disk_fails):
    def write(file):
        raise RuntimeError("the card is gone")

    stop_at(20, Killed)
    disk_fails(write)
    with pytest.raises(Killed):
        classifier(tmp_path).fit(*problem)


def test_a_finished_run_is_read_and_a_longer_one_goes_on(problem, whole, folder, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(HmcChains, "advance", None)
        assert same_draws(classifier(folder).fit(*problem), whole)
    longer = classifier(folder, n_iter=90).fit(*problem)
    assert same_draws(longer, classifier(None, n_iter=90).fit(*problem))
    with pytest.raises(ValueError, match="holds 90 sweeps, and n_iter asks for 60 at most: set n_iter=90"):
        classifier(folder).fit(*problem)


@pytest.mark.parametrize("random_state", [None, "generator"])
def test_the_seed_of_a_run_is_remembered(problem, tmp_path, random_state):
    def seeded(seed):
        generator = np.random.RandomState(seed) if random_state else None
        return classifier(tmp_path, random_state=generator).fit(*problem)

    assert same_draws(seeded(1), seeded(1))
    if random_state:
        with pytest.raises(ValueError, match=r"random_state \(was a generator that draws \[\d+, \d+\], is"):
            seeded(2)


def test_it_is_written_once_in_an_interval_and_at_the_end(problem, tmp_path, watched_sampler, clock):
    sweeps, states = [0], set()

    def look(t):
        sweeps.append(t)
        states.update(path.name for path in tmp_path.glob("state-*.npz"))

    watched_sampler(look)
    clock("_fit.checkpoint", lambda: sweeps[-1])  # a sweep a second
    classifier(tmp_path, checkpoint_interval=25).fit(*problem)
    look(None)
    assert states == {f"state-{t}.npz" for t in (25, 50, 75, 100, 105)}


def test_of_two_fits_one_has_the_folder(problem, whole, tmp_path, watched_sampler):
    """The other is refused, and says who has it; the first ends as if alone."""
    refused = []

    def meanwhile(t):
        if t in (1, 50):
            with pytest.raises(RuntimeError, match=r"Another fit is writing to .*: process \d+"):
                classifier(tmp_path, random_state=1).fit(*problem)
            refused.append(t)

    watched_sampler(meanwhile)
    assert same_draws(classifier(tmp_path).fit(*problem), whole)
    assert refused


@pytest.mark.parametrize("room", [0, 5, 6, 7, 8, 9])  # of which each file takes two, one for its name
def test_a_full_disk_is_one_warning_and_is_not_filled_further(problem, whole, tmp_path, room, disk_fails):
    """Room runs out when the bytes are brought to the disk; what was written of them goes again."""
    calls = itertools.count()

    def full(file):
        if next(calls) >= room:
            raise OSError(28, "No space left on device")

    disk_fails(full)
    with one_warning("No space left on device"):
        assert same_draws(classifier(tmp_path, checkpoint_interval=0).fit(*problem), whole)
    assert next(calls) > 20  # it has tried again
    assert contents(tmp_path).keys() == (named(tmp_path) if room else set())


def test_a_folder_that_cannot_be_written_is_refused_at_once(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(ValueError, match=r"checkpoint=.* cannot be read and written"):
        classifier(tmp_path).fit(*problem)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({}, r"checksum of X"),
        ({"random_state": 1}, r"random_state \(was 0, is 1\)"),
        ({"slab_scale": 0.5}, r"slab_scale \(was None, is 0.5\)"),
        ({"unpenalized": [1]}, r"unpenalized \(was \[\], is \[1\]\)"),
    ],
)
def test_another_run_is_refused_and_the_difference_named(problem, folder, params, told):
    before = contents(folder)
    with pytest.raises(ValueError, match=f"holds another run: .*{told}"):
        classifier(folder, **params).fit(problem[0] if params else problem[0] * 1.000001, problem[1])
    assert contents(folder) == before


@pytest.mark.parametrize("what", ["device", "skhorseshoe"])
def test_a_run_of_another_device_or_version_is_refused(problem, tmp_path, what, monkeypatch):
    def elsewhere(self, folder, seconds, described, *more, plain=Checkpoint.__init__):
        plain(self, folder, seconds, {**described, what: "elsewhere"}, *more)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "__init__", elsewhere)
        classifier(tmp_path).fit(*problem)
    with pytest.raises(ValueError, match=rf"{what} \(was elsewhere, is "):
        classifier(tmp_path).fit(*problem)


def test_a_folder_of_something_else_is_refused(problem, tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match=r"thesis\.tex"):
        classifier(tmp_path).fit(*problem)
    with pytest.raises(ValueError, match="cannot be made a folder"):
        classifier(tmp_path / "thesis.tex").fit(*problem)


def test_files_of_the_user_in_the_folder_stay(problem, tmp_path):
    """Also those whose names begin as ours do."""
    names = {"draws-of-cards.txt", "draws-1.npz.bak", "state-level.csv", "manifest-2.json"}
    for name in names:
        (tmp_path / name).write_text("mine")
    classifier(tmp_path, checkpoint_interval=0).fit(*problem)
    assert names < contents(tmp_path).keys()


DAMAGE = {
    "truncated": lambda data: data[: len(data) // 2],
    "one bit": lambda data: data[: len(data) // 3] + bytes([data[len(data) // 3] ^ 1]) + data[len(data) // 3 + 1 :],
    "empty": lambda data: b"",
    "missing": None,
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("which", ["manifest", "state", "draws"])
def test_a_damaged_file_is_never_loaded(problem, folder, which, how):
    if (which, how) == ("manifest", "missing"):
        return  # a folder without it is one that nothing was written to yet
    path = next(path for path in sorted(folder.iterdir()) if path.name.startswith(which))
    data = path.read_bytes()
    path.unlink()
    if DAMAGE[how] is not None:
        path.write_bytes(DAMAGE[how](data))
    with pytest.raises(ValueError, match="is damaged or was not written"):
        classifier(folder).fit(*problem)


def test_a_handler_of_signals_stops_the_fit_also_while_it_writes(problem, tmp_path, monkeypatch):
    """Its TimeoutError is an OSError, as that of a full disk is."""

    def late(*args):
        raise TimeoutError("my own limit of time")

    monkeypatch.setattr(os, "fsync", late)
    with pytest.raises(TimeoutError, match="my own limit"):
        classifier(tmp_path).fit(*problem)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".new"]


@pytest.mark.parametrize(
    "error", [PermissionError(errno.EACCES, "no"), OSError(errno.EMFILE, "many"), TimeoutError("x")]
)
def test_a_file_that_cannot_be_read_now_is_not_called_damaged(problem, folder, error, monkeypatch):
    there = contents(folder)

    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr("skhorseshoe._utils.atomic_files.open_to_read", refuse)
    with pytest.raises(OSError, match=str(error).strip("[]").split("]")[-1]) as told:
        classifier(folder).fit(*problem)
    assert told.value is error
    assert contents(folder) == there
