"""Claims and their errors: against enumeration, and never below what the draws can tell."""

import numpy as np

from skhorseshoe._posterior.claim_errors import largest_set, lfsr


def test_largest_set_has_the_share_itself_and_may_be_empty():
    assert largest_set(np.array([0.1, 0.1, 0.1]), 0.1).all()
    assert largest_set(np.array([0.2, 0.0]), 0.1).all()
    assert not largest_set(np.array([0.2, 0.3]), 0.1).any()
    assert not largest_set(np.empty(0), 0.1).any()


def test_lfsr_of_few_draws_and_of_draws_that_repel():
    assert lfsr([1.0], [np.nan], 8) == [1 / 8]  # chains too short for an ess
    assert lfsr([1.0], [np.nan], 1) == [0.5]
    assert lfsr([1.0], [900.0], 400) == [1 / 400]
    assert np.isnan(lfsr([np.nan], [100.0], 400)).all()  # of a scale
