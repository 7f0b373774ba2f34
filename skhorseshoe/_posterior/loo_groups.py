"""The marginal log-likelihood of each group of rows under each draw, with its effects integrated out.

That over several effects of a group is by quadrature:

    p(y_g) = E prod_i P(y_i | eta_i + z_i' e),  e ~ N(0, I),  z_i = R' x~_i,  R R' = Sigma

At the most likely e the rows of a group have the information H_g. Along its eigenvectors both H_g and the precision of
the prior are diagonal, so that nodes are products of those of single coordinates.
"""

from functools import partial
from itertools import product

import numpy as np

from .._backends import device
from .._data.row_blocks import block_bounds
from .._mcmc.group_map import marginal_logliks, nodes_about
from .._mcmc.known_predictors import Given
from .._utils.memmap import cut
from .._utils.threads import count_threads, open_threads
from .classes import own_draws
from .grouped_prediction import evenly, roots, scale_draws, values_in_rows
from .predict import each_predictor, flat_draws

_DRAWS_AT_A_TIME = 64
_NEWTON_STEPS, _CLOSE = 30, 1e-4  # the most steps to the modes, and the square of the last in deviations
_GAPS = {2: 0.35, 3: 0.45}  # by the number of effects, gaps between nodes before they bend
_MOST = max(_GAPS)  # number of effects; the nodes of more would take too long


def group_logliks(model, rows, place, weight, max_draws):
    """log p(y_g | beta, Sigma) of all rows of each group, for every draw, (n_groups, m), of a model with one factor."""
    coef, intercept = flat_draws(model, max_draws)
    n_effects, own, one = len(scale_draws(model)), own_draws(model, max_draws), np.ones(1)
    n, codes, x = len(place), np.ascontiguousarray(rows.codes[:, 0]), values_in_rows(model, rows.X)
    root = evenly(roots(model), max_draws).reshape(-1, n_effects, n_effects)
    if n_effects > _MOST:
        raise ValueError(
            f"loo of groups takes {_MOST - 1} slopes at most, and the model has {n_effects - 1}, over which it would "
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


class SeveralEffects:
    """Rows of a factor, each group of which has q effects. make_row_groups : function of y, weight, codes, their number
    and slope that gives ``RowGroups``. x : (n, q) by which effects are multiplied."""

    def __init__(self, make_row_groups, y, weight, codes, x):
        self.order = np.argsort(codes, kind="stable")
        self.codes, self.x = codes[self.order], x[self.order]
        self.starts = np.searchsorted(self.codes, np.arange(self.codes[-1] + 1))
        of_rows = y[self.order], weight[self.order] if len(weight) else weight
        self.each = make_row_groups(*of_rows, np.arange(len(x), dtype=np.int32), len(x))
        self.along = lambda slope: make_row_groups(*of_rows, self.codes, len(self.starts), slope)

    def marginal_logliks(self, given, root):
        """log p(y_g); (n_groups,). given : ``Given`` of one chain. root : R (q, q)."""
        given, z = given._replace(values=given.values[self.order]), self.x @ root
        mode, information = self._modes(given, z)
        h, directions = np.linalg.eigh(information)
        mode, z = np.einsum("gab,ga->gb", directions, mode), np.einsum("na,nab->nb", z, directions[self.codes])
        sd, gap = (1.0 + np.maximum(h, 0.0)) ** -0.5, _GAPS[len(root)]
        each = [nodes_about(*one, 1.0, gap) for one in zip(mode.T, sd.T, strict=True)]
        *others, (nodes, log_weights) = [(nodes, np.log(gaps) - nodes**2 / 2) for nodes, gaps in each]
        rows, total = self.along(z[:, -1].copy()), np.full(len(mode), -np.inf)
        for held in product(*(zip(one.T, weight.T, strict=True) for one, weight in others)):
            added = sum(one[self.codes] * of for (one, _), of in zip(held, z.T, strict=False))
            at = given._replace(values=given.values + added[:, None])
            log = rows.logliks_on_grid(at, nodes, 0) + log_weights
            most = log.max(axis=1)
            log = most + np.log(np.exp(log - most[:, None]).sum(axis=1)) + sum(weight for _, weight in held)
            total = np.logaddexp(total, log)
        return total - len(root) * np.log(2 * np.pi) / 2

    def _sums(self, values):
        """Sums of values by row over the rows of each group."""
        return np.add.reduceat(values, self.starts, axis=0)

    def _modes(self, given, z):
        """The most likely e (n_groups, q), and the information of the rows there."""
        e, identity = np.zeros((len(self.starts), z.shape[1])), np.eye(z.shape[1])

        def at(e):
            curvature, slope = self.each.curvature(given, (z * e[self.codes]).sum(axis=1, keepdims=True))
            weighed = np.maximum(curvature, 0.0)[:, None, None] * z[:, None]
            return self._sums(weighed * z[:, :, None]), self._sums(z * slope[:, None])

        for _ in range(_NEWTON_STEPS):
            information, gradient = at(e)
            step = np.linalg.solve(information + identity, (gradient - e)[..., None])[..., 0]
            size, e = (step * (gradient - e)).sum(axis=1).max(), e + step
            if size < _CLOSE:
                break
        return e, at(e)[0]
