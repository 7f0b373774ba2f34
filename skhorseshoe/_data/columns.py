"""The columns of X, and the coefficients that the sampler has of them."""

import numpy as np

_NEAR_ZERO = 0.25  # largest mean, in standard deviations, of a column that is not centred


class Columns:
    """Translates between the columns of X and the sampler's coefficients.

    The sampler's coefficients are those of (x - centre) / scale: the shrunk columns, then the unpenalised ones, then
    the intercept. X itself is not changed: coefficients are translated before a pass over it, and sums over rows after
    it. With an intercept the posterior is the same for every centre. A column that is not near zero has its mean as
    centre, so that its coefficient does not move against the intercept and X'X keeps its digits.

    The data cannot tell a constant column from the intercept. The sampler's coefficient of it has the law of the prior,
    which has no mean; the coefficient of the column of X is 0.

    The prior of a coefficient holds in the unit ``prior_scale``: the sampler has the column times it.

    mean, sd : (p,) of the columns of X. constant : (p,) bool, which count as constant if there is an intercept.
    unpenalized : (p,) bool. size : (p,) root mean squares. unit : (p,) divisors of the columns, infinite for a
    coefficient of 0. prior_scale : (p,), of ``scales_of_prior``; None for its default. centre_all : whether columns
    near zero are centred too. Arrays whose names begin with q_ include the intercept, (q,).
    """

    n_contrasts = 1  # coefficients of a column that share a scale

    def __init__(self, mean, sd, constant, unpenalized, fit_intercept, standardize, prior_scale=None, centre_all=False):
        p = len(mean)
        self.fit_intercept, self.standardize = bool(fit_intercept), bool(standardize)
        self.unpenalized = unpenalized
        self.n_shrunk = p - int(unpenalized.sum())
        root = np.hypot(mean, sd)
        self.centre, self.scale = np.zeros(p), np.ones(p)
        if standardize:
            self.scale = np.where(sd > 0, sd, np.where(root > 0, root, 1.0))
        self.prior_scale = np.where(unpenalized, np.inf, 1.0) if prior_scale is None else prior_scale
        self.wide = np.isinf(self.prior_scale)  # which have the wide prior
        self.has_own_scale = self.prior_scale != np.where(unpenalized, np.inf, 1.0)
        self.scale = self.scale / np.where(self.wide, 1.0, self.prior_scale)
        if fit_intercept:
            self.centre = np.where(standardize | centre_all | (abs(mean) > _NEAR_ZERO * sd), mean, 0.0)
        unit = np.where(constant if fit_intercept else root == 0, np.inf, self.scale)
        last = np.arange(p, p + self.fit_intercept)
        self.q_order = np.append(np.argsort(unpenalized, kind="stable"), last)
        self.q_place = np.argsort(self.q_order)
        self.q_unit, self.q_centre = np.append(unit, np.ones(len(last))), np.append(self.centre, np.zeros(len(last)))
        of_q = self.q_order, self.q_place, self.q_unit, self.q_centre
        self.order, self.place, self.unit, self.centre = (values[:p] for values in of_q)  # views
        self.informative = ((sd if fit_intercept else root) > 0) & np.isfinite(unit)
        self.reorders = bool(unpenalized.any())
        self.translated = self.reorders or bool((unit != 1.0).any() or self.centre.any())
        self.size = root
        # Means of the sampler's columns. Without an intercept nothing absorbs a mean, and the size takes the place of
        # sd.
        self.mean = ((mean - self.centre) / self.scale)[self.order] if fit_intercept else np.zeros(p)
        self.mean_of_X, self.sd_of_X = mean, sd
        self.sd = ((sd if fit_intercept else root) / self.scale)[self.order]

    @property
    def of_one(self):
        return self

    def of_X(self, beta):
        """The sampler's coefficients (m, q) as coefficients of X's columns and the intercept; (m, q)."""
        if not self.translated:
            return beta
        ordered = beta[:, self.q_place] if self.reorders else beta
        out = ordered / self.q_unit + 0.0  # makes -0 of constant columns 0
        if self.fit_intercept:
            out[:, -1] -= np.cumsum(out * self.q_centre, axis=1)[:, -1]  # in order, as in the core
        return out

    def coefficients(self, beta):
        """The sampler's coefficients (m, q) as those of X's columns (m, p) and intercepts (m,), 0 without one."""
        p, beta = len(self.order), self.of_X(beta)
        return beta[:, :p], beta[:, p] if self.fit_intercept else np.zeros(len(beta))

    def gradient(self, sums):
        """Sums over rows of r_i (x_i, 1) as sums for the sampler's columns; (m, q)."""
        if not self.translated:
            return sums
        centred = sums - sums[:, -1:] * self.q_centre if self.fit_intercept else sums
        return (centred / self.q_unit)[:, self.q_order] if self.reorders else centred / self.q_unit

    def matrix(self, H):
        """A matrix (q, q) over the standardised columns, from X's order to the sampler's."""
        if not self.reorders:
            return H
        return np.ascontiguousarray(H[np.ix_(self.q_order, self.q_order)])

    def by_column(self, shrunk):
        """Values of the shrunk columns (n_shrunk,) in X's order, 0 for the unpenalised ones; (p,)."""
        return np.append(shrunk, np.zeros(len(self.order) - self.n_shrunk))[self.place]
