"""The lock of a folder: held whether or not its note can be written, and by no child of its holder."""

import io
import os

import pytest

from skhorseshoe import HorseshoeProbitClassifier, _lock
from skhorseshoe._lock import alone


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_the_disk_is_full_from_the_start_the_fit_goes_on_and_warns(problem, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    class File(io.FileIO):
        write = full

    monkeypatch.setattr(_lock, "open", lambda path, *args, **kwargs: File(path, "a+"), raising=False)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="No space left on device.*goes on"):
        model = HorseshoeProbitClassifier(n_iter=9, burn_in=2, checkpoint=tmp_path).fit(*problem)
    assert model.n_iter_ == 9
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_child_of_a_holder_that_was_killed_does_not_hold_the_lock(tmp_path):
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_leaves_the_block_of_its_parent_leaves_the_lock_with_it(tmp_path):
    with alone(tmp_path, "fit"):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            with pytest.raises(RuntimeError, match="under way"), alone(tmp_path, "fit"):
                pass
    if child == 0:
        os._exit(0)
    assert not list(tmp_path.iterdir())
