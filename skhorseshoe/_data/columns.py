"""Between the columns of X and the coefficients that the sampler has: which are shrunk, and on which scale."""

import numpy as np

FAR = 1e3  # standard deviations from zero, from where a column is centred, so that X'X keeps its digits


class Columns:
    """The sampler's coefficients are those of (x - centre) / scale: the shrunk columns, then the unpenalised ones, then
    the intercept. X itself stays as it is: coefficients are translated on their way to a pass over it, and sums over
    its rows on their way back. With an intercept the posterior is the same for every centre.

    The data cannot tell a constant column from the intercept. The sampler's coefficient of it has the law of the prior,
    which has no mean; that of X's own column is 0.

    mean, sd : (p,) of the columns of X. constant : (p,) bool, which are, beside an intercept. unpenalized : (p,) bool.
    size : (p,) their root mean squares. unit : (p,) by which a column is divided, infinite where the coefficient is 0.
    """

    def __init__(self, mean, sd, constant, unpenalized, fit_intercept, standardize):
        p = len(mean)
        self.fit_intercept, self.standardize = bool(fit_intercept), bool(standardize)
        self.unpenalized = unpenalized
        self.n_shrunk = p - int(unpenalized.sum())
        root = np.hypot(mean, sd)
        self.centre, self.scale = np.zeros(p), np.ones(p)
        if standardize:
            self.scale = np.where(sd > 0, sd, np.where(root > 0, root, 1.0))
        if fit_intercept:
            self.centre = np.where(standardize | (abs(mean) > FAR * sd), mean, 0.0)
        self.unit = np.where(constant if fit_intercept else root == 0, np.inf, self.scale)
        self.informative = ((sd if fit_intercept else root) > 0) & np.isfinite(self.unit)
        self.order = np.argsort(unpenalized, kind="stable")
        self.place = np.argsort(self.order)
        is_moved = standardize or self.centre.any() or not np.isfinite(self.unit).all()
        self.translated = bool(unpenalized.any() or is_moved)
        self.size = root
        # Of the sampler's columns; without an intercept nothing absorbs a mean, and what counts is the size.
        self.mean = ((mean - self.centre) / self.scale)[self.order] if fit_intercept else np.zeros(p)
        self.mean_of_X, self.sd_of_X = mean, sd
        self.sd = ((sd if fit_intercept else root) / self.scale)[self.order]

    def of_X(self, beta):
        """The sampler's coefficients (m, q) as those of X's own columns and its intercept; (m, q)."""
        if not self.translated:
            return beta
        p = len(self.order)
        out = beta.copy()
        out[:, :p] = beta[:, self.place] / self.unit + 0.0  # which makes zeros of constant columns positive
        if self.fit_intercept:
            out[:, p] -= (out[:, :p] * self.centre).sum(axis=1)
        return out

    def gradient(self, sums):
        """Sums over rows of r_i (x_i, 1) as those of the sampler's columns; (m, q)."""
        if not self.translated:
            return sums
        p = len(self.order)
        out = sums.copy()
        if self.fit_intercept:
            out[:, :p] -= sums[:, p:] * self.centre
        out[:, :p] = (out[:, :p] / self.unit)[:, self.order]
        return out

    def matrix(self, H):
        """A matrix (q, q) over the standardised columns in X's order as one in the sampler's."""
        if not self.unpenalized.any():
            return H
        order = np.append(self.order, np.arange(len(self.order), len(H)))
        return np.ascontiguousarray(H[np.ix_(order, order)])

    def by_column(self, shrunk):
        """Values of the shrunk columns (n_shrunk,) in X's order, 0 for the unpenalised ones; (p,)."""
        return np.append(shrunk, np.zeros(len(self.order) - self.n_shrunk))[self.place]
