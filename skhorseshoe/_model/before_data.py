"""What the prior says before any data: of the probabilities of rows, and of how many columns matter."""

import numpy as np

from .horseshoe import draws_of_prior

CERTAIN = 0.99  # probability of a class from which a row counts as certain
MOST_ROWS = 256  # rows that are asked
_MOST_DRAWS, _FEWEST_DRAWS, _NUMBERS = 400, 32, 2**21  # draws; fewer where columns are many
_SEED = 0  # of a generator of its own, so that no draw of a fit depends on it


def before_data(tau_0, slabs, X, mean, unit, sd, effect, d=1):
    """Linear predictors (n, m) of rows, from the point ``mean`` on, in m draws of the prior; and of each draw, how many
    columns have an effect beyond ``effect`` for one standard deviation, (m,).

    X : (n, p), the columns that are shrunk, dense or sparse. unit : (p,) by which coefficients of the prior are divided
    to be those of X. sd : (p,) of the columns in that unit. d : contrasts of a column, of which one is asked.
    """
    m = int(min(_MOST_DRAWS, max(_FEWEST_DRAWS, _NUMBERS // max(1, len(slabs)))))
    predictors, counts = [np.empty((X.shape[0], 0))], [np.empty(0)]
    for beta in draws_of_prior(tau_0, slabs, m, np.random.default_rng(_SEED), d):
        coef = (beta / unit).T
        predictors.append(X @ coef - mean @ coef)
        counts.append((np.abs(beta) * sd > effect).sum(axis=1))
    return np.hstack(predictors), np.concatenate(counts)


def share_certain(predictors, likelihood, weight=None):
    """The share of rows, by weight, that are certain of a class. predictors : (n, m)."""
    return float(np.average((np.abs(predictors) > likelihood.predictor(CERTAIN)).mean(axis=1), weights=weight))
