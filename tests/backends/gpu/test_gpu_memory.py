"""The memory of a GPU: forecast, refused where there is too little, given back after a fit."""

import pytest
from card import module

from skhorseshoe._mcmc import hmc_burn_in
from skhorseshoe.datasets import make_sparse_probit


def check_forecast(card, X, y, sampler, n_chains, slack, short_fit, **length):
    """The forecast is never below what a fit takes beside X, nor more than three times that; all is given back."""
    card.properties["multiProcessorCount"] = 1
    short_fit(X, y, device="cuda", sampler=sampler, n_chains=n_chains, **length)
    assert card.held_when_freed == 0
    taken, forecast = card.memory.most - X.nbytes, module("memory").working_set(*X.shape, n_chains, sampler, 1)
    assert taken < forecast < 3 * taken + slack


@pytest.mark.parametrize(
    ("sampler", "n", "p", "n_chains"),
    [(sampler, *size) for sampler in ("hmc", "pxda", "gibbs") for size in ((200, 300, 1), (4000, 20, 2))],
)
def test_the_forecast_is_enough_and_not_much_more(sampler, n, p, n_chains, card, short_fit, monkeypatch):
    # Then rows are asked on the card.
    monkeypatch.setattr("skhorseshoe._data.rows.Rows.separation", lambda *given: None)
    X, y, _ = make_sparse_probit(n, p, random_state=0)
    length = {"burn_in": 5, "n_iter": 2, "slab_scale": None}
    check_forecast(card, X, y, sampler, n_chains, 2**21, short_fit, **length)


@pytest.mark.filterwarnings("ignore:X has more columns")
def test_chains_on_the_host_take_little_of_the_card(card, short_fit):
    X, y, _ = make_sparse_probit(30, 2000, random_state=0)
    card.properties["multiProcessorCount"] = 1
    short_fit(X, y, device="cuda", slab_scale=2.0, burn_in=2, n_iter=2)
    forecast = module("memory").working_set(*X.shape, 4, None, 1)
    of_columns = 8 * 2000**2  # a matrix, of which other samplers have a dozen
    assert card.memory.most - X.nbytes < forecast < 2 * of_columns


@pytest.mark.parametrize("n_chains", [4, 17, 32])
def test_the_forecast_has_the_sums_of_all_blocks_and_launches(n_chains, card):
    card.properties["multiProcessorCount"] = 132
    n, p = 10**6, 1000
    plan = module("dense_passes")._Plan(0, "latent_pass", (n, p), "float32", n_chains, p + 1)
    taken = 8 * plan.blocks * (p + 2) * plan.layout.chains * -(-n_chains // 16)
    without, forecast = (module("memory").working_set(n, p, n_chains, "gibbs", count) for count in (0, 132))
    assert taken * (p + 1) / (p + 2) <= forecast - without


@pytest.mark.parametrize("after", [1, 4, 11])  # in the climb, in a window of burn-in, in sampling
def test_memory_is_given_back_after_an_error(after, card, problem, short_fit, monkeypatch):
    """While the error is still there, with its traceback."""

    def advance_or_fail(chains):
        if chains.state.sweep == after:
            raise RuntimeError("a driver that is gone")
        advance(chains)

    advance = hmc_burn_in.HmcChains.advance
    monkeypatch.setattr(hmc_burn_in.HmcChains, "advance", advance_or_fail)
    with pytest.raises(RuntimeError, match="a driver that is gone") as error:
        short_fit(*problem, device="cuda", sampler="hmc", burn_in=10, n_iter=2)
    assert card.held_when_freed == 0
    assert error.value.__traceback__ is not None


def test_a_fit_that_is_out_of_memory_says_what_is_free(card, problem, short_fit, monkeypatch):
    X, y = problem
    short_fit(X, y, device="cuda", burn_in=1, n_iter=1)
    monkeypatch.setattr(module("memory"), "working_set", lambda *sizes: 0)  # a forecast that is wrong
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
def test_all_words_for_no_memory_are_known(words, card, problem, short_fit, stop_at):
    stop_at(1, RuntimeError(words))
    with pytest.raises(MemoryError, match=rf"out of memory: {words}.*device='cpu'"):
        short_fit(*problem, device="cuda", sampler="hmc")


def test_a_fit_without_room_is_refused_before_it_starts(card, problem, short_fit):
    card.free = 2**16
    with pytest.raises(MemoryError, match=r"1 MiB for X and \d+ MiB of working set.* 65,536 of.*device='cpu'"):
        short_fit(*problem, device="cuda")


def test_auto_takes_the_cpu_where_the_gpu_has_no_room(card, problem, short_fit, sizes, caplog):
    sizes(numbers_on_a_gpu=0)
    with caplog.at_level("INFO", logger="skhorseshoe"):
        assert short_fit(*problem, burn_in=1, n_iter=1, verbose=1).device_ == "cuda:0"
        card.free = 2**20
        assert short_fit(*problem, burn_in=1, n_iter=1, verbose=1).device_ == "cpu"
    assert "on cuda:0 (emulator): 1 MiB for draws" in caplog.text
    assert "of working set on the GPU" in caplog.text
    assert "on cpu (no room on the GPU: This fit needs 1 MiB for X and " in caplog.text
