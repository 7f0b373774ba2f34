"""n_iter="auto" and burn_in="auto": how long a fit takes when nobody says it."""

import numpy as np
import pytest
from laws import same_draws
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._fit import parameters
from skhorseshoe._mcmc import burn_in
from skhorseshoe._mcmc.burn_in import BurnIn, tuned_phases, untuned_phases
from skhorseshoe.diagnostics import convergence


@pytest.mark.parametrize(("sampler", "goal"), [("hmc", None), ("pxda", None), ("hmc", 4000)])
@pytest.mark.filterwarnings("error")
def test_sampling_ends_when_everything_has_converged(weak_problem, sampler, goal, seed):
    """The model is then that of a fit with as many sweeps."""
    model = HorseshoeProbitClassifier(sampler=sampler, target_ess=goal, random_state=seed)
    X, y = weak_problem
    model.fit(X, y)
    whole = clone(model).set_params(n_iter=model.n_iter_, target_ess=None).fit(X, y)
    assert same_draws(model, whole)
    assert model.stopped_by_ == "target_ess"
    for draws in (model.coef_draws_, model.intercept_draws_, model.global_scale_draws_):
        checks = convergence(draws)
        assert np.min(checks.ess_bulk) >= (goal or 400)
        assert np.max(checks.rhat) <= 1.01
    assert 100 <= model.n_iter_ < parameters.DEFAULT_SWEEPS
    assert 200 <= model.burn_in_ <= 3400


@pytest.fixture(params=["checkpoint", "warm_start"])
def kept(request, tmp_path):
    """The parameter with which a fit goes on."""
    return {request.param: tmp_path / "run" if request.param == "checkpoint" else True}


@pytest.mark.filterwarnings("ignore:target_ess=1000000.0 has not been reached")
def test_draws_that_suffice_are_enough_when_an_automatic_length_goes_on(weak_problem, kept):
    """However many they are, if they were made for another target."""
    model = HorseshoeProbitClassifier(n_iter=1600, random_state=0, **kept).fit(*weak_problem)
    assert model.ess_.min() >= 400
    model = clone(model) if "checkpoint" in kept else model
    model.set_params(n_iter="auto").fit(*weak_problem)
    assert (model.n_iter_, model.stopped_by_) == (1600, "target_ess")
    model.set_params(target_ess=1e6, n_iter=2000 if "checkpoint" in kept else 400).fit(*weak_problem)
    assert (model.n_iter_, model.stopped_by_) == (2000, "n_iter")


@pytest.mark.filterwarnings("ignore")
def test_an_automatic_length_that_was_interrupted_ends_where_it_would_have(weak_problem, stop_at, tmp_path):
    """Also where the draws suffice already, but nobody would have looked yet."""
    whole = HorseshoeProbitClassifier(random_state=0, target_ess=500).fit(*weak_problem)
    model = clone(whole).set_params(checkpoint=tmp_path / "run")
    stop_at(whole.burn_in_ + whole.n_iter_ - 2, KeyboardInterrupt)
    model.fit(*weak_problem)
    assert model.stopped_by_ == "interrupt"
    assert same_draws(model.fit(*weak_problem), whole)


def test_sampling_ends_at_the_latest_after_so_many_sweeps(weak_problem):
    X, y = (values[:20] for values in weak_problem)
    with pytest.warns(ConvergenceWarning, match="n_iter="):
        model = HorseshoeProbitClassifier(sampler="gibbs", n_chains=1, target_ess=1e6, random_state=0).fit(X, y)
    assert (model.n_iter_, model.stopped_by_) == (parameters.DEFAULT_SWEEPS, "n_iter")


