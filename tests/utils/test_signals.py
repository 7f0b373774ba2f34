"""Signals during a fit: no sweep is cut in two where that can be helped, and the application keeps its handlers."""

import os
import signal
import sys

import numpy as np
import pytest

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._mcmc.hmc_burn_in import HmcChains
from skhorseshoe._utils.signals import held_back, listening

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
CUT = 7  # the sweep in whose middle signals come
fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def classifier(folder, **params):
    params = {"n_iter": 10, "burn_in": 5, "random_state": 0, "checkpoint_interval": 600.0, **params}
    return HorseshoeProbitClassifier(sampler="hmc", checkpoint=folder, **params)


@pytest.fixture
def handled():
    """A function that sets the handler of SIGTERM for the time of the test; that of Ctrl-C is Python's."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    yield lambda handler: signal.signal(signal.SIGTERM, handler)
    for number, handler in before.items():
        signal.signal(number, handler)


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


def test_a_second_sigterm_does_not_wait(problem, tmp_path, handled, raised):
    handled(leave)
    survived = raised(signal.SIGTERM, signal.SIGTERM)
    with pytest.raises(SystemExit):
        classifier(tmp_path).fit(*problem)
    assert survived == [signal.SIGTERM]


def test_a_handler_that_takes_a_note_is_called_with_what_it_would_have_got_and_the_fit_goes_on(
    problem, tmp_path, handled, raised
):
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
    with held_back():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_that_someone_sets_meanwhile_stays(handled):
    handled(leave)
    with held_back():
        handled(signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_during_a_fit_has_the_handlers_of_before(handled):
    handled(leave)
    with listening(), held_back():
        child = os.fork()
        if child == 0:
            ours = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
            os._exit(0 if ours == (signal.default_int_handler, leave) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_where_no_handler_can_be_set_the_fit_goes_on_without(problem, tmp_path, handled, monkeypatch):
    """As in a program that Python is embedded in, whose main thread may be another than that of ``threading``."""
    handled(leave)

    def refuse(*args):
        raise ValueError("signal only works in main thread of the main interpreter")

    with monkeypatch.context() as patched:
        patched.setattr(signal, "signal", refuse)
        assert classifier(tmp_path).fit(*problem).n_iter_ == 10
