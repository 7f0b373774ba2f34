"""The marginal log-likelihood of each group of rows under each draw, with its effect integrated out."""

import numpy as np

from .._backends import device
from .._data.row_blocks import block_bounds
from .._mcmc.group_map import marginal_logliks
from .._mcmc.known_predictors import Given
from .._utils.memmap import cut
from .._utils.threads import count_threads, open_threads
from .grouped_prediction import evenly
from .ordered import own_draws
from .predict import each_predictor, flat_draws

_DRAWS_AT_A_TIME = 64


def group_logliks(model, rows, place, weight, max_draws):
    """log p(y_g | beta, s) of all rows of each group, for every draw; (n_groups, m).

    rows : ``GivenRows`` of the fit, of a model with one factor. place, weight : as in ``leave_one_out``."""
    coef, intercept = flat_draws(model, max_draws)
    scale = evenly(model.group_scale_draws_, max_draws).ravel()
    n, codes, n_groups = len(place), np.ascontiguousarray(rows.codes[:, 0]), len(model.groups_)
    ops, out = device.host_back_end(), np.empty((n_groups, len(coef)))
    bounds, _ = block_bounds(rows.X.shape, n)
    own, one = own_draws(model, max_draws), np.ones(1)
    y, weight = place.astype(np.uint8), np.empty(0) if weight is None else weight
    with open_threads(count_threads(model.n_jobs)) as threads:
        likelihood = model._likelihood
        row_groups = ops.RowGroups(y, weight, None, codes, n_groups, np.dtype(float), bounds, threads, likelihood)
        for some in cut(0, len(coef), _DRAWS_AT_A_TIME):
            predictors = np.empty((some.stop - some.start, n))

            def use(eta, block, ops, predictors=predictors):
                predictors[:, block] = ops.to_host(eta).T

            each_predictor(model, rows, coef[some], intercept[some], use)
            for at, eta in zip(range(some.start, some.stop), predictors, strict=True):
                given = Given(eta[:, None], one, None if own is None else own[at : at + 1])
                out[:, at] = marginal_logliks(row_groups, given, scale[at])
    return out
