"""What tests of the GPU share: rows of both kinds."""

import numpy as np
import pytest
import scipy.sparse as sp


@pytest.fixture(scope="session")
def sparse_problem(problem):
    X, y = problem
    return sp.csr_array(np.where(abs(X) < 0.8, 0.0, X)), y


@pytest.fixture(scope="session", params=["dense", "sparse"])
def data(request, problem, sparse_problem):
    """Dense or sparse rows, and labels that depend on them."""
    return problem if request.param == "dense" else sparse_problem
