"""What is said of columns that are not shrunk beside many that are, and of columns that separate the classes alone."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.spanned import spanned


def blocks(rng, n, p):
    """Columns in five blocks, which have leading components."""
    return (rng.standard_normal((n, 5)) @ np.repeat(np.eye(5), p // 5, axis=1)) + 0.5 * rng.standard_normal((n, p))


def found_in(X, free):
    shrunk = np.setdiff1d(np.arange(X.shape[1]), free)
    return spanned(X, np.array(free), shrunk, np.ones(X.shape[1]), X.shape[0]).tolist()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("shape", [(300, 50), (120, 1000)])
def test_components_are_told_from_other_columns(shape, kind, seed):
    """A component and, of fewer columns than rows, a sum; not a column of its own, nor one that goes with a block."""
    rng = np.random.default_rng(seed)
    X = blocks(rng, *shape)
    left, size, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    age = rng.standard_normal(len(X))
    X = np.column_stack([X, left[:, :3] * size[:3] + 1, X[:, :3].sum(axis=1), age, X[:, 0] + age])
    free = list(range(shape[1], shape[1] + 6))
    is_sum = shape[1] == 50 and kind is np.asarray
    assert found_in(kind(X), free) == free[: 4 if is_sum else 3]


@pytest.mark.parametrize("shape", [(300, 50), (60, 3000)])
def test_of_noise_nothing_is_a_component(shape, seed):
    rng = np.random.default_rng(seed)
    assert found_in(rng.standard_normal((shape[0], shape[1] + 3)), [0, 1, 2]) == []
    assert found_in(np.column_stack([np.zeros(shape[0]), rng.standard_normal(shape)]), [0]) == []


def test_a_fit_warns_of_components_and_of_many_free_columns(seed):
    rng = np.random.default_rng(seed)
    X = blocks(rng, 60, 100)
    left, size, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    X, y = np.column_stack([left[:, :6] * size[:6], X]), np.arange(60) % 4 == 0
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, unpenalized=range(6), random_state=seed)
    with pytest.warns(
        UserWarning, match=r"'x0', 'x1', 'x2' and .* more: not shrunk, and a principal component"
    ) as told:
        model.fit(X, y)
    assert "6 columns are not shrunk, and the rarest class has 15 rows" in str(told[0].message)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.set_params(prior_scale=dict.fromkeys(range(6), 0.1)).fit(X, y)
    assert "not shrunk" not in " ".join(str(one.message) for one in told)


@pytest.mark.parametrize("slab", ["per_contrast", 1.0])
def test_a_gene_that_separates_is_named_where_a_slab_bounds_it(slab, short_fit, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((200, 30)), np.arange(200) % 2 == 0
    X[:, 7] = (np.arange(200) % 16 == 0) & y  # 13 carriers, all of them ill
    X[:, 8] = np.isin(np.arange(200), [0, 2])  # two carriers, by chance
    header = " ".join(short_fit(X, y, slab_scale=slab).summary().attrs["header"].split())
    assert "One-sided: x7: no value in one class is beyond those of the next" in header
    assert "One-sided" not in short_fit(X, y, slab_scale=None).summary().attrs["header"]  # a warning says so


def test_sums_are_told_where_equal_rows_are_one(said):
    """As they are by samplers that keep equal rows apart."""
    site = np.arange(2000) % 12
    X = np.column_stack([np.eye(12)[site], np.eye(3)[site // 4]])
    for sampler in ("hmc", "gibbs"):
        model = HorseshoeProbitClassifier(unpenalized=[12, 13], sampler=sampler, n_iter=20, burn_in=20)
        (message,) = said(model, X, site % 4 > 1, "a sum of the shrunk columns")
        assert message.startswith("Columns 'x12', 'x13'")
