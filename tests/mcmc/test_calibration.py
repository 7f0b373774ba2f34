"""Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari & Gelman 2018) of the samplers."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
from scipy import stats

from skhorseshoe import HorseshoeProbitClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

P_VALUE = 1e-4
N_DRAWS = 99  # so that the rank is one of 100


def ranks(sampler, n_iter, seed):
    """Ranks of beta and log tau of the prior among draws from the posterior of data simulated from them."""
    rng = np.random.default_rng([seed, 12])
    tau = 0.5 * abs(rng.standard_cauchy())
    beta = rng.standard_normal(3) * abs(rng.standard_cauchy(3)) * tau
    data = rng.standard_normal((40, 3))
    y = data @ beta + rng.standard_normal(40) > 0
    if y.all() or not y.any():  # no model is fitted to one class; the next data set, so the law is that given two
        return ranks(sampler, n_iter, seed + 100_000)
    model = HorseshoeProbitClassifier(
        n_iter=n_iter,
        thin=n_iter // N_DRAWS,
        n_chains=1,
        fit_intercept=False,
        global_scale=0.5,
        sampler=sampler,
        n_jobs=1,
        random_state=seed,
    ).fit(data, y)
    draws = np.column_stack([model.coef_draws_[0], model.global_scale_draws_[0]])[-N_DRAWS:]
    return (draws < np.append(beta, tau)).sum(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "n_iter"), [("hmc", 4950), ("collapsed", 4950), ("gibbs", 49_500)])
def test_ranks_of_the_truth_are_uniform_over_simulated_data_sets(sampler, n_iter):
    with ProcessPoolExecutor(2) as pool:
        found = np.array(list(pool.map(partial(ranks, sampler, n_iter), range(200))))
    counts = np.array([np.bincount(column // 10, minlength=10) for column in found.T])
    p_values = stats.chisquare(counts, axis=1).pvalue
    print(f"{sampler}: counts\n{counts}\np values {p_values}")
    assert (p_values > P_VALUE).all()
