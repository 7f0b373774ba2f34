"""Sweeps that are recorded and launched as one: the draws are those of sweeps launched kernel by kernel."""

import importlib
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from cuda_emulator import COMPILER, EmulatorError, fake_cupy, fake_streams

from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import chains as _chains
from skhorseshoe._mcmc import hmc_burn_in
from skhorseshoe._mcmc.initial_state import initial_state
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import Problem

KEY = np.array([1, 2], np.uint32)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs g++")
FITS = {
    "gibbs": {"sampler": "gibbs"},
    "pxda": {"sampler": "pxda"},
    "pxda, other columns": {"sampler": "pxda", "standardize": True, "unpenalized": [1, 4]},
    "hmc": {"sampler": "hmc"},
    "hmc, other columns": {"sampler": "hmc", "standardize": True, "unpenalized": [1, 4], "slab_scale": 2.0},
    "hmc, weights": {"sampler": "hmc", "class_weight": {0: 0.5, 1: 1.7}},
}
SLOW = pytest.mark.slow
KEPT = "coef_draws_", "intercept_draws_", "global_scale_draws_", "shrinkage_"


def module(name):
    return sys.modules[f"skhorseshoe._backends._gpu.{name}"]


class Launches(list):
    """The sweeps that were launched as a whole; kinds : of sweeps that there were."""

    kinds = 0


@pytest.fixture
def launches(monkeypatch):
    """Counts the sweeps that were launched as a whole: a list with one entry for each."""
    launched = Launches()

    class Recorded(module("cuda_graph").Recorded):
        def __call__(self, state):
            launched.kinds += self.calls == 0
            new = super().__call__(state)
            if self.graph is not None:
                launched.append(new.sweep)
            return new

    monkeypatch.setattr(module("cuda_graph"), "Recorded", Recorded)
    return launched


def problem_and_start(ops, X, y):
    rows = Rows(X, y.astype(np.uint8), True, ops, None)
    start = ops.to_device(initial_state(3, rows.columns, rows.base_rate(), 1.0, KEY))
    return Problem(rows, FixedPrior(rows.columns, None), 1.0, KEY), start


def gibbs_chains(ops, X, y):
    return _chains.GibbsChains(*problem_and_start(ops, X, y), 0)


def hmc_chains(ops, X, y, burn_in, saved):
    return hmc_burn_in.HmcChains(*problem_and_start(ops, X, y), burn_in, saved)


@pytest.mark.parametrize("kind", ["dense", pytest.param("sparse", marks=SLOW)])
@pytest.mark.parametrize("fit", FITS)
def test_draws_have_the_bits_of_sweeps_kernel_by_kernel(fit, kind, one_gpu, problem, short_fit, launches, monkeypatch):
    X, y = problem
    X = sp.csr_array(X) if kind == "sparse" else X
    params = {"device": "cuda", "burn_in": 40, "n_iter": 8, "n_chains": 3, **FITS[fit]}
    whole = short_fit(X, y, **params)
    # The climb, in each stage two kinds of sweeps, or three where few have moves along lines, and one or two after it.
    least, most = (1, 1) if fit[:3] != "hmc" else (1 + 2 * 4 + 1, 1 + 3 * 4 + 2)
    assert least <= launches.kinds <= most
    n_launches = len(launches)
    assert n_launches == 48 - launches.kinds  # the first one of each kind compiles
    check_kernel_by_kernel(whole, monkeypatch, short_fit, X, y, params)
    assert len(launches) == n_launches


def check_kernel_by_kernel(whole, monkeypatch, short_fit, X, y, params):
    """A fit with the same draws, whose sweeps are not recorded."""
    monkeypatch.setattr(module("cuda_graph"), "Recorded", lambda sweep: sweep)
    plain = short_fit(X, y, **params)
    for name in KEPT:
        np.testing.assert_array_equal(getattr(whole, name), getattr(plain, name), err_msg=name)


