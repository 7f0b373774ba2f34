"""``CollapsedRows`` on the CPU: chains and blocks of columns are shared among threads."""

import ctypes

import numpy as np

from .. import JITTERS, rows_not_definite
from ..collapsed_base import Collapsed, closest, diagonal
from .collapsed_kernels import (
    add_heavy,
    draw_heavy,
    draw_latent,
    fill_columns,
    mirror,
    quadratic,
    scale_latent,
    scan_latent,
    scan_local_scales,
)
from .gaussian import Precision
from .lapack import add_products, potrf, potri
from .normal_tail import fisher_weight


class CollapsedRows(Collapsed):
    """As ``Collapsed``; X : (n, p) float32 or float64."""

    xp = np
    Precision = Precision
    block = 2**17
    _information = staticmethod(fisher_weight)

    @staticmethod
    def _unfinished(flags, attempt):
        return flags.nonzero()[0]

    @staticmethod
    def _heaviest(heavy, weight):
        (which,) = heavy.nonzero()
        return which[weight[which].argsort(kind="stable")]

    def _fill(self, first, block):
        fill_columns(self.X, self.order, self.centre, self.root[first:], first, block)

    def _columns(self, which):
        out = np.ones((len(which), len(self.X)))
        inside = which < len(self.order)
        j = self.order[which[inside]]
        out[inside] = ((self.X[:, j] - self.centre[j]) * self.root[which[inside]]).T
        return out

    @staticmethod
    def _add_products(block, P):
        add_products(block, P, of_columns=False)

    def _invert(self, P, build):
        self._factorise(P, build)
        log_det = 2.0 * np.log(diagonal(P)).sum()
        potri(*_in_place(P), ctypes.byref(ctypes.c_int(0)))
        mirror(P)
        return log_det

    @staticmethod
    def _factorise(P, build):
        for jitter in JITTERS:
            if jitter:
                build()
            diagonal(P)[...] *= 1.0 + jitter
            info = ctypes.c_int(0)
            potrf(*_in_place(P), ctypes.byref(info))
            if info.value == 0 and P[-1, -1] > 0.0:  # OpenBLAS lets NaN pass, which reaches the last
                return
        raise rows_not_definite(len(P), info.value or len(P))

    @staticmethod
    def _add_heavy(c, P, columns, weights):
        factors, precision, products = *np.empty((2, len(weights))), np.empty(columns.shape)
        return add_heavy(P, columns, weights, factors, precision, products), factors, precision, products

    def _draw_heavy(self, joined, rest, noise):
        coef = np.empty(len(noise))
        draw_heavy(self._columns(joined.which), joined.precision, joined.products, noise, rest, coef)
        return coef

    @staticmethod
    def _quadratic(P, z):
        return np.array([quadratic(*each) for each in zip(P, z, strict=True)])

    def latent(self, z, n_scans, index, sweep, key):
        z = z.copy()

        def scan(first, last):
            Pz = np.empty(len(self.X))
            for c in range(first, last):
                scan_latent(z[c], self.P[c], self.y, n_scans, n_scans * index, c, sweep, *key, Pz)

        self.threads.run(scan, self.n_chains)
        return z

    def _draw_latent(self, mean, scan, sweep, key):
        z = np.empty(mean.shape)
        draw_latent(mean, self.y, scan, sweep, *key, z)
        return z

    def length(self, z, index, sweep, key):
        z = z.copy()
        for c in range(self.n_chains):
            scale_latent(z[c], self.P[c], index, c, sweep, *key)
        return z

    def _scan_local_scales(self, lambda_sq_inv, z, closeness, n_columns, tau_sq_inv, index, sweep, key):
        def scan(first, last):
            g = np.empty(len(self.X))
            for c in range(first, last):
                which = closest(closeness[c], n_columns)
                self.log_det[c] += scan_local_scales(
                    lambda_sq_inv[c],
                    self.w[c],
                    self.P[c],
                    z[c],
                    which,
                    self._columns(which),
                    tau_sq_inv[c],
                    self.slab_precision,
                    index,
                    c,
                    sweep,
                    *key,
                    g,
                )

        self.threads.run(scan, self.n_chains)


def _in_place(P):
    """The first arguments of LAPACK's routines for a symmetric matrix."""
    order = ctypes.byref(ctypes.c_int(len(P)))
    return b"U", order, P.ctypes.data, order
