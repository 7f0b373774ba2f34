"""Saved models: the same bits in a fresh process, a warning from another version, and nothing else is loaded."""

import pickle
import re
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from laws import same_draws
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skhorseshoe
from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.selection import HorseshoeSelector

short_chains = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_saved_models_predict_the_same_bits_in_a_fresh_process(fitted, problem, tmp_path, run_python):
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(fitted))
    joblib.dump(fitted, tmp_path / "model.joblib", compress=3)
    np.save(tmp_path / "X.npy", problem[0])
    code = """
import pickle, sys, joblib, numpy as np
from pathlib import Path
folder = Path(sys.argv[1])
X = np.load(folder / "X.npy")
for model in pickle.loads((folder / "model.pickle").read_bytes()), joblib.load(folder / "model.joblib"):
    print(model.predict_proba(X).tobytes().hex())
"""
    expected = fitted.predict_proba(problem[0]).tobytes().hex()
    assert run_python(code, tmp_path).split() == [expected, expected]


OURS = "skhorseshoe._classifier.HorseshoeProbitClassifier"
NO_SKOPS = "skops is a format of the users' choice, not a test dependency"


@short_chains
@pytest.mark.parametrize("sampler", ["hmc", "gibbs", "collapsed"])
def test_skops_needs_no_trust_but_in_our_class(problem, sampler):
    """With all that a model can hold: scaled columns, names, moments, and the state of the chains."""
    skops = pytest.importorskip("skops.io", reason=NO_SKOPS)
    X, y = pd.DataFrame(problem[0], columns=list("abcdefgh")), np.where(problem[1] == 1, "well", "ill")
    params = {"unpenalized": ["b"], "class_weight": {"well": 1, "ill": 2}, "standardize": True, "slab_scale": 2.0}
    chains = {"n_iter": 40, "burn_in": 40, "max_draws": 10, "warm_start": True, "random_state": 0}
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        HorseshoeProbitClassifier(sampler=sampler, **params, **chains),
    )
    saved = skops.dumps(model.fit(X, y))
    assert skops.get_untrusted_types(data=saved) == [OURS]
    loaded = skops.loads(saved, trusted=[OURS])
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.fit(X, y)[-1].coef_draws_, model.fit(X, y)[-1].coef_draws_)


@short_chains
def test_a_path_is_saved_as_a_string_and_goes_on_from_the_same_folder(problem, tmp_path):
    skops = pytest.importorskip("skops.io", reason=NO_SKOPS)
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=40, checkpoint=tmp_path / "run", random_state=0).fit(*problem)
    saved = skops.dumps(model)
    assert skops.get_untrusted_types(data=saved) == [OURS]
    for loaded in (skops.loads(saved, trusted=[OURS]), pickle.loads(pickle.dumps(model))):
        assert loaded.checkpoint == str(tmp_path / "run")
        assert same_draws(loaded.set_params(n_iter=50).fit(*problem), clone(model).set_params(n_iter=50).fit(*problem))
    assert model.checkpoint == clone(model).checkpoint == tmp_path / "run"


@short_chains
def test_skops_asks_for_trust_in_a_selector_too(problem):
    skops = pytest.importorskip("skops.io", reason=NO_SKOPS)
    selector = HorseshoeSelector(HorseshoeProbitClassifier(n_iter=40, burn_in=40, random_state=0)).fit(*problem)
    saved, ours = skops.dumps(selector), [OURS, "skhorseshoe.selection.HorseshoeSelector"]
    assert skops.get_untrusted_types(data=saved) == ours
    assert np.array_equal(skops.loads(saved, trusted=ours).get_support(), selector.get_support())


def test_skops_predicts_the_same_bits_in_a_fresh_process_and_knows_the_version(
    fitted, problem, tmp_path, run_python, monkeypatch
):
    skops = pytest.importorskip("skops.io", reason=NO_SKOPS)
    skops.dump(fitted, tmp_path / "model.skops")
    np.save(tmp_path / "X.npy", problem[0])
    code = f"""
import sys, numpy as np, skops.io
model = skops.io.load(sys.argv[1] + "/model.skops", trusted=["{OURS}"])
print(model.predict_proba(np.load(sys.argv[1] + "/X.npy")).tobytes().hex())
"""
    assert run_python(code, tmp_path).strip() == fitted.predict_proba(problem[0]).tobytes().hex()
    monkeypatch.setattr(skhorseshoe._version, "__version__", "99.0")
    with pytest.warns(UserWarning, match=r"99\.0"):
        skops.load(tmp_path / "model.skops", trusted=[OURS])


def test_loading_is_silent_in_the_same_version_and_warns_in_another(fitted, monkeypatch):
    saved = pickle.dumps(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same_draws(pickle.loads(saved), fitted)
    told = rf"{re.escape(skhorseshoe.__version__)}.*99\.0"
    monkeypatch.setattr(skhorseshoe._version, "__version__", "99.0")
    with pytest.warns(UserWarning, match=told):
        pickle.loads(saved)


@pytest.mark.parametrize("state", [{}, {"coef_": np.ones(3)}, None, 3, [1, 2], "n_iter"], ids=repr)
def test_what_is_not_a_saved_state_is_refused(state):
    with pytest.raises(ValueError, match="not the saved state"):
        HorseshoeProbitClassifier().__setstate__(state)
