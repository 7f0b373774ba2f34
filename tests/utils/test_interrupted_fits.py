"""Interrupts and signals during a fit: no sweep is cut in two, and the application keeps its handlers."""

import os
import signal
import sys
from pkgutil import resolve_name

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._mcmc.hmc_burn_in import HmcChains
from skhorseshoe._utils.interrupts import ctrl_c_noted, sigterm_deferred

CUT = 7  # the sweep in whose middle signals come
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(autouse=True)
def escaping_interrupt_fails(request, monkeypatch):
    """The test is named; pytest itself would end at a KeyboardInterrupt."""
    test = request.node.obj

    def run(**fixtures):
        try:
            test(**fixtures)
        except KeyboardInterrupt:
            pytest.fail("a KeyboardInterrupt has escaped from the fit")

    monkeypatch.setattr(request.node, "obj", run)


def test_an_interrupted_fit_holds_the_first_draws(problem, short_fit, seed, stop_at):
    params = {"n_iter": 40, "burn_in": 10, "thin": 2, "random_state": seed}
    whole = short_fit(*problem, **params)
    stop_at(10 + 23, KeyboardInterrupt)
    with pytest.warns(UserWarning, match="interrupted after 23 of 40 sweeps: the model holds the 11 draws") as caught:
        model = HorseshoeProbitClassifier(**params).fit(*problem)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 23
    assert model.coef_draws_.shape == (4, 11, 8)
    for name in ("coef_draws_", "intercept_draws_", "global_scale_draws_"):
        assert np.array_equal(getattr(model, name), getattr(whole, name)[:, :11])
    assert ((model.shrinkage_ >= 0) & (model.shrinkage_ <= 1)).all()
    assert model.coef_draws_.base is None, "the room for the draws not made is given up"


def test_an_interrupt_before_the_first_draw_is_raised(problem, stop_at):
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=10, thin=2)
    stop_at(11, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*problem)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def classifier(folder, **params):
    params = {"n_iter": 10, "burn_in": 5, "random_state": 0, "checkpoint_interval": 600.0, **params}
    return HorseshoeProbitClassifier(sampler="hmc", checkpoint=folder, **params)


