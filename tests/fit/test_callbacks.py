"""scikit-learn's callbacks: bars, scores while the chains run, and requests to stop."""

from itertools import count

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

pytest.importorskip("sklearn.callback", reason="callbacks are new in scikit-learn 1.9")
from sklearn.callback import ScoringMonitor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.diagnostics import rhat


def classifier(**params):
    return HorseshoeProbitClassifier(**{"n_iter": 60, "burn_in": 40, "random_state": 0, **params})


class Recorder:
    """Notes every task; stops the fit after some number of blocks. ask : function of the model of each block."""

    max_propagation_depth = None

    def __init__(self, stop_after=None, ask=lambda model: None):
        self.stop_after, self.begun, self.ended, self.open = stop_after, [], [], []
        self.ask, self.answers, self.setups, self.closed = ask, [], 0, 0

    def setup(self, estimator, context):
        self.setups += 1

    def teardown(self, estimator, context):
        self.closed += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((context.task_name, context.max_subtasks))
        self.open.append(context)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        assert context is self.open.pop()  # once, and after those within it
        draws = getattr(fitted_estimator, "coef_draws_", np.empty((1, 0)))
        self.answers += [] if fitted_estimator is None else [self.ask(fitted_estimator)]
        self.ended.append((context.task_name, draws.shape[1]))
        return self.stop_after is not None and len(self.blocks()) >= self.stop_after

    def blocks(self):
        """The number of draws at the end of each."""
        return [n for name, n in self.ended if name == "sweeps"]

    def is_whole(self):
        """Whether every task that has begun has ended."""
        return not self.open and len(self.begun) == len(self.ended) > 0


def test_there_are_some_20_blocks_and_a_fit_around_them(problem):
    recorder = Recorder()
    classifier(n_iter=500, burn_in=300, thin=5).set_callbacks(recorder).fit(*problem)
    assert recorder.is_whole()
    assert 20 <= len(recorder.blocks()) <= 25
    assert recorder.blocks()[-1] == 100
    assert recorder.ended[-1][0] == "fit"
    assert (recorder.setups, recorder.closed) == (1, 1)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("ended_by", "stop_after", "params"),
    [
        ("n_iter", None, {}),
        ("target_ess", None, {"n_iter": 10_000, "burn_in": 500, "target_ess": 20}),
        ("callback", 1, {}),
        ("callback", 1, {"burn_in": 1000, "thin": 7}),
        ("callback", 15, {}),
        ("callback", 16, {"burn_in": 0}),
    ],
)
def test_every_task_that_begins_ends_once_however_the_fit_ends(weak_problem, ended_by, stop_after, params, nested):
    recorder = Recorder(stop_after)
    model = classifier(**params)
    if nested:
        model = GridSearchCV(model, {"random_state": [0]}, cv=2, error_score="raise")
    model.set_callbacks(recorder).fit(*weak_problem)
    assert getattr(model, "best_estimator_", model).stopped_by_ == ended_by
    assert recorder.is_whole()
    assert recorder.blocks()


def parts(recorder):
    return [name for name, n in recorder.begun if n and name != "fit"]


@pytest.fixture
def time_for_rhat(clock):
    clock("_fit.callbacks", count(step=10**9).__next__)


def test_parts_say_how_the_chains_stand(problem, time_for_rhat):
    recorder = Recorder()
    model = classifier(n_iter=200).set_callbacks(recorder).fit(*problem)
    worst = max(rhat(model.coef_draws_[:, :100]).max(), rhat(model.global_scale_draws_[:, :100]))
    assert parts(recorder) == ["burn-in, 40 sweeps", "sweeps 1-100", f"sweeps 101-200, worst R-hat {worst:.3f}"]


def test_no_time_is_spent_on_what_is_too_slow_for_it(problem, clock):
    clock("_fit.callbacks", lambda: 0.0)
    recorder = Recorder()
    classifier(n_iter=400).set_callbacks(recorder).fit(*problem)
    assert parts(recorder)[-1] == "sweeps 201-400"


@pytest.mark.parametrize("params", [{"burn_in": 0}, {"burn_in": 1, "n_iter": 1}, {"n_iter": 3}])
def test_short_and_odd_runs_have_whole_trees(problem, params):
    recorder = Recorder()
    model = classifier(**params, warm_start=True).set_callbacks(recorder)
    for _ in range(2):
        model.fit(*problem)
        assert recorder.is_whole()


