"""Fused calls of ordered classes compute what the steps do, with and without groups."""

import numpy as np
import pytest
from laws import ALONE, KEY
from whole_runs import ended

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.cut_points import RowsWithCutPoints
from skhorseshoe._mcmc.group_effects import GroupEffects
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import PRIOR_COORDINATES, Problem
from skhorseshoe._model.ordered_probit import OrderedProbit

N, N_GROUPS, N_CHAINS = 90, 7, 4


def make_rows(seed, K, p=4, **more):
    """``RowsWithCutPoints`` with weights, a column that is not shrunk, and columns that are translated."""
    rng = np.random.default_rng(seed)
    X, y = 3 + rng.standard_normal((N, p)), rng.integers(0, K, N).astype(np.uint8)
    how = {"weight": rng.uniform(0.5, 2, N), "unpenalized": np.arange(p) == 1, "standardize": True, **more}
    rows = Rows(X, y, True, cpu, ALONE, likelihood=OrderedProbit(K), **how)
    made = RowsWithCutPoints(rows, FixedPrior(rows.columns, 2.0))
    return made, rng.standard_normal((N_CHAINS, p + 1 + K - 2))


def of_steps(rows, beta):
    """The score without a fused call."""
    rows.takes_fused_calls = False
    try:
        return rows.score(beta)
    finally:
        rows.takes_fused_calls = True


@pytest.mark.parametrize("K", [3, 6, 12])
def test_scores_are_those_of_steps(K, seed):
    rows, beta = make_rows(seed, K)
    assert rows.takes_fused_calls
    for scale in (1.0, 8.0):  # far apart and close together
        for one, other in zip(rows.score(scale * beta), of_steps(rows, scale * beta), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10 * abs(other).max())


@pytest.mark.parametrize("K", [3, 6])
def test_scores_with_effects_that_follow_are_those_of_steps(K, seed):
    codes = np.random.default_rng(seed).integers(0, N_GROUPS, N).astype(np.int32)
    rows, beta = make_rows(seed, K, groups=Groups(codes, N_GROUPS, 1.0))
    block = GroupEffects(Problem(rows, FixedPrior(rows.rows.columns, 2.0).padded(K - 2), 1.0, KEY), N_CHAINS)
    block.begin_sweep(beta)
    block.follows = True
    block.rows.information(beta)
    block.set_reference(beta.mean(axis=0))
    block.effects = np.random.default_rng(seed).standard_normal(block.effects.shape)
    assert block.rows.takes_fused_calls
    assert abs(block.along[:, -(K - 2) :]).max() > 1e-3  # effects follow cut points too
    for at in (beta, beta + 0.3):
        block.begin_sweep(beta)  # where they are; the fused call has them from there
        found = cpu.fused_score(block.rows, at)
        loglik, score, _ = block.rows.score_and_predictors(at)
        np.testing.assert_allclose(found[0], loglik, rtol=1e-5, atol=1e-4)  # the map has 24 digits in steps
        np.testing.assert_allclose(found[1], score, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("groups", [None, "groups"])
@pytest.mark.parametrize(("p", "kind"), [(4, "hmc"), (150, PRIOR_COORDINATES)])
def test_runs_end_near_those_of_steps(p, kind, groups, seed, monkeypatch):
    """A few sweeps, which are not yet apart by chance."""
    codes = np.random.default_rng(seed).integers(0, N_GROUPS, N).astype(np.int32)
    more = {} if groups is None else {"groups": Groups(codes, N_GROUPS, 1.0)}
    ends = []
    for fuses in (True, False):
        rows, _ = make_rows(seed, 4, p, **more)
        rows.rows.fit_fused_calls = fuses
        ends.append(ended(rows.rows, kind, 4, 2.0, burn_in=8, n_chains=N_CHAINS).draws.coef)
    assert np.ptp(ends[0], axis=1).max() > 0.01  # they move
    np.testing.assert_allclose(*ends, rtol=1e-4, atol=1e-4)
