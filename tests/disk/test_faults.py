"""Conversions to disk that are stopped, killed or made twice at once, and files that are damaged."""

import io
import itertools
import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from killing import contents, killed_before
from tables import NAMES, SOURCES, in_parts, stopped, write_parquet

from skhorseshoe import disk
from skhorseshoe._utils import atomic_files, lock
from skhorseshoe.disk import _folder

# Stopped, gone on -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed after a fork")
@pytest.mark.parametrize("has_groups", [pytest.param(False, marks=pytest.mark.slow), True])
def test_killed_at_any_moment_it_goes_on(has_groups, seed, tmp_path):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 100, (250, 4)).astype(np.float64), rng.integers(0, 2, 250)
    X[80:] += 0.1  # from here on it is float64, and all before is rewritten
    groups = np.minimum(rng.integers(0, 40, 250), np.arange(250) // 4)  # of which later rows bring new ones
    of_rows = {"y": y, "groups": groups} if has_groups else {"y": y}
    disk.convert(X, tmp_path / "whole", **of_rows)
    for k in itertools.count(1):
        folder = tmp_path / f"{k}"
        if not killed_before(k, "fsync", lambda folder=folder: disk.convert(X, folder, **of_rows)):
            break
        is_whole = json.loads((folder / "manifest.json").read_text())["body"]["complete"]
        with nullcontext() if is_whole else pytest.raises(ValueError, match=r"has stopped after \d+ rows"):
            disk.load(folder)
        if is_whole:
            (folder / "conversion.lock").unlink()  # that nobody holds
        killed_before(k % 4, "fsync", lambda folder=folder: disk.convert(X, folder, **of_rows))  # as it goes on
        for got, want in zip(disk.convert(X, folder, **of_rows), (X, *of_rows.values()), strict=True):
            np.testing.assert_array_equal(got, want)
        assert contents(folder) == contents(tmp_path / "whole")
    assert k > 15


@pytest.mark.parametrize("is_done", [True, False])
def test_after_a_renaming_that_is_said_to_have_failed_it_goes_on(is_done, seed, tmp_path, monkeypatch):
    X, plain = np.random.default_rng(seed).standard_normal((250, 4)), os.replace
    X[:80] = 0.5  # until here it is float32

    def lost(*args, **where):
        now = next(calls) == k
        if not now or is_done:
            plain(*args, **where)
        if now:
            raise OSError(5, "Input/output error")

    for k in itertools.count():
        calls = itertools.count()
        with monkeypatch.context() as patched, suppress(OSError):
            patched.setattr(os, "replace", lost)
            disk.convert(X, tmp_path / f"{k}")
        np.testing.assert_array_equal(disk.convert(X, tmp_path / f"{k}")[0], X)
        if next(calls) <= k:
            break
    assert k > 5


@pytest.mark.parametrize("k", [7, 9])  # in the first file of CSV, and in the second
@pytest.mark.parametrize("kind", ["parquet", "CSV", "frames"])
def test_every_source_goes_on_where_it_stopped(kind, k, frame, tmp_path, full_disk, monkeypatch):
    source = SOURCES[kind](frame, tmp_path / "source")
    disk.convert(source, tmp_path / "whole", y="ill")
    full_disk(k)
    with pytest.raises(OSError, match="No space"):
        disk.convert(source, tmp_path / "rows", y="ill")
    with pytest.raises(ValueError, match=r"has stopped after \d+ rows. The same call") as stop:
        disk.load(tmp_path / "rows")
    written, put_rows = [], _folder._put_rows

    def counted(path, at, rows, *fd):
        written.append(len(rows))
        put_rows(path, at, rows, *fd)

    monkeypatch.setattr(_folder, "_put_rows", counted)
    disk.convert(source, tmp_path / "rows", y="ill")
    assert f"after {len(frame) - sum(written[2::2])} rows" in str(stop.value)  # the last block is written again
    assert contents(tmp_path / "rows") == contents(tmp_path / "whole")


def test_other_rows_or_labels_do_not_go_on(frame, tmp_path):
    stopped(frame, tmp_path / "rows")
    others = frame.assign(ill=frame["ill"].map({"no": "yes", "yes": "no"}))
    for source in (frame[::-1], others):
        with pytest.raises(ValueError, match="differ from row 200 on"):
            disk.convert(in_parts(source), tmp_path / "rows", y="ill")
    with pytest.raises(ValueError, match=r"another conversion: dtype \(was None, is float32\)"):
        disk.convert(in_parts(frame), tmp_path / "rows", y="ill", dtype="float32")
    X, _ = disk.convert(in_parts(frame), tmp_path / "rows", y="ill")
    assert len(X) == len(frame)


def test_a_source_that_has_become_shorter_does_not_go_on(frame, tmp_path):
    stopped(frame, tmp_path / "rows")
    with pytest.raises(ValueError, match="no rows from row 200 on"):
        disk.convert(in_parts(frame[:150]), tmp_path / "rows", y="ill")
    disk.convert(in_parts(frame[:250]), tmp_path / "rows", y="ill")  # what is there to its end is whole


def test_rows_that_no_manifest_describes_are_cut_off(frame, tmp_path):
    stopped(frame, tmp_path / "rows")
    for name in ("X-float32.bin", "y.bin"):
        with open(tmp_path / "rows" / name, "ab") as file:
            file.write(bytes(1000))
    X, y = disk.convert(in_parts(frame[:250]), tmp_path / "rows", y="ill")
    assert len(X) == len(y) == 250


def test_a_generator_is_not_read_twice(frame, tmp_path):
    parts = in_parts(frame)
    parts[3] = parts[3].assign(age="old")
    source = (part for part in parts)
    with pytest.raises(ValueError, match="'age' is not numeric"):
        disk.convert(source, tmp_path / "rows", y="ill")
    with pytest.raises(ValueError, match=r"a generator that has been read from already.*make it anew"):
        disk.convert(source, tmp_path / "rows", y="ill")


def test_what_is_whole_is_not_made_again(frame, tmp_path):
    source = write_parquet(frame, tmp_path / "source")
    disk.convert(source, tmp_path / "rows", y="ill")
    before = contents(tmp_path / "rows")
    X, _ = disk.convert(source, tmp_path / "rows", y="ill")
    assert len(X) == len(frame)
    assert contents(tmp_path / "rows") == before
    os.utime(source / "part.3.parquet", ns=(0, 0))
    with pytest.raises(
        ValueError, match=r"another conversion: source \(was 12 files of \d+ bytes, checksum \w+, is 12 files"
    ):
        disk.convert(source, tmp_path / "rows", y="ill")
    with pytest.raises(ValueError, match="another conversion: source"):
        disk.convert(in_parts(frame), tmp_path / "rows", y="ill")


def test_a_source_is_the_same_by_whatever_path(frame, tmp_path, monkeypatch):
    source = write_parquet(frame, tmp_path / "source")
    disk.convert(source, tmp_path / "rows", y="ill")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    files = [f"~/source/part.{i}.parquet" for i in range(12)]
    for same in ("source", files):
        disk.convert(same, "~/rows", y="ill")
    with pytest.raises(ValueError, match="another conversion: source"):
        disk.convert(files[::-1], "rows", y="ill")


def test_an_iterable_cannot_tell_whether_it_is_the_same(frame, tmp_path):
    disk.convert(in_parts(frame), tmp_path / "rows", y="ill")
    with pytest.raises(ValueError, match="holds rows already"):
        disk.convert(in_parts(frame), tmp_path / "rows", y="ill")


@pytest.mark.parametrize("labels", [["no", "yes"], None])
def test_other_arrays_are_not_taken_for_the_same(labels, seed, tmp_path):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, 4))
    y = None if labels is None else rng.choice(np.array(labels, object), 120)
    disk.convert(X, tmp_path / "rows", y=y)
    got, _ = disk.convert(np.asfortranarray(X), tmp_path / "rows", y=y)
    np.testing.assert_array_equal(got, X)
    for other in [(X + 1, y), (X[::-1], y), (X, rng.permutation(120) if y is None else y[::-1])]:
        with pytest.raises(ValueError, match="another conversion: source"):
            disk.convert(other[0], tmp_path / "rows", y=other[1])


