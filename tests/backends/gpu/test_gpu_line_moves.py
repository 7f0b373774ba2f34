"""Line moves, against those of the CPU."""

import numpy as np
import pytest
from card import KEY, assert_all_close, module, sparse_rows
from laws import ALONE

from skhorseshoe._backends import line_moves
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._gpu import cuda
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.prior import FixedPrior

K = 1 + line_moves.LINE_PROPOSALS
SETTINGS = {"plain": {}, "other columns": {"unpenalized": np.arange(9) == 4, "standardize": True}}


def rows_and_lines(ops, X, y, n_columns, settings):
    rows = Rows(X, y, True, ops, ALONE, **settings)
    rows.takes_fused_calls = False
    widths = np.linspace(line_moves.LOG_WIDTH, 2.0, 2 + X.shape[1])
    return rows, rows.lines(FixedPrior(rows.columns, 2.0), widths, n_splits=2, n_columns=n_columns)


@pytest.mark.parametrize("settings", SETTINGS)
def test_moves_are_those_of_the_cpu(settings, gpu):
    X, y = sparse_rows(300, 9, 0.3)
    X = X.toarray()
    p, rng = 8 if SETTINGS[settings] else 9, np.random.default_rng(0)
    state = rng.standard_normal((3, 10)) / 4, np.exp(rng.standard_normal((3, p))), np.exp(rng.standard_normal(3))
    both = [(ops, *rows_and_lines(ops, X, y, 4, SETTINGS[settings])) for ops in (gpu, cpu)]
    for sweep in range(6):
        got, want = (
            ops.to_host(tuple(ops.move_along_lines(*map(ops.to_device, state), rows, lines, 0.7, KEY, sweep)))
            for ops, rows, lines in both
        )
        assert_all_close(got, want, rtol=1e-8, atol=1e-10)
        assert all((now != before).any() for now, before in zip(got, state, strict=True))
        state = want


def test_proposals_and_the_first_of_them_are_those_of_the_cpu(gpu):
    assert module("line_proposals").LINES_PER_LAUNCH * K <= cuda.THREADS  # every step of a launch has a thread
    rng = np.random.default_rng(0)
    first, k = np.arange(300)[:, None] % K, np.arange(K)  # the first of the steps that is inside
    uniform = rng.uniform(size=(300, line_moves.N_UNIFORMS))
    value = np.where((k == 0) | ((k >= first) & (first > 0)), 1.0, -99.0)
    value[:3] = np.array([np.nan, -np.inf, 0.0])[:, None]
    value[3, 1:], value[4, 0] = -1e3, np.nan
    for width in (np.array([3.0]), rng.uniform(1, 9, 300)):
        got = gpu.to_host(gpu.proposals(*map(gpu.to_device, (uniform, width))))
        steps, _ = want = cpu.proposals(uniform, width)
        assert_all_close(got, want, rtol=1e-12, atol=1e-14)
        given = value, steps, uniform[:, 0]
        found = gpu.to_host(gpu.first_inside(*map(gpu.to_device, given)))
        np.testing.assert_array_equal(found, cpu.first_inside(*given))
    assert len(np.unique((found[:, None] == steps).argmax(axis=1))) == K
