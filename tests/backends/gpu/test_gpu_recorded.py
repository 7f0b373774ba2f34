"""Sweeps that are recorded and launched as one: the draws are those of sweeps launched kernel by kernel."""

import sys
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from card import chains_of, left_on_host, module
from cuda_emulator import EmulatorError, fake_streams
from laws import same_draws

from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import chains as _chains
from skhorseshoe._mcmc import hmc_burn_in

OTHER_COLUMNS = {"standardize": True, "unpenalized": [1, 4]}
FITS = {
    "gibbs": {"sampler": "gibbs"},
    "pxda": {"sampler": "pxda", **OTHER_COLUMNS},
    "hmc": {"sampler": "hmc", "slab_scale": 2.0, "class_weight": {0: 0.5, 1: 1.7}, **OTHER_COLUMNS},
}


class Launches(list):
    """The sweeps that were launched as a whole; kinds : of sweeps that there were."""

    kinds = 0


@pytest.fixture
def launches(monkeypatch):
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


def check_kernel_by_kernel(launches, monkeypatch, short_fit, X, y, **params):
    """A fit of 48 sweeps has the draws of one whose sweeps are not recorded; how many kinds of sweeps it had."""
    params = {"device": "cuda", "burn_in": 40, "n_iter": 8, "n_chains": 3, **params}
    whole, kinds = short_fit(X, y, **params), launches.kinds
    assert len(launches) == 48 - kinds  # the first one of each kind compiles
    monkeypatch.setattr(module("cuda_graph"), "Recorded", lambda sweep: sweep)
    assert same_draws(whole, short_fit(X, y, **params))
    assert len(launches) == 48 - kinds
    return kinds


@pytest.mark.parametrize(
    ("fit", "kind"),
    [*((fit, "dense") for fit in FITS), *(pytest.param(fit, "sparse", marks=pytest.mark.slow) for fit in FITS)],
)
def test_draws_have_the_bits_of_sweeps_kernel_by_kernel(fit, kind, one_gpu, problem, short_fit, launches, monkeypatch):
    X, y = problem
    kinds = check_kernel_by_kernel(
        launches, monkeypatch, short_fit, sp.csr_array(X) if kind == "sparse" else X, y, **FITS[fit]
    )
    # The climb, in each stage two kinds of sweeps, or three where few have moves along lines, and one or two after it.
    assert 1 + 2 * 4 + 1 <= kinds <= 1 + 3 * 4 + 2 if fit == "hmc" else kinds == 1


@pytest.mark.parametrize(("sampler", "kinds"), [("hmc", 1 + 3 * 4 + 2), ("pxda", 2)])
def test_sweeps_of_several_kinds_take_turns(sampler, kinds, one_gpu, problem, short_fit, launches, monkeypatch):
    """One in four has moves along lines."""
    for of_chains in (hmc_burn_in, _chains):
        monkeypatch.setattr(of_chains, "every", lambda rows: 4)
    params = {"sampler": sampler, "fit_intercept": False}
    assert check_kernel_by_kernel(launches, monkeypatch, short_fit, *problem, **params) == kinds


def test_states_stay_as_they_were_and_are_gone_on_from(one_gpu, problem, launches):
    """A launch overwrites the memory of the recording, not the states that were handed out."""
    chains = chains_of("gibbs", one_gpu, *problem)
    seen = []
    for _ in range(6):
        chains.advance()
        seen.append((chains.state, one_gpu.to_host(chains.state)))
    assert len(launches) == 5
    for sweep, (on_card, then) in enumerate(seen, start=1):
        assert then.sweep == sweep
        assert_same(one_gpu.to_host(on_card), then)
    taus = [then.tau_sq_inv for _, then in seen]
    assert len(np.unique(taus)) == np.size(taus)
    for back in (2, 4, 0):
        assert_same(one_gpu.to_host(chains.sweeps[1](seen[back][0])), seen[back + 1][1])


