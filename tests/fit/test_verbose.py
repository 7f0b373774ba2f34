"""What a fit says while it runs: nothing, or with ``verbose`` its forecast and its progress."""

import io
import itertools
import logging
import re
import warnings
from contextlib import ExitStack, suppress

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe._utils import progress

OURS = logging.getLogger("skhorseshoe")


@pytest.fixture
def handlers(monkeypatch):
    """A function that gives the root logger other handlers than those of pytest."""
    return lambda *others: monkeypatch.setattr(logging.getLogger(), "handlers", [*others])


@pytest.fixture
def every_sweep(clock):
    """So slow that each has a line."""
    clock("_utils.progress", itertools.count(step=5).__next__)


def test_verbose_logs_the_forecast_and_the_progress(problem, short_fit, every_sweep, caplog):
    caplog.set_level(logging.INFO, OURS.name)
    short_fit(*problem, n_iter=5, burn_in=5, verbose=1)
    assert {record.name for record in caplog.records} == {OURS.name}
    assert "200 rows of 8 features on cpu" in caplog.messages[0]
    assert "MiB for draws (4 chains x 5 draws x 8 features)" in caplog.messages[0]
    assert caplog.messages[1].startswith("burn-in: sweep 1 of 10")
    assert caplog.messages[-1].startswith("sampling: sweep 10 of 10")


def test_verbose_is_heard_where_nobody_has_set_up_logging(problem, short_fit, handlers, capsys):
    handlers()
    short_fit(*problem, verbose=1)
    heard = capsys.readouterr()
    assert "for draws" in heard.err
    assert not heard.out
    assert (OURS.handlers, OURS.level) == ([], logging.NOTSET)


@pytest.mark.parametrize(("level", "heard"), [(logging.NOTSET, True), (logging.ERROR, False)])
def test_verbose_is_heard_by_the_handlers_of_an_application(problem, short_fit, handlers, caplog, level, heard):
    """As ``logging.basicConfig()`` leaves it: a handler of the root logger, and the level of warnings."""
    written = io.StringIO()
    handlers(logging.StreamHandler(written))
    caplog.set_level(logging.WARNING)
    caplog.set_level(level, OURS.name)
    short_fit(*problem, verbose=1)
    assert written.getvalue().count("for draws") == heard
    assert (OURS.level, OURS.handlers) == (level, [])


def test_a_fit_is_silent_by_default(problem, short_fit, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    short_fit(*problem)
    assert capsys.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.name == OURS.name]


def test_fits_at_once_are_heard_to_the_end_of_the_last(handlers):
    handlers()
    with ExitStack() as second:
        with progress.visible(1):
            second.enter_context(progress.visible(1))
        assert (len(OURS.handlers), OURS.level) == (1, logging.INFO)
    assert (OURS.handlers, OURS.level) == ([], logging.NOTSET)


class Stopped(Exception):
    pass


@pytest.mark.parametrize(("sweep", "minutes"), [(0.01, []), (1.0, ["16"]), (6.0, ["100"])])
def test_a_fit_of_minutes_is_told_once(problem, clock, caplog, sweep, minutes):
    """It is progress, and no warning."""
    stopped_after_30_sweeps(clock, sweep)
    with suppress(Stopped), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        HorseshoeProbitClassifier(n_iter=900, burn_in=100, random_state=0).fit(*problem)
    assert [message.split(", about ")[-1].split(" minutes left")[0] for message in caplog.messages] == minutes
    assert all("verbose=1 tells more" in message for message in caplog.messages)
    assert {record.levelno for record in caplog.records} <= {logging.INFO}


@pytest.mark.parametrize(("sweep", "told"), [(0.01, 0), (1.0, 1)])
def test_that_is_heard_where_nobody_has_set_up_logging(clock, handlers, capsys, sweep, told):
    handlers()
    clock("_utils.progress", itertools.count(step=sweep).__next__)
    report = progress.reporter(0, lambda: 1000, lambda t, seconds: "a line")
    for t in range(1, 100):
        report(t)
    assert capsys.readouterr().err.count("a line") == told
    assert (OURS.handlers, OURS.level) == ([], logging.NOTSET)


def test_the_time_left_is_a_forecast_and_not_the_worst_case(weak_problem, every_sweep, caplog):
    """Before the first look at the draws it is one of experience, then that of the slowest quantity."""
    caplog.set_level(logging.INFO, OURS.name)
    model = HorseshoeProbitClassifier(burn_in=100, target_ess=3000, n_iter=20_000, verbose=1, random_state=0)
    model.fit(*weak_problem)
    found = [re.search(r"sweep (\d+) of about (\d+) and at most (\d+), about .* left", one) for one in caplog.messages]
    sweeps = np.array([one.groups() for one in found if one], dtype=int)
    assert (sweeps[:, 2] == 20_100).all()
    assert sweeps[0, 1] == 1100
    last = 100 + model.n_iter_
    assert sweeps[-1, 0] == last
    after = sweeps[(sweeps[:, 0] > 300) & (sweeps[:, 0] < last)]
    assert (after[:, 1] >= after[:, 0]).all()
    assert 0.4 < np.median(after[:, 1]) / last < 2.5


