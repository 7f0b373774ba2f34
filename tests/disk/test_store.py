"""The folder of a conversion, and its lock, where another conversion has been there meanwhile."""

import numpy as np
import pytest
from tables import in_parts, stopped

from skhorseshoe import disk
from skhorseshoe._utils import lock
from skhorseshoe.disk._store import Store


def test_what_another_conversion_has_written_meanwhile_stays(tmp_path):
    late, first = (Store(tmp_path / "rows", {"source": None}, "float32") for _ in range(2))
    X = np.arange(10, dtype=np.float32).reshape(5, 2)
    with first:
        first.append(X, np.zeros(5, np.uint8), 0, [None, None], None)
        first.commit()
    with late:
        assert late.rows == 5
    with Store(tmp_path / "rows", {"source": None}, "float32") as store:
        store.finish()
    np.testing.assert_array_equal(disk.load(tmp_path / "rows", check=True)[0], X)


def test_rows_in_another_dtype_that_a_killed_conversion_has_left_go(frame, tmp_path):
    stopped(frame, tmp_path / "rows")
    (tmp_path / "rows" / "X-float64.npy").write_bytes(b"half")
    disk.convert(in_parts(frame), tmp_path / "rows", y="ill")
    assert sorted(path.name for path in (tmp_path / "rows").iterdir()) == ["X-float32.npy", "manifest.json", "y.npy"]


def test_a_lock_that_went_with_its_file_is_taken_anew(tmp_path, monkeypatch):
    """Between the opening of the file and the lock its holder removes it, and the next one makes another."""
    pytest.importorskip("fcntl", reason="Windows removes no open file")
    path, tried, plain = tmp_path / "fit.lock", [], lock._try_lock

    def try_lock(file, what):
        tried.append(file)
        if len(tried) == 1:
            path.unlink()
            path.touch()
        return plain(file, what)

    monkeypatch.setattr(lock, "_try_lock", try_lock)
    with lock.alone(tmp_path, "fit"):
        assert path.read_text().startswith("process")
        with pytest.raises(RuntimeError, match="Another fit"), lock.alone(tmp_path, "fit"):
            pass
