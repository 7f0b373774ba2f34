"""What the tests of data share."""

import warnings

import pytest


@pytest.fixture(scope="session")
def said():
    """A function that fits, and returns the texts of the warnings with some words in them."""

    def fit(model, X, y, words="", **weights):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, **weights)
        found = [w for w in caught if words in str(w.message)]
        assert all(w.filename == __file__ for w in found)  # they point to the call of fit
        return [str(w.message) for w in found]

    return fit
