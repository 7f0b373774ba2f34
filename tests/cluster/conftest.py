"""What the tests of Dask clusters share: three workers, rows, and the bits that a fit in memory has."""

import pytest

from skhorseshoe import HorseshoeProbitClassifier


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster  # the tests that ask for it are skipped where there is none

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(n_workers=3, **options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """In scope, with three workers; afterwards there must be nothing left on them."""
    from distributed import Client
    from faults import check_that_nothing_is_left, staff

    with Client(cluster, direct_to_workers=True) as client:
        staff(cluster, client, 3)
        yield client
        check_that_nothing_is_left(client)


@pytest.fixture(scope="module")
def data(long_problem):
    return long_problem


@pytest.fixture(scope="module")
def classifier(seed):
    return HorseshoeProbitClassifier(n_iter=6, burn_in=16, n_chains=2, sampler="hmc", random_state=seed)


@pytest.fixture(scope="module")
def expected(data, classifier):
    """The bits of the draws of a fit in memory."""
    from faults import bits

    return bits(classifier.fit(*data))


@pytest.fixture(scope="module")
def few_questions(seed):
    """For what is decided while rows are loaded: this asks the workers 1 question in a sweep, where ``classifier`` asks
    7."""
    return HorseshoeProbitClassifier(n_iter=8, burn_in=2, n_chains=2, sampler="gibbs", random_state=seed)
