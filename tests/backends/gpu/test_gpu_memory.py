"""The memory of a GPU: forecast, refused where there is too little, given back after a fit."""

import sys

import pytest
from cuda_emulator import COMPILER, fake_cupy

from skhorseshoe._backends import device
from skhorseshoe._backends.limits import MAX_STEPS
from skhorseshoe._mcmc import chains as _chains
from skhorseshoe._mcmc import hmc_burn_in
from skhorseshoe.datasets import make_sparse_probit

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs g++")
SAMPLERS = "hmc", "pxda", "gibbs"


@pytest.fixture
def card():
    with fake_cupy.installed() as card:
        yield card


def memory():
    return sys.modules["skhorseshoe._backends._gpu.memory"]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_memory_is_given_back_after_a_fit(sampler, card, problem, short_fit):
    short_fit(*problem, device="cuda", sampler=sampler, burn_in=2, n_iter=2)
    assert card.held_when_freed == 0


@pytest.mark.parametrize("after", [1, 3, 12, 30, 43])
def test_memory_is_given_back_after_an_error_at_any_time(after, card, problem, short_fit, monkeypatch):
    """In the climb, in stages of burn-in, and in sampling; sweeps are recorded by then."""

    def advance_or_fail(chains):
        if chains.state.sweep == after:
            raise RuntimeError("a driver that is gone")
        advance(chains)

    advance = hmc_burn_in.HmcChains.advance
    monkeypatch.setattr(hmc_burn_in.HmcChains, "advance", advance_or_fail)
    with pytest.raises(RuntimeError, match="a driver that is gone") as error:
        short_fit(*problem, device="cuda", sampler="hmc", burn_in=40, n_iter=5)
    assert card.held_when_freed == 0
    assert error.value.__traceback__ is not None


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_memory_is_given_back_after_a_fit_that_fails(sampler, card, problem, short_fit):
    calls = []

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise RuntimeError("a driver that is gone")
        return card_module(*arguments)

    X, y = problem
    card_module, card.module = card.module, fail
    with pytest.raises(RuntimeError, match="a driver that is gone") as error:
        short_fit(X, y, device="cuda", sampler=sampler, burn_in=2, n_iter=2)
    assert card.held_when_freed == 0  # while the error is still there, with its traceback
    assert error.value.__traceback__ is not None


def test_a_fit_that_is_out_of_memory_says_what_was_asked_for_and_what_is_free(card, problem, short_fit, monkeypatch):
    X, y = problem
    short_fit(X, y, device="cuda", burn_in=1, n_iter=1)
    monkeypatch.setattr(memory(), "working_set", lambda *sizes: 0)  # a forecast that is wrong
    card.free = X.nbytes
    with pytest.raises(MemoryError, match=r"allocating 14,400 bytes.*12,800 of its .* bytes are free.*device='cpu'"):
        short_fit(X, y, device="cuda")
    assert card.held_when_freed == 0


@pytest.mark.parametrize(
    "words",
    [
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",  # the driver, which launches kernels and loads them
        "cudaErrorMemoryAllocation: out of memory",
        "CUSOLVER_STATUS_ALLOC_FAILED",
    ],
)
def test_all_words_for_no_memory_are_known(words, card, problem, short_fit, monkeypatch):
    def advance(chains):
        raise RuntimeError(words)

    monkeypatch.setattr(hmc_burn_in.HmcChains, "advance", advance)
    with pytest.raises(MemoryError, match=rf"out of memory: {words}.*device='cpu'"):
        short_fit(*problem, device="cuda", sampler="hmc")


def test_a_fit_without_room_is_refused_before_it_starts(card, problem, short_fit):
    X, y = problem
    card.free = 2**20
    with pytest.raises(
        MemoryError, match=r"needs 1 MiB for X and \d+ MiB of working set.* bytes, but only 1,048,576 of"
    ):
        short_fit(X, y, device="cuda")


