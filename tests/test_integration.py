"""Inside scikit-learn's own tools: pipelines, searches, meta-estimators."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import skhorseshoe
from skhorseshoe import HorseshoeProbitClassifier

GRID = {"n_iter": [10, 40]}


@pytest.fixture
def classifier(seed):
    return HorseshoeProbitClassifier(n_iter=100, burn_in=50, random_state=seed)


@pytest.fixture
def three_columns(breast_cancer):
    X, y = breast_cancer
    return X[["worst radius", "worst texture", "mean symmetry"]], y


def test_mixed_frame_through_a_column_transformer(classifier, seed):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["blue", "green", "red"], size=400)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 400), "colour": pd.Categorical(colour), "dose": rng.random(400)})
    y = np.where((frame.age - 50) / 10 + 2 * (colour == "red") + rng.standard_normal(400) > 0.5, "sick", "well")
    columns = make_column_transformer(
        (StandardScaler(), ["age", "dose"]), (OneHotEncoder(sparse_output=False), ["colour"])
    )
    model = make_pipeline(columns, classifier).set_output(transform="pandas").fit(frame, y)
    summary = model[-1].summary()
    assert list(summary.index[:5]) == list(model[:-1].get_feature_names_out())
    assert summary.loc["standardscaler__age", "95%"] < 0
    assert roc_auc_score(y == "well", model.predict_proba(frame)[:, 1]) > 0.8
    assert set(model.predict(frame)) == {"sick", "well"}


def test_grid_search_has_the_same_scores_in_any_backend(classifier, three_columns):
    def scores(n_jobs=None):
        search = GridSearchCV(classifier, GRID, cv=2, scoring="neg_log_loss", n_jobs=n_jobs, error_score="raise")
        search.fit(*three_columns)
        assert search.best_estimator_.n_iter_ == search.best_params_["n_iter"]
        return search.cv_results_["mean_test_score"]

    serial = scores()
    assert len(set(serial)) == 2
    assert np.array_equal(scores(n_jobs=2), serial)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert np.array_equal(scores(), serial)


def test_frozen_estimator_is_calibrated_and_not_fitted_again(classifier, three_columns):
    X, y = three_columns
    classifier.fit(X, y)
    draws = classifier.coef_draws_
    model = CalibratedClassifierCV(FrozenEstimator(classifier)).fit(X, 1 - y)
    assert classifier.coef_draws_ is draws
    assert roc_auc_score(1 - y, model.predict_proba(X)[:, 1]) > 0.95


def test_the_import_is_light(run_python):
    code = """
import sys, sklearn
before = set(sys.modules)
import skhorseshoe
print(*(set(sys.modules) - before))
"""
    assert not {"numba", "matplotlib", "arviz", "cupy", "dask"} & set(run_python(code).split())
    assert set(dir(skhorseshoe)) == {*skhorseshoe.__all__, "__version__"}
