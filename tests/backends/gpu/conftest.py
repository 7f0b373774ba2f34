"""What tests of the GPU share: rows of both kinds, and sweeps with few moves."""

import numpy as np
import pytest
import scipy.sparse as sp

from skhorseshoe._mcmc import chains


@pytest.fixture
def few_lines(monkeypatch):
    """Few moves of single coefficients in a sweep of "collapsed": what is asked is something else."""
    monkeypatch.setattr(chains, "_COLUMNS", 2)


@pytest.fixture(scope="session")
def sparse_problem(problem):
    X, y = problem
    return sp.csr_array(np.where(abs(X) < 0.8, 0.0, X)), y


@pytest.fixture(scope="session", params=["dense", "sparse"])
def data(request, problem, sparse_problem):
    """Dense or sparse rows, and labels that depend on them."""
    return problem if request.param == "dense" else sparse_problem