@pytest.mark.parametrize("schedule", [tuned_phases, untuned_phases])
def test_burn_in_is_extended_until_the_chains_agree(schedule, seed):
    """Chains that come together after a while: burn-in ends after that, and not much later."""
    rng = np.random.default_rng(seed)
    ends = {}
    for apart in (0, 700, 10**9):
        length, sweep = BurnIn("auto", schedule), 0
        while sweep < length.end:
            sweep += 1
            where = np.arange(4)[:, None] if sweep <= apart else 0
            judged = where + 0.1 * rng.standard_normal((4, 3))
            length.add(sweep, lambda judged=judged: judged, cpu)
        ends[apart] = length.end
    assert ends[0] == schedule("auto").ends[-1]
    assert 700 < ends[700] <= 2500
    assert ends[10**9] == schedule("auto", burn_in.MOST_EXTENSIONS).ends[-1]


def test_one_chain_that_drifts_does_not_agree(seed):
    rng = np.random.default_rng(seed)
    length = BurnIn("auto", untuned_phases)
    for sweep in range(1, 201):
        judged = np.array([[0.01 * sweep]]) + 0.1 * rng.standard_normal((1, 1))
        length.add(sweep, lambda judged=judged: judged, cpu)
    assert length.end == 400


@pytest.mark.parametrize(("sampler", "stops"), [("hmc", (51, 86)), ("pxda", (30, 70))])
def test_a_run_that_was_stopped_ends_with_the_same_draws(weak_problem, sampler, stops, tmp_path, stop_at, extended):
    """It is stopped in the middle of the sweeps that an automatic burn-in looks at, and of an extension."""
    looks = extended(80, 40)
    X, y = (values[:50] for values in weak_problem)
    model = HorseshoeProbitClassifier(sampler=sampler, n_iter=20, random_state=0)
    whole = clone(model).fit(X, y)
    for stop in stops:
        folder = tmp_path / str(stop)
        resumed = clone(model).set_params(checkpoint=folder)
        stop_at(stop, ZeroDivisionError)
        with pytest.raises(ZeroDivisionError):
            resumed.fit(X, y)
        assert (folder / f"state-{stop}.npz").exists()
        resumed.fit(X, y)
        assert same_draws(resumed, whole)
        assert resumed.burn_in_ == whole.burn_in_
        assert len(looks) == 1


@pytest.mark.filterwarnings("error")
def test_draws_that_nobody_asked_for_do_not_fill_the_memory(weak_problem, sizes):
    X, y = weak_problem
    sizes(bytes_of_draws=450 * 4 * (8 * X.shape[1] + 24))
    model = HorseshoeProbitClassifier(target_ess=800, random_state=0).fit(X, y)
    assert model.coef_draws_.shape[1] <= 450
    assert model.moments_ is None or model.moments_["n_draws"] == model.n_iter_


def test_a_fit_with_this_bound_goes_on_for_as_many_sweeps_as_are_asked_for(weak_problem, kept, sizes):
    X, y = weak_problem
    sizes(bytes_of_draws=0)
    model = HorseshoeProbitClassifier(target_ess=100, burn_in=100, random_state=0, **kept).fit(X, y)
    done = model.n_iter_
    model.set_params(target_ess=None, n_iter=500 + done * ("checkpoint" in kept)).fit(X, y)
    assert model.n_iter_ == done + 500
    thin = next(thin for thin in (2, 4, 8) if (done + 500) // thin <= 400)  # that bound is 400
    assert model.coef_draws_.shape[1] == (done + 500) // thin


@pytest.mark.parametrize(("before", "target_ess"), [(1500, None), ("auto", 4000), ("auto", 12000)])
def test_there_is_room_for_what_a_fit_goes_on_with(weak_problem, before, target_ess, kept, sizes):
    """The draws of a fit that had no bound, and those that a larger target takes."""
    sizes(bytes_of_draws=0)
    model = HorseshoeProbitClassifier(n_iter=before, random_state=0, **kept).fit(*weak_problem)
    model.set_params(n_iter="auto", target_ess=target_ess).fit(*weak_problem)
    assert model.stopped_by_ == "target_ess"
