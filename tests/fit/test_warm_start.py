"""warm_start: k and then m sweeps are k + m sweeps, to the bit."""

import pickle
import re

import numpy as np
import pytest
from laws import same_draws

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.rows import Rows
from skhorseshoe._fit import parameters

each_sampler = pytest.mark.parametrize("sampler", ["gibbs", "pxda", "hmc"])


@pytest.fixture(scope="module")
def problem(problem):
    """Few rows."""
    return problem[0][:40], problem[1][:40]


def classifier(sampler, **params):
    params = {"n_iter": 31, "burn_in": 40, "warm_start": True, "random_state": 0, **params}
    return HorseshoeProbitClassifier(sampler=sampler, **params)


@each_sampler
@pytest.mark.parametrize(
    "params", [{}, {"thin": 3}, {"standardize": True, "unpenalized": [2], "slab_scale": 2.0, "prior_scale": {2: 1}}]
)
def test_k_and_then_m_sweeps_are_k_plus_m(problem, sampler, params):
    first = classifier(sampler, **params).fit(*problem)
    then = pickle.loads(pickle.dumps(first)).set_params(n_iter=50, n_jobs=2).fit(*problem)
    then.set_params(n_iter=7).fit(*problem)
    whole = classifier(sampler, **{**params, "n_iter": 88}).fit(*problem)
    assert same_draws(then, whole)
    assert then.tuning_ == whole.tuning_
    assert (then.n_iter_, first.n_iter_) == (88, 31)


def test_a_generator_goes_on_with_what_it_drew_at_first(problem):
    def of_generator(n_iter):
        return classifier("hmc", n_iter=n_iter, random_state=np.random.RandomState(3)).fit(*problem)

    assert same_draws(of_generator(31).set_params(n_iter=7).fit(*problem), of_generator(38))


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
@pytest.mark.parametrize("first", [0, None, np.random.RandomState(0)])
def test_another_seed_is_told_to_have_no_effect(problem, sampler, first):
    model = classifier(sampler, random_state=first).fit(*problem)
    draws = model.coef_draws_.copy()
    with pytest.warns(UserWarning, match="random_state=7 has no effect: warm_start=True continues the chains"):
        model.set_params(random_state=7).fit(*problem)
    assert np.array_equal(model.coef_draws_[:, :31], draws)


@pytest.mark.filterwarnings("error:random_state")
@pytest.mark.parametrize("random_state", [3, None, np.random.RandomState(3), np.random.default_rng(3)])
def test_a_seed_that_is_still_the_same_is_not_told_of(problem, random_state):
    assert classifier("hmc", random_state=random_state).fit(*problem).fit(*problem).n_iter_ == 62


@each_sampler
def test_an_interrupted_fit_goes_on(problem, sampler, stop_at):
    stop_at(40 + 20, KeyboardInterrupt)
    with pytest.warns(UserWarning, match="interrupted after 20"):
        model = classifier(sampler).fit(*problem)
    assert same_draws(model.set_params(n_iter=11).fit(*problem), classifier(sampler).fit(*problem))


def test_without_warm_start_a_fit_starts_anew_and_keeps_nothing(problem):
    model = classifier("hmc").fit(*problem)
    assert model.set_params(warm_start=False).fit(*problem).n_iter_ == 31
    with pytest.warns(UserWarning, match="finds no chains to go on with"):
        assert model.set_params(warm_start=True).fit(*problem).n_iter_ == 31
    del model._saved_run  # as of the copy of a model that a callback has
    with pytest.warns(UserWarning, match="finds no chains to go on with"):
        assert model.fit(*problem).n_iter_ == 31


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sampler": "gibbs"}, r"sampler \(was hmc, is gibbs\)"),
        ({"n_chains": 3}, r"n_chains \(was 4, is 3\)"),
        ({"slab_scale": 2.0}, r"slab_scale \(was None, is 2.0\)"),
        ({"expected_nonzero": 3}, r"since: expected_nonzero \(was None, is 3\)\. Fit"),
        ({"thin": 2, "burn_in": 41}, r"burn_in \(was 40, is 41\), thin \(was 1, is 2\)"),
        (lambda X, y: (X + 1e-9, y), "checksum of X"),
        (lambda X, y: (X, 1 - y), "checksum of y"),
        (lambda X, y: (X[1:], y[1:]), "shape of X"),
        (lambda X, y: (X, y, np.linspace(0.5, 1, len(y))), "checksum of the weights"),
    ],
)
def test_other_parameters_and_data_are_refused_and_the_model_stays(problem, changed, told):
    model = classifier("hmc").fit(*problem)
    params, given = (changed, problem) if isinstance(changed, dict) else ({}, changed(*problem))
    before = dict(vars(model.set_params(**params)))
    with pytest.raises(ValueError, match=told):
        model.fit(*given)
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize(("first", "then", "told"), [
    ({"expected_nonzero": 3}, {"expected_nonzero": 2}, "expected_nonzero (was 3, is 2)"),
    ({"global_scale": 0.5}, {"global_scale": 0.1}, "global_scale (was 0.5, is 0.1)"),
    ({}, {"global_scale": 0.1}, "global_scale (was None, is 0.1)"),
    ({"slab_scale": "per_contrast"}, {"slab_scale": None}, "slab_scale (was 4 per contrast of each column, is None)"),
])  # fmt: skip
def test_what_has_changed_is_named_as_it_was_given(first, then, told, seed, tmp_path):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((20, 30)), np.arange(20) % 2
    for params, tells in ({"warm_start": True}, "since: {}. F"), ({"checkpoint": tmp_path}, "run: {}. G"):
        model = HorseshoeProbitClassifier(sampler="hmc", n_iter=4, burn_in=9, **first, **params).fit(X, y)
        with pytest.raises(ValueError, match=re.escape(tells.format(told))):
            model.set_params(**then).fit(X, y)


@pytest.mark.parametrize("same", [{"global_scale": 1.0}, {"expected_nonzero": 3.0}])
def test_the_same_said_in_another_way_goes_on(problem, same):
    as_first = {"expected_nonzero": 3} if "expected_nonzero" in same else {}
    assert classifier("hmc", **as_first).fit(*problem).set_params(**same).fit(*problem).n_iter_ == 62


@pytest.mark.parametrize("kept", ["warm_start", "checkpoint", ""])
def test_checksums_of_the_rows_are_computed_once_a_fit_if_chains_may_go_on(kept, problem, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(Rows, "checksums", lambda rows, known=Rows.checksums: asked.append(0) or known(rows))
    folder = tmp_path if kept == "checkpoint" else None
    model = classifier("hmc", warm_start=kept == "warm_start", checkpoint=folder)
    for n in (1, 2):
        model.set_params(n_iter=10 * n).fit(*problem)
        assert len(asked) == n * bool(kept)


def test_the_parameters_of_a_fit_cannot_be_changed():
    params = parameters.validated(classifier("hmc", slab_scale="auto"))
    assert [parameters.settled(params, outnumber, params.likelihood).slab_scale for outnumber in (False, True)] == [
        None,
        "per_contrast",
    ]
    assert params.slab_scale == "auto"
    with pytest.raises(AttributeError):
        params.thin = 2
