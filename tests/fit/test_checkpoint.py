"""checkpoint: a run that was killed at any moment ends with the draws of an uninterrupted one, to the bit."""

import builtins
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit import checkpoint as _checkpoint
from skhorseshoe._fit import fit
from skhorseshoe._mcmc.adaptation_window import Window
from skhorseshoe._mcmc.draws import Draws
from skhorseshoe._mcmc.hmc_burn_in import HmcChains
from skhorseshoe._utils import atomic_files

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
ATTRIBUTES = "coef_draws_", "intercept_draws_", "global_scale_draws_", "shrinkage_"


class Killed(Exception):
    """Stands for the end of the process: nothing after it is run but what Python itself does."""


@pytest.fixture
def killed_after(monkeypatch):
    """A function that lets a run be cut off after a number of sweeps, without a last word to the checkpoint."""

    class Reporter:
        def __init__(self, sweeps):
            self.sweeps = sweeps

        def __call__(self, *args):
            return self.report

        def report(self, t):
            if t == self.sweeps:
                monkeypatch.setattr(_checkpoint.Checkpoint, "write", lambda *args: None)
                raise Killed

    def kill(sweeps):
        monkeypatch.setattr(fit.progress, "reporter", Reporter(sweeps))

    return kill


def classifier(folder, sampler="hmc", **params):
    params = {"n_iter": 60, "burn_in": 45, "random_state": 0, "checkpoint_interval": 0.0, **params}
    return HorseshoeProbitClassifier(sampler=sampler, checkpoint=folder, **params)


@pytest.fixture(scope="module")
def few_rows(problem):
    return problem[0][:40], problem[1][:40]


def same(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ATTRIBUTES)


@pytest.mark.parametrize(
    ("sampler", "sweeps"),
    [
        *(("hmc", sweeps) for sweeps in (1, 3, 4, 11, 20, 31, 44, 45, 46, 61, 104)),
        *((sampler, sweeps) for sampler in ("gibbs", "pxda", "collapsed") for sweeps in (1, 31, 61)),
    ],
)
def test_a_killed_run_goes_on_to_the_same_draws(few_rows, tmp_path, sampler, sweeps, killed_after, monkeypatch):
    problem = few_rows
    with monkeypatch.context() as patched:
        killed_after(sweeps)
        with pytest.raises(Killed):
            classifier(tmp_path / "run", sampler, thin=2).fit(*problem)
        patched.undo()
    monkeypatch.undo()
    resumed = classifier(tmp_path / "run", sampler, thin=2, n_jobs=2).fit(*problem)
    whole = classifier(None, sampler, thin=2).fit(*problem)
    assert same(resumed, whole)
    assert resumed.tuning_ == whole.tuning_


CUT = {
    "a window of burn-in ends": (HmcChains, "_next_phase", 2),
    "the reference is found": (HmcChains, "_refer", 2),
    "burn-in looks at a state": (Window, "see", 12),
    "a draw is kept": (Draws, "add", 7),
}


@pytest.mark.parametrize("error", [MemoryError, SystemExit])
@pytest.mark.parametrize("when", CUT)
def test_a_sweep_that_an_error_cuts_in_two_is_not_written(few_rows, tmp_path, when, error, monkeypatch):
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
            classifier(tmp_path).fit(*few_rows)
    assert same(classifier(tmp_path).fit(*few_rows), classifier(None).fit(*few_rows))


def test_what_ended_a_run_is_said_whatever_its_last_words_meet(few_rows, tmp_path, killed_after, monkeypatch):
    def write(*args):
        raise RuntimeError("the card is gone")

    killed_after(20)
    monkeypatch.setattr(_checkpoint.Checkpoint, "is_due", lambda self: False)
    monkeypatch.setattr(_checkpoint.Checkpoint, "write", write)
    with pytest.raises(Killed):
        classifier(tmp_path).fit(*few_rows)


def test_of_two_fits_one_has_the_folder(few_rows, tmp_path, monkeypatch):
    """The other is refused, and says who has it; the first ends as if alone."""
    refused, write = [], _checkpoint.Checkpoint.write

    def meanwhile(checkpoint, run):
        if not refused:
            with pytest.raises(RuntimeError, match=r"Another fit is writing to .*: process \d+ .* Wait"):
                classifier(tmp_path, random_state=1).fit(*few_rows)
            refused.append(True)
        write(checkpoint, run)

    monkeypatch.setattr(_checkpoint.Checkpoint, "write", meanwhile)
    first = classifier(tmp_path).fit(*few_rows)
    assert refused
    assert same(first, classifier(None).fit(*few_rows))
    assert same(first, classifier(tmp_path).fit(*few_rows))


