"""Codes for missing values: found where they are far from all others, or where no step of a score would be."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.column_checks import missing_codes
from skhorseshoe._data.missing_genotypes import missing_genotypes


@pytest.mark.parametrize(("others", "codes"), [
    ([0, 1, 2], [-9]), ([0, 1, 2], [9]), ([0, 1], [-9]), ([0, 1, 2], [-9, 99]), ([1, 2, 3, 4, 5], [97, 98, 99]),
    (range(20, 80), [999]), (range(20, 80), [99]), (range(20, 80), [-1]), (range(0, 500, 5), [-99]),
])  # fmt: skip
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_codes_for_missing_values_are_found(kind, others, codes):
    rng = np.random.default_rng(0)
    rows = rng.choice(np.array(others, float), (900, 3))
    rows[::20, 1] = np.resize(codes, 45)
    ((column, found),) = missing_codes(kind(rows))
    assert (column, sorted(found)) == (1, codes)
    rows[0, 1] = 0.5  # of measurements that are no whole numbers, a code is a value like others
    assert missing_codes(kind(rows)) == []


def test_counts_ages_and_scales_are_no_codes():
    """Of 2000 columns of each kind, but one in a thousand."""
    rng, shape = np.random.default_rng(1), (200, 2000)
    columns = {
        "counts": rng.poisson(6, shape),
        "heavy counts": rng.negative_binomial(0.2, 0.02, shape),
        "heavier counts": np.minimum(rng.zipf(1.5, shape), 10**5),
        "amounts": np.rint(np.exp(rng.normal(2, 1.5, shape))),
        "ages": np.rint(rng.normal(80, 12, shape).clip(18, 105)),
        "scores": rng.binomial(10, 0.9, shape),
        "levels": rng.integers(0, 10, shape),
        "differences": rng.poisson(1, shape) - 1,
    }
    for name, values in columns.items():
        assert len(missing_codes(values.astype(float))) <= 2, name
    for load in (load_breast_cancer, load_digits, load_wine, load_iris, load_diabetes):
        assert missing_codes(load().data) == []


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_codes_for_missing_values_are_told_before_sampling(dtype, said):
    G = np.random.default_rng(0).integers(0, 3, (60, 100)).astype(dtype)
    model, y = HorseshoeProbitClassifier(n_iter=5, burn_in=100, random_state=0), np.arange(60) % 2
    assert said(model, pd.DataFrame(G), y, "codes for missing") == []
    for code, why in ((-9, "far from all others"), (3, "one more step of a score")):
        G[::7, ::5] = code
        (text,) = said(model, pd.DataFrame(G).add_prefix("snp"), y, "codes for missing")
        assert "Columns 'snp0', 'snp5', 'snp10' and 17 more" in text
        assert f"({code} in 'snp0')" in text
        assert why in text
        assert "count as amounts. If they are, make NaN of them and impute" in text


def genotypes(n, p, seed=0, inbreeding=0.0):
    """Counts of alleles with shares of .05 to .5, of two populations that differ by so much."""
    rng = np.random.default_rng(seed)
    share = np.full((2, p), rng.uniform(0.05, 0.5, p))
    if inbreeding:
        share = rng.beta(share * (1 - inbreeding) / inbreeding, (1 - share) * (1 - inbreeding) / inbreeding)
    return rng.binomial(2, share[rng.integers(0, 2, n)])


@pytest.mark.parametrize("code", [3, -1])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_codes_beside_genotypes_are_found_by_where_they_are(kind, code):
    """In any column, or in the same rows: in one column of five, also where the shares are no genotypes'."""
    rng = np.random.default_rng(1)
    for rows in (genotypes(200, 100), genotypes(1000, 100, inbreeding=0.15), genotypes(60, 900)):
        assert missing_genotypes(kind(rows)) == []
        rows[rng.random(rows.shape) < 0.01] = code
        found = missing_genotypes(kind(rows))
        assert {j for j, _ in found} <= set(np.flatnonzero((rows == code).any(axis=0)))
        assert len(found) > 0.6 * (rows == code).any(axis=0).sum()
        assert all(codes == [code] for _, codes in found)
    for rows in (rng.integers(0, 3, (60, 100)), rng.binomial(2, 0.3, (60, 100))):
        rows[::7, ::5] = code
        assert missing_genotypes(kind(rows)) == [(j, [code]) for j in range(0, 100, 5)]


@pytest.mark.slow
def test_scores_counts_and_grades_hold_no_missing_genotypes():
    """Steps from 0 to 3, or from -1 to 2: of 2400 tables but one in a hundred."""
    rng, found = np.random.default_rng(2), 0
    for _ in range(100):
        n, p = rng.choice([60, 200, 1000]), rng.choice([5, 20, 80])
        trait, cuts = rng.standard_normal((n, 1)), rng.normal(0.5, 0.7, (p, 1)) + np.sort(rng.normal(0, 0.8, (p, 3)))
        load = rng.uniform(0.3, 0.9, p) * rng.choice([1, -1], p)
        answers = load * trait + np.sqrt(1 - load**2) * rng.standard_normal((n, p))
        share = rng.uniform(0.1, 0.5, p)
        like_genotypes = norm.isf(np.column_stack([1 - (1 - share) ** 2, share**2, share**2 / 8]))
        tables = [(answers[..., None] > at).sum(axis=2) for at in (cuts, cuts + 1, like_genotypes)]
        tables += [rng.poisson(0.5 * rng.gamma(2, 0.5, shape), (n, p)) for shape in (1, p, (n, 1))]
        tables += [rng.binomial(3, share, (n, p)), rng.binomial(4, share, (n, p))]  # of three and four chromosomes
        tables += [rng.choice(4, (n, p), p=rng.dirichlet([6, 3, 2, 0.5])), rng.integers(0, 4, (n, p))]
        tables += [rng.binomial(3, 0.3, (50, 1000)), np.repeat(rng.binomial(3, share[:4], (n, 4)), 6, axis=1)]
        found += sum(len(missing_genotypes(table - base)) > 0 for table in tables for base in (0, 1))
    assert found <= 24
    for load in (load_breast_cancer, load_digits, load_wine, load_iris, load_diabetes):
        assert missing_genotypes(load().data) == []