def test_going_on_leaves_other_files_alone(frame, tmp_path):
    stopped(frame, tmp_path / "rows")
    (tmp_path / "rows" / "notes.txt").write_text("mine")
    disk.convert(in_parts(frame), tmp_path / "rows", y="ill")
    assert (tmp_path / "rows" / "notes.txt").read_text() == "mine"


def test_a_folder_of_something_else_is_left_alone(frame, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="not empty and holds no rows"):
        disk.convert(frame, tmp_path, y="ill")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


# Two at once ----------------------------------------------------------------------------------------------------------


def test_rows_in_another_dtype_that_a_killed_process_has_left_go(frame, tmp_path):
    stopped(frame, tmp_path / "rows")
    (tmp_path / "rows" / "X-float64.bin").write_bytes(b"half")
    disk.convert(in_parts(frame), tmp_path / "rows", y="ill")
    assert sorted(contents(tmp_path / "rows")) == ["X-float32.bin", "manifest.json", "y.bin"]


HOLDER = """
import sys, time, numpy as np
from skhorseshoe import disk
from skhorseshoe.disk import _folder
_folder.BYTES_TO_A_MANIFEST = 1

def parts():
    for k in range(5):
        yield np.full((3, 2), float(k))
    print("half", flush=True)
    time.sleep(300)

disk.convert(parts(), sys.argv[1])
"""


