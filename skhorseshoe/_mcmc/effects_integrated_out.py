"""Data augmentation with groups of rows, of one factor: beta and u are drawn together given z.

With n_g rows in a group, m_g the sum of their x_i and z_g that of z_i - offset_i, beta is drawn with X'X - sum_g m_g
m_g' / (n_g + s^-2) in place of X'X, and X'z - sum_g m_g z_g / (n_g + s^-2) in place of X'z; then u_g ~ N((z_g - m_g
beta) / (n_g + s^-2), 1 / (n_g + s^-2)).
"""

import numpy as np

from .._backends import EFFECT_PURPOSE, XI_PURPOSE
from . import group_moves
from .other_rows import OtherRows

_PRODUCT_NUMBERS = 2**22  # numbers in the matrices that are kept for any number of groups
_SECOND_DRAW = 2**30  # added to the number of the sweep where it draws for a purpose again: other random numbers


def products_kept(n_groups, q):
    """Largest number of matrices (q, q) that ``MarginalPrecision`` keeps: together they are as large as m_g of all
    groups (n_groups, q), or have 2^22 numbers where that is more."""
    return max(_PRODUCT_NUMBERS, n_groups * q) // q**2


class MarginalPrecision:
    """``Precision`` with u integrated out: H - sum_g m_g m_g' / (n_g + s^-2) in place of H, another for each chain.

    It has the methods that ``gibbs.sweep`` calls. precision : ``Precision`` with H, which is overwritten. effects :
    ``GroupEffects``, which have s of each chain.
    """

    def __init__(self, precision, effects):
        self.precision, self.effects, self.H, self.noise = precision, effects, precision.H.copy(), precision.noise
        self.work = precision.work
        rows, groups = effects.rows, effects.rows.groups
        self.sums, self.sizes = rows.sampler_sums(np.ones(rows.n), groups.codes, groups.n)  # m_g (n_groups, q); n_g
        self._sum_products()

    def _sum_products(self):
        """Sum m_g m_g' over the groups of each of the most frequent sizes n_g, whose weight 1 / (n_g + s^-2) is the
        same; ``draw`` adds the groups of other sizes."""
        sizes, size_index, counts = np.unique(self.sizes[:, 0], return_inverse=True, return_counts=True)
        q = self.sums.shape[1]
        frequent = np.argsort(-counts, kind="stable")[: products_kept(len(self.sums), q)]
        self.frequent_sizes, self.products = sizes[frequent], np.empty((len(frequent), q, q))
        for k, product in zip(frequent, self.products, strict=True):
            np.matmul(self.sums[size_index == k].T, self.sums[size_index == k], out=product)
        is_other = ~np.isin(size_index, frequent)
        self.other_sizes, self.other_sums = self.sizes[is_other], self.sums[is_other]

    def draw(self, b, d, noise):
        """beta of each chain; H differs between chains, since s does."""
        beta = np.empty_like(b)
        for c, s_sq_inv in enumerate(self.effects.scale**-2.0):
            self.precision.H[...] = self.H - np.tensordot(1.0 / (self.frequent_sizes + s_sq_inv), self.products, 1)
            if len(self.other_sums):
                self.precision.H -= self.other_sums.T @ (self.other_sums / (self.other_sizes + s_sq_inv))
            chain = slice(c, c + 1)
            beta[chain] = self.precision.draw(b[chain], d[chain], noise[chain])
        return beta


class _LatentRows(OtherRows):
    """The rows as ``gibbs.sweep`` needs them: X'z less the part of the effects.

    rows : ``RowsGivenEffects``. variance : 1 / (n_g + s^-2) (n_groups, n_chains). sums : m_g (n_groups, q).
    """

    def __init__(self, rows, shift, variance, sums):
        super().__init__(rows)
        self.shift, self.variance, self.sums = shift, variance, sums
        self.z_sums = None  # z_g (n_groups, n_chains), once ``latent`` has drawn z

    def latent(self, beta, sweep, key):
        """X'z - sum_g m_g z_g / (n_g + s^-2), and z'z."""
        xtz, ztz = self.rows.rows.latent(beta, sweep, key, self.shift)
        self.z_sums = self.rows.effects.sums(self.shift.terms)
        return xtz - (self.z_sums * self.variance).T @ self.sums, ztz


def sweep_given_latents(state, problem, law, precision, block):
    """The state after ``law``, ``gibbs.sweep`` with u integrated out, and moves of u and s. precision :
    ``MarginalPrecision``. block : ``GroupEffects``."""
    (rows, _, tau_0, key), t = problem, state.sweep
    ops = rows.ops
    # beta and its scales, given s: z given beta and u, then beta given z with u integrated out.
    shift, variance = rows.rows.shift(len(state.beta), block.effects), 1.0 / (precision.sizes + block.scale**-2.0)
    latent_rows = _LatentRows(rows, shift, variance, precision.sums)
    new = law(state, problem._replace(rows=latent_rows))
    # u given beta and z.
    mean = (latent_rows.z_sums - precision.sums @ new.beta.T) * variance
    noise = ops.normal((len(new.beta), len(block.effects)), key, t + _SECOND_DRAW, EFFECT_PURPOSE).T
    block.effects = mean + np.sqrt(variance) * noise
    # u, s, beta and tau with z integrated out.
    block.set_origin(new.beta)
    beta, tau_sq_inv = group_moves.move_effects_and_scale(block, new.beta, new.tau_sq_inv, t)
    # xi given tau, which has moved.
    xi_inv = ops.exponential(tau_0**-2 + tau_sq_inv, key, t + _SECOND_DRAW, XI_PURPOSE)
    return new._replace(beta=beta, tau_sq_inv=tau_sq_inv, xi_inv=xi_inv)
