"""Random numbers of one purpose, for all chains; ``dense.py`` describes the functions that call these."""

from numba import uint32

from .jit import kernel
from .philox import exponential_1, gamma_1, normal_and_unit, stream, unit_1


@kernel
def fill_normal(out, attempt, sweep, purpose, k0, k1):
    """Independent N(0, 1); out (n_chains, m)."""
    for c in range(out.shape[0]):
        st = stream(c, purpose, 0)
        for j in range(out.shape[1]):
            out[c, j], _ = normal_and_unit(attempt, uint32(sweep), j, st, k0, k1)


@kernel
def fill_uniform(out, sweep, purpose, k0, k1):
    """Independent uniforms on (0, 1); out (n_chains, m)."""
    for c in range(out.shape[0]):
        st = stream(c, purpose, 0)
        for j in range(out.shape[1]):
            out[c, j] = unit_1(0, uint32(sweep), j, st, k0, k1)


@kernel
def fill_exponential(out, sweep, purpose, k0, k1):
    """Independent standard exponentials; out (n_chains, m)."""
    for c in range(out.shape[0]):
        st = stream(c, purpose, 0)
        for j in range(out.shape[1]):
            out[c, j] = exponential_1(0, uint32(sweep), j, st, k0, k1)


@kernel
def fill_gamma(shape, rate, out, sweep, purpose, k0, k1):
    """Gamma(shape, rate); rate, out (n_chains,)."""
    for c in range(out.shape[0]):
        out[c] = gamma_1(shape, uint32(sweep), 0, stream(c, purpose, 0), k0, k1) / rate[c]
