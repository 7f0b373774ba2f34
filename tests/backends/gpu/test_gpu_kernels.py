"""The CUDA kernels of random numbers, scales and Gaussians: known answers, laws, and the CPU's own results."""

import numpy as np
import pytest
from card import KEY, assert_all_close, truncated_normals
from laws import ALONE, PHILOX_ANSWERS

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._gpu import cuda
from skhorseshoe._mcmc.hmc import HmcState, Reference, Tuning

TEST_KERNELS = """
extern "C" __global__ void test_philox(const u32* in, u32* out) {
    const Words w = philox(in[0], in[1], in[2], in[3], in[4], in[5]);
    for (int i = 0; i < 4; ++i) out[i] = w.v[i];
}
extern "C" __global__ void test_truncated(const REAL* mean, REAL* out, int n, u32 sweep, u32 k0, u32 k1) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = truncated_normal(mean[i], Stream({sweep, k0, k1}, 0, LATENT_PURPOSE), i);
}
"""


def call(ops, dtype, name, blocks, *arguments):
    code = cuda.source("dense_passes") + TEST_KERNELS
    module = ops.cp.RawModule(code=code, options=(*cuda.OPTIONS, *cuda.definitions(1, dtype, True)))
    module.get_function(name)((blocks,), (128,) if blocks > 1 else (1,), arguments)


