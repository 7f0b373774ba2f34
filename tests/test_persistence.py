"""Saved models: the same bits in a fresh process, a warning from another version, and nothing else is loaded."""

import pickle
import re

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from laws import same_draws
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

import skhorseshoe
from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._posterior.saved import OF_A_FIT, TO_PREDICT
from skhorseshoe.selection import HorseshoeSelector

OURS = "skhorseshoe._classifier.HorseshoeProbitClassifier"
LOAD = {
    "pickle": "import pickle; model = pickle.loads(path.read_bytes())",
    "joblib": "import joblib; model = joblib.load(path)",
    "skops": f"import skops.io; model = skops.io.load(path, trusted=[{OURS!r}])",
}
SAVE = {
    "pickle": lambda model, path: path.write_bytes(pickle.dumps(model)),
    "joblib": lambda model, path: joblib.dump(model, path, compress=3),
    "skops": skops.io.dump,
}


def test_saved_models_predict_the_same_bits_in_a_fresh_process(fitted, problem, tmp_path, run_python):
    np.save(tmp_path / "X.npy", problem[0])
    code = ["import sys, numpy as np", "from pathlib import Path", "folder = Path(sys.argv[1])"]
    answer = 'print(model.predict_proba(np.load(folder / "X.npy")).tobytes().hex())'
    for kind, load in LOAD.items():
        SAVE[kind](fitted, tmp_path / kind)
        code += [f"path = folder / {kind!r}", load, answer]
    here = fitted.predict_proba(problem[0]).tobytes().hex()
    assert run_python("\n".join(code), tmp_path).split() == [here] * len(LOAD)


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_skops_needs_no_trust_but_in_our_class(problem, sampler):
    """With all that a model can hold: scaled columns, names, moments, and the state of the chains."""
    X, y = pd.DataFrame(problem[0][:40], columns=list("abcdefgh")), np.where(problem[1][:40], "well", "ill")
    params = {"unpenalized": ["b"], "class_weight": {"well": 1, "ill": 2}, "standardize": True, "slab_scale": 2.0}
    params["prior_scale"] = pd.Series({"a": 2.0})
    chains = {"n_iter": 40, "burn_in": 40, "max_draws": 10, "warm_start": True, "random_state": 0}
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"), HorseshoeProbitClassifier(sampler=sampler, **params, **chains)
    )
    saved = skops.io.dumps(model.fit(X, y))
    assert skops.io.get_untrusted_types(data=saved) == [OURS]
    loaded = skops.io.loads(saved, trusted=[OURS])
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.fit(X, y)[-1].coef_draws_, model.fit(X, y)[-1].coef_draws_)


@pytest.mark.skipif(parse_version(skops.__version__) < parse_version("0.16"), reason="it loads no times of Python")
def test_skops_loads_groups_that_are_times_with_a_zone(problem):
    """It saves time stamps of pandas, and could load none of them again."""
    X, y = problem
    hours = pd.date_range("2024-03-31", periods=len(y) // 4, freq="h", tz="Europe/Oslo").repeat(4)
    model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, random_state=0).fit(
        X[: len(hours)], y[: len(hours)], groups=hours
    )
    saved = skops.io.dumps(model)
    loaded = skops.io.loads(saved, trusted=skops.io.get_untrusted_types(data=saved))
    answers = [one.predict_proba(X[:40], groups=hours[:40], new_groups=False) for one in (model, loaded)]
    assert np.array_equal(*answers)
    assert not np.array_equal(answers[0], model.predict_proba(X[:40], new_groups=True))


def test_a_path_is_saved_as_a_string_and_leads_to_the_same_run(problem, tmp_path):
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=40, checkpoint=tmp_path / "run", random_state=0).fit(*problem)
    saved = skops.io.dumps(model)
    assert skops.io.get_untrusted_types(data=saved) == [OURS]
    for loaded in (skops.io.loads(saved, trusted=[OURS]), pickle.loads(pickle.dumps(model))):
        assert loaded.checkpoint == str(tmp_path / "run")
        assert same_draws(loaded.set_params(n_iter=50).fit(*problem), clone(model).set_params(n_iter=50).fit(*problem))
    assert model.checkpoint == clone(model).checkpoint == tmp_path / "run"


@pytest.mark.parametrize("names", [pd.Index(["b", "c"]), pd.Series(["b", "c"])], ids=["Index", "Series"])
def test_skops_loads_names_of_pandas_as_a_list(names, problem, short_fit):
    """It saves them, and could load none of them again."""
    X = pd.DataFrame(problem[0], columns=list("abcdefgh"))
    model = short_fit(X, problem[1], unpenalized=names, warm_start=True)
    loaded = skops.io.loads(skops.io.dumps(model), trusted=[OURS])
    assert loaded.unpenalized == ["b", "c"]
    assert same_draws(loaded.fit(X, problem[1]), model.fit(X, problem[1]))