@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
def test_sweeps_with_moves_along_lines_take_turns_with_others(
    sampler, one_gpu, problem, short_fit, launches, monkeypatch
):
    for of_chains in (hmc_burn_in, _chains):
        monkeypatch.setattr(of_chains, "every", lambda rows: 4)
    params = {"device": "cuda", "sampler": sampler, "burn_in": 40, "n_iter": 8, "n_chains": 3, "fit_intercept": False}
    whole = short_fit(*problem, **params)
    assert launches.kinds == {"hmc": 1 + 3 * 4 + 2, "pxda": 2}[sampler]
    assert len(launches) == 48 - launches.kinds
    check_kernel_by_kernel(whole, monkeypatch, short_fit, *problem, params)


def test_states_stay_as_they_were(one_gpu, problem, launches):
    """A launch overwrites the memory of the recording, not the states that were handed out."""
    chains = gibbs_chains(one_gpu, *problem)
    seen = []
    for _ in range(6):
        chains.advance()
        seen.append((chains.state, one_gpu.to_host(chains.state)))
    assert len(launches) == 5
    for sweep, (on_card, then) in enumerate(seen, start=1):
        assert then.sweep == sweep
        for now, before in zip(one_gpu.to_host(on_card), then, strict=True):
            np.testing.assert_array_equal(now, before)
    taus = [then.tau_sq_inv for _, then in seen]
    assert len(np.unique(taus)) == np.size(taus)


def test_a_recording_goes_on_from_any_state(one_gpu, problem, launches):
    chains = gibbs_chains(one_gpu, *problem)
    states = [chains.state]
    for _ in range(5):
        chains.advance()
        states.append(chains.state)
    for back in (2, 4, 0):
        again = one_gpu.to_host(chains.sweeps[1](states[back]))
        assert again.sweep == back + 1
        for now, before in zip(again, one_gpu.to_host(states[back + 1]), strict=True):
            np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("after", [3, pytest.param(12, marks=SLOW), 22, pytest.param(45, marks=SLOW), 55])
