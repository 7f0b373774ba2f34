"""Small cases of every kernel, as a program: it runs in the emulator with flags for its compiler, and prints what was
computed. Its argument is JSON: orders of the threads, the flags, the names of the parts, sizes of dense rows, and bytes
of shared memory that are not asked for."""

import importlib
import json
import sys

import numpy as np

from cuda_emulator import fake_cupy
from skhorseshoe._backends._gpu import cuda
from skhorseshoe._mcmc.hmc import HmcState, Reference, Tuning
from skhorseshoe._model import PROBIT

KEY = np.array([1, 2], np.uint32)


def passes(ops, card, rng, sizes):
    """The passes over dense rows, of (n, p, n_chains, dtype, bytes of shared memory)."""
    for n, p, n_chains, dtype, shared in sizes:
        card.properties["sharedMemPerBlockOptin"] = shared
        X, y = rng.standard_normal((n, p)).astype(dtype), rng.integers(0, 2, n).astype(np.uint8)
        beta = ops.to_device(rng.standard_normal((n_chains, p + 1)) / p)
        held = ops.hold(X, y, rng.exponential(size=n))
        yield from ops.latent(*held[:2], beta, None, 1, KEY, None)
        yield from ops.score(*held, beta, None, None)
        yield ops.line(*held, beta, 2 * beta, along(ops, rng, n_chains), None, None)
    card.properties["sharedMemPerBlockOptin"] = 2**18


def along(ops, rng, n_chains):
    """Steps along lines."""
    return ops.to_device(rng.standard_normal((n_chains, 17)))


def scales(ops, card, rng, sizes):
    """tau and lambda given beta, and the answers to rows."""
    beta, tau = ops.to_device(rng.standard_normal((2, 70))), ops.to_device(np.ones(2))
    yield ops.draw_lambda_given_beta(beta, tau, KEY, 1)
    yield ops.draw_tau_given_beta(beta, tau, 1.0, KEY, 1)
    yield ops.normal((2, 70), KEY, 1, 1)
    steps, _ = ops.proposals(ops.uniform((2, 19), KEY, 1, 1), tau)
    yield from (steps, ops.first_inside(-(steps**2), steps, tau / 2))
    X, draws = (ops.to_device(rng.standard_normal(shape)) for shape in ((3, 4), (300, 4)))
    yield ops.average_probabilities(X @ draws.T, PROBIT)


def gaussians(ops, card, rng, sizes):
    """Factors by one block in shared memory, and by the library; some have to be repaired."""
    gaussian = importlib.import_module("skhorseshoe._backends._gpu.gaussian")
    q = 9
    beta, tau = ops.to_device(rng.standard_normal((2, q))), ops.to_device(np.ones(2))
    A = rng.standard_normal((20, q))
    indefinite = np.ones((q, q)) - 3e-9 * np.eye(q)
    indefinite[0, 1:] = indefinite[1:, 0] = 0.0
    for gaussian.THREADS in (256, 0):
        white = ops.MassMatrix(A.T @ A, A[0], 2, q, None)
        trajectory = white.begin(
            Reference(beta[0], beta[1], ops.to_device(A.T @ A), white),
            HmcState(beta, beta**2, tau, tau, beta, 1, None, None),
            KEY,
        )
        *moved, _ = white.move_scales(beta**2, tau, 1.0, Tuning(0.5, 1, 2, 0.8, tuple(range(1, q, 3))), 1, KEY)
        yield from (trajectory.u, trajectory.force, *moved, white.to_beta(trajectory))
        yield ops.Precision(A.T @ A, None).inverse_diagonal(beta**2, 0)
        yield ops.Precision(indefinite, None).draw(beta, 0 * beta, beta)


PARTS = {part.__name__: part for part in (passes, scales, gaussians)}


def main(orders, flags, parts, sizes, left_out):
    layout = cuda.layout
    cuda.layout = lambda *given: (cut := layout(*given))._replace(shared_bytes=cut.shared_bytes - left_out)
    results = []
    for order in orders:
        with fake_cupy.installed(order) as card:
            card.flags = flags
            ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
            out = [values for part in parts for values in PARTS[part](ops, card, np.random.default_rng(3), sizes)]
            results.append([ops.to_host(values).ravel().tolist() for values in out])
    print(json.dumps(results))


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