@pytest.fixture
def handled(no_ctrl_c_before):
    """A function that sets the handler of SIGTERM for the time of the test; that of Ctrl-C is Python's."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda handler: signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def raised(monkeypatch):
    """A function that lets signals come in the middle of a sweep; returns the list of those after which it went on."""

    def let_come(*signals):
        advance, calls, survived = HmcChains.advance, [], []

        def cut(chains):
            calls.append(1)
            if len(calls) == CUT:
                for number in signals:
                    signal.raise_signal(number)
                    survived.append(number)
            advance(chains)

        monkeypatch.setattr(HmcChains, "advance", cut)
        return survived

    return let_come


@pytest.mark.parametrize("burn_in", [5, 100])
def test_ctrl_c_in_a_sweep_keeps_what_was_drawn(burn_in, problem, handled, raised):
    """The sweep is done to its end; in burn-in there is nothing to keep."""
    survived, model = raised(signal.SIGINT), classifier(None, burn_in=burn_in)
    kept = pytest.warns(UserWarning, match="interrupted after 2 of 10 sweeps: the model holds the 2 draws")
    with kept if burn_in < CUT else pytest.raises(KeyboardInterrupt):
        model.fit(*problem)
    assert survived == [signal.SIGINT]
    if burn_in < CUT:
        assert model.coef_draws_.shape[:2] == (4, 2)
        assert np.isfinite(model.predict_proba(problem[0])).all()


AFTER = "_fit.outcome:convergence", "_fit.checkpoint:Checkpoint.write", "_mcmc.draws:Draws.trim"


@pytest.mark.parametrize("where", AFTER)
def test_ctrl_c_after_the_last_sweep_loses_no_draw(where, problem, handled, monkeypatch, tmp_path):
    """While the model is made of them, which takes a while where they are many."""
    right = resolve_name(f"skhorseshoe.{where}")

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        return right(*given)

    monkeypatch.setattr(f"skhorseshoe.{where.replace(':', '.')}", interrupted)
    assert classifier(tmp_path / "run").fit(*problem).n_iter_ == 10


def test_a_second_ctrl_c_leaves_pythons_own_handler(handled):
    """It may come while a fit sets its handler or gives it back; later fits shall note a Ctrl-C all the same."""
    with ctrl_c_noted():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("apart", "ends"), [(0.5, True), (60, False)])
def test_the_second_of_two_ctrl_c_ends_a_search(problem, handled, watched_sampler, clock, apart, ends):
    """However short the sweeps are: nobody can press it twice within a millisecond."""
    now = [0.0]
    clock("_utils.interrupts", lambda: now[0])
    watched_sampler(lambda t: signal.raise_signal(signal.SIGINT) if t == 10 + 23 else None)
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=10)
    with pytest.warns(UserWarning, match="interrupted after 2"):
        model.fit(*problem)
    now[0] += apart
    with pytest.raises(KeyboardInterrupt) if ends else pytest.warns(UserWarning, match="interrupted after 2"):
        model.fit(*problem)


# SIGTERM --------------------------------------------------------------------------------------------------------------


def leave(*args):
    sys.exit(143)


def test_a_handler_of_sigterm_that_exits_loses_no_sweep(problem, tmp_path, handled, raised):
    handled(leave)
    raised(signal.SIGTERM)
    with pytest.raises(SystemExit):
        classifier(tmp_path).fit(*problem)
    assert (tmp_path / f"state-{CUT}.npz").exists()
    assert signal.getsignal(signal.SIGTERM) is leave
    went_on, whole = classifier(tmp_path).fit(*problem), classifier(None).fit(*problem)
    assert np.array_equal(went_on.coef_draws_, whole.coef_draws_)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_a_second_signal_does_not_wait_and_loses_no_sweep_before(number, error, problem, tmp_path, handled, raised):
    handled(leave)
    survived = raised(number, number)
    with pytest.raises(error):
        classifier(tmp_path, checkpoint_interval=0.0).fit(*problem)
    assert survived == [number]
    assert not [*tmp_path.glob("*.lock"), *tmp_path.glob("*.new")]
    went_on, whole = classifier(tmp_path).fit(*problem), classifier(None).fit(*problem)
    assert np.array_equal(went_on.coef_draws_, whole.coef_draws_)


def test_a_handler_that_takes_a_note_is_called_as_always(problem, tmp_path, handled, raised):
    seen = []
    handled(lambda *args: seen.append(args))
    raised(signal.SIGTERM)
    assert classifier(tmp_path).fit(*problem).n_iter_ == 10
    ((number, frame),) = seen
    assert number == signal.SIGTERM
    assert frame.f_code.co_name == "cut"


def test_a_fit_without_a_checkpoint_leaves_sigterm_alone(problem, handled, raised):
    handled(leave)
    survived = raised(signal.SIGTERM)
    with pytest.raises(SystemExit):
        classifier(None).fit(*problem)
    assert not survived


def test_what_the_system_does_at_sigterm_it_still_does(handled):
    handled(signal.SIG_DFL)
    with sigterm_deferred():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_that_someone_sets_meanwhile_stays(handled):
    handled(leave)
    with sigterm_deferred():
        handled(signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@fork
def test_a_child_forked_during_a_fit_has_the_handlers_of_before(handled):
    handled(leave)
    with ctrl_c_noted(), sigterm_deferred():
        child = os.fork()
        if child == 0:
            ours = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
            os._exit(0 if ours == (signal.default_int_handler, leave) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_where_no_handler_can_be_set_the_fit_goes_on_without(problem, tmp_path, handled, monkeypatch):
    """As where Python is embedded in a program whose main thread is another than that of ``threading``."""
    handled(leave)

    def refuse(*args):
        raise ValueError("signal only works in main thread of the main interpreter")

    with monkeypatch.context() as patched:
        patched.setattr(signal, "signal", refuse)
        assert classifier(tmp_path).fit(*problem).n_iter_ == 10
