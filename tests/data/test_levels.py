"""What is said of columns of zeros and ones is said only where columns hold two values."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier

ABOUT_LEVELS = "level", "OneHotEncoder"


def text_of(X, y, **params):
    with pytest.warns(ConvergenceWarning) as caught:
        HorseshoeProbitClassifier(n_iter=30, burn_in=30, random_state=0, **params).fit(X, y)
    return str(caught[0].message)


def values(is_level, seed):
    """Columns of noise, and one whose values in one class all lie on one side: a level, or an amount."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((200, 3)), rng.integers(0, 2, 200)
    X[:, 0] = 2.5 * y * (np.arange(200) < 100) if is_level else y * np.abs(X[:, 0])
    return X, y


@pytest.mark.parametrize("is_level", [True, False])
@pytest.mark.parametrize(("form", "how"), [(np.asarray, {}), (csr_array, {}), (np.asarray, {"unpenalized": [0]})])
def test_one_sided_columns(is_level, form, how, seed):
    X, y = values(is_level, seed)
    text = text_of(form(X), y, **how)
    assert "lie on one side" in text
    assert any(words in text for words in ABOUT_LEVELS) == is_level


@pytest.mark.parametrize("is_level", [True, False])
def test_collinear_columns(is_level, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((300, 4)), rng.integers(0, 2, 300)
    if is_level:
        X[:, :3] = np.eye(3)[rng.integers(0, 3, 300)]
    else:
        X[:, 2] = X[:, 0] - X[:, 1]
    text = text_of(X, y, unpenalized=[0, 1, 2])
    assert "collinear" in text
    assert any(words in text for words in ABOUT_LEVELS) == is_level
