"""Manifests and files that are not what was written, with checksums that are right: refused by name."""

import io
import json
import os
import zipfile
from contextlib import nullcontext

import numpy as np
import pytest

from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._fit import checkpoint
from skhorseshoe._utils import atomic_files

DAMAGED = "is damaged or was not written by skhorseshoe"
ROWS = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
LABELS = np.arange(40) % 2


def forge(folder, change):
    """Change the body of a manifest in place, with a checksum that is right."""
    path = folder / "manifest.json"
    body = json.loads(path.read_text())["body"]
    change(body)
    atomic_files.put_note(path, body)


def fit(folder, **params):
    params = {"n_iter": 12, "burn_in": 20, "random_state": 0, "n_jobs": 1, **params}
    return HorseshoeProbitClassifier(checkpoint=folder, **params).fit(ROWS, LABELS)


def put(name, value):
    return lambda body: body.update({name: value})


def without(name):
    return lambda body: body.pop(name)


ROWS_FORGED = {
    "rows that leave the folder": put("dtype", "/../../X"),
    "no checksums": put("blocks", []),
    "checksums of fewer rows": lambda body: body["blocks"][-1].__setitem__(1, 39),
    "checksums of the last rows": lambda body: body["blocks"][-1].__setitem__(0, 39),
    "blocks that are no lists": put("blocks", 7),
    "no names": put("names", None),
    "names twice": put("names", ["a", "a", "b"]),
    "names that are none": put("names", [{}, [], "b"]),
    "labels of two types": put("classes", [0, "a"]),
    "labels that are lists": put("classes", [[0], [1]]),
    "labels in a word": put("classes", "ab"),
    "a label without end": put("classes", ["a" * 1001, "b"]),
    "more labels than codes can tell": put("classes", [*range(300)]),
    "fewer labels than codes": put("classes", [0]),
    "rows below zero": put("blocks", [[0, -40, "", ""]]),
    "rows that are true": put("blocks", [[0, True, "", ""]]),
    "more rows": put("blocks", [[0, 10**12, "", ""]]),
    "not known whether complete": put("complete", "yes"),
    "no source": put("what", []),
    "one entry more": put("more", 1),
    **{f"without {name!r}": without(name) for name in ("blocks", "names", "dtype", "classes")},
}


@pytest.mark.parametrize("how", ROWS_FORGED)
def test_a_forged_folder_of_rows_is_refused_by_name(how, tmp_path):
    disk.convert(ROWS, tmp_path / "rows", y=LABELS)
    forge(tmp_path / "rows", ROWS_FORGED[how])
    with pytest.raises(ValueError, match=rf"rows/\S+' {DAMAGED}"):
        disk.load(tmp_path / "rows", check=True)


RUN_FORGED = {
    "a state outside": lambda body: body["state"].__setitem__(0, "../state-32.npz"),
    "draws outside": lambda body: body["draws"][0].__setitem__(0, "/etc/hostname"),
    "a state that is no list": put("state", 3),
    "no checksum": lambda body: body["state"].pop(),
    "draws twice": lambda body: body["draws"].append(list(body["draws"][0])),
    "fewer draws": put("draws", []),
    "another number of draws": lambda body: body["draws"][0].__setitem__(3, 11),
    "another stride": lambda body: body["draws"][0].__setitem__(2, 2),
    **{f"without {name!r}": without(name) for name in ("what", "state", "draws")},
}


@pytest.mark.parametrize("how", RUN_FORGED)
def test_a_forged_checkpoint_is_refused_by_name(how, tmp_path):
    fit(tmp_path / "run")
    forge(tmp_path / "run", RUN_FORGED[how])
    with pytest.raises(ValueError, match=rf"run/\S+' {DAMAGED}"):
        fit(tmp_path / "run")


def forge_file(folder, change, kind="state"):
    """Write the arrays of a file as the library does, after a change; or what ``change`` returns, if it is bytes."""
    (path,) = folder.glob(f"{kind}-*.npz")
    arrays = checkpoint._unpacked(path.read_bytes())
    changed = change(arrays)
    entry = [path.name, atomic_files.put(path, changed if type(changed) is bytes else checkpoint._packed(arrays))]
    forge(
        folder, put("state", entry) if kind == "state" else lambda body: body["draws"][0].__setitem__(slice(2), entry)
    )


def cut(name):
    return lambda arrays: arrays.update({name: arrays[name][..., :-1]})


def fill(name, value):
    return lambda arrays: arrays.update({name: np.full_like(arrays[name], value)})


