"""The sampler for more columns than rows: the coefficients are integrated out of the laws of z and of the scales.

    z | lambda, tau ~ N(0, V) on the side of y,   V = I + X W X',   w_j = 1 / (tau^-2 lambda_j^-2 + c^-2),   P = V^-1

z is drawn one row at a time (Holmes & Held 2006), its length apart from its direction. lambda and tau are drawn given
the direction alone, so that strong signals can grow together with z. Then beta is drawn (Bhattacharya, Chakraborty &
Mallick 2016), and once more the scales, given beta (``_backends/_cpu/scales.py``), in turns with moves along lines
(``_backends/lines.py``): tau hardly moves while the lambda_j hold it. All work is on n x n matrices and passes over X;
nothing here knows on which device they are.
"""

from typing import NamedTuple

from .._backends import COEF, GLOBAL_SLICE, HELD, RESIDUAL

_ATTEMPTS = 40  # of a slice step; the interval has then shrunk to nothing
_SCANS = 5  # of z over the rows in a round
_TURNS = 4  # of the moves along lines and the scales in a sweep


class CollapsedState(NamedTuple):
    """What the next sweep reads, and beta; float64."""

    beta: object  # (n_chains, q), for the column means as origin of the intercept
    z: object  # (n_chains, n)
    lambda_sq_inv: object  # (n_chains, p)
    tau_sq_inv: object  # (n_chains,)
    sweep: int


def sweep(state, rows, tau_0, ops, key, move=None):
    """Draw every unknown; returns the new state. rows : a ``CollapsedRows``. move : makes moves with z integrated out,
    from beta, lambda^-2 and tau^-2 to the next ones, or None."""
    beta, z, lambda_sq_inv, tau_sq_inv, t = state
    n_chains, p = lambda_sq_inv.shape
    n = z.shape[1]

    rows.set(lambda_sq_inv, tau_sq_inv)
    n_rounds = min(max(2, p // (10 * n)), 5)  # that take less time together than the matrices
    for k in range(n_rounds):
        z = rows.latent(z, _SCANS, k, t, key)  # z_i | other z, scales
        lambda_sq_inv = rows.local_scales(z, lambda_sq_inv, tau_sq_inv, n, k, t, key)  # lambda_j | z / |z|, others
        z = rows.length(z, k, t, key)  # |z| | z / |z|, scales

    uniform = ops.uniform((n_chains, 2 + _ATTEMPTS), key, t, GLOBAL_SLICE)
    chances = ops.uniform((n_chains, p), key, t, HELD)
    # tau, and some of the lambda_j with it | z / |z|, other lambda
    tau_sq_inv, lambda_sq_inv = rows.global_scale(z, lambda_sq_inv, tau_sq_inv, tau_0, uniform, chances)
    z = rows.length(z, n_rounds, t, key)

    noise = ops.normal(beta.shape, key, t, COEF), ops.normal(z.shape, key, t, RESIDUAL)
    beta = rows.coefficients(z, *noise)  # beta | z, scales
    for k in range(1 if move is None else 1 + _TURNS):
        index = (1 + _TURNS) * t + k
        if k > 0:  # (beta, tau), (beta_j, lambda_j)
            beta, lambda_sq_inv, tau_sq_inv = move(beta, lambda_sq_inv, tau_sq_inv, key=key, sweep=index)
        tau_sq_inv = ops.global_scale(beta[:, :p], tau_sq_inv, tau_0, key, index)  # tau | beta, lambda integrated out
        lambda_sq_inv = ops.local_scales(beta[:, :p], tau_sq_inv, key, index)  # lambda | beta, tau
    if move is not None:
        z = rows.redrawn(beta, n_rounds * _SCANS, t, key)  # z | beta
    return CollapsedState(beta, z, lambda_sq_inv, tau_sq_inv, t + 1)
