"""The columns that the sampler has, centred, scaled and in its own order, while X stays as it is."""

import numpy as np
import pytest
import scipy.sparse as sp
from laws import ALONE, KEY
from scipy import stats
from scipy.stats import norm

from skhorseshoe._backends._cpu import dense, sparse
from skhorseshoe._data.rows import Rows

SECOND = np.array([False, True, False])
# Where the columns' zero is, how rows are made of them, and which columns the sampler has then.
CASES = {
    "near zero": (0.0, {}, lambda X: X),
    "not near zero": (3.0, {}, lambda X: X - X.mean(axis=0)),
    "no intercept": (3.0, {"fit_intercept": False}, lambda X: X),
    "unpenalised": (3.0, {"unpenalized": SECOND}, lambda X: (X - X.mean(axis=0))[:, [0, 2, 1]]),
    "standardised": (3.0, {"standardize": True}, stats.zscore),
    "both": (3.0, {"unpenalized": SECOND, "standardize": True}, lambda X: stats.zscore(X)[:, [0, 2, 1]]),
    "no intercept, standardised": (3.0, {"fit_intercept": False, "standardize": True}, lambda X: X / X.std(axis=0)),
}


@pytest.mark.parametrize("ops", [dense, sparse])
@pytest.mark.parametrize("case", CASES)
def test_passes_answer_for_the_columns_of_the_sampler(case, ops, seed):
    zero, how, seen = CASES[case]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((500, 3)) * [1.0, 2.0, 0.5] + zero
    how = {"fit_intercept": True, **how}
    design = np.column_stack([seen(X), *[np.ones(500)] * how["fit_intercept"]])
    y, beta = rng.integers(0, 2, 500).astype(np.uint8), rng.standard_normal((4, design.shape[1]))
    rows = Rows(sp.csr_array(X) if ops is sparse else X, y, ops=ops, threads=ALONE, **how)

    loglik, score = rows.score(beta)
    t = (2.0 * y - 1) * (beta @ design.T)
    np.testing.assert_allclose(loglik, norm.logcdf(t).sum(axis=1))
    residuals = (2.0 * y - 1) * np.exp(norm.logpdf(t) - norm.logcdf(t))
    np.testing.assert_allclose(score, residuals @ design, atol=1e-9)
    np.testing.assert_allclose(rows.gram(), design.T @ design, atol=1e-9)
    # For what has no such formula: rows whose columns stay as they are.
    plain = Rows(np.ascontiguousarray(seen(X)), y, how["fit_intercept"], dense, ALONE)
    for question, args in {"latent": [beta, 5, KEY], "information": [beta]}.items():
        for got, want in zip(getattr(rows, question)(*args), getattr(plain, question)(*args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-8)
