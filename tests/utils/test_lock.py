"""The lock of a folder: held whether or not its note can be written, and by no child of its holder."""

import io
import os

import pytest

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._utils import lock
from skhorseshoe._utils.lock import alone


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_the_disk_is_full_from_the_start_the_fit_goes_on_and_warns(problem, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    class File(io.FileIO):
        write = full

    monkeypatch.setattr(lock, "open_to_write", lambda path, *args, **kwargs: File(path, "a+"))
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
            with pytest.raises(RuntimeError, match="Another fit is writing to"), alone(tmp_path, "fit"):
                pass
    if child == 0:
        os._exit(0)
    assert not list(tmp_path.iterdir())


def test_a_link_in_place_of_the_lock_leads_to_nothing_that_is_emptied(tmp_path):
    (tmp_path / "precious").write_text("keys")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "fit.lock").symlink_to(tmp_path / "precious")
    with (
        pytest.raises(ValueError, match=r"fit\.lock' is a symbolic link, .*remove it"),
        alone(tmp_path / "run", "fit"),
    ):
        pass
    assert (tmp_path / "precious").read_text() == "keys"


def test_where_a_file_is_never_the_same_the_lock_is_refused(tmp_path, monkeypatch):
    """Some network drives number files anew each time."""
    monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    with pytest.raises(RuntimeError, match="cannot be locked: the file changes"), alone(tmp_path, "fit"):
        pass
