"""The Gaussian of beta given z with the effects of groups integrated out, for "gibbs" (``grouped_chains.py``)."""

import numpy as np

_PRODUCT_NUMBERS = 2**22  # numbers in the matrices that are kept for any number of groups


def products_kept(n_groups, q):
    """Largest number of matrices (q, q) that ``MarginalPrecision`` keeps: together they are as large as m_g of all
    groups (n_groups, q), or have 2^22 numbers where that is more."""
    return max(_PRODUCT_NUMBERS, n_groups * q) // q**2


class MarginalPrecision:
    """``Precision`` with u integrated out: H - sum_g m_g m_g' / (n_g + s^-2) in place of H, another for each chain.

    It has the methods that ``gibbs.sweep`` calls. precision : ``Precision`` with H, which is overwritten. rows :
    ``GroupedRows``, which have s of each chain.
    """

    def __init__(self, precision, rows):
        self.precision, self.rows, self.H, self.noise = precision, rows, precision.H.copy(), precision.noise
        self.sizes, self.sums = rows.sums_of_groups()  # n_g (n_groups, 1); m_g (n_groups, q)
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
        for c, s_sq_inv in enumerate(self.rows.scale**-2.0):
            self.precision.H[...] = self.H - np.tensordot(1.0 / (self.frequent_sizes + s_sq_inv), self.products, 1)
            if len(self.other_sums):
                self.precision.H -= self.other_sums.T @ (self.other_sums / (self.other_sizes + s_sq_inv))
            chain = slice(c, c + 1)
            beta[chain] = self.precision.draw(b[chain], d[chain], noise[chain])
        return beta
