"""The fixed prior: what holds for the coefficients beside the horseshoe, the slab and wide Gaussians."""

from copy import copy

import numpy as np

WIDE = 100.0  # standard deviation of intercept and unpenalised coefficients; wide for a linear predictor
PER_CONTRAST = "per_contrast"  # the parameter ``slab_scale`` of a slab for each column, in the unit of its contrast
SLAB = 4  # standard deviation of such a slab, of the linear predictor per contrast of a column
# That of several classes where none is given: it ends the coefficients of classes that are separated, as some often
# are, and leaves others alone.
WIDE_PER_CONTRAST, WIDE_SLAB = "wide per contrast", 40
SLABS = {PER_CONTRAST: SLAB, WIDE_PER_CONTRAST: WIDE_SLAB}
SLAB_TEXT = "{} per contrast of each column"


def slabs_of(contrast, size=SLAB):
    """Standard deviations of the slabs of columns with these contrasts (p,); inf, for no slab, where that is 0.

    The contrast of a column is 2 E d^2 / E|d|, d the deviations from its mean: the difference of its values if it has
    two, however rare one is; 2.5 standard deviations if it is normal. It is never below two standard deviations. A slab
    per standard deviation alone would hardly bound the coefficient of a rare level.
    """
    return np.divide(size, contrast, out=np.full(len(contrast), np.inf), where=contrast > 0)


class FixedPrior:
    """The part of the prior that does not depend on the scales: a Gaussian whose precision is rank one plus a diagonal.

    The slab is an observation "0 with standard deviation c" of each shrunk coefficient (Nishimura & Suchard 2023). The
    prior of the intercept is that of the intercept at the mean of the columns, so that their zero does not matter. The
    prior of an unpenalised coefficient is wide for the standard deviation of its column, or standard normal in the unit
    that ``prior_scale`` gives it.

    slab_scale : a number, None, or what ``slabs_of`` gives for the shrunk columns. wide : standard deviation of the
    intercept and of unpenalised coefficients, times that of their columns.
    """

    def __init__(self, columns, slab_scale, wide=WIDE):
        p, self.wide = len(columns.mean), wide
        self.anchor = np.append(columns.mean, 1.0) / wide if columns.fit_intercept else np.zeros(p)
        self.slab_scale = slab_scale
        self.slab_precision = 0.0 if slab_scale is None else slab_scale**-2.0
        self.diagonal = np.zeros(len(self.anchor))
        self.diagonal[: columns.n_shrunk] = self.slab_precision
        sd, is_wide = columns.sd[columns.n_shrunk :], columns.wide[columns.order][columns.n_shrunk :]
        self.diagonal[columns.n_shrunk : p] = np.where(is_wide, (np.where(sd > 0, sd, 1.0) / wide) ** 2, 1.0)
        # Prior variances of the coefficients that are not shrunk, and of the intercept at the mean of the columns.
        self.variances = np.append(1.0 / self.diagonal[columns.n_shrunk : p], [wide**2] * columns.fit_intercept)

    def padded(self, k):
        """This prior with k further unknowns, of which it says nothing."""
        out = copy(self)
        out.anchor, out.diagonal = (np.append(values, np.zeros(k)) for values in (self.anchor, self.diagonal))
        return out

    def repeated(self, d):
        """This prior of d coefficients, side by side, for each of centred columns."""
        out = copy(self)
        out.diagonal = np.repeat(self.diagonal + self.anchor**2, d)
        out.anchor, out.variances = np.zeros(len(out.diagonal)), np.repeat(self.variances, d)
        if np.ndim(self.slab_scale):
            out.slab_scale, out.slab_precision = np.repeat(self.slab_scale, d), np.repeat(self.slab_precision, d)
        return out

    def add_to(self, H):
        """Add the precision to H (q, q), in place."""
        for row, value in zip(H, self.anchor, strict=True):
            row += value * self.anchor
        H.reshape(-1)[:: len(H) + 1] += self.diagonal
        return H

    def force(self, beta):
        """The precision times beta (m, q)."""
        return (beta * self.anchor).sum(axis=1)[:, None] * self.anchor + self.diagonal * beta

    def along(self, beta, direction):
        """The first and the second derivative of the energy at beta along a direction, (n_chains, q) each."""
        slope = (self.force(direction) * beta).sum(axis=1)
        return slope, (self.force(direction) * direction).sum(axis=1)

    def energy(self, beta):
        """Minus the logarithm of the density at beta (q,), up to a constant."""
        return (self.anchor @ beta) ** 2 / 2 + self.diagonal @ beta**2 / 2
