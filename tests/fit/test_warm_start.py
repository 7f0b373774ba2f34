"""warm_start: k and then m sweeps are k + m sweeps, to the bit."""

import pickle
import re

import numpy as np
import pytest

from skhorseshoe import HorseshoeProbitClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SAMPLERS = ["gibbs", "pxda", "hmc", "collapsed"]
ATTRIBUTES = "coef_draws_", "intercept_draws_", "global_scale_draws_", "shrinkage_"


def same(one, other):
    return one.tuning_ == other.tuning_ and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ATTRIBUTES
    )


@pytest.fixture(scope="module")
def problem(problem):
    """Few rows: matrices of "collapsed" have their size."""
    return problem[0][:40], problem[1][:40]


def classifier(sampler, **params):
    params = {"n_iter": 31, "burn_in": 40, "warm_start": True, "random_state": 0, **params}
    return HorseshoeProbitClassifier(sampler=sampler, **params)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("params", [{}, {"thin": 3}, {"standardize": True, "unpenalized": [2], "slab_scale": 2.0}])
def test_k_and_then_m_sweeps_are_k_plus_m(problem, sampler, params):
    first = classifier(sampler, **params).fit(*problem)
    then = pickle.loads(pickle.dumps(first)).set_params(n_iter=50, n_jobs=2).fit(*problem).set_params(n_iter=7)
    whole = classifier(sampler, **{**params, "n_iter": 88}).fit(*problem)
    assert same(then.fit(*problem), whole)
    assert (then.n_iter_, first.n_iter_) == (88, 31)


def test_a_generator_goes_on_with_what_it_drew_at_first(problem):
    def of_generator(n_iter):
        return classifier("hmc", n_iter=n_iter, random_state=np.random.RandomState(3))

    model = of_generator(31).fit(*problem)
    assert same(model.set_params(n_iter=7).fit(*problem), of_generator(38).fit(*problem))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_an_interrupted_fit_goes_on(problem, sampler, monkeypatch):
    from skhorseshoe._utils import progress

    def interrupt(t):
        if t == 40 + 20:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(progress, "reporter", lambda *args: interrupt)
        with pytest.warns(UserWarning, match="interrupted after 20"):
            model = classifier(sampler).fit(*problem)
    assert same(model.set_params(n_iter=11).fit(*problem), classifier(sampler).fit(*problem))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_stopped_fit_goes_on_and_stops_at_what_is_enough(weak_problem, sampler):
    model = classifier(sampler, n_iter=20_000, target_ess=100, burn_in=200).fit(*weak_problem)
    assert model.stopped_by_ == "target_ess"
    n = model.n_iter_
    model.set_params(target_ess=1000).fit(*weak_problem)
    assert model.n_iter_ > n
    assert model.stopped_by_ == "target_ess"


def test_without_warm_start_a_fit_starts_anew(problem):
    model = classifier("hmc").fit(*problem)
    assert model.set_params(warm_start=False).fit(*problem).n_iter_ == 31
    assert model.set_params(warm_start=True).fit(*problem).n_iter_ == 31, (
        "the fit before has kept nothing to go on from"
    )


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"sampler": "gibbs"}, "sampler (was hmc, is gibbs)"),
        ({"n_chains": 3}, "n_chains (was 4, is 3)"),
        ({"slab_scale": 2.0}, "1 / slab_scale^2 (was 0.0, is 0.25)"),
        ({"standardize": True}, "standardize (was False, is True)"),
        ({"thin": 2, "burn_in": 41}, "burn_in (was 40, is 41), thin (was 1, is 2)"),
    ],
)
def test_other_parameters_are_refused_and_the_model_stays(problem, params, told):
    model = classifier("hmc").fit(*problem)
    draws = model.coef_draws_
    with pytest.raises(ValueError, match=re.escape(told)):
        model.set_params(**params).fit(*problem)
    assert model.coef_draws_ is draws


def test_other_data_are_refused(problem):
    X, y = problem
    model = classifier("hmc").fit(X, y)
    for other, what in (
        ((X + 1e-9, y), "checksum of X"),
        ((X, ~y.astype(bool)), "checksum of y"),
        ((X[1:], y[1:]), "shape"),
    ):
        with pytest.raises(ValueError, match=what):
            model.fit(*other)
    with pytest.raises(ValueError, match="weights"):
        model.fit(X, y, sample_weight=np.linspace(0.5, 1, len(y)))
