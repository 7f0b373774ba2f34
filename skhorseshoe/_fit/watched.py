"""Quantities that are judged where columns outnumber rows: probabilities of rows, and sums over sets of columns."""

from math import prod
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array, issparse

from .._mcmc.draws import moving
from .._posterior.correlations import clusters, products_of
from ..diagnostics import ess_bulk, rhat

WATCHED = "(predictions)", "(predictions and sets)"  # names, without and with sets of columns
MOST_ROWS = 1000  # largest number of rows whose probabilities are watched
_THRESHOLD = 0.7  # correlation at which columns form a set, as in ``sets.correlated_sets``
# Sets are looked for up to so many columns, and products of two numbers in their correlations: a second, 150 MB.
_MOST_COLUMNS, _MOST_PRODUCTS = 4096, 2**34
_BLOCK_DRAWS, _BLOCK_COEFFICIENTS = 64, 2**22  # largest numbers of draws and of coefficients in a block


class Watched:
    """Draws of the watched quantities, kept from one look at a run to the next.

    rows : ``Rows``; of these, evenly spaced ones are watched. Sets are found from their correlations, unless these
    take too long. is_rough : whether looser limits suffice for single columns.
    """

    def __init__(self, rows, is_rough):
        self.is_rough, self.likelihood = is_rough, rows.likelihood
        columns, X = rows.columns, rows.sampled(MOST_ROWS)
        # A column far from zero leaves float32 few digits for its part of eta, so dense X is centred.
        self.centre = np.zeros(X.shape[1]) if issparse(X) else columns.mean_of_X
        self.X = (X if issparse(X) else X - self.centre).astype(np.float32)
        self.weights = _weights_of_sets(X, columns.mean_of_X, columns.sd_of_X)
        self.held, self.stride = None, 0

    def draws(self, draws):
        """The watched quantities for ``Draws``: probabilities, then sums; (n_chains, n, k) float32.

        Blocks begin at the same draws at each look, so a run that is continued has the bits of an uninterrupted one.
        """
        n_chains, _, *of_classes, p = draws.coef.shape
        step = max(1, min(_BLOCK_DRAWS, _BLOCK_COEFFICIENTS // (n_chains * p)))
        width = (self.X.shape[0] + self.weights.shape[1]) * prod(of_classes)
        if self.stride != draws.stride:  # half of the draws have been given up
            self.held, self.stride = np.empty((n_chains, 0, width)), draws.stride
        n_complete = self.held.shape[1] // step * step
        blocks = [slice(start, min(draws.n, start + step)) for start in range(n_complete, draws.n, step)]
        new = [self._values_under(draws.coef[:, block], draws.intercept[:, block]) for block in blocks]
        self.held = np.concatenate([self.held[:, :n_complete], *new], axis=1, dtype=np.float32)
        return self.held

    def worst(self, draws):
        """The ``Worst`` of the quantities that move."""
        values = self.draws(draws)
        values = values[..., moving(values)]
        max_rhat, min_ess = (rhat(values).max(), ess_bulk(values).min()) if values.size else (1.0, np.inf)
        return Worst(WATCHED[int(self.weights.shape[1] > 0)], max_rhat, min_ess, self.is_rough)

    def _values_under(self, coef, intercept):
        flat = coef.reshape(-1, coef.shape[-1])
        at_centre = (intercept.ravel() + flat @ self.centre).astype(np.float32)
        flat = flat.astype(np.float32)
        probabilities = self.likelihood.probability((self.X @ flat.T).T + at_centre[:, None])
        values = np.hstack([probabilities, flat @ self.weights])
        # Unbounded coefficients may overflow float32, which is no reason to end a fit.
        return np.nan_to_num(values, copy=False).reshape(*coef.shape[:2], -1)


class Worst(NamedTuple):
    """All watched quantities as one."""

    name: str
    rhat: float  # the largest
    ess: float  # the smallest bulk effective sample size
    is_rough: bool  # as in ``Watched``


def sets_for_sums(X, mean, sd, weight=None):
    """Yield the column numbers and the weights of each set of correlated columns; a column in no other is a set by
    itself. The weights are signed standard deviations: the weighted sum of coefficients is the sum of effects.

    X : (n, p) dense. mean, sd : (p,) of its columns. weight : of its rows, or None.
    """
    varies = np.flatnonzero(sd > 0)
    Z = (X[:, varies] - mean[varies]) / sd[varies]
    if weight is not None:
        Z *= np.sqrt(weight)[:, None]
    length = np.sqrt(np.einsum("ij,ij->j", Z, Z))
    Z /= np.where(length > 0, length, 1.0)
    for members, signs, _ in clusters(products_of(Z), len(varies), _THRESHOLD, "fit"):
        yield varies[members], signs * sd[varies[members]]


def _weights_of_sets(X, mean, sd):
    """The weights (p, k) of the columns in the k sets of two or more; k is 0 if sets take too long to find."""
    (n, p), sets = X.shape, []
    if p <= _MOST_COLUMNS and n * p * p <= _MOST_PRODUCTS:
        dense = X.toarray() if issparse(X) else X
        sets = [each for each in sets_for_sums(dense, mean, sd) if len(each[0]) > 1]
    columns, values = (np.concatenate([np.empty(0, int), *(each[i] for each in sets)]) for i in range(2))
    ends = np.cumsum([0, *(len(each[0]) for each in sets)])
    return csc_array((values, columns.astype(int), ends), shape=(p, len(sets)), dtype=np.float32)