@pytest.mark.parametrize(("counter", "key", "words"), PHILOX_ANSWERS)
def test_philox_gives_the_known_answers_of_random123(counter, key, words, one_gpu):
    given, out = one_gpu.to_device(np.array(counter + key, np.uint32)), one_gpu.to_device(np.zeros(4, np.uint32))
    call(one_gpu, "float32", "test_philox", 1, given, out)
    assert " ".join(f"{int(word):08x}" for word in one_gpu.to_host(out)) == words


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truncated_normals_are_the_cpus(dtype, one_gpu):
    def truncated(means):
        given, out = one_gpu.to_device(means), one_gpu.to_device(np.full_like(means, np.nan))
        blocks = -(-len(means) // 128) + 1
        call(one_gpu, means.dtype.name, "test_truncated", blocks, given, out, np.int32(len(means)), np.uint32(5), *KEY)
        return one_gpu.to_host(out)

    means = np.append(np.random.default_rng(0).normal(0, 2, 2000), np.repeat([-40, -8, 0, 0.46, 0.48, 40], 500))
    means = means.astype(dtype)
    close = np.isclose(truncated(means), truncated_normals(means, 5, 0, KEY), rtol=2e-5, atol=2e-6)
    assert close.sum() >= len(means) - 1  # a proposal within rounding of its threshold may be judged differently


def test_variates_are_those_of_the_cpu(one_gpu):
    shape, rate = (4, 3001), np.linspace(0.1, 9, 4 * 3001).reshape(4, 3001)
    x = [one_gpu.to_host(one_gpu.normal(shape, KEY, 3, 1, attempt=attempt)) for attempt in (0, 2)]
    assert_all_close(x, [cpu.normal(shape, KEY, 3, 1, attempt=attempt) for attempt in (0, 2)], rtol=1e-12, atol=1e-14)
    e = one_gpu.to_host(one_gpu.exponential(one_gpu.to_device(rate), KEY, 3, 1))
    np.testing.assert_allclose(e, cpu.exponential(rate, KEY, 3, 1), rtol=1e-12)
    u = one_gpu.to_host(one_gpu.uniform((3, 70), KEY, 5, 12))
    np.testing.assert_array_equal(u, cpu.uniform((3, 70), KEY, 5, 12))
    for shape in (1.0, 7.0, 500.5):
        rate = np.full(256, 0.3)
        draws = one_gpu.to_host(one_gpu.gamma(shape, one_gpu.to_device(rate), KEY, 7, 2))
        np.testing.assert_allclose(draws, cpu.gamma(shape, rate, KEY, 7, 2), rtol=1e-11)


@pytest.mark.parametrize("p", [1, 8, 33, 700])
def test_scales_are_those_of_the_cpu(p, gpu):
    rng = np.random.default_rng(p)
    beta, tau_sq_inv = rng.standard_cauchy((5, p)) * 10.0 ** rng.integers(-6, 2, (5, p)), 10.0 ** rng.uniform(-3, 4, 5)
    beta[0, 1:2] = 0.0  # not all of them: the law of tau would then be improper
    given = gpu.to_device((beta, tau_sq_inv))
    for t in range(8):
        got = gpu.to_host(gpu.draw_lambda_given_beta(*given, KEY, t))
        np.testing.assert_allclose(got, cpu.draw_lambda_given_beta(beta, tau_sq_inv, KEY, t), rtol=1e-9)
        got = gpu.to_host(gpu.draw_tau_given_beta(*given, 0.7, KEY, t))
        np.testing.assert_allclose(got, cpu.draw_tau_given_beta(beta, tau_sq_inv, 0.7, KEY, t), rtol=1e-8)


# Gaussians ------------------------------------------------------------------------------------------------------------


def gaussian(q):
    """H, and b, d and noise of three chains."""
    rng = np.random.default_rng(4)
    A, b, noise = rng.standard_normal((2 * q, q)), *rng.standard_normal((2, 3, q))
    return A.T @ A, b, np.exp(rng.standard_normal((3, q))), noise


@pytest.mark.parametrize("q", [1, 5, 70])
def test_gaussian_draws_are_those_of_the_cpu(q, one_gpu, cholesky_factors):
    H, b, d, noise = gaussian(q)
    ours, theirs = one_gpu.Precision(H, None), cpu.Precision(H, ALONE)
    for expand in ((), (np.array([90.0, 80.0, 70.0]), np.array([2.0, 3.0, 4.0]))):
        got = one_gpu.to_host(ours.draw(*map(one_gpu.to_device, (b, d, noise, *expand))))
        np.testing.assert_allclose(got, theirs.draw(b, d, noise, *expand), rtol=1e-9, atol=1e-12)
    got = one_gpu.to_host(ours.inverse_diagonal(one_gpu.to_device(d), 0))
    np.testing.assert_allclose(got, theirs.inverse_diagonal(d, 0), rtol=1e-10)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("q", [1, 5, 70])
def test_trajectories_are_those_of_the_cpu(q, slow, gpu, cholesky_factors):
    p, (H, x, d, noise) = max(1, q - 1), gaussian(q)
    ours, theirs = gpu.MassMatrix(np.empty((q, q)), None, 3, p, None), cpu.MassMatrix(H, noise[0], 3, p, ALONE)
    ours.set_reference(H, noise[0])
    tuning = Tuning(0.6, 1, 6, 0.8, tuple(range(0, p, 2)) if slow else ())
    state = HmcState(x, d[:, :p] / 2, np.full(3, 2.0), noise[:, 0], noise, 7, None, None)
    reference, answer = (x[0], noise[1], H / 3), (noise[:, 0] + 1, noise / 2)

    def values(ops, gauss):
        given = ops.to_device(state)
        quadratic = Reference(*ops.to_device(reference), gauss)
        trajectory = gauss.kick_and_rotate(gauss.begin(quadratic, given, KEY), tuning.step)
        yield from (trajectory.u.copy(), trajectory.v.copy(), trajectory.energy.copy())
        *scales, share = gauss.move_scales(*given[1:3], 0.7, tuning, 7, KEY)
        yield from (*scales, share, beta := gauss.to_beta(trajectory))
        yield from gauss.kick(trajectory, tuning.step, beta, *ops.to_device(answer))
        change = ops.to_device(np.array([np.nan, 0.7, -1.0]))
        new = tuple(part.copy() for part in (beta, *scales, *ops.to_device(answer)))
        yield from ops.metropolis(change, new, given[:5], KEY, 7)

    got, want = (list(map(ops.to_host, values(ops, gauss))) for ops, gauss in ((gpu, ours), (cpu, theirs)))
    assert_all_close(got, want, rtol=1e-8, atol=1e-10)
    assert (want[3][:, tuning.slow] != state.lambda_sq_inv[:, tuning.slow]).all()
    assert (want[4] != 2.0).any()
    assert 0 < want[5].mean() < 1
    np.testing.assert_allclose(got[-1], [0.0, np.exp(-0.7), 1.0])
    np.testing.assert_array_equal(got[-6][0], x[0])  # of a change that is not a number


@pytest.mark.parametrize("rank", [5, 40])
def test_the_root_of_a_matrix_that_may_be_singular(rank, one_gpu):
    A = np.random.default_rng(rank).standard_normal((rank, 23))
    H, x = A.T @ A, np.random.default_rng(0).standard_normal((3, 23))
    ours, theirs = one_gpu.Root(H.copy()), cpu.Root(H.copy())
    L = one_gpu.to_host(ours.times(one_gpu.to_device(np.eye(23)))).T
    np.testing.assert_allclose(L @ L.T, H, rtol=1e-6, atol=1e-8 * np.trace(H))
    if rank > 23:
        np.testing.assert_allclose(one_gpu.to_host(ours.times(one_gpu.to_device(x))), theirs.times(x), rtol=1e-9)


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_an_indefinite_matrix_has_no_root(bad, one_gpu):
    for ops in (one_gpu, cpu):
        with pytest.raises(np.linalg.LinAlgError, match=r"3 columns, minor [23]"):
            ops.Root(np.diag([1.0, bad, 1.0]))


@pytest.mark.parametrize("d", [0.0, np.nan])
def test_an_indefinite_precision_is_refused_with_the_cure(d, one_gpu, cholesky_factors):
    arguments = map(one_gpu.to_device, (np.ones((1, 2)), np.full((1, 2), d), np.zeros((1, 2))))
    draw = one_gpu.Precision(-np.eye(2), None).draw(*arguments)  # the host hears of it with the next values
    with pytest.raises(np.linalg.LinAlgError, match=r"2 columns, minor 1.*StandardScaler"):
        one_gpu.to_host(draw)
    assert one_gpu.to_host(one_gpu.to_device(np.ones(1))) == 1.0


# Columns; the least of d, nearly all of the diagonal, which is raised too; whether one chain is computed at a time.
@pytest.mark.parametrize(
    ("q", "least", "alone"), [(3, 0.0, True), (70, 0.9, False), (240, 0.9, True), (300, 0.0, False)]
)
def test_a_factorisation_that_fails_is_repaired_as_on_the_cpu(q, least, alone, gpu, sizes, cholesky_factors):
    """The smallest eigenvalue is -3e-9: the fourth of the jitters helps."""
    H = np.ones((q, q)) - 3e-9 * np.eye(q)
    H[0, 1:] = H[1:, 0] = 0.0
    H -= least * np.eye(q)
    d, (b, noise) = np.full((3, q), least), np.random.default_rng(q).standard_normal((2, 3, q))
    d[1] = 2.0  # nothing to repair
    if alone:
        sizes(bytes_of_cholesky_factors=0)
    ours, given = gpu.Precision(H, None), list(map(gpu.to_device, (b, d, noise)))
    got, want = gpu.to_host(ours.draw(*given)), cpu.Precision(H, ALONE).draw(b, d, noise)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * abs(want).max())
    np.testing.assert_allclose(got[1], want[1], rtol=1e-8, atol=1e-12)