@pytest.mark.filterwarnings("ignore")
def test_a_forecast_does_not_end_before_the_fit(every_sweep, caplog, tmp_path, seed):
    """Where the first quantity that fails asks for little, and another or burn-in for more; nor where a run goes on."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 5))
    X[:, 1] = X[:, 0] + 0.01 * rng.standard_normal(60)
    y = X[:, 0] + rng.standard_normal(60) > 0
    caplog.set_level(logging.INFO, OURS.name)
    model = HorseshoeProbitClassifier(checkpoint=tmp_path, n_iter=4000, target_ess=1e6, verbose=1, random_state=0)
    for n_iter in (1500, 6000):
        caplog.clear()
        model.set_params(n_iter=n_iter).fit(X, y)
        last = model.burn_in_ + n_iter
        of_sweeps = [one for one in caplog.messages if ": sweep " in one]
        parts = [re.search(r"sweep (\d+) of (?:about (\d+) and at most )?(\d+)", one).groups() for one in of_sweeps]
        for (t, about, most), message in zip(parts, of_sweeps, strict=True):
            assert int(t) == last or int(about or most) > int(t)
            assert int(most) >= last
            assert about is None or ", at most " in message
        looks = np.unique([int(about or most) for t, about, most in parts if int(t) > model.burn_in_ + 100])
        assert len(looks) < 8  # so many times has it been put off
    assert "goes on with sweep" in caplog.text


def test_a_run_that_goes_on_says_with_which_sweep(problem, caplog, tmp_path):
    caplog.set_level(logging.INFO, OURS.name)
    kept = {"checkpoint": tmp_path / "run"}, {"warm_start": True}
    for params, name in zip(kept, (f"checkpoint='{tmp_path / 'run'}'", "the last fit"), strict=True):
        model = HorseshoeProbitClassifier(n_iter=20, burn_in=100, random_state=0, **params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(*problem)
            assert "goes on" not in caplog.text
            model.set_params(n_iter=30).fit(*problem)
        (text,) = [one for one in caplog.messages if "goes on" in one]
        assert text == f"{name} holds 120 sweeps of each chain (20 after burn-in): the fit goes on with sweep 121."
        caplog.clear()


def test_sweeps_that_compile_are_not_taken_for_many(clock, caplog):
    compiling = np.isin(np.arange(60), (40, 41))  # of two kinds, with which a phase begins
    times = iter(np.cumsum([0.0, *np.where(compiling, 30.0, 0.01)]))
    clock("_utils.progress", times.__next__)
    report = progress.reporter(0, lambda: 2000, lambda t, seconds: f"{seconds} s each")
    for t in range(1, 61):
        report(t)
    assert not caplog.messages


def test_the_time_left_is_right_though_sweeps_take_different_times(seed, clock):
    sweeps = np.random.default_rng(seed).lognormal(0.0, 0.8, 2000)
    times = np.concatenate([[0.0], np.cumsum(sweeps)])
    clock("_utils.progress", iter(times).__next__)
    told = {}
    report = progress.reporter(1, lambda: 2000, lambda t, seconds: told.update({t: seconds * (2000 - t)}) or "")
    for t in range(1, 2001):
        report(t)
    shares = [left / (times[-1] - times[t]) for t, left in told.items() if 100 < t < 1900]
    assert len(shares) > 20
    assert 0.8 < np.median(shares) < 1.1


@pytest.mark.parametrize(("sweep", "said"), [(1.0, None), (30.0, "about 8 hours"), (3000.0, "about 35 days")])
def test_a_fit_of_hours_is_told_once(problem, clock, sweep, said):
    stopped_after_30_sweeps(clock, sweep)
    with warnings.catch_warnings(record=True) as caught, suppress(Stopped):
        warnings.simplefilter("always")
        HorseshoeProbitClassifier(n_iter=990, burn_in=10, random_state=0).fit(*problem)
    assert len(caught) == (said is not None)
    if said:
        assert said in str(caught[0].message)
        assert caught[0].filename == __file__


def stopped_after_30_sweeps(clock, sweep):
    """A fit that raises ``Stopped``, of sweeps that take so many seconds."""
    now = itertools.count()

    def seconds():
        if (n := next(now)) > 30:
            raise Stopped
        return sweep * n

    clock("_utils.progress", seconds)


@pytest.mark.parametrize(("device", "why"), [("auto", "X has more columns than rows"), ("cpu", "asked for")])
def test_the_reason_for_the_device_is_told(device, why, short_fit, caplog):
    caplog.set_level(logging.INFO, OURS.name)
    X = np.random.default_rng(0).standard_normal((20, 60))
    short_fit(X, np.arange(20) % 2, n_iter=5, verbose=1, device=device, slab_scale=2.0)
    assert f"{why})" in caplog.messages[0]


def test_warnings_within_another_estimator_name_the_users_line(problem, tmp_path, disk_fails):
    def full(*args):
        raise OSError(28, "No space left on device")

    disk_fails(full)
    model = HorseshoeProbitClassifier(n_iter=9, burn_in=2, checkpoint=tmp_path, checkpoint_interval=0)
    for inside in (model, HorseshoeSelector(model), make_pipeline(StandardScaler(), clone(model))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            inside.fit(*problem)
        assert {w.category for w in caught} >= {UserWarning, ConvergenceWarning}
        assert {w.filename for w in caught} == {__file__}
