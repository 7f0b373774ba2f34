"""What a fit says while it runs: nothing, or with ``verbose`` its forecast and its progress."""

import logging

import pytest

from skhorseshoe import HorseshoeProbitClassifier, _progress


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_verbose_logs_the_forecast_and_the_progress(problem, monkeypatch, caplog):
    monkeypatch.setattr(_progress, "_SECONDS", 0.0)
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


def test_a_fit_is_silent_by_default(problem, short_fit, capsys, caplog):
    with caplog.at_level(logging.DEBUG):
        short_fit(*problem)
    heard = capsys.readouterr()
    assert not heard.out + heard.err
    assert not [record for record in caplog.records if record.name == "skhorseshoe"]
