"""What the tests of conversions to disk share: a table, and conversions in small steps."""

import numpy as np
import pandas as pd
import pytest

from skhorseshoe.disk import _folder


@pytest.fixture
def frame(seed):
    rng = np.random.default_rng(seed)
    n = 600
    return pd.DataFrame(
        {
            "dose": rng.standard_normal(n).astype(np.float32),
            "ill": rng.choice(["no", "yes"], n),
            "age": rng.integers(18, 90, n),
            "smokes": rng.random(n) < 0.3,
        }
    )


@pytest.fixture(autouse=True)
def small_steps(sizes):
    """Parts of 50 rows of four columns, and a manifest after each."""
    sizes(numbers_of_a_part=200, bytes_to_a_manifest=1)


@pytest.fixture
def full_disk(monkeypatch):
    """A function that lets the next conversion end with an error at its k-th part."""

    def fill(k):
        calls, put_rows = iter(range(2 * k - 2)), _folder._put_rows  # X and the codes

        def failing(*args):
            if next(calls, None) is None:
                monkeypatch.setattr(_folder, "_put_rows", put_rows)
                raise OSError("No space left on device")
            put_rows(*args)

        monkeypatch.setattr(_folder, "_put_rows", failing)

    return fill