def test_a_finished_run_is_read_and_a_longer_one_goes_on(problem, tmp_path, monkeypatch):
    first = classifier(tmp_path).fit(*problem)
    with monkeypatch.context() as patched:
        patched.setattr("skhorseshoe._mcmc.hmc_burn_in.HmcChains.advance", None)
        assert same(classifier(tmp_path).fit(*problem), first)
    longer = classifier(tmp_path, n_iter=90).fit(*problem)
    assert same(longer, classifier(None, n_iter=90).fit(*problem))
    with pytest.raises(ValueError, match="holds 90 sweeps, more than n_iter=60"):
        classifier(tmp_path).fit(*problem)


def test_target_ess_stops_at_the_same_draw_when_it_goes_on(weak_problem, tmp_path):
    params = {"n_iter": 20_000, "target_ess": 150, "burn_in": 150}
    first = classifier(tmp_path, **params, checkpoint_interval=0.2).fit(*weak_problem)
    assert first.stopped_by_ == "target_ess"
    again = classifier(tmp_path, **params).fit(*weak_problem)
    assert same(first, again)
    assert again.stopped_by_ == "target_ess"


def test_it_is_written_once_in_an_interval_and_at_the_end(few_rows, tmp_path, monkeypatch):
    sweeps, written = [0], []

    def write(checkpoint, run, plain=_checkpoint.Checkpoint._write):
        written.append(run.chains.state.sweep)
        plain(checkpoint, run)

    monkeypatch.setattr(fit.progress, "reporter", lambda *args: sweeps.append)
    monkeypatch.setattr(_checkpoint, "time", SimpleNamespace(monotonic=lambda: sweeps[-1]))  # a sweep a second
    monkeypatch.setattr(_checkpoint.Checkpoint, "_write", write)
    classifier(tmp_path, checkpoint_interval=25).fit(*few_rows)
    assert written == [25, 50, 75, 100, 105]


def test_a_generator_is_known_by_what_it_draws(problem, tmp_path):
    def seeded(seed):
        return classifier(tmp_path, random_state=np.random.RandomState(seed))

    assert same(seeded(1).fit(*problem), seeded(1).fit(*problem))
    with pytest.raises(ValueError, match=r"random_state \(was a generator that draws \[\d+, \d+\], is a generator"):
        seeded(2).fit(*problem)


def test_a_fresh_seed_is_remembered(problem, tmp_path):
    first = classifier(tmp_path, random_state=None).fit(*problem)
    assert same(first, classifier(tmp_path, random_state=None).fit(*problem))


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"n_chains": 2}, "n_chains (was 4, is 2)"),
        ({"random_state": 1}, "random_state (was 0, is 1)"),
        ({"slab_scale": 0.5}, "1 / slab_scale^2 (was 0.0, is 4.0)"),
        ({"sampler": "gibbs"}, "sampler (was hmc, is gibbs)"),
        ({"unpenalized": [1]}, "unpenalized (was [], is [1])"),
    ],
)
def test_another_run_is_refused_and_the_difference_named(problem, tmp_path, params, told):
    classifier(tmp_path).fit(*problem)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="holds another run") as caught:
        classifier(tmp_path, **params).fit(*problem)
    assert told in str(caught.value)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_a_run_on_another_device_is_refused(problem, tmp_path, monkeypatch):
    def on_a_card(model, problem, settings, device, plain=fit._checkpoint):
        return plain(model, problem, settings, "cuda:0")

    with monkeypatch.context() as patched:
        patched.setattr(fit, "_checkpoint", on_a_card)
        classifier(tmp_path).fit(*problem)
    with pytest.raises(ValueError, match=r"device \(was cuda:0, is cpu\)"):
        classifier(tmp_path).fit(*problem)


