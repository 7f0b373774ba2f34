"""The marginal log-likelihood of each group of rows under each draw, with its effects integrated out."""

from functools import partial

import numpy as np

from .._backends import device
from .._data.row_blocks import block_bounds
from .._mcmc.group_map import marginal_logliks
from .._mcmc.known_predictors import Given
from .._utils.memmap import cut
from .._utils.threads import count_threads, open_threads
from .grouped_prediction import evenly, scale_draws
from .ordered import own_draws
from .predict import each_predictor, flat_draws
from .several_effects import MOST, SeveralEffects
from .slopes import roots, values_in_rows

_DRAWS_AT_A_TIME = 64


def group_logliks(model, rows, place, weight, max_draws):
    """log p(y_g | beta, Sigma) of all rows of each group, for every draw; (n_groups, m).

    rows : ``GivenRows`` of the fit, of a model with one factor. place, weight : as in ``leave_one_out``."""
    coef, intercept = flat_draws(model, max_draws)
    scales, own, one = scale_draws(model), own_draws(model, max_draws), np.ones(1)
    n, codes, x = len(place), np.ascontiguousarray(rows.codes[:, 0]), values_in_rows(model, rows.X)
    root = evenly(roots(model, scales), max_draws).reshape(-1, len(scales), len(scales))
    if len(scales) > MOST:
        raise ValueError(
            f"loo of groups takes {MOST - 1} slopes at most, and the model has {len(scales) - 1}, over which it would "
            'take too long to average. Hold out whole groups by cross_validate (user guide, "Rows that belong '
            'together").'
        )
    ops, out = device.host_back_end(), np.empty((codes.max() + 1, len(coef)))
    bounds, _ = block_bounds(rows.X.shape, n)
    y, weight = place.astype(np.uint8), np.empty(0) if weight is None else weight
    with open_threads(count_threads(model.n_jobs)) as threads:

        def make_row_groups(y, weight, codes, n, slope=None):
            return ops.RowGroups(y, weight, None, codes, n, np.dtype(float), bounds, threads, model._likelihood, slope)

        if x is None:
            average = partial(marginal_logliks, make_row_groups(y, weight, codes, len(out)))
            root = root[:, 0, 0]
        else:
            average = SeveralEffects(make_row_groups, y, weight, codes, x).marginal_logliks
        for some in cut(0, len(coef), _DRAWS_AT_A_TIME):
            predictors = np.empty((some.stop - some.start, n))

            def use(eta, block, ops, predictors=predictors):
                predictors[:, block] = ops.to_host(eta).T

            each_predictor(model, rows, coef[some], intercept[some], use)
            for at, eta in zip(range(some.start, some.stop), predictors, strict=True):
                given = Given(eta[:, None], one, None if own is None else own[at : at + 1])
                out[:, at] = average(given, root[at])
    return out
