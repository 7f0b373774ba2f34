"""What is said of columns of zeros and ones is said only where columns hold two values."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skhorseshoe import HorseshoeProbitClassifier

ABOUT_LEVELS = "level", "OneHotEncoder"
MODEL = HorseshoeProbitClassifier(n_iter=30, burn_in=30, random_state=0)


@pytest.mark.parametrize("is_level", [True, False])
@pytest.mark.parametrize(("form", "free"), [(np.asarray, None), (csr_array, None), (np.asarray, [0])])
def test_one_sided_columns(is_level, form, free, seed, said):
    """Of columns of noise and one whose values in one class all lie on one side: a level, or an amount."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((200, 3)), rng.integers(0, 2, 200)
    X[:, 0] = 2.5 * y * (np.arange(200) < 100) if is_level else y * np.abs(X[:, 0])
    (text,) = said(MODEL.set_params(unpenalized=free), form(X), y, "lie on one side")
    assert any(words in text for words in ABOUT_LEVELS) == is_level


@pytest.mark.parametrize("is_level", [True, False])
def test_collinear_columns(is_level, seed, said):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((300, 4)), rng.integers(0, 2, 300)
    if is_level:
        X[:, :3] = np.eye(3)[rng.integers(0, 3, 300)]
    else:
        X[:, 2] = X[:, 0] - X[:, 1]
    (text,) = said(MODEL.set_params(unpenalized=[0, 1, 2]), X, y, "collinear")
    assert any(words in text for words in ABOUT_LEVELS) == is_level