def test_auto_takes_the_cpu_where_the_gpu_has_no_room(card, problem, short_fit, monkeypatch, caplog):
    monkeypatch.setattr(device, "_WORTH_A_GPU", 0)
    assert short_fit(*problem, burn_in=1, n_iter=1).device_ == "cuda:0"
    card.free = 2**20
    with caplog.at_level("INFO", logger="skhorseshoe"):
        assert short_fit(*problem, burn_in=1, n_iter=1, verbose=1).device_ == "cpu"
    assert "on cpu (no room on the GPU: This fit needs 1 MiB for X and " in caplog.text


def test_the_forecast_is_logged(card, problem, short_fit, caplog):
    with caplog.at_level("INFO", logger="skhorseshoe"):
        short_fit(*problem, device="cuda", verbose=1, burn_in=1, n_iter=1)
    assert "on cuda:0 (emulator): 1 MiB for draws" in caplog.text
    assert "1 MiB for X and " in caplog.text
    assert "of working set on the GPU" in caplog.text


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("n", "p", "n_chains"), [(200, 300, 1), pytest.param(200, 150, 6, marks=pytest.mark.slow), (4000, 20, 2)]
)
def test_the_forecast_is_enough_and_not_much_more(sampler, n, p, n_chains, card, short_fit, monkeypatch):
    burn_in = 40 if p == 150 else 8  # in which sweeps of all kinds are recorded, with all turns, or few
    if p == 150:
        monkeypatch.setattr(hmc_burn_in, "enough_steps", lambda *given: MAX_STEPS)
    X, y, _ = make_sparse_probit(n, p, random_state=0)
    card.properties["multiProcessorCount"] = 1
    short_fit(X, y, device="cuda", sampler=sampler, n_chains=n_chains, burn_in=burn_in, n_iter=4)
    taken = card.memory.most - X.nbytes
    forecast = memory().working_set(n, p, n_chains, sampler, 1)
    assert taken < forecast < 3 * taken + 2**21


@pytest.mark.parametrize("n_chains", [4, 17, 32])
def test_the_forecast_has_the_sums_of_all_blocks_and_launches(n_chains, card, short_fit, problem):
    short_fit(*problem, device="cuda", sampler="gibbs", burn_in=1, n_iter=1)  # imports the back end
    card.properties["multiProcessorCount"] = 132
    n, p = 10**6, 1000
    plan = sys.modules["skhorseshoe._backends._gpu.dense_passes"]._Plan(
        0, "latent_pass", (n, p), "float32", n_chains, p + 1
    )
    taken = 8 * plan.blocks * (p + 2) * plan.layout.chains * -(-n_chains // 16)
    without, forecast = (memory().working_set(n, p, n_chains, "gibbs", count) for count in (0, 132))
    assert taken * (p + 1) / (p + 2) <= forecast - without


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 8])  # sweeps, of which one has moves along lines, as of few rows and of many
@pytest.mark.parametrize(("sampler", "p", "n_chains"), [("hmc", 60, 24), ("hmc", 30, 32), ("pxda", 60, 24)])
def test_the_forecast_is_enough_where_sweeps_are_recorded(sampler, p, n_chains, every, card, short_fit, monkeypatch):
    """A recording keeps what each of its turns and moves takes, and there are several at a time."""
    monkeypatch.setattr(hmc_burn_in, "enough_steps", lambda *given: MAX_STEPS)
    for module in (hmc_burn_in, _chains):
        monkeypatch.setattr(module, "every", lambda rows: every)
    X, y, _ = make_sparse_probit(100, p, random_state=0)
    card.properties["multiProcessorCount"] = 1
    short_fit(X, y, device="cuda", sampler=sampler, n_chains=n_chains, burn_in=60, n_iter=20)
    taken = card.memory.most - X.nbytes
    assert taken < memory().working_set(100, p, n_chains, sampler, 1) < 3 * taken + 2**22
