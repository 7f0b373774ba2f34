"""Cases on disk: folders of rows and of checkpoints with flipped bits and what is no file; and folders that fail,
lose files or move away under a fit."""

import os
import shutil
from contextlib import suppress
from unittest.mock import patch

import numpy as np
from data import SAMPLERS, pick

from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._fit import fit as _fit
from skhorseshoe.disk import _folder

X = np.random.default_rng(0).standard_normal((60, 3)).astype(np.float32)
Y = np.arange(60) % 2


class Stopped(Exception):
    """In the middle."""


def flip(rng, path):
    """Damage: bits, an end cut off, or one put on."""
    data, how = bytearray(path.read_bytes()), rng.integers(4)
    if how == 0:
        data = data[: rng.integers(len(data) + 1)]
    elif how == 1:
        data += bytes(rng.integers(0, 256, rng.integers(1, 50), np.uint8))
    for _ in range(rng.integers(1, 4) if how > 1 and data else 0):
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    path.write_bytes(bytes(data))


def replace(rng, path):
    """By what is no file, or not its own."""
    path.unlink()
    how = rng.integers(5)
    if how == 0:
        os.mkfifo(path)
    elif how == 1:
        path.mkdir()
    elif how == 2:
        path.symlink_to(pick(rng, ["/dev/zero", "/dev/null", "/etc/hostname", "nowhere", path.name]))
    elif how == 3:
        os.link(pick(rng, sorted(p for p in path.parent.iterdir() if p.is_file())), path)


def spoil(rng, folder):
    files = sorted(path for path in folder.iterdir() if path.is_file())
    (replace if rng.integers(3) == 0 else flip)(rng, pick(rng, files))


def manifests(rng, folder):
    kind = pick(rng, ["whole", "stopped", "csv"])
    base, source = folder.parent / f"rows-{kind}", folder.parent / "source.csv"
    if not base.exists():
        _make_rows(kind, base, source)
    shutil.copytree(base, folder / "rows")
    (folder / "precious").write_text("keys")
    spoil(rng, folder / "rows")
    if rng.integers(2) and kind == "whole":
        got, _ = disk.load(folder / "rows", check=bool(rng.integers(2)))
        HorseshoeProbitClassifier(n_iter=4, burn_in=1, sampler="gibbs").fit(np.nan_to_num(got[:40]), Y[:40])
    else:
        given = source if kind == "csv" else X
        disk.convert(given, folder / "rows", y="y" if kind == "csv" else Y)
    assert (folder / "precious").read_text() == "keys"


def _make_rows(kind, base, source):
    if kind == "csv":
        lines = [",".join(map(str, [*row, label])) for row, label in zip(X.tolist(), Y.tolist(), strict=True)]
        source.write_text("\n".join(["a,b,c,y", *lines]))
    if kind == "whole":
        disk.convert(X, base, y=Y)
        return
    commit = _folder._commit

    def failing(*args):
        commit(*args)
        raise Stopped

    given = (source, "y") if kind == "csv" else (X, Y)
    with patch.object(_folder, "BYTES_TO_A_MANIFEST", 1), patch.object(_folder, "_commit", failing), suppress(Stopped):
        disk.convert(given[0], base, y=given[1])


def fit(folder, sampler, n_iter=12, **params):
    given = {"burn_in": 30, "n_chains": 2, "random_state": 0, "n_jobs": 1, "checkpoint_interval": 600.0, **params}
    model = HorseshoeProbitClassifier(n_iter=n_iter, sampler=sampler, checkpoint=folder, **given).fit(X, Y)
    model.predict_proba(X)
    return model


def checkpoints(rng, folder):
    return under_a_fit(rng, folder) if rng.integers(2) else spoilt(rng, folder)


def under_a_fit(rng, folder):
    """The fit goes on, the next one has all its draws, and nothing else is touched."""
    sampler, run, other = pick(rng, SAMPLERS[1:]), folder / "run", folder / "other"
    other.mkdir()
    (other / "draws-1.npz").write_text("keys")
    first, fault, failing, plain = int(rng.integers(1, 17)), pick(rng, [fail, lose, move]), [], os.replace

    def report(t):
        if t == first:
            fault(rng, run, other, failing)

    def replace(*args, **where):
        lost = failing and rng.integers(2)
        if not lost or rng.integers(2):
            plain(*args, **where)
        if lost:
            raise OSError(5, "Input/output error")

    with patch.object(_fit.progress, "reporter", lambda *args: report), patch.object(os, "replace", replace):
        model = fit(run, sampler, 8, burn_in=8, checkpoint_interval=0.0)
    try:
        longer = fit(folder / "moved" if fault is move else run, sampler, 9, burn_in=8)
    except ValueError as error:
        raise AssertionError(f"after {fault.__name__}: {error}") from error
    assert np.array_equal(longer.coef_draws_[:, :8], model.coef_draws_)
    assert [path.read_text() for path in other.iterdir()] == ["keys"]
    return longer


def fail(rng, run, other, failing):
    """From now on renamings are said to have failed at times, whether they are done or not."""
    failing.append(True)


def lose(rng, run, other, failing):
    """Others remove some of the files, or damage those that every save writes anew."""
    for path in sorted(run.glob("*")):
        if path.name != "fit.lock" and rng.integers(2):
            flip(rng, path) if rng.integers(2) and not path.name.startswith("draws") else path.unlink()


def move(rng, run, other, failing):
    """The folder leads elsewhere, or is gone."""
    run.rename(run.parent / "moved")
    how = rng.integers(3)
    if how == 0:
        run.symlink_to(other, target_is_directory=True)
    elif how == 1:
        run.mkdir()


def spoilt(rng, folder):
    sampler, stop = pick(rng, SAMPLERS[1:]), int(pick(rng, [1, 5, 9, 14, 30, 36, 42]))
    params = {"max_draws": 4} if rng.integers(2) else {}
    base = folder.parent / f"run-{sampler}-{stop}-{len(params)}"
    if not base.exists():
        _make_run(base, sampler, stop, params)
    shutil.copytree(base, folder / "run")
    spoil(rng, folder / "run")
    return fit(folder / "run", sampler, int(pick(rng, [12, 14, 30])), **params)


def _make_run(base, sampler, stop, params):
    """A run that ends with an error after so many sweeps."""

    def report(t):
        if t == stop:
            raise Stopped

    with patch.object(_fit.progress, "reporter", lambda *args: report), suppress(Stopped):
        fit(base, sampler, **params)
