"""Warnings of the fits of a search: once for each cause, at the user's line; and a recipe where a fit stands alone."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, TunedThresholdClassifierCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector

SHORT = HorseshoeProbitClassifier(n_iter=30, burn_in=10, random_state=0)


def said(fit, *args, **kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        fit(*args, **kwargs)
    assert {warning.filename for warning in caught} == {__file__}
    return [str(warning.message) for warning in caught]


def test_a_search_says_each_cause_once(weak_problem):
    X, y = weak_problem[0] * [1, 1, 1e4], weak_problem[1]
    search = GridSearchCV(make_pipeline(SHORT), {"horseshoeprobitclassifier__global_scale": [0.1, 1]}, cv=2)
    for _ in range(2):  # another search says it again
        scales, chains, whole = said(search.fit, X, y)
        assert scales.startswith("In fold 1 of 2 of this search or cross-validation: The columns are on very different")
        assert "of 'x2' is" in scales
        assert scales.endswith("Fit again with standardize=True.")
        assert chains.startswith("In fold 1 of 2 of this search or cross-validation: The chains have not converged")
        assert "Fit again with standardize=True" in whole  # of the fit to all rows


def test_a_cross_validation_says_it_once(weak_problem):
    pipeline = make_pipeline(StandardScaler(), HorseshoeSelector(SHORT), LogisticRegression())
    (text,) = said(cross_val_score, pipeline, *weak_problem, cv=KFold(4))
    assert text.startswith("In the fold without rows 0 to 49 of this search or cross-validation: The chains have not")


def test_the_first_fold_with_a_column_that_nothing_bounds_is_named_with_it(weak_problem):
    X, y = pd.DataFrame(weak_problem[0], columns=list("abc")), weak_problem[1]
    X["rare"] = np.isin(np.arange(200), np.flatnonzero(y)[-40:]) * 1.0
    X.loc[3, "rare"] = 1.0 * (1 - y[3])
    folds = [(np.delete(np.arange(200), out), out) for out in (np.arange(50, 100), np.array([3, 7, 20, 21]))]
    y = y.copy()
    y[3], X.loc[3, "rare"] = 0, 1.0
    texts = said(cross_val_score, SHORT, X, y, cv=folds)
    (text,) = [text for text in texts if "'rare'" in text and "lie on one side" in text]
    assert text.startswith("In the fold without rows 3, 7, 20 and 1 others of this search")
    assert text.endswith("Fit again with slab_scale='per_contrast'.")


def test_a_threshold_and_a_calibration_say_it_once_for_their_folds(weak_problem):
    whole, folds = said(TunedThresholdClassifierCV(SHORT, cv=3).fit, *weak_problem)
    assert "of this search or cross-validation: The chains have not converged" in folds
    assert "Fit again with" in whole
    (text,) = said(CalibratedClassifierCV(SHORT, cv=3, ensemble=True).fit, *weak_problem)
    assert text.startswith("In the fold without rows ")
    assert "cross-validation: The chains have not converged" in text


def test_a_selector_in_a_pipeline_stands_alone(weak_problem):
    (text,) = said(make_pipeline(StandardScaler(), HorseshoeSelector(SHORT), LogisticRegression()).fit, *weak_problem)
    assert "Fit again with" in text


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_each_fit_fails_where_warnings_are_errors(weak_problem):
    with pytest.raises(ValueError, match="All the 3 fits failed"):
        cross_val_score(SHORT, *weak_problem, cv=3)