def test_other_data_and_another_version_are_refused(problem, tmp_path, monkeypatch):
    X, y = problem
    classifier(tmp_path).fit(X, y)
    with pytest.raises(ValueError, match="checksum of X"):
        classifier(tmp_path).fit(X * 1.000001, y)
    monkeypatch.setattr("skhorseshoe._version.__version__", "9.9.9")
    with pytest.raises(ValueError, match=r"skhorseshoe \(was .*, is 9.9.9\)"):
        classifier(tmp_path).fit(X, y)


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "truncated":
        data = data[: len(data) // 2]
    elif how == "one bit":
        data[len(data) // 3] ^= 1
    elif how == "empty":
        data = b""
    else:
        path.unlink()
        return
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("which", "how"),
    [
        *((which, how) for which in ("manifest", "state", "draws") for how in ("truncated", "one bit", "empty")),
        ("state", "missing"),  # without its manifest a folder is one that nothing was written to yet
        ("draws", "missing"),
    ],
)
def test_a_damaged_file_is_never_loaded(problem, tmp_path, which, how):
    classifier(tmp_path).fit(*problem)
    path = next(path for path in sorted(tmp_path.iterdir()) if path.name.startswith(which))
    damage(path, how)
    with pytest.raises(ValueError, match="is damaged or was not written"):
        classifier(tmp_path).fit(*problem)


def test_no_file_can_run_code(problem, tmp_path):
    """An array of objects is refused even where its checksum is right."""
    classifier(tmp_path).fit(*problem)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    name = manifest["body"]["state"][0]
    np.savez(tmp_path / name, n_iter=np.array([print], dtype=object))
    data = (tmp_path / name).read_bytes()
    manifest["body"]["state"][1] = atomic_files.checksum(data)
    manifest["checksum"] = atomic_files.checksum(json.dumps(manifest["body"]).encode())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="it holds object, no numbers"):
        classifier(tmp_path).fit(*problem)


def test_a_folder_of_something_else_is_refused(problem, tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match=r"not empty: it holds \['thesis.tex'\]"):
        classifier(tmp_path).fit(*problem)
    with pytest.raises(ValueError, match="cannot be made a folder"):
        classifier(tmp_path / "thesis.tex").fit(*problem)


def test_a_full_disk_is_one_warning_and_the_fit_goes_on(problem, tmp_path, monkeypatch):
    plain = builtins.open

    def full(path, mode="r", *args, **kwargs):
        if "x" in mode and Path(path).parent == tmp_path:
            raise OSError(28, "No space left on device")
        return plain(path, mode, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", full)
    with pytest.warns(UserWarning, match="No space left on device.*goes on") as caught:
        model = classifier(tmp_path).fit(*problem)
    assert sum("No space" in str(w.message) for w in caught) == 1
    assert same(model, classifier(None).fit(*problem))


def test_warm_start_is_another_way_to_go_on(problem, tmp_path):
    with pytest.raises(ValueError, match="cannot be combined"):
        classifier(tmp_path, warm_start=True).fit(*problem)


RUN = """
import hashlib, sys, warnings
from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit
warnings.simplefilter("ignore")
X, y, _ = make_sparse_probit(400, 12, random_state=0)
model = HorseshoeProbitClassifier(
    n_iter=400, burn_in=200, n_jobs=1, random_state=0, checkpoint=sys.argv[1] or None, checkpoint_interval=0.0
)
print("ready", flush=True)
model.fit(X, y)
print(hashlib.sha256(model.coef_draws_.tobytes()).hexdigest())
"""


def outcome(folder):
    command = [sys.executable, "-c", RUN, str(folder or "")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def kill_at_random_moments(folder, n, rng, longest):
    for _ in range(n):
        with subprocess.Popen([sys.executable, "-c", RUN, str(folder)], stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0, longest))
            process.send_signal(signal.SIGKILL)


posix = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a signal of POSIX")


@posix
def test_sigkill_at_random_moments_changes_nothing(tmp_path, seed):
    kill_at_random_moments(tmp_path / "run", 2, np.random.default_rng(seed), 1.5)
    assert outcome(tmp_path / "run") == outcome(None)


@posix
@pytest.mark.slow
def test_sigkill_at_fifty_random_moments_changes_nothing(tmp_path, seed):
    rng = np.random.default_rng(seed)
    whole = outcome(None)
    for k in range(10):
        kill_at_random_moments(tmp_path / str(k), 5, rng, 1.5)
        assert outcome(tmp_path / str(k)) == whole


def test_a_folder_that_cannot_be_written_is_refused_before_the_fit(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(ValueError, match=r"checkpoint=.* cannot be written: give a folder that you may write to"):
        HorseshoeProbitClassifier(checkpoint=tmp_path).fit(*problem)


def test_the_home_folder_may_be_given_by_its_sign(problem, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    HorseshoeProbitClassifier(n_iter=2, burn_in=0, checkpoint="~/run").fit(*problem)
    assert (tmp_path / "run" / _checkpoint._MANIFEST).exists()
