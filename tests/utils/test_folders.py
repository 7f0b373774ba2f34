"""Folders that hold something else, and what was left in them."""

import pytest

from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._utils.atomic_files import put

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def fit(problem):
    """A short fit with a checkpoint in a folder."""
    return lambda folder: HorseshoeProbitClassifier(n_iter=9, burn_in=2, checkpoint=folder).fit(*problem)


def test_a_checkpoint_and_rows_on_disk_are_not_taken_for_each_other_nor_for_damage(problem, fit, tmp_path):
    disk.convert(problem[0], tmp_path / "rows")
    fit(tmp_path / "run")
    for use in (fit, disk.load, lambda folder: disk.convert(problem[0], folder)):
        folder = tmp_path / ("rows" if use is fit else "run")
        there = {path: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(
            ValueError, match=f"{folder.name}' holds something else that skhorseshoe wrote.*another folder"
        ):
            use(folder)
        assert {path: path.read_bytes() for path in folder.iterdir()} == there


def test_what_file_managers_and_killed_processes_leave_makes_no_folder_another(problem, fit, tmp_path):
    for kind, use in (("rows", lambda folder: disk.convert(problem[0], folder)), ("run", fit)):
        folder = tmp_path / kind
        folder.mkdir()
        for name in (".DS_Store", "desktop.ini", "manifest.json.new"):
            (folder / name).write_text("")
        use(folder)
        assert (folder / "manifest.json").stat().st_size
        assert (folder / ".DS_Store").exists()


def test_a_link_in_place_of_the_new_file_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("keys")
    (tmp_path / "note.new").symlink_to(tmp_path / "precious")
    put(tmp_path / "note", b"text")
    assert (tmp_path / "precious").read_text() == "keys"
    assert not (tmp_path / "note").is_symlink()
    assert (tmp_path / "note").read_bytes() == b"text"