def test_burn_in_goes_on_from_what_was_saved(after, one_gpu, problem, launches):
    """In the climb, in both halves of a stage, in the last stage."""

    def chains(saved=None):
        return hmc_chains(one_gpu, *problem, 60, saved)

    whole, first = chains(), chains()
    for _ in range(64):
        whole.advance()
    for _ in range(after):
        first.advance()
    going_on = chains(one_gpu.to_host(first.arrays()))
    while going_on.state.sweep < 64:
        going_on.advance()
    assert launches
    assert going_on.settings == whole.settings
    for ours, theirs in zip(*(one_gpu.to_host(run.state) for run in (going_on, whole)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_number_of_a_sweep_may_be_the_largest(one_gpu, problem, launches):
    """Counters have 32 bits; the GPU counts as the host does."""
    start = 2**32 - 4
    ours, theirs = (gibbs_chains(one_gpu, *problem) for _ in range(2))
    theirs.sweeps = [recorded.sweep for recorded in theirs.sweeps]
    for chains in (ours, theirs):
        chains.state = chains.state._replace(sweep=start)
        chains.points.burn_in = 2**33
        for _ in range(3):
            chains.advance()
    assert len(launches) == 2
    np.testing.assert_array_equal(*(one_gpu.to_host(chains.state.beta) for chains in (ours, theirs)))


def test_many_columns_are_not_recorded(one_gpu, problem, short_fit, launches, monkeypatch):
    """Their factors are the library's, which cannot be."""
    monkeypatch.setattr(module("gaussian"), "THREADS", 0)
    short_fit(*problem, device="cuda", sampler="gibbs", burn_in=3, n_iter=3)
    assert not launches


def test_sparse_rows_that_are_many_are_not_recorded(one_gpu, problem, short_fit, launches, monkeypatch):
    """A recording keeps the memory of every pass."""
    X, y = problem
    monkeypatch.setattr(module("cuda_graph"), "SPARSE_ROWS", len(y) - 1)
    short_fit(sp.csr_array(X), y, device="cuda", sampler="gibbs", burn_in=3, n_iter=3)
    assert not launches


def test_rows_on_the_host_are_not_recorded(one_gpu, problem, launches):
    X, y = problem
    chains = gibbs_chains(one_gpu, X.view(module("host_streaming").HostRows), y)
    for _ in range(3):
        chains.advance()
    assert not launches


@needs_compiler
def test_a_fit_whose_sweeps_cannot_be_recorded_says_so_once(problem, short_fit, monkeypatch, caplog):
    """Burn-in of HMC would record nine times."""

    def refuse(stream):
        raise RuntimeError("refused by the driver")

    with fake_cupy.installed():
        monkeypatch.setattr(fake_streams.Stream, "begin_capture", refuse)
        for _ in range(2):
            with caplog.at_level("WARNING", logger="skhorseshoe"):
                short_fit(*problem, device="cuda", sampler="hmc", burn_in=40, n_iter=4)
    assert [record.message.count("by the driver") for record in caplog.records] == [1, 1]


@needs_compiler
def test_a_recording_that_another_thread_has_spoiled_is_tried_again(problem, caplog, monkeypatch):
    with fake_cupy.installed(), caplog.at_level("WARNING", logger="skhorseshoe"):
        ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
        whole, spoiled, graphs = _chains.gibbs.sweep, [], []

        def sweep(*args, **kwargs):
            if fake_streams.Graph.recorded is not None and len(spoiled) < 2:
                spoiled.append(sys.modules["cupy"].cuda.runtime.deviceSynchronize())
            return whole(*args, **kwargs)

        monkeypatch.setattr(_chains.gibbs, "sweep", sweep)
        launch = fake_streams.Graph.launch
        monkeypatch.setattr(fake_streams.Graph, "launch", lambda graph: graphs.append(graph) or launch(graph))
        chains = gibbs_chains(ops, *problem)
        for _ in range(6):
            chains.advance()
            assert chains.sweeps[1].graph is not None or not chains.sweeps[1].held
    assert len(spoiled) == 2
    assert len(graphs) == 3  # of the sweeps 4 to 6: the second and the third have not been recorded
    assert not caplog.records


@needs_compiler
def test_a_recording_that_fails_while_factors_are_computed_leaves_nothing_begun(problem, short_fit, monkeypatch):
    params = {"device": "cuda", "sampler": "gibbs", "burn_in": 3, "n_iter": 9}
    with fake_cupy.installed():
        whole, failed = Rows.latent, []

        def latent(*args):
            if fake_streams.Graph.recorded is not None and not failed:
                failed.append(True)
                raise RuntimeError("refused by the driver")
            return whole(*args)

        monkeypatch.setattr(Rows, "latent", latent)
        with_failure = short_fit(*problem, **params)
        assert failed
        monkeypatch.setattr(module("cuda_graph"), "Recorded", lambda sweep: sweep)
        plain = short_fit(*problem, **params)
    for name in KEPT:
        np.testing.assert_array_equal(getattr(with_failure, name), getattr(plain, name), err_msg=name)


@needs_compiler
def test_no_memory_for_the_state_of_a_recording(problem, short_fit, monkeypatch, caplog):
    with fake_cupy.installed() as card:
        ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
        chains = gibbs_chains(ops, *problem)
        whole, attempts = type(chains.sweeps[1])._record, []

        def record(sweep, state):
            attempts.append(True)
            card.free = 8  # bytes
            try:
                whole(sweep, state)
            finally:
                card.free = 2**34

        monkeypatch.setattr(type(chains.sweeps[1]), "_record", record)
        with caplog.at_level("WARNING", logger="skhorseshoe"):
            for _ in range(6):
                chains.advance()
        assert len(attempts) == module("sweep_counter").ATTEMPTS
    (logged,) = caplog.records
    assert "Out of memory allocating" in logged.message


@needs_compiler
@pytest.mark.parametrize("why", ["the host reads a value", "no memory"])
def test_what_cannot_be_recorded_is_launched_kernel_by_kernel(why, problem, short_fit, monkeypatch, caplog):
    params = {"device": "cuda", "sampler": "gibbs", "burn_in": 3, "n_iter": 9}
    with fake_cupy.installed() as card:
        plain = short_fit(*problem, **params)
        gibbs, n_chains = _chains.gibbs, 4

        def sweep(state, **given):
            if why == "the host reads a value":
                assert float(state.tau_sq_inv[0]) > 0
            elif fake_streams.Graph.recorded is not None:
                card.free = 8 * n_chains  # less than any matrix takes
            try:
                return whole(state, **given)
            finally:
                card.free = 2**34

        whole = gibbs.sweep
        monkeypatch.setattr(gibbs, "sweep", sweep)
        with caplog.at_level("WARNING", logger="skhorseshoe"):
            by_kernel = short_fit(*problem, **params)
        assert card.held_when_freed == 0
    (record,) = caplog.records
    reason = {"the host reads a value": "capturing", "no memory": "Out of memory allocating"}[why]
    assert "Sweeps are not launched as a whole, but kernel by kernel" in record.message
    assert reason in record.message
    for name in KEPT:
        np.testing.assert_array_equal(getattr(by_kernel, name), getattr(plain, name), err_msg=name)


@pytest.fixture
def cupy():
    with fake_cupy.installed():
        yield sys.modules["cupy"]


@contextmanager
def recording(cupy):
    """A recording of what is done in this context: its stream, which ends it."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream, cupy.cuda.using_allocator(lambda n_bytes: cupy.cuda.MemoryPointer(cupy.cuda.Memory(n_bytes), 0)):
        stream.begin_capture()
        try:
            yield stream
        finally:
            fake_streams.Graph.recorded = None


def test_the_emulator_computes_nothing_while_it_records(cupy):
    x = cupy.asarray(np.arange(3.0))
    with recording(cupy) as stream:
        y = 2 * x + x.sum()
        x[1:] += 10
        graph = stream.end_capture()
    np.testing.assert_array_equal(cupy.asnumpy(x), [0, 1, 2])
    assert np.isnan(cupy.asnumpy(y)).all()
    for times in (1, 2):
        graph.launch()
        np.testing.assert_array_equal(cupy.asnumpy(x), [0, 1 + 10 * times, 2 + 10 * times])
    np.testing.assert_array_equal(cupy.asnumpy(y), [23, 45, 47])


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        (lambda cp, x: float(x[0]), RuntimeError, "a copy to the host"),
        (lambda cp, x: cp.asnumpy(x), RuntimeError, "a copy to the host"),
        (lambda cp, x: cp.asarray(np.ones(2)), RuntimeError, "a copy from the host"),
        (lambda cp, x: x @ x, NotImplementedError, "cuBLAS"),
    ],
)
def test_the_emulator_records_neither_reads_nor_libraries(what, kind, words, cupy):
    """CUDA cannot, or CuPy does not."""
    x = cupy.asarray(np.arange(3.0))
    with recording(cupy) as stream:
        with pytest.raises(kind, match=f"{words}.* while a stream is capturing"):
            what(cupy, x)
        if kind is RuntimeError:
            with pytest.raises(RuntimeError, match="CaptureInvalidated"):
                stream.end_capture()
        else:
            stream.end_capture()


def test_the_emulator_records_no_memory_that_others_get(cupy):
    x = cupy.asarray(np.arange(3.0))
    with recording(cupy), cupy.cuda.using_allocator(None), pytest.raises(EmulatorError, match="gives it to others"):
        x + 1


@pytest.mark.parametrize(
    "call", [lambda x, event: x + 1, lambda x, event: x.__setitem__(0, x[1]), lambda x, event: event.record()]
)
def test_the_emulator_refuses_what_is_recorded_after_an_error(call, cupy):
    x, event = cupy.asarray(np.arange(3.0)), cupy.cuda.Event()
    with recording(cupy):
        cupy.cuda.runtime.deviceSynchronize()
        with pytest.raises(RuntimeError, match="CaptureInvalidated"):
            call(x, event)


def test_the_emulator_wants_all_streams_joined(cupy):
    side, event = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()
    with recording(cupy) as stream:
        event.record()
        side.wait_event(event)
        with pytest.raises(RuntimeError, match="CaptureUnjoined"):
            stream.end_capture()
