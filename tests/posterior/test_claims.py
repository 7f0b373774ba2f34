"""Claims and their errors: against enumeration, and never below what the draws can tell."""

from itertools import combinations

import numpy as np
import pytest

from skhorseshoe._posterior.signals import largest_set, lfsr


@pytest.mark.parametrize("q", [0.05, 0.1, 0.3])
def test_largest_set_is_that_of_all_subsets(q, seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        wrong = rng.beta(0.4, 0.8, 8)
        sizes = [k for k in range(1, 9) for some in combinations(wrong, k) if np.mean(some) <= q]
        kept = largest_set(wrong, q)
        assert kept.sum() == max(sizes, default=0)
        assert not kept.any() or wrong[kept].mean() <= q


def test_largest_set_has_the_share_itself_and_may_be_empty():
    assert largest_set(np.array([0.1, 0.1, 0.1]), 0.1).all()
    assert largest_set(np.array([0.2, 0.0]), 0.1).all()
    assert not largest_set(np.array([0.2, 0.3]), 0.1).any()
    assert not largest_set(np.empty(0), 0.1).any()


def test_lfsr_is_the_smaller_tail_and_at_least_one_in_ess():
    prob_positive = np.array([0.0, 1.0, 0.9, 0.3, 0.5, 0.999])
    ess = np.array([100, 50, 100, 100, 100, 100])
    np.testing.assert_allclose(lfsr(prob_positive, ess, 400), [0.01, 0.02, 0.1, 0.3, 0.5, 0.01])


def test_lfsr_of_few_draws_and_of_draws_that_repel():
    assert lfsr([1.0], [np.nan], 8) == [1 / 8]  # chains too short for an ess
    assert lfsr([1.0], [np.nan], 1) == [0.5]
    assert lfsr([1.0], [900.0], 400) == [1 / 400]
    assert np.isnan(lfsr([np.nan], [100.0], 400)).all()  # of a scale


def test_summary_never_has_an_lfsr_of_zero(fitted):
    frame = fitted.summary()
    assert frame["lfsr"].iloc[:-1].between(1 / fitted.global_scale_draws_.size, 0.5).all()
    assert frame["prob_positive"].isin([0, 1]).any()
