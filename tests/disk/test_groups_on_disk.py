"""Groups of rows on disk: what comes back, what a fit makes of it, conversions that stop, files that are damaged."""

import numpy as np
import pandas as pd
import pytest
from tables import NAMES, SOURCES, in_parts

from skhorseshoe import HorseshoeProbitClassifier, disk


@pytest.fixture
def visits(frame, seed):
    """The table with patients in any order, of whom later rows bring new ones."""
    rng = np.random.default_rng(seed)
    patient = np.minimum(rng.integers(0, 90, 600), np.arange(600) // 5)
    return frame.assign(patient=[f"p {k} \u00e9" for k in patient])


@pytest.mark.parametrize("kind", SOURCES)
def test_groups_come_back_as_they_were_given(kind, visits, tmp_path):
    X, y, groups = disk.convert(
        SOURCES[kind](visits, tmp_path / "source"), tmp_path / "rows", y="ill", groups="patient"
    )
    assert list(X.columns) == NAMES
    assert groups.tolist() == visits["patient"].tolist()
    assert y.tolist() == visits["ill"].tolist()
    again = disk.load(tmp_path / "rows", check=True, groups=True)
    assert again[2].tolist() == groups.tolist()
    assert len(disk.load(tmp_path / "rows")) == 2
    assert len(disk.convert(visits[NAMES], tmp_path / "plain")) == 2
    with pytest.raises(ValueError, match="holds no groups"):
        disk.load(tmp_path / "plain", groups=True)


@pytest.mark.parametrize("kind", ["int", "float", "bool", "text"])
def test_arrays_have_groups_beside_them(kind, visits, tmp_path):
    values = {
        "int": np.arange(600) // 7 - 3,
        "float": np.arange(600) // 7 / 2,
        "bool": np.arange(600) % 2 == 0,
        "text": visits["patient"].to_numpy(object),
    }[kind]
    X = visits[NAMES].to_numpy(np.float64)
    for folder, given in (("array", X), ("table", pd.DataFrame(X, columns=NAMES))):
        got, y, groups = disk.convert(given, tmp_path / folder, groups=values)
        np.testing.assert_array_equal(got, X)
        assert y is None
        assert groups.tolist() == values.tolist()


def test_a_fit_of_rows_on_disk_is_that_in_memory(visits, tmp_path):
    X, y, groups = disk.convert(visits, tmp_path / "rows", y="ill", groups="patient")
    clf = HorseshoeProbitClassifier(n_iter=20, burn_in=100, random_state=0, standardize=True)
    on_disk = clf.fit(X, y, groups=groups)
    draws, proba = on_disk.group_effect_draws_, on_disk.predict_proba(X, groups)
    in_memory = clf.fit(visits[NAMES].astype(np.float32), visits["ill"], groups=visits["patient"])
    assert np.array_equal(in_memory.group_effect_draws_, draws)
    assert np.array_equal(in_memory.predict_proba(X, groups), proba)


def test_a_source_that_fails_goes_on(visits, tmp_path, full_disk):
    whole = disk.convert(visits, tmp_path / "whole", y="ill", groups="patient")[2]
    for k in (1, 3, 5):
        folder = tmp_path / f"{k}"
        full_disk(2 * k)
        with pytest.raises(OSError, match="No space"):
            disk.convert(in_parts(visits), folder, y="ill", groups="patient")
        got = disk.convert(in_parts(visits), folder, y="ill", groups="patient")[2]
        assert got.tolist() == whole.tolist()
    other = visits.assign(patient="one")
    full_disk(12)
    with pytest.raises(OSError, match="No space"):
        disk.convert(in_parts(visits), tmp_path / "other", y="ill", groups="patient")
    with pytest.raises(ValueError, match="Rows or parts differ"):
        disk.convert(in_parts(other), tmp_path / "other", y="ill", groups="patient")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.assign(patient=[None, *["a"] * 599]), "The group of row 0 is missing"),
        (
            lambda f: f.assign(patient=["a", 1, *["a"] * 598]),
            "The group of row 1 is 1, the first is 'a': groups on disk must be",
        ),
        (lambda f: f.assign(patient="a" * 2000), "2000 letters"),
        (lambda f: f.drop(columns="patient"), "missing are .'patient'."),
    ],
)
def test_what_is_no_group(change, words, visits, tmp_path):
    with pytest.raises(ValueError, match=words):
        disk.convert(change(visits), tmp_path / "rows", y="ill", groups="patient")


@pytest.mark.parametrize("labels", [[2**53 + 1, 2**53, 0.5], ["a", "a\0", "b"], [2**63 + 1, 2**63, -1], [2**64, 1, 2]])
def test_labels_that_an_array_would_make_equal_stay_apart(labels, visits, tmp_path):
    given = np.array(labels * 200, object)
    groups = disk.convert(visits[NAMES], tmp_path / "rows", groups=given)[2]
    assert groups.tolist() == given.tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_that_are_rounded_are_refused(dtype, visits, tmp_path):
    parts = [visits[:300].assign(patient=7), visits[300:].assign(patient=dtype(2**53))]
    with pytest.raises(ValueError, match=r"A group from row 300 on is 9007199254740992\.0: .* whole numbers or text"):
        disk.convert(parts, tmp_path / "rows", y="ill", groups="patient")


def test_wrong_arguments(visits, tmp_path):
    with pytest.raises(ValueError, match="groups is an array, which goes with one table or array"):
        disk.convert(in_parts(visits), tmp_path / "rows", groups=np.zeros(600))
    with pytest.raises(ValueError, match="needs as many groups"):
        disk.convert(visits[NAMES].to_numpy(float), tmp_path / "rows", groups=np.zeros(5))
    with pytest.raises(ValueError, match="other than y='ill' and groups='patient'"):
        disk.convert(visits, tmp_path / "rows", y="ill", groups="patient", columns=["dose", "patient"])
    disk.convert(visits[["dose", "ill", "patient"]], tmp_path / "some", y="ill", groups="patient", columns=["dose"])
    assert disk.load(tmp_path / "some", groups=True)[2].tolist() == visits["patient"].tolist()


@pytest.mark.parametrize("file", ["groups.bin", "groups.txt"])
def test_damaged_groups_are_refused(file, visits, tmp_path):
    disk.convert(visits, tmp_path / "rows", y="ill", groups="patient")
    path = tmp_path / "rows" / file
    data = bytearray(path.read_bytes())
    path.write_bytes(data[:-3])
    with pytest.raises(ValueError, match=file):
        disk.load(tmp_path / "rows", groups=True)
    data[4 if file == "groups.txt" else 0] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="checksum of rows 0 to"):
        disk.load(tmp_path / "rows", check=True, groups=True)
    with pytest.raises(ValueError, match="checksum of rows 0 to"):
        disk.load(tmp_path / "rows", check=True)
    path.write_bytes(b"\xff" * len(data))
    with pytest.raises(ValueError, match=file):
        disk.load(tmp_path / "rows", groups=True)
