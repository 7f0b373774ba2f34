"""What tests of displays share: figures that are closed, and a fitted model of patients."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from artists import NAMES
from matplotlib import pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@pytest.fixture(autouse=True)
def _figures():
    with mpl.rc_context(), mpl.rc_context({"backend": "Agg"}):
        yield
        plt.close("all")


@pytest.fixture(scope="module")
def data(problem):
    X, y = problem
    index = [f"patient {i}" for i in range(len(X))]
    return pd.DataFrame(3 * X + 1, columns=NAMES, index=index), np.where(y, "well", "ill")


@pytest.fixture(scope="module")
def model(data, short_fit):
    """A Pipeline: the displays look through it."""
    X, y = data
    scaler = StandardScaler().set_output(transform="pandas").fit(X)
    return make_pipeline(scaler, short_fit(scaler.transform(X), y, n_iter=200, burn_in=100))


@pytest.fixture
def clf(model):
    return model[-1]
