"""Claims and their errors, against enumeration."""

from itertools import combinations

import numpy as np
import pytest

from skhorseshoe._posterior.signals import largest_set


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
