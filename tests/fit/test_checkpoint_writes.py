"""Between any two writes a checkpoint is whole, and a disk that is full is not filled further."""

import itertools
import json
import os
import shutil
import signal

import numpy as np
import pytest

from skhorseshoe import HorseshoeProbitClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def classifier(folder, **params):
    params = {"n_iter": 60, "burn_in": 45, "random_state": 0, "n_jobs": 1, "checkpoint_interval": 0.0, **params}
    return HorseshoeProbitClassifier(sampler="hmc", checkpoint=folder, **params)


def same(one, other):
    return np.array_equal(one.coef_draws_, other.coef_draws_) and np.array_equal(one.shrinkage_, other.shrinkage_)


def test_a_full_disk_is_not_filled_further(problem, tmp_path, monkeypatch):
    """Room runs out when the bytes are brought to the disk; what was written of them goes again."""
    written = []

    def full(file):
        written.append(file)
        if len(written) > 6:  # two whole states
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="No space left on device.*goes on"):
        classifier(tmp_path).fit(*problem)
    assert len(written) > 20
    manifest = json.loads((tmp_path / "manifest.json").read_text())["body"]
    named = {manifest["state"][0], *(name for name, *_ in manifest["draws"])}
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", *named}


def test_a_folder_that_is_gone_is_one_warning_and_the_fit_goes_on(problem, tmp_path, monkeypatch):
    folder = tmp_path / "mounted"

    def gone(file):
        shutil.rmtree(folder, ignore_errors=True)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", gone)
    with pytest.warns(UserWarning, match="could not be written.*goes on") as caught:
        model = classifier(folder).fit(*problem)
    assert sum("could not be written" in str(w.message) for w in caught) == 1
    assert same(model, classifier(None).fit(*problem))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed after a fork")
def test_killed_between_any_two_writes_it_goes_on(problem, tmp_path):
    """The manifest names only what is there, whichever file was the last to reach the disk."""
    whole = classifier(None, n_iter=4, burn_in=2).fit(*problem)
    for k in itertools.count():
        folder = tmp_path / f"{k}"
        if not killed_after(k, classifier(folder, n_iter=4, burn_in=2), problem):
            break
        assert same(classifier(folder, n_iter=4, burn_in=2).fit(*problem), whole)
    assert k > 10


def killed_after(k, model, problem):
    """Whether a process that fits is killed, after the k-th file has taken its place."""
    pid = os.fork()
    if pid == 0:
        calls, replace = iter(range(k)), os.replace

        def kill(*paths):
            if next(calls, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            replace(*paths)

        os.replace = kill
        try:
            model.fit(*problem)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])
