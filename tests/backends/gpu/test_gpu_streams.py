"""The host does not wait in a sweep: factors are queued, and states leave through pinned memory."""

import sys
import threading

import numpy as np
import pytest
from card import chains_of, module
from cuda_emulator import EmulatorError, fake_cupy, fake_streams


def check_no_reads(chains, n_sweeps=3):
    """The host reads no value of the GPU in the sweeps after the first."""
    chains.advance()
    before = fake_cupy.ndarray.reads
    for _ in range(n_sweeps):
        chains.advance()
    assert fake_cupy.ndarray.reads == before


@pytest.mark.parametrize("sampler", ["gibbs", "pxda", "hmc"])
def test_the_host_waits_for_nothing_in_a_sweep(sampler, card, problem):
    check_no_reads(chains_of(sampler, module("dense"), *problem))


def test_conjugate_gradients_wait_for_the_step_before_only(card, problem, sizes, monkeypatch):
    """While the host looks at its flags, which lie in pinned memory, the next step is queued."""
    sizes(columns_of_a_cholesky_factor=0)
    chains = chains_of("gibbs", module("dense"), *problem)
    steps, times = [], chains.precision.form.times
    monkeypatch.setattr(chains.precision.form, "times", lambda v: steps.append(v) or times(v))
    check_no_reads(chains)
    assert len(steps) > 6


@pytest.mark.parametrize("lengths", [[0, 1, 3], [4, 0], [2]])
def test_a_watch_says_that_steps_go_on_once_too_often(lengths, one_gpu):
    watch = one_gpu.Watch()
    for m, length in enumerate(lengths, 2):  # one after the other, each of other flags
        flags = [np.arange(m) + step < length for step in range(length + 2)]
        said = [bool(watch.any_left(one_gpu.to_device(flag), step)) for step, flag in enumerate(flags)]
        assert said == [True] * (length + 1) + [False]


def test_the_host_waits_in_burn_in_only_where_a_phase_ends(card, problem, cholesky_factors):
    chains = chains_of("hmc", module("dense"), *problem, 20)
    waited = []
    while (t := chains.state.sweep) < 22:
        before = fake_cupy.ndarray.reads
        chains.advance()
        if fake_cupy.ndarray.reads > before:
            waited.append(t + 1)
    assert waited == chains.burn_in.phases.ends
    assert len(waited) == 5


def blocks(card, name, n, p, n_chains=4):
    """Of a pass over float32 rows on a card like an H200, and its layout."""
    card.properties |= {"regsPerMultiprocessor": 2**16, "multiProcessorCount": 132}  # kernels here have 64 registers
    plan = module("dense_passes")._Plan(0, name, (n, p), "float32", n_chains, p + 1)
    assert plan.edges[-1] == n
    return plan.blocks, plan.layout


@pytest.mark.parametrize("name", ["latent_pass", "score_pass"])
@pytest.mark.parametrize("p", [3700, 4400, 5700, 20_000])
@pytest.mark.parametrize("cache", [50 * 2**20, 300 * 2**20])
def test_what_is_looked_at_again_has_room_in_the_cache(cache, p, name, card):
    card.properties["l2CacheSize"] = cache
    count, cut = blocks(card, name, 10**6, p)
    assert not cut.staged
    together, each = min(count, 4 * 132), cut.tile * p * 4 + 8 * (p + 1) * 4
    assert together * each <= 0.7 * cache or (together == 132 and cut.tile == 16)  # none is left without work
    assert together == 4 * 132 or (together + 132) * each > 0.7 * cache


@pytest.mark.parametrize("n_chains", [1, 3, 11])
def test_the_library_works_on_chains_side_by_side(n_chains, card, sizes, monkeypatch):
    """At most eight at a time; each with handles of its own, which the emulator looks after."""
    ops, rng = module("dense"), np.random.default_rng(0)
    sizes(columns_of_one_block=0)
    lanes, potrf = [], module("gaussian").potrf
    monkeypatch.setattr(module("gaussian"), "potrf", lambda *given: lanes.append(given[-1]) or potrf(*given))
    A, b, d = rng.standard_normal((20, 5)), rng.standard_normal((n_chains, 5)), rng.exponential(size=(n_chains, 5))
    precision, there = ops.Precision(A.T @ A, None), ops.to_device(d)
    draw = ops.to_host(precision.draw(ops.to_device(b), there, 0 * there))
    want = [np.linalg.solve(A.T @ A + np.diag(d[c]), b[c]) for c in range(n_chains)]
    np.testing.assert_allclose(draw, want, rtol=1e-10)
    assert len(set(lanes)) == min(n_chains, 8)
    assert (None in lanes) == (n_chains == 1)
    assert not any(lane.stream.queue for lane in lanes if lane)


def test_the_handles_of_a_thread_end_with_it(card):
    lapack = module("lapack")
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


def test_factors_that_have_no_room_are_computed_one_by_one(one_gpu, sizes, cholesky_factors):
    sizes(bytes_of_cholesky_factors=0)
    precision = one_gpu.Precision(np.eye(4), None)
    d = one_gpu.to_device(np.ones((3, 4)))
    assert module("memory").factors_at_a_time(3, 4) == 1
    np.testing.assert_allclose(one_gpu.to_host(precision.draw(d, d, 0 * d)), np.full((3, 4), 0.5))


@pytest.mark.parametrize("n", [1, 100])
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


def test_an_error_leaves_nothing_under_way(card):
    """What is given back must not be in use any more."""
    ops = module("dense")
    outbox = ops.Outbox()

    def interrupted():
        with ops.using("cuda:0"):
            outbox.put(print, [ops.to_device(np.ones(3))])
            assert outbox.stream.queue
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not outbox.stream.queue


def test_a_factorisation_that_fails_for_good_ends_the_fit(one_gpu, cholesky_factors):
    """It is noticed at the latest when the draws are handed over, whatever a prediction within the fit has asked."""
    outbox, ones = one_gpu.Outbox(), one_gpu.to_device(np.ones((2, 3)))
    with one_gpu.using("cuda:0"):
        outbox.put(lambda beta: None, [one_gpu.Precision(-9 * np.eye(3), None).draw(ones, ones, ones)])
        with one_gpu.using("cuda:0"):
            assert one_gpu.to_host(one_gpu.to_device(np.ones(1))) == 1.0
        with pytest.raises(np.linalg.LinAlgError, match=r"3 columns, minor 1"):
            outbox.flush()


def test_the_emulator_refuses_a_stream_that_has_not_waited(card):
    stream = sys.modules["cupy"].cuda.Stream(non_blocking=True)
    with pytest.raises(EmulatorError, match="has not waited"):
        stream.put(lambda: None)
    with stream, pytest.raises(EmulatorError, match="only kernels"):
        sys.modules["cupy"].zeros(3)[0] = 1.0
    assert fake_streams.Stream.current is None