def assert_same(state, other):
    for ours, theirs in zip(state, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("after", [*(pytest.param(k, marks=pytest.mark.slow) for k in (3, 35)), 22])
def test_burn_in_goes_on_from_what_was_saved(after, one_gpu, problem, launches):
    """In the climb, in a stage, in the last stage."""
    whole, first = (chains_of("hmc", one_gpu, *problem, 40) for _ in range(2))
    for _ in range(44):
        whole.advance()
    for _ in range(after):
        first.advance()
    going_on = chains_of("hmc", one_gpu, *problem, 40, one_gpu.to_host(first.arrays()))
    while going_on.state.sweep < 44:
        going_on.advance()
    assert launches
    assert going_on.settings == whole.settings
    assert_same(*(one_gpu.to_host(run.state) for run in (going_on, whole)))


def test_the_number_of_a_sweep_may_be_the_largest(one_gpu, problem, launches):
    """Counters have 32 bits; the GPU counts as the host does."""
    ours, theirs = (chains_of("gibbs", one_gpu, *problem) for _ in range(2))
    theirs.sweeps = [recorded.sweep for recorded in theirs.sweeps]
    for chains in (ours, theirs):
        chains.state = chains.state._replace(sweep=2**32 - 4)
        for _ in range(3):
            chains.advance()
    assert len(launches) == 2
    np.testing.assert_array_equal(*(one_gpu.to_host(chains.state.beta) for chains in (ours, theirs)))


@pytest.mark.parametrize("why", ["many columns", "many sparse rows", "rows on the host"])
def test_what_is_not_recorded(why, one_gpu, problem, launches, monkeypatch):
    """Many columns have factors of the library, which cannot be; a recording keeps the memory of every pass."""
    (X, y), ops = problem, one_gpu
    if why == "many columns":
        monkeypatch.setattr(module("gaussian"), "THREADS", 0)
    elif why == "many sparse rows":
        monkeypatch.setattr(module("cuda_graph"), "SPARSE_ROWS", len(y) - 1)
        X, ops = sp.csr_array(X), module("sparse")
    else:
        X = left_on_host(X)
    chains = chains_of("gibbs", ops, X, y)
    for _ in range(3):
        chains.advance()
    assert not launches


# Recordings that fail -------------------------------------------------------------------------------------------------


def test_a_fit_whose_sweeps_cannot_be_recorded_says_so_once(card, problem, short_fit, monkeypatch, caplog):
    """Burn-in of HMC would record nine times."""

    def refuse(stream):
        raise RuntimeError("refused by the driver")

    monkeypatch.setattr(fake_streams.Stream, "begin_capture", refuse)
    with caplog.at_level("WARNING", logger="skhorseshoe"):
        for _ in range(2):
            short_fit(*problem, device="cuda", sampler="hmc", burn_in=40, n_iter=4)
    assert [record.message.count("by the driver") for record in caplog.records] == [1, 1]


def test_a_recording_that_was_spoiled_is_tried_again(card, problem, caplog, monkeypatch):
    """As by another thread that waits for the whole GPU."""
    whole, spoiled, graphs = _chains.gibbs.sweep, [], []

    def sweep(*args, **kwargs):
        if fake_streams.Graph.recorded is not None and len(spoiled) < 2:
            spoiled.append(sys.modules["cupy"].cuda.runtime.deviceSynchronize())
        return whole(*args, **kwargs)

    monkeypatch.setattr(_chains.gibbs, "sweep", sweep)
    launch = fake_streams.Graph.launch
    monkeypatch.setattr(fake_streams.Graph, "launch", lambda graph: graphs.append(graph) or launch(graph))
    with caplog.at_level("WARNING", logger="skhorseshoe"):
        chains = chains_of("gibbs", module("dense"), *problem)
        for _ in range(6):
            chains.advance()
            assert chains.sweeps[1].graph is not None or not chains.sweeps[1].held
    assert len(spoiled) == 2
    assert len(graphs) == 3  # of the sweeps 4 to 6: the second and the third have not been recorded
    assert not caplog.records


def test_a_recording_that_fails_leaves_no_factors_begun(card, problem, short_fit, monkeypatch):
    params, whole, failed = {"device": "cuda", "sampler": "gibbs", "burn_in": 3, "n_iter": 9}, Rows.latent, []

    def latent(*args):
        if fake_streams.Graph.recorded is not None and not failed:
            failed.append(True)
            raise RuntimeError("refused by the driver")
        return whole(*args)

    monkeypatch.setattr(Rows, "latent", latent)
    with_failure = short_fit(*problem, **params)
    assert failed
    monkeypatch.setattr(module("cuda_graph"), "Recorded", lambda sweep: sweep)
    assert same_draws(with_failure, short_fit(*problem, **params))


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("the host reads a value", "capturing"),
        ("no memory", "Out of memory allocating"),
        ("no memory for the state", "Out of memory allocating"),
    ],
)
def test_what_cannot_be_recorded_goes_kernel_by_kernel(why, reason, card, problem, short_fit, monkeypatch, caplog):
    params = {"device": "cuda", "sampler": "gibbs", "burn_in": 3, "n_iter": 9}
    plain, gibbs, of_graphs = short_fit(*problem, **params), _chains.gibbs, module("cuda_graph").Recorded
    whole, record, attempts = gibbs.sweep, of_graphs._record, []

    def scarce(function, *args, **given):
        card.free = 8 * 4  # bytes, less than any matrix takes
        try:
            return function(*args, **given)
        finally:
            card.free = 2**34

    def sweep(state, **given):
        if why == "the host reads a value":
            assert float(state.tau_sq_inv[0]) > 0
        elif why == "no memory" and fake_streams.Graph.recorded is not None:
            return scarce(whole, state, **given)
        return whole(state, **given)

    def watched(recorded, state):
        attempts.append(True)
        scarce(record, recorded, state) if why == "no memory for the state" else record(recorded, state)

    monkeypatch.setattr(gibbs, "sweep", sweep)
    monkeypatch.setattr(of_graphs, "_record", watched)
    with caplog.at_level("WARNING", logger="skhorseshoe"):
        by_kernel = short_fit(*problem, **params)
    assert card.held_when_freed == 0
    assert len(attempts) == module("sweep_counter").ATTEMPTS
    (logged,) = caplog.records
    assert "Sweeps are not launched as a whole, but kernel by kernel" in logged.message
    assert reason in logged.message
    assert same_draws(by_kernel, plain)