def test_skops_asks_for_trust_in_a_selector_too(problem):
    selector = HorseshoeSelector(HorseshoeProbitClassifier(n_iter=40, burn_in=40, random_state=0)).fit(*problem)
    saved, ours = skops.io.dumps(selector), [OURS, "skhorseshoe.selection.HorseshoeSelector"]
    assert skops.io.get_untrusted_types(data=saved) == ours
    assert np.array_equal(skops.io.loads(saved, trusted=ours).get_support(), selector.get_support())


@pytest.fixture
def later(monkeypatch):
    """A function that makes the library one of a later version."""
    return lambda: monkeypatch.setattr(skhorseshoe._version, "__version__", "99.0")


@pytest.mark.parametrize("kind", LOAD)
@pytest.mark.filterwarnings("error", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_loading_warns_in_another_version_alone(kind, fitted, tmp_path, later):
    SAVE[kind](fitted, tmp_path / "model")
    names = {"path": tmp_path / "model"}
    exec(LOAD[kind], names)
    assert same_draws(names["model"], fitted)
    later()
    with pytest.warns(UserWarning, match=rf"{re.escape(skhorseshoe.__version__)}.*99\.0"):
        exec(LOAD[kind], names)


@pytest.fixture(params=["whole", "partial"])
def saved(request, fitted):
    """The state of a model, or of one that a callback is given during the fit."""
    state = fitted.__getstate__()
    if request.param == "partial":
        state = {name: value for name, value in state.items() if name not in OF_A_FIT - TO_PREDICT}
    return state


def test_these_are_the_attributes_of_a_fit(fitted, problem, short_fit):
    some = short_fit(*problem, max_draws=5, warm_start=True, sampler="gibbs")
    for model in (fitted, some):
        assert vars(model).keys() - model.get_params().keys() == OF_A_FIT


def test_whole_and_partial_models_are_loaded(saved, problem, fitted):
    loaded = pickle.loads(pickle.dumps(copied(saved)))
    assert np.array_equal(loaded.predict_proba(problem[0]), fitted.predict_proba(problem[0]))
    assert pickle.loads(pickle.dumps(clone(fitted))).get_params() == fitted.get_params()


def copied(state):
    """A model with this state, whatever that is."""
    model = HorseshoeProbitClassifier()
    vars(model).clear()
    vars(model).update(state)
    return model


@pytest.mark.parametrize("kind", LOAD)
def test_a_saved_model_without_one_of_its_attributes_is_refused(kind, fitted, tmp_path):
    for name in sorted(OF_A_FIT | fitted.get_params().keys() - {"n_iter"}):
        model = copied(vars(fitted))
        del vars(model)[name]
        if kind != "skops" or name in ("classes_", "coef_draws_", "_fit_facts", "verbose"):  # which is slow
            SAVE[kind](model, tmp_path / "model")
            with pytest.raises(ValueError, match=f"saved model is damaged, .*: it lacks {name}\\. Load another copy"):
                exec(LOAD[kind], {"path": tmp_path / "model"})


WRONG = {
    "device_": ["../x", "cuda", "cuda:x", "gpu:0", "", None, 0],
    "classes_": [None, np.arange(3), "ab"],
    "n_features_in_": [7, None, "8", -1],
    "draws": [None, [], np.ones((3, 2, 8)), np.ones(3)],
}


@pytest.mark.parametrize("name", WRONG)
def test_attributes_that_cannot_be_right_are_refused(name, saved):
    names = ["coef_draws_", "intercept_draws_"] if name == "draws" else [name]
    for key in names:
        for value in WRONG[name]:
            state = {**saved, key: value}
            with pytest.raises(ValueError, match=r"saved model is damaged, .*: its (\w+) cannot be right") as told:
                pickle.loads(pickle.dumps(copied(state)))
            assert key == "coef_draws_" or f"its {name} " in str(told.value)


def test_another_version_may_have_other_attributes_but_what_predictions_need(fitted, problem, later):
    """A warning names both versions, as ever."""
    state = {name: value for name, value in vars(fitted).items() if name not in ("_separated", "rhat_", "verbose")}
    saved = pickle.dumps(copied({**state, "more_": 1}))
    lacking = {name: pickle.dumps(copied({key: state[key] for key in state if key != name})) for name in TO_PREDICT}
    later()
    with pytest.warns(UserWarning, match=r"99\.0"):
        loaded = pickle.loads(saved)
    assert np.array_equal(loaded.predict_proba(problem[0]), fitted.predict_proba(problem[0]))
    for name, data in lacking.items():
        with pytest.warns(UserWarning, match=r"99\.0"), pytest.raises(ValueError, match=f"it lacks {name}"):
            pickle.loads(data)


@pytest.mark.parametrize("state", [{}, {"coef_": np.ones(3)}, None, 3, [1, 2], "n_iter"], ids=repr)
def test_what_is_not_a_saved_state_is_refused(state):
    with pytest.raises(ValueError, match="not the saved state"):
        HorseshoeProbitClassifier().__setstate__(state)
