"""The host does not wait in a sweep: factors are computed beside the pass, and states leave through pinned memory."""

import sys
import threading

import numpy as np
import pytest
from cuda_emulator import COMPILER, EmulatorError, fake_cupy, fake_streams
from scipy.sparse import csr_array

from skhorseshoe._backends import limits
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import chains as _chains
from skhorseshoe._mcmc import hmc_burn_in
from skhorseshoe._mcmc.initial_state import initial_state
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import Problem
from skhorseshoe.datasets import make_correlated_probit

KEY = np.array([1, 2], np.uint32)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs g++")
CHAINS = {
    "gibbs": _chains.GibbsChains,
    "pxda": _chains.PxdaChains,
    "hmc": hmc_burn_in.HmcChains,
    "collapsed": _chains.CollapsedChains,
}


@pytest.fixture
def card():
    with fake_cupy.installed() as card:
        yield card


def chains_of(sampler, ops, X, y, burn_in=0):
    rows = Rows(X, y.astype(np.uint8), True, ops, None)
    problem = Problem(rows, FixedPrior(rows.columns, None), 1.0, KEY)
    start = ops.to_device(initial_state(3, rows.columns, rows.base_rate(), 1.0, KEY))
    return CHAINS[sampler](problem, start, burn_in)


def back_end(name="_gpu.dense"):
    import importlib

    return importlib.import_module(f"skhorseshoe._backends.{name}")


@needs_compiler
@pytest.mark.parametrize("sampler", CHAINS)
def test_the_host_waits_for_nothing_in_a_sweep(sampler, card, problem):
    chains = chains_of(sampler, back_end(), *problem)
    chains.advance()
    before = fake_cupy.ndarray.reads
    for _ in range(3):
        chains.advance()
    assert fake_cupy.ndarray.reads == before


@needs_compiler
def test_the_host_hears_of_the_slice_of_tau_one_attempt_late(card, monkeypatch):
    """It looks at flags in pinned memory, while the next attempt is queued, and at nothing else."""
    X, y, _ = make_correlated_probit(8, 20, random_state=0)
    X[:, 3] *= 1e6  # heavy columns are no reason to wait
    chains = chains_of("collapsed", back_end(), X, y)
    chains.advance()
    before, attempts, heavy = fake_cupy.ndarray.reads, [], []
    make = chains.rows._make
    monkeypatch.setattr(chains.rows, "_make", lambda *given: attempts.append(given) or make(*given))
    for _ in range(3):
        chains.advance()
        heavy += [joined.weights for joined in chains.rows.joined]
    assert fake_cupy.ndarray.reads == before
    assert len(attempts) > 6
    assert any((weights > 0).any() for weights in heavy)