# The emulator of recordings -------------------------------------------------------------------------------------------


@pytest.fixture
def cupy(card):
    return sys.modules["cupy"]


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
    ("what", "words"),
    [
        (lambda cp, x: cp.asnumpy(x), "a copy to the host"),
        (lambda cp, x: cp.asarray(np.ones(2)), "a copy from the host"),
        (lambda cp, x: cp.cuda.runtime.deviceSynchronize() or x + 1, "CaptureInvalidated"),
    ],
)
def test_the_emulator_records_neither_copies_nor_after_errors(what, words, cupy):
    x, event = cupy.asarray(np.arange(3.0)), cupy.cuda.Event()
    with recording(cupy) as stream:
        with pytest.raises(RuntimeError, match=words):
            what(cupy, x)
        for call in (event.record, stream.end_capture):
            with pytest.raises(RuntimeError, match="CaptureInvalidated"):
                call()


def test_the_emulator_records_neither_libraries_nor_pools(cupy):
    x = cupy.asarray(np.arange(3.0))
    with recording(cupy) as stream:
        with pytest.raises(NotImplementedError, match=r"cuBLAS.* while a stream is capturing"):
            x @ x
        with cupy.cuda.using_allocator(None), pytest.raises(EmulatorError, match="gives it to others"):
            x + 1
        stream.end_capture()


def test_the_emulator_wants_all_streams_joined(cupy):
    side, event = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()
    with recording(cupy) as stream:
        event.record()
        side.wait_event(event)
        with pytest.raises(RuntimeError, match="CaptureUnjoined"):
            stream.end_capture()
