"""A fit whose time is up, and a look into the checkpoint of one that runs."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit.checkpoint import Checkpoint

PARAMS = {"n_iter": 40, "burn_in": 10, "thin": 2, "random_state": 0}


@pytest.fixture
def timed(clock, watched_sampler):
    """A function of the sweep at which ``max_time=60`` has passed."""

    def end(sweep):
        now = [0.0]
        for module in ("_mcmc.run", "_fit.parameters"):
            clock(module, lambda: now[0])
        watched_sampler(lambda t: now.__setitem__(0, 60.0 * (t >= sweep)))
        return HorseshoeProbitClassifier(max_time=60, **PARAMS)

    return end


def test_a_fit_whose_time_is_up_holds_the_first_draws(problem, timed):
    model = timed(33)
    with pytest.warns(UserWarning, match="max_time has passed") as caught:
        model.fit(*problem)
    told = [str(warning.message) for warning in caught]
    assert told[0].startswith("max_time has passed after 23 of 40 sweeps: the model holds the 11 draws made so far")
    assert issubclass(caught[1].category, ConvergenceWarning)
    assert "The run was stopped after 23 sweeps: let it run longer." in told[1]
    assert (model.stopped_by_, model.n_iter_) == ("max_time", 23)
    assert "ended by max_time after 23 sweeps" in model.summary().attrs["header"].replace("\n", " ")
    with pytest.warns(ConvergenceWarning):
        whole = HorseshoeProbitClassifier(**PARAMS).fit(*problem)
    assert np.array_equal(model.coef_draws_, whole.coef_draws_[:, :11])


@pytest.mark.parametrize("sweep", [4, 11])
def test_before_the_first_draw_there_is_no_model(problem, timed, sweep):
    model = timed(sweep)
    with pytest.raises(TimeoutError, match=rf"after {sweep} sweeps, before the first draw \(burn_in=10\)"):
        model.fit(*problem)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@pytest.mark.filterwarnings("ignore")
def test_slices_of_time_make_the_draws_of_one_fit(problem, timed, tmp_path):
    whole = HorseshoeProbitClassifier(**PARAMS).fit(*problem)
    for sweep in (0, 4):  # at least one sweep each
        with pytest.raises(TimeoutError, match="after 1 sweeps" if sweep == 0 else "after 4 sweeps"):
            timed(sweep).set_params(checkpoint=tmp_path / "run").fit(*problem)
    for sweep in (17, 38, 90):
        model = timed(sweep).set_params(checkpoint=tmp_path / "run").fit(*problem)
    assert model.stopped_by_ == "n_iter"
    assert np.array_equal(model.coef_draws_, whole.coef_draws_)


@pytest.mark.filterwarnings("ignore")
def test_a_running_fit_is_looked_at_from_outside(problem, watched_sampler, tmp_path):
    """It holds the lock of its folder; a look takes the draws that it has saved, and writes nothing."""
    params = {**PARAMS, "checkpoint": tmp_path / "run", "checkpoint_interval": 0.0}
    looks = {}

    def look(t):
        if t in (5, 31):
            watched_sampler(lambda t: None)
            before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
            reader = HorseshoeProbitClassifier(max_time=0, **params)
            if t < 10:
                with pytest.raises(TimeoutError, match="after 4 sweeps"):  # saved at the end of a sweep
                    reader.fit(*problem)
            looks[t] = reader if t < 10 else reader.fit(*problem)
            assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()} == before
            watched_sampler(look)

    with pytest.raises(ValueError, match="holds no draws to read"):
        HorseshoeProbitClassifier(max_time=0, **params).fit(*problem)
    assert not (tmp_path / "run").exists()
    watched_sampler(look)
    whole = HorseshoeProbitClassifier(**params).fit(*problem)
    assert [*looks] == [5, 31]
    seen = looks[31]
    assert seen.n_iter_ == 20
    assert seen.stopped_by_ == "max_time"
    assert np.array_equal(seen.coef_draws_, whole.coef_draws_[:, :10])
    assert np.isfinite(seen.summary()["mean"]).all()


@pytest.mark.filterwarnings("ignore")
def test_files_that_are_replaced_while_they_are_read_are_read_again(problem, tmp_path, monkeypatch):
    params = {**PARAMS, "checkpoint": tmp_path / "run"}
    HorseshoeProbitClassifier(**{**params, "n_iter": 20}).fit(*problem)
    read = Checkpoint._read

    def replaced(checkpoint, name, expected):
        monkeypatch.setattr(Checkpoint, "_read", read)
        HorseshoeProbitClassifier(**params).fit(*problem)
        return read(checkpoint, name, expected)

    monkeypatch.setattr(Checkpoint, "_read", replaced)
    assert HorseshoeProbitClassifier(max_time=0, **params).fit(*problem).n_iter_ == 40
    state = next((tmp_path / "run").glob("state-*"))
    state.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="is damaged"):
        HorseshoeProbitClassifier(max_time=0, **params).fit(*problem)
