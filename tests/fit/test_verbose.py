"""What a fit says while it runs: nothing, or with ``verbose`` its forecast and its progress."""

import io
import itertools
import logging
import os
import warnings
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe._mcmc import run as _run
from skhorseshoe._utils import progress


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_verbose_logs_the_forecast_and_the_progress(problem, monkeypatch, caplog):
    monkeypatch.setattr(progress, "_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, logger="skhorseshoe"):
        HorseshoeProbitClassifier(n_iter=5, burn_in=5, verbose=1).fit(*problem)
    assert {record.name for record in caplog.records} == {"skhorseshoe"}
    assert "200 rows of 8 features on cpu" in caplog.messages[0]
    assert "MiB for draws (4 chains x 5 draws x 8 features)" in caplog.messages[0]
    assert caplog.messages[1].startswith("burn-in: sweep 1 of 10")
    assert caplog.messages[-1].startswith("sampling: sweep 10 of 10")


def test_verbose_is_heard_where_nobody_has_set_up_logging(problem, short_fit, monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    short_fit(*problem, verbose=1)
    heard = capsys.readouterr()
    assert "for draws" in heard.err
    assert not heard.out
    assert not logging.getLogger("skhorseshoe").handlers
    assert logging.getLogger("skhorseshoe").level == logging.NOTSET


@pytest.mark.parametrize(("level", "heard"), [(logging.NOTSET, True), (logging.ERROR, False)])
def test_verbose_is_heard_by_the_handlers_of_an_application(problem, short_fit, monkeypatch, level, heard):
    """As ``logging.basicConfig()`` leaves it: a handler of the root logger, and the level of warnings."""
    root, ours, written = logging.getLogger(), logging.getLogger("skhorseshoe"), io.StringIO()
    monkeypatch.setattr(root, "handlers", [logging.StreamHandler(written)])
    monkeypatch.setattr(root, "level", logging.WARNING)
    ours.setLevel(level)
    try:
        short_fit(*problem, verbose=1)
        assert written.getvalue().count("for draws") == heard
        assert (ours.level, ours.handlers) == (level, [])
    finally:
        ours.setLevel(logging.NOTSET)


def test_a_fit_is_silent_by_default(problem, short_fit, capsys, caplog):
    with caplog.at_level(logging.DEBUG):
        short_fit(*problem)
    heard = capsys.readouterr()
    assert not heard.out + heard.err
    assert not [record for record in caplog.records if record.name == "skhorseshoe"]


def test_fits_at_once_are_heard_to_the_end_of_the_last(monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    ours = logging.getLogger("skhorseshoe")
    with ExitStack() as second:
        with progress.visible(1):
            second.enter_context(progress.visible(1))
        assert (len(ours.handlers), ours.level) == (1, logging.INFO)
    assert (ours.handlers, ours.level) == ([], logging.NOTSET)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("sweep", "said"), [(1.0, None), (30.0, "about 8 hours"), (3000.0, "about 35 days")])
def test_a_fit_of_hours_is_told_once_to_whom_it_may_concern(problem, monkeypatch, sweep, said):
    now = itertools.count()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: sweep * next(now)))
    monkeypatch.setattr(_run.Run, "_step", lambda run, step=_run.Run._step: step(run) if run.done < 5 else _stop())
    model = HorseshoeProbitClassifier(n_iter=990, burn_in=10, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with suppress(_Stopped):
            model.fit(*problem)
    texts = [str(w.message) for w in caught if "sweeps that are left" in str(w.message)]
    assert len(texts) == (said is not None)
    if said:
        assert said in texts[0]
        assert f"At {sweep:.2g} s a sweep" in texts[0]
        assert caught[0].filename == __file__


class _Stopped(Exception):
    pass


def _stop():
    raise _Stopped


def test_it_is_not_said_that_the_cpu_was_asked_for_where_nobody_did(caplog):
    rng = np.random.default_rng(0)
    for device, why in (("auto", "it is the faster one for sampler='collapsed'"), ("cpu", "asked for")):
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="skhorseshoe"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            HorseshoeProbitClassifier(n_iter=5, burn_in=5, verbose=1, device=device).fit(
                rng.standard_normal((20, 60)), np.arange(20) % 2
            )
        assert f"60 features on cpu ({why})" in caplog.messages[0]


def test_warnings_of_a_fit_within_another_estimator_name_the_line_of_the_user(problem, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    model = HorseshoeProbitClassifier(n_iter=9, burn_in=2, checkpoint=tmp_path, checkpoint_interval=0)
    for inside in (model, HorseshoeSelector(model), make_pipeline(StandardScaler(), clone(model))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            inside.fit(*problem)
        assert {w.category for w in caught} >= {UserWarning, ConvergenceWarning}
        assert {w.filename for w in caught} == {__file__}
