"""The common checks of scikit-learn, none expected to fail."""

import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from sklearn.utils.fixes import parse_version

from skhorseshoe import HorseshoeProbitClassifier

ESTIMATOR = HorseshoeProbitClassifier(
    n_iter=30, burn_in=60, n_chains=2, random_state=0
)  # "pxda", where weights allow it
VERSION = parse_version(sklearn.__version__)


@parametrize_with_checks([ESTIMATOR, clone(ESTIMATOR).set_params(burn_in=100, sampler="hmc")])
def test_common_check(estimator, check):
    check(estimator)


@pytest.mark.skipif(VERSION.release[:2] != (1, 9), reason="the number of checks is that of scikit-learn 1.9")
def test_no_common_check_is_left_out():
    assert len(list(estimator_checks_generator(ESTIMATOR))) == 64


@pytest.mark.slow
def test_all_pass_where_scipy_speaks_the_array_api(run_python):
    code = """
import warnings
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator
from skhorseshoe import HorseshoeProbitClassifier
warnings.simplefilter("ignore", ConvergenceWarning)
results = check_estimator(
    HorseshoeProbitClassifier(n_iter=60, burn_in=60, random_state=0), on_fail=None, on_skip=None
)
print(len(results), *(f"{r['check_name']}: {r['exception']}" for r in results if r["status"] != "passed"))
"""
    number, *not_passed = run_python(code, SCIPY_ARRAY_API="1").split(maxsplit=1)
    assert not not_passed
    assert int(number) == len(list(estimator_checks_generator(ESTIMATOR)))


def test_arrays_of_another_library_are_taken_as_numpys(run_python):
    code = """
import array_api_strict, sklearn
import numpy as np
from skhorseshoe import HorseshoeProbitClassifier
X = np.random.default_rng(0).standard_normal((40, 3))
y, weight = np.arange(40) % 2, np.arange(40) % 3 + 1.0
model = HorseshoeProbitClassifier(n_iter=5, burn_in=5, random_state=0)
expected = model.fit(X, y, sample_weight=weight).predict_proba(X)
try:
    dispatch = sklearn.config_context(array_api_dispatch=True)
    dispatch.__enter__()
except (ImportError, ValueError) as error:
    print("none:", error)
else:
    model.fit(*map(array_api_strict.asarray, (X, y)), sample_weight=array_api_strict.asarray(weight))
    print(np.array_equal(model.predict_proba(array_api_strict.asarray(X)), expected))
"""
    printed = run_python(code, SCIPY_ARRAY_API="1").strip()
    if printed.startswith("none"):
        pytest.skip(f"this scikit-learn does not dispatch here ({printed})")
    assert printed == "True"
