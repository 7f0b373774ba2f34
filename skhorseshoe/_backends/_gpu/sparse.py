"""The back end for sparse rows on NVIDIA GPUs: ``dense``, with answers of its own to whatever reads X, a ``Csr``.

X is never made dense. A CSR matrix of SciPy's is copied to the device, one of CuPy's is read where it is; beside it is
a copy by columns.
"""

import cupy as cp

from . import dense
from .csr import Csr
from .host_streaming import brought
from .predict import rows_together
from .sparse_memory import place  # noqa: F401 - part of what a back end offers
from .sparse_passes import (  # noqa: F401 - as are these
    gram,
    gram_noise,
    gram_product,
    hold,
    information_weights,
    latent,
    line,
    moments,
    product,
    score,
)


def __getattr__(name):
    """The rest of what a back end offers is that of ``dense``."""
    return getattr(dense, name)


def each_block(X, coef, threads, budget, use):
    """As ``sparse.each_block``, with products on the GPU, whose own budget it is; X may be on the host."""
    coef = cp.ascontiguousarray(brought(coef).T, dtype=cp.float64)
    n, size = X.shape[0], rows_together(coef.shape[1])
    for start in range(0, n, size):
        rows = slice(start, min(n, start + size))
        use(product(Csr.of(X[rows]), coef), rows)