ARRAYS_FORGED = {
    **{f"{name} is missing": without(name) for name in ("n_iter", "key", "chains/sweep", "chains/beta", "draws/seen")},
    **{f"{name} is cut": cut(f"chains/{name}") for name in ("beta", "score", "lambda_sq_inv", "settings", "spread")},
    "an array more": put("chains/more", np.zeros(3)),
    "a coefficient is NaN": fill("chains/beta", np.nan),
    "a scale is 0": fill("chains/lambda_sq_inv", 0.0),
    "other numbers": lambda arrays: arrays.update({"chains/beta": arrays["chains/beta"].astype(complex)}),
    "a sweep of another": fill("chains/sweep", 31),
    "more sweeps than draws": lambda arrays: [fill("n_iter", 13)(arrays), fill("chains/sweep", 33)(arrays)],
    "more draws": fill("draws/seen", 13),
    "every second draw": fill("draws/stride", 2),
    "shrinkage of none": fill("draws/kappa_weight", 0),
    "shrinkage that is never due": fill("draws/next_kappa", 10**9),
    "shrinkage of more draws": fill("draws/kappa_weight", 500),
    "a billion turns": lambda arrays: arrays["chains/settings"].__setitem__(1, 1e9),
    "columns that there are not": put("chains/slow", np.array([7])),
    "moves in every 0th sweep": fill("chains/every", 0),
    "a name within an array": put("draws", np.zeros(2)),
    "code, as a pickle runs it": put("n_iter", np.array([print], dtype=object)),
    **{f"{data!r}": lambda arrays, data=data: data for data in (b"", b"PK", b"\x93NUMPY", np.arange(9).tobytes())},
}
DRAWS_FORGED = {
    "fewer": lambda arrays: arrays.update({name: values[:, :-1] for name, values in arrays.items()}),
    "one is not finite": fill("intercept", np.inf),
    "in whole numbers": lambda arrays: arrays.update(coef=arrays["coef"].astype(int)),
    "none": lambda arrays: arrays.clear(),
}


FILES_FORGED = [("state", how) for how in ARRAYS_FORGED] + [("draws", how) for how in DRAWS_FORGED]


@pytest.mark.parametrize(("kind", "how"), FILES_FORGED)
def test_files_that_do_not_fit_the_run_are_refused(kind, how, tmp_path):
    fit(tmp_path / "run", sampler="hmc")
    forge_file(tmp_path / "run", (ARRAYS_FORGED if kind == "state" else DRAWS_FORGED)[how], kind)
    with pytest.raises(ValueError, match=rf"run/state-32.npz' {DAMAGED}"):
        fit(tmp_path / "run", sampler="hmc", n_iter=15)


def test_a_note_that_is_nested_without_end_is_refused(tmp_path):
    disk.convert(ROWS, tmp_path / "rows")
    (tmp_path / "rows" / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=DAMAGED):
        disk.load(tmp_path / "rows")


@pytest.fixture(params=["a pipe", "a folder"])
def make(request):
    """What makes something that is no regular file."""
    if request.param == "a pipe" and not hasattr(os, "mkfifo"):
        pytest.skip("needs pipes")
    return os.mkfifo if request.param == "a pipe" else os.mkdir


@pytest.mark.parametrize("name", ["manifest.json", "state-*.npz", "draws-*.npz"])
def test_what_is_no_file_holds_no_fit_up(name, make, tmp_path):
    fit(tmp_path / "run")
    (path,) = (tmp_path / "run").glob(name)
    path.unlink()
    make(path)
    with pytest.raises(ValueError, match=f"{path.name}' {DAMAGED}"):
        fit(tmp_path / "run")


@pytest.mark.parametrize("name", ["manifest.json", "X-float32.bin", "y.bin"])
def test_what_is_no_file_holds_no_reading_up(name, make, tmp_path):
    disk.convert(ROWS, tmp_path / "rows", y=LABELS)
    (tmp_path / "rows" / name).unlink()
    make(tmp_path / "rows" / name)
    with pytest.raises(ValueError, match=f"{name}' {DAMAGED}"):
        disk.load(tmp_path / "rows")


def test_what_is_no_file_is_not_written_to(make, tmp_path):
    begin_rows(tmp_path / "rows")
    make(tmp_path / "rows" / "y.bin")
    with pytest.raises(ValueError, match=r"y\.bin' is no regular file"):
        disk.convert(ROWS, tmp_path / "rows")


@pytest.mark.parametrize("more", [0, 8])
def test_an_array_of_another_size_than_it_says_is_refused(more):
    """Else what memory happened to hold would be taken for the rest. more : bytes that the archive claims to hold."""
    written, archive = io.BytesIO(), io.BytesIO()
    np.save(written, np.arange(4.0))
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("a.npy", written.getvalue()[:-8])
        packed.filelist[0].file_size += more
    with pytest.raises(ValueError, match="fewer or more numbers than it says"):
        checkpoint._unpacked(archive.getvalue())


def begin_rows(folder):
    """A conversion that has failed, and can go on."""
    with pytest.raises(ValueError, match="no rows"):
        disk.convert(ROWS[:0], folder)


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