def test_a_request_to_stop_waits_for_the_first_draw_alone(problem):
    recorder = Recorder(stop_after=1)
    model = classifier(n_iter=400, burn_in=400).set_callbacks(recorder).fit(*problem)
    assert (model.stopped_by_, model.n_iter_) == ("callback", 1)
    assert recorder.blocks() == [0] * 10 + [1]


def test_callbacks_are_closed_when_a_fit_fails(problem, stop_at):
    stop_at(25, ZeroDivisionError)
    recorder, model = Recorder(), classifier()
    with pytest.raises(ZeroDivisionError):
        model.set_callbacks(recorder).fit(*problem)
    assert recorder.closed == 1
    assert not [name for name in vars(model) if name.endswith(("_", "_ctx"))]


@pytest.mark.filterwarnings("error::UserWarning", "ignore:The chains:UserWarning")
def test_scores_while_the_chains_run(problem):
    X, y = problem
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(8)])
    monitor = ScoringMonitor(scoring="accuracy")
    model = classifier().set_callbacks(monitor).fit(frame, y)
    scores = monitor.get_logs(select="most_recent").data_as_pandas
    assert len(scores) >= 10
    assert scores["accuracy"].iloc[-1] == model.score(frame, y)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
def test_a_fit_with_groups_or_an_offset_is_scored_or_left_alone(problem, scoring):
    """Rows are scored as those of new groups; scorers do not hand on an offset."""
    X, y = problem
    monitor = ScoringMonitor(scoring=scoring)
    model = classifier().set_callbacks(monitor).fit(X, y, groups=np.arange(len(X)) // 5)
    scores = monitor.get_logs(select="most_recent").data_as_pandas
    assert scores[scoring].iloc[-1] == check_scoring(model, scoring)(model, X, y)
    model.fit(X, y, offset=X[:, 0])
    assert len(model.coef_draws_)


@pytest.mark.parametrize(("prefit", "cv", "n_fits"), [(False, None, 1), (True, None, 0), (False, 2, 3), (True, 2, 2)])
@pytest.mark.filterwarnings("error:The estimator HorseshoeSelector")
def test_the_classifiers_of_a_selector_are_heard(problem, prefit, cv, n_fits):
    recorder = Recorder()
    inner = classifier().fit(*problem) if prefit else classifier()
    selector = HorseshoeSelector(inner, prefit=prefit, rule="dss", cv=cv)
    make_pipeline(StandardScaler(), selector, LogisticRegression()).set_callbacks(recorder).fit(*problem)
    assert recorder.is_whole()
    assert len(recorder.blocks()) == 20 * n_fits
    assert recorder.closed == 1
    assert not {"_callback_fit_ctx", "_parent_callback_ctx"} & set(vars(selector))


def test_a_selector_whose_fit_fails_ends_its_callbacks(problem):
    recorder = Recorder()
    selector = HorseshoeSelector(classifier(unpenalized=[99])).set_callbacks(recorder)
    with pytest.raises(ValueError, match="unpenalized: there is no"):
        selector.fit(*problem)
    assert recorder.closed == 1
    selector.set_params(estimator=classifier()).fit(*problem)
    assert recorder.closed == 2


def test_a_model_on_the_way_has_the_columns_of_x_where_most_are_empty():
    rng = np.random.default_rng(0)
    X = csr_array((rng.standard_normal(60), (np.repeat(np.arange(20), 3), rng.integers(30, 40, 60))), (20, 90))
    recorder = Recorder(ask=lambda model: model.predict_proba(X))
    model = classifier().set_callbacks(recorder).fit(X, np.arange(20) % 2)
    np.testing.assert_array_equal(recorder.answers[-1], model.predict_proba(X))


def test_a_model_on_the_way_predicts_new_groups(problem):
    X, groups = problem[0], np.arange(len(problem[0])) // 5

    def ask(model):
        with pytest.raises(ValueError, match="when the fit has ended"):
            model.predict_proba(X[:3], groups[:3])
        return model.predict_proba(X[:3])

    recorder = Recorder(ask=ask)
    classifier().set_callbacks(recorder).fit(*problem, groups=groups)
    assert recorder.answers