@needs_compiler
@pytest.mark.parametrize("sampler", ["gibbs", "pxda"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_conjugate_gradients_wait_for_the_step_before_only(kind, sampler, card, problem, monkeypatch):
    """While the host looks at its flags, which lie in pinned memory, the next step is queued."""
    monkeypatch.setattr(limits, "LARGEST_FACTOR", 0)
    (X, y), name = problem, "_gpu.sparse" if kind == "sparse" else "_gpu.dense"
    chains = chains_of(sampler, back_end(name), csr_array(X) if kind == "sparse" else X, y)
    chains.advance()
    before, steps = fake_cupy.ndarray.reads, []
    times = chains.precision.form.times
    monkeypatch.setattr(chains.precision.form, "times", lambda v: steps.append(v) or times(v))
    for _ in range(3):
        chains.advance()
    assert fake_cupy.ndarray.reads == before
    assert len(steps) > 6


@pytest.mark.parametrize("lengths", [[0, 1, 3], [4, 0], [2]])
def test_a_watch_says_that_steps_go_on_once_too_often(lengths, one_gpu):
    watch = one_gpu.Watch()
    for m, length in enumerate(lengths, 2):  # one after the other, each of other flags
        flags = [np.arange(m) + step < length for step in range(length + 2)]
        said = [bool(watch.any_left(one_gpu.to_device(flag), step)) for step, flag in enumerate(flags)]
        assert said == [True] * (length + 1) + [False]


@needs_compiler
@pytest.mark.parametrize("small", [True, False])
def test_the_host_waits_in_burn_in_only_where_a_stage_ends(small, card, problem, monkeypatch):
    ops = back_end()
    if not small:
        monkeypatch.setattr(sys.modules["skhorseshoe._backends._gpu.gaussian"], "THREADS", 0)
    chains = chains_of("hmc", ops, *problem, burn_in=60)
    waited = []
    while (t := chains.state.sweep) < 70:
        before = fake_cupy.ndarray.reads
        chains.advance()
        if fake_cupy.ndarray.reads > before:
            waited.append(t + 1)
    assert waited == chains.ends == [6, 15, 27, 42, 60]


@needs_compiler
def test_the_factors_are_computed_beside_the_pass(card, problem, monkeypatch, factors):
    X, y = problem
    chains = chains_of("gibbs", back_end(), X, y)
    seen = []

    def latent(*arguments):
        seen.append(len(chains.precision.room.stream.queue))
        return whole(*arguments)

    whole, rows = chains.problem.rows.latent, chains.problem.rows
    monkeypatch.setattr(rows, "latent", latent)
    chains.advance()
    assert seen[0]  # queued before the pass, and not done yet
    assert not chains.precision.room.stream.queue


@needs_compiler
def test_the_stream_of_the_factors_comes_first(card):
    assert back_end().Precision(np.eye(2), None).room.stream.priority < 0


def blocks(card, name, n, p, n_chains=4):
    """Of a pass over float32 rows on a card like an H200, and its layout."""
    card.properties["regsPerMultiprocessor"] = 2**16  # the kernels of the emulator have 64 registers
    back_end()
    plan = sys.modules["skhorseshoe._backends._gpu.dense_passes"]._Plan(0, name, (n, p), "float32", n_chains, p + 1)
    assert plan.edges[-1] == n
    return plan.blocks, plan.layout


@needs_compiler
@pytest.mark.parametrize(("p", "on_each", "taken"), [(3, 4, 1), (140, 4, 1), (200, 3, 2), (238, 3, 3)])
def test_latents_leave_room_for_factors_of_one_block(p, on_each, taken, card):
    """A factor of 239 columns takes a whole multiprocessor."""
    card.properties["multiProcessorCount"] = 132
    assert blocks(card, "latent_pass", 10**6, p)[0] == 132 * on_each - 4 * taken
    assert blocks(card, "latent_pass", 10**6, p, 32)[0] <= 132 * on_each  # not where these are most of what there is
    assert blocks(card, "score_pass", 10**6, p)[0] == 132 * on_each


@needs_compiler
def test_where_few_blocks_run_none_is_kept_free(card):
    assert blocks(card, "latent_pass", 10**6, 140) == blocks(card, "score_pass", 10**6, 140)


@needs_compiler
@pytest.mark.parametrize(("n", "waves"), [(10**6, 4), (2 * 10**5, 2), (10**5, 1), (100, 0)])
def test_latents_end_block_by_block_beside_large_factors(n, waves, card):
    card.properties["multiProcessorCount"] = 132
    p, n_chains = 1000, 4
    together = blocks(card, "score_pass", n, p)[0]
    count, cut = blocks(card, "latent_pass", n, p)
    tiles = -(-n // cut.tile)
    assert together == min(264, tiles)
    assert count == min(264 * waves, tiles) if waves else tiles
    assert count <= 8 * 132  # as the forecast of memory says
    assert count <= together or 4 * n * p >= count * 32 * 8 * (p + 2) * n_chains


@needs_compiler
@pytest.mark.parametrize("name", ["latent_pass", "score_pass"])
@pytest.mark.parametrize("p", [3700, 4400, 5700, 20_000])
@pytest.mark.parametrize("cache", [50 * 2**20, 300 * 2**20])
def test_what_is_looked_at_again_has_room_in_the_cache(cache, p, name, card):
    card.properties |= {"multiProcessorCount": 132, "l2CacheSize": cache}
    count, cut = blocks(card, name, 10**6, p)
    assert not cut.staged
    together, each = min(count, 4 * 132), cut.tile * p * 4 + 8 * (p + 1) * 4
    assert together * each <= 0.7 * cache or (together == 132 and cut.tile == 16)  # none is left without work
    assert together == 4 * 132 or (together + 132) * each > 0.7 * cache


@pytest.mark.parametrize("q", [1, 7])
def test_factors_that_were_begun_give_the_same_bits(q, one_gpu, factors):
    rng = np.random.default_rng(0)
    A, (b, d, noise, other) = rng.standard_normal((20, q)), rng.exponential(size=(4, 3, q))
    b, d, noise, other = map(one_gpu.to_device, (b, d, noise, other))
    precision = one_gpu.Precision(A.T @ A, None)
    plain = one_gpu.to_host(precision.draw(b, d, noise))
    for begun in (other, d):  # what was begun for another d is not taken
        precision.begin(begun)
        np.testing.assert_array_equal(one_gpu.to_host(precision.draw(b, d, noise)), plain)
    precision.begin(d)
    np.testing.assert_array_equal(one_gpu.to_host(one_gpu.Precision(A.T @ A, None, precision).draw(b, d, noise)), plain)


@needs_compiler
def test_nothing_uses_the_memory_of_factors_that_are_not_done(card, factors):
    """Not even a solver that only shares it."""
    ops = back_end()
    d, other = ops.to_device(np.ones((3, 4))), ops.to_device(np.full((3, 4), 2.0))
    precision = ops.Precision(np.eye(4), None)
    sharing = ops.Precision(np.full((4, 4), 0.5) + np.eye(4), None, precision)
    plain = [ops.to_host(one.draw(d, d, 0 * d)) for one in (precision, sharing)]
    for one, want in zip((precision, sharing), plain, strict=True):
        precision.begin(other)
        assert precision.room.stream.queue
        one.inverse_diagonal(d, 0)
        assert not precision.room.stream.queue
        precision.begin(d)  # for the one, not for the other
        np.testing.assert_array_equal(ops.to_host(one.draw(d, d, 0 * d)), want)
        assert not precision.room.stream.queue


@needs_compiler
@pytest.mark.parametrize("n_chains", [1, 3, 11])
def test_the_library_works_on_chains_side_by_side(n_chains, card, monkeypatch):
    """At most eight at a time; each with handles of its own, which the emulator looks after."""
    ops, rng = back_end(), np.random.default_rng(0)
    monkeypatch.setattr(sys.modules["skhorseshoe._backends._gpu.gaussian"], "THREADS", 0)
    A, b, d = rng.standard_normal((20, 5)), rng.standard_normal((n_chains, 5)), rng.exponential(size=(n_chains, 5))
    precision, there = ops.Precision(A.T @ A, None), ops.to_device(d)
    precision.begin(there)
    lapack = sys.modules["skhorseshoe._backends._gpu.lapack"]
    busy = [lane for lane in lapack._LANES.first(n_chains) if lane.stream.queue]
    assert len(busy) == (0 if n_chains == 1 else min(n_chains, 8))
    draw = ops.to_host(precision.draw(ops.to_device(b), there, 0 * there))
    want = [np.linalg.solve(A.T @ A + np.diag(d[c]), b[c]) for c in range(n_chains)]
    np.testing.assert_allclose(draw, want, rtol=1e-10)
    assert not any(lane.stream.queue for lane in busy)


@needs_compiler
def test_the_handles_of_a_thread_end_with_it(card):
    back_end()
    lapack = sys.modules["skhorseshoe._backends._gpu.lapack"]
    alive, seen = lapack.cublas.alive, []
    before = set(alive)

    def work():
        lapack._LANES.first(3)
        seen.append(len(alive - before))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [2 * 3]
    assert alive == before


def test_factors_that_have_no_room_are_computed_one_by_one(one_gpu, monkeypatch, factors):
    monkeypatch.setattr(sys.modules["skhorseshoe._backends._gpu.gaussian"], "BESIDE", 0)
    precision = one_gpu.Precision(np.eye(4), None)
    d = one_gpu.to_device(np.ones((3, 4)))
    precision.begin(d)
    np.testing.assert_allclose(one_gpu.to_host(precision.draw(d, d, 0 * d)), np.full((3, 4), 0.5))
    assert len(precision.room.factors) == 1


@pytest.mark.parametrize("n", [1, 31, 100])
def test_values_arrive_in_order_and_as_they_were(n, one_gpu):
    outbox, got = one_gpu.Outbox(), []
    for i in range(n):
        values = one_gpu.to_device(np.full((2, 3), float(i))), one_gpu.to_device(np.arange(2) + i), 1.0
        outbox.put(lambda *arrays: got.append([np.copy(array) for array in arrays]), values)
        del values
    assert len(got) == max(0, n - 32)
    outbox.flush()
    assert len(got) == n
    for i, (first, second, third) in enumerate(got):
        assert (first == i).all()
        np.testing.assert_array_equal(second, np.arange(2) + i)
        assert third == 1.0


def test_values_outlive_a_wait_that_is_interrupted(one_gpu):
    outbox, got = one_gpu.Outbox(), []
    for i in range(3):
        outbox.put(lambda array: got.append(float(array[0])), [one_gpu.to_device(np.full(2, float(i)))])

    class Interrupted:
        def synchronize(self):
            raise KeyboardInterrupt

    first, *rest = outbox.under_way[0]
    outbox.under_way[0] = Interrupted(), *rest
    with pytest.raises(KeyboardInterrupt):
        outbox.flush()
    outbox.under_way[0] = first, *rest
    outbox.flush()
    assert got == [0.0, 1.0, 2.0]


@needs_compiler
def test_an_error_leaves_nothing_under_way(card):
    """What is given back must not be in use any more."""
    ops = back_end()
    outbox = ops.Outbox()

    def interrupted():
        with ops.using("cuda:0"):
            outbox.put(print, [ops.to_device(np.ones(3))])
            assert outbox.stream.queue
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not outbox.stream.queue


def test_a_factorisation_that_fails_for_good_ends_the_fit(one_gpu, factors):
    """It is noticed at the latest when the draws are handed over."""
    outbox = one_gpu.Outbox()
    ones = one_gpu.to_device(np.ones((2, 3)))
    outbox.put(lambda beta: None, [one_gpu.Precision(-9 * np.eye(3), None).draw(ones, ones, ones)])
    with pytest.raises(np.linalg.LinAlgError, match=r"3 columns, minor 1"):
        outbox.flush()


def test_a_prediction_within_a_fit_does_not_forget_that_a_factorisation_has_failed(one_gpu, factors):
    """As where a callback scores while the chains run."""
    arguments = map(one_gpu.to_device, (np.ones((1, 2)), np.zeros((1, 2)), np.zeros((1, 2))))
    with one_gpu.using("cuda:0"):
        draw = one_gpu.Precision(-np.eye(2), None).draw(*arguments)
        with one_gpu.using("cuda:0"):
            assert one_gpu.to_host(one_gpu.to_device(np.ones(1))) == 1.0
        with pytest.raises(np.linalg.LinAlgError, match=r"2 columns, minor 1"):
            one_gpu.to_host(draw)


@needs_compiler
def test_the_emulator_refuses_a_stream_that_has_not_waited(card):
    stream = sys.modules["cupy"].cuda.Stream(non_blocking=True)
    with pytest.raises(EmulatorError, match="has not waited"):
        stream.put(lambda: None)
    with stream, pytest.raises(EmulatorError, match="only kernels"):
        sys.modules["cupy"].zeros(3)[0] = 1.0
    assert fake_streams.Stream.current is None