def test_rows_that_another_call_has_ended_a_moment_ago_are_left_alone(frame, tmp_path, monkeypatch):
    source, file, times = write_parquet(frame, tmp_path / "source"), tmp_path / "rows" / "X-float32.bin", []

    def late(*args):
        monkeypatch.undo()
        disk.convert(source, tmp_path / "rows", y="ill")
        times.append(file.stat().st_mtime_ns)
        return lock.alone(*args)

    monkeypatch.setattr(_folder, "alone", late)
    disk.convert(source, tmp_path / "rows", y="ill")
    assert times == [file.stat().st_mtime_ns]


def test_a_killed_process_holds_no_lock(tmp_path):
    folder = tmp_path / "rows"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, folder], stdout=subprocess.PIPE, text=True)
    rows = [np.full((3, 2), float(k)) for k in range(9)]
    try:
        assert holder.stdout.readline() == "half\n"
        with pytest.raises(RuntimeError, match=f"process {holder.pid} on .* holds 'conversion.lock'"):
            disk.convert(rows, folder)
    finally:
        holder.kill()
        holder.communicate()
    assert (folder / "conversion.lock").exists()
    X, _ = disk.convert(rows, folder)
    np.testing.assert_array_equal(X, np.concatenate(rows))
    assert not (folder / "conversion.lock").exists()


# Damaged --------------------------------------------------------------------------------------------------------------


def cut_short(path):
    os.truncate(path, path.stat().st_size - 1)


DAMAGE = {
    "rows cut short": ("X-float32.bin", cut_short),
    "a byte more": ("X-float32.bin", lambda path: path.write_bytes(path.read_bytes() + b"x")),
    "labels cut short": ("y.bin", cut_short),
    "no labels": ("y.bin", Path.unlink),
    "a note cut short": ("manifest.json", cut_short),
    "a row less": (
        "manifest.json",
        lambda path: path.write_text(path.read_text().replace("[550, 600, ", "[550, 599, ")),
    ),
    "a note of others": ("manifest.json", lambda path: path.write_text('{"rows": 600}')),
}


@pytest.mark.parametrize(("file", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_files_are_refused(file, damage, frame, tmp_path):
    disk.convert(in_parts(frame), tmp_path / "rows", y="ill")
    damage(tmp_path / "rows" / file)
    with pytest.raises(ValueError, match=f"{file}' is damaged or was not written"):
        disk.load(tmp_path / "rows")


@pytest.mark.parametrize("file", ["X-float32.bin", "y.bin"])
def test_a_changed_byte_is_found_by_its_checksum(file, frame, tmp_path):
    disk.convert(in_parts(frame), tmp_path / "rows", y="ill")
    disk.load(tmp_path / "rows", check=True)
    path = tmp_path / "rows" / file
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"{file}' is damaged.*rows 550 to 599 is wrong"):
        disk.load(tmp_path / "rows", check=True)


def test_a_file_cut_short_does_not_go_on(frame, tmp_path):
    stopped(frame, tmp_path / "rows")
    cut_short(tmp_path / "rows" / "X-float32.bin")
    shutil.copytree(tmp_path / "rows", tmp_path / "more")
    X, _ = disk.convert(in_parts(frame), tmp_path / "rows", y="ill")  # the last block is written again
    np.testing.assert_array_equal(X, frame[NAMES].astype(np.float32))
    os.truncate(tmp_path / "more" / "X-float32.bin", 200 * 3 * 4 - 1)
    with pytest.raises(ValueError, match="damaged or was not written"):
        disk.convert(in_parts(frame), tmp_path / "more", y="ill")


@pytest.mark.parametrize(("kind", "file"), [("+", "X-float32.bin"), ("x", "manifest.json"), ("a", "X-float32.bin")])
def test_files_that_cannot_be_closed_leave_no_lock(kind, file, tmp_path, monkeypatch):
    """As where the disk is full: what is left in a buffer is written when a file is closed."""

    class Full(io.FileIO):
        def close(self):
            super().close()
            raise OSError(28, "No space left on device")

    def opened(path, mode, *fd):
        return Full(path, mode) if kind in mode else open_to_write(path, mode, *fd)

    open_to_write = atomic_files.open_to_write
    monkeypatch.setattr(atomic_files, "open_to_write", opened)
    with pytest.raises(OSError, match=rf"No space left.*Free space.*same call: it goes on: .*{file}'") as full:
        disk.convert(np.ones((50, 2), np.float32), tmp_path / "rows")
    assert full.value.errno == 28
    assert not list((tmp_path / "rows").glob("*.lock"))
    monkeypatch.undo()
    assert len(disk.convert(np.ones((50, 2), np.float32), tmp_path / "rows")[0]) == 50
