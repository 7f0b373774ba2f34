"""The CUDA kernels, through the back end that launches them: known answers, laws, and the CPU's own results.

In the emulator these tests run for three orders of the threads of a block; ``pytest -m gpu`` runs them on a card.
"""

import numpy as np
import pytest
from card import truncated_normals
from laws import PHILOX_ANSWERS
from scipy import stats
from scipy.special import log_ndtr, ndtr

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._gpu import cuda
from skhorseshoe._mcmc.hmc import HmcState, Reference, Tuning
from skhorseshoe._utils.threads import Threads

KEY = (np.uint32(0x12345678), np.uint32(0x9ABCDEF0))
P_VALUE = 1e-4  # of a test that a right kernel fails once in 10,000 keys
ALONE = Threads(1)
NONE = np.empty(0)  # for no weights
TEST_KERNELS = """
extern "C" __global__ void test_philox(const u32* in, u32* out) {
    const Words w = philox(in[0], in[1], in[2], in[3], in[4], in[5]);
    for (int i = 0; i < 4; ++i) out[i] = w.v[i];
}
extern "C" __global__ void test_truncated(const REAL* mean, REAL* out, int n, u32 sweep, u32 k0, u32 k1) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = truncated_normal<REAL>(mean[i], sweep, i, stream_of(0, LATENT_PURPOSE, i), k0, k1);
}
"""


def call(ops, dtype, name, blocks, *arguments):
    code = cuda.source("passes") + TEST_KERNELS
    module = ops.cp.RawModule(code=code, options=(*cuda.OPTIONS, *cuda.definitions(1, dtype, True)))
    module.get_function(name)((blocks,), (128,) if blocks > 1 else (1,), arguments)


@pytest.mark.parametrize(("counter", "key", "words"), PHILOX_ANSWERS)
def test_philox_gives_the_known_answers_of_random123(counter, key, words, one_gpu):
    given, out = one_gpu.to_device(np.array(counter + key, np.uint32)), one_gpu.to_device(np.zeros(4, np.uint32))
    call(one_gpu, "float32", "test_philox", 1, given, out)
    assert " ".join(f"{int(word):08x}" for word in one_gpu.to_host(out)) == words


def truncated(ops, means):
    """Truncated normals for the given means."""
    means, out = ops.to_device(means), ops.to_device(np.full_like(means, np.nan))
    n = means.shape[0]
    call(ops, means.dtype.name, "test_truncated", -(-n // 128) + 1, means, out, np.int32(n), np.uint32(5), *KEY)
    return ops.to_host(out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mean", [-40.0, -8.0, -0.3, 0.0, 0.46, 0.48, 3.0, 40.0])
def test_truncated_normal_has_its_law(mean, dtype, one_gpu):
    z = truncated(one_gpu, np.full(20_000, mean, dtype)).astype(np.float64)
    assert (z > 0).all()
    law = stats.truncnorm(-mean, np.inf, loc=mean)
    assert stats.kstest(z, law.cdf).pvalue > P_VALUE
    assert abs(z.mean() - law.mean()) < 4 * law.std() / np.sqrt(len(z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truncated_normals_are_those_of_the_cpu(dtype, one_gpu):
    means = np.random.default_rng(0).normal(0, 2, 2000).astype(dtype)
    close = np.isclose(truncated(one_gpu, means), truncated_normals(means, 5, 0, *KEY), rtol=2e-5, atol=2e-6)
    assert close.sum() >= len(means) - 1  # a proposal within rounding of its threshold may be judged differently


def test_normals_exponentials_and_gammas_are_those_of_the_cpu_and_have_their_laws(one_gpu):
    x = one_gpu.to_host(one_gpu.normal((4, 3001), KEY, 3, 1))
    np.testing.assert_allclose(x, cpu.normal((4, 3001), KEY, 3, 1), rtol=1e-12, atol=1e-14)
    x = one_gpu.to_host(one_gpu.normal((4, 3001), KEY, 3, 1, attempt=2))
    np.testing.assert_allclose(x, cpu.normal((4, 3001), KEY, 3, 1, attempt=2), rtol=1e-12, atol=1e-14)
    assert stats.kstest(x.ravel(), "norm").pvalue > P_VALUE
    rate = np.linspace(0.1, 9, 4 * 3001).reshape(4, 3001)
    e = one_gpu.to_host(one_gpu.exponential(one_gpu.to_device(rate), KEY, 3, 1))
    np.testing.assert_allclose(e, cpu.exponential(rate, KEY, 3, 1), rtol=1e-12)
    assert stats.kstest((e * rate).ravel(), "expon").pvalue > P_VALUE
    for shape in (1.0, 7.0, 500.5):
        rate = np.full(256, 0.3)
        draws = [one_gpu.to_host(one_gpu.gamma(shape, one_gpu.to_device(rate), KEY, sweep, 2)) for sweep in range(20)]
        np.testing.assert_allclose(draws[7], cpu.gamma(shape, rate, KEY, 7, 2), rtol=1e-11)
        assert stats.kstest(np.concatenate(draws), stats.gamma(shape, scale=1 / 0.3).cdf).pvalue > P_VALUE


def coefficients(p):
    rng = np.random.default_rng(p)
    beta = rng.standard_cauchy((5, p)) * 10.0 ** rng.integers(-6, 2, (5, p))
    beta[0, 1:2] = 0.0  # not all of them: the law of tau would then be improper
    return beta, 10.0 ** rng.uniform(-3, 4, 5)


@pytest.mark.parametrize("p", [1, 8, 33, 700])
def test_scales_are_those_of_the_cpu(p, gpu):
    beta, tau_sq_inv = coefficients(p)
    arguments = gpu.to_device(beta), gpu.to_device(tau_sq_inv)
    for t in range(8):
        got = gpu.to_host(gpu.local_scales(*arguments, KEY, t))
        np.testing.assert_allclose(got, cpu.local_scales(beta, tau_sq_inv, KEY, t), rtol=1e-9)
        got = gpu.to_host(gpu.global_scale(*arguments, 0.7, KEY, t))
        np.testing.assert_allclose(got, cpu.global_scale(beta, tau_sq_inv, 0.7, KEY, t), rtol=1e-8)


# Rows, columns, chains and type: one row, one column, ragged tiles of all kinds, several times as many blocks as run at
# a time (p = 300), more chains than one launch carries.
PASSES = [
    (1, 1, 1, "float32"),
    (300, 1, 1, "float32"),
    (3, 2, 4, "float32"),
    (65, 7, 2, "float32"),
    (65, 7, 3, "float32"),
    (65, 7, 8, "float32"),
    (40, 9, 16, "float64"),
    (40, 9, 12, "float16"),
    (700, 141, 4, "float32"),
    (1100, 300, 1, "float32"),
    (23, 600, 4, "float32"),
    (23, 1100, 4, "float32"),
    (23, 1900, 4, "float32"),
    (9, 2500, 4, "float32"),
    (17, 3000, 4, "float32"),
    (19, 4000, 4, "float32"),
    (9, 5000, 4, "float32"),
    (13, 1300, 3, "float64"),
    (13, 3000, 4, "float16"),
    (5, 20_000, 3, "float32"),
    (131, 33, 17, "float32"),
    (131, 33, 4, "float64"),
    (131, 33, 4, "float16"),
    (30, 1001, 3, "float16"),
]

LIMITS, CACHED = (113 * 1024, 227 * 1024), 0.7 * 50 * 2**20 // 132  # of an H200


def test_the_passes_have_tiles_of_all_kinds():
    kinds = set()
    for _, p, n_chains, dtype in PASSES:
        cut = cuda.layout(p, p + 1, min(n_chains, cuda.MAX_CHAINS), dtype, LIMITS, CACHED)
        kinds.add((cut.tile, cut.buffers if cut.staged else 0, cut.shared_bytes <= LIMITS[0]))
    staged = {(8, 2, True), (4, 2, True), (8, 2, False), (4, 2, False), (4, 1, False), (8, 1, False)}
    assert kinds >= staged | {(rows, 0, True) for rows in (16, 8, 4)}


@pytest.mark.parametrize("dtype", cuda.TYPES)
@pytest.mark.parametrize("n_chains", [1, 4, 16])
@pytest.mark.parametrize("limits", [LIMITS, (31 * 1024, 64 * 1024)])
def test_a_tile_is_as_large_as_there_is_room_for(limits, n_chains, dtype):
    """First for two blocks on a multiprocessor, if their registers have room there, then for one."""
    _, _, element, real = cuda.TYPES[dtype]
    least = 8 if dtype == "float16" else 4
    rows = [2**k for k in range(9) if 2**k >= least]
    for p in range(1, 12_000, 7):
        sizes = {m: [m * p * element, (max(1, 32 // m) + 1) * m * n_chains * real] for m in rows}
        rest = 16 * sum(-(-size * (p + 1) * n_chains // 16) for size in (8, real))  # sums and coefficients
        some = [m for m in rows if m <= 8 or sizes[m][0] <= 2**15]
        fitting = [[m for m in some if rest + 2 * sizes[m][0] + sizes[m][1] <= limit] for limit in limits]
        if n_chains * real > 32:
            fitting[0] = []
        tiles = fitting[0] or fitting[1]
        want = (True, max(tiles), 2) if tiles else (rest + sum(sizes[least]) <= limits[1], least, 1)
        cut = cuda.layout(p, p + 1, n_chains, dtype, limits, CACHED)
        assert cut[1:4] == want if cut.staged else not want[0]
        assert cut.shared_bytes <= limits[1]
        assert cut.staged <= (cut.tile * p * element % 16 == 0)


def held_by(ops, X, y, weight=NONE):
    return ops.hold(X, y, weight)


def test_rows_begin_at_a_multiple_of_16_bytes(one_gpu):
    flat = one_gpu.to_device(np.arange(22, dtype=np.float32))
    X, *_ = held_by(one_gpu, flat[1:].reshape(7, 3), np.ones(7, np.uint8))
    assert X.data.ptr % 16 == 0


def test_float16_rows_stay_in_16_bits(one_gpu):
    X, *_ = held_by(one_gpu, np.ones((8, 3), np.float16), np.ones(8, np.uint8))
    assert (X.dtype, X.nbytes) == (np.float16, 48)


def problem(n, p, n_chains, dtype, fit_intercept):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, p)).astype(dtype)
    y = rng.integers(0, 2, n).astype(np.uint8)
    coef = rng.standard_normal((n_chains, p + fit_intercept)) / np.sqrt(p)
    held = X.astype(np.float32 if dtype == "float16" else dtype)  # as the CPU computes it
    held.flags.writeable = False
    return X, held, y, coef


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p", "n_chains", "dtype"), PASSES)
def test_latent_pass_sums_the_latents_that_the_cpu_draws(n, p, n_chains, dtype, fit_intercept, gpu):
    X, held, y, coef = problem(n, p, n_chains, dtype, fit_intercept)
    got = map(gpu.to_host, gpu.latent(*held_by(gpu, X, y)[:2], gpu.to_device(coef), None, 9, KEY, None))
    want = cpu.latent(held, y, coef, np.array([0, n]), 9, KEY, ALONE)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * np.sqrt(n) if dtype != "float64" else 1e-6)


def test_a_part_of_the_rows_draws_what_the_whole_draws(one_gpu):
    X, held, y, coef = problem(300, 3, 2, "float64", True)
    some = slice(100, None)
    got = one_gpu.latent(*held_by(one_gpu, X[some], y[some])[:2], one_gpu.to_device(coef), None, 9, KEY, None, 100)
    want = cpu.latent(held[some], y[some], coef, np.array([0, 200]), 9, KEY, ALONE, 100)
    for ours, theirs in zip(map(one_gpu.to_host, got), want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "p", "n_chains", "dtype"), PASSES)
def test_score_pass_gives_log_likelihood_and_gradient(n, p, n_chains, dtype, weighted, gpu):
    X, _, y, coef = problem(n, p, n_chains, dtype, True)
    weight = np.random.default_rng(n).exponential(size=n) if weighted else NONE
    loglik, score = map(gpu.to_host, gpu.score(*held_by(gpu, X, y, weight), gpu.to_device(coef), None, None))
    sign = 2.0 * y - 1.0
    rows = np.column_stack([X.astype(np.float64), np.ones(n)])
    t = sign * (coef @ rows.T)
    ratio = np.exp(stats.norm.logpdf(t) - log_ndtr(t))
    single, w = dtype != "float64", weight if weighted else np.ones(n)
    np.testing.assert_allclose(loglik, log_ndtr(t) @ w, rtol=1e-6 if single else 1e-12)
    np.testing.assert_allclose(score, (w * sign * ratio) @ rows, rtol=1e-5, atol=1e-5 * np.sqrt(n) if single else 1e-10)


@pytest.mark.parametrize("t", [-1e5, -40.0, -20.0, -3.0, -1e-9, 0.0, 1e-9, 3.0, 20.0, 37.0, 1e5])
def test_score_is_accurate_and_finite_in_the_far_tails(t, one_gpu):
    held = held_by(one_gpu, np.ones((1, 1)), np.ones(1, np.uint8))
    loglik, score = map(one_gpu.to_host, one_gpu.score(*held, one_gpu.to_device(np.full((1, 1), t)), None, None))
    if t > 40:
        assert np.isfinite([loglik[0], score[0, 0]]).all()
        return
    np.testing.assert_allclose(loglik[0], log_ndtr(t), rtol=1e-11)
    ratio = np.exp(stats.norm.logpdf(t) - log_ndtr(t)) if t >= -40 else -t - 1 / t
    np.testing.assert_allclose(score[0, 0], ratio, rtol=1e-11)


def test_float32_rows_are_summed_in_float64(one_gpu):
    n = 20_000
    X, y = np.ones((n, 1), np.float32), np.ones(n, np.uint8)
    coef = one_gpu.to_device(np.full((1, 1), 1000.0))
    total = one_gpu.to_host(one_gpu.latent(*held_by(one_gpu, X, y)[:2], coef, None, 0, KEY, None)[0])[0, 0]
    X = X.astype(np.float64)
    exact = one_gpu.to_host(one_gpu.latent(*held_by(one_gpu, X, y)[:2], coef, None, 0, KEY, None)[0])[0, 0]
    assert abs(total / exact - 1) < 2e-7


def questions(ops, X, weight, p, beta, threads=None):
    """What is asked of rows before sampling, of columns that are moved and scaled."""
    centre, scale = np.linspace(-1, 1, p), np.linspace(0.5, 2, p)
    plain = ops.gram(X, weight, np.zeros(p), np.ones(p), True, threads)
    moved = ops.gram(X, weight, centre, scale, True, threads, beta)
    return [plain, moved, *ops.moments(X, weight)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_matrices_and_moments_are_those_of_the_cpu(dtype, weighted, one_gpu, monkeypatch):
    X, held, y, beta = problem(300, 6, 3, dtype, True)
    weight = np.random.default_rng(0).exponential(size=300) if weighted else NONE
    want = questions(cpu, held, weight, 6, beta, ALONE)
    X, _, placed = held_by(one_gpu, X, y, weight)
    for elements in (2**25, 7 * 40):  # one block of rows, or several
        monkeypatch.setitem(one_gpu.gram.__globals__, "WIDENED", elements)
        for ours, theirs in zip(questions(one_gpu, X, placed, 6, beta), want, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-10)


def test_averages_of_probabilities_sum_both_tails(one_gpu):
    X, _, _, coef = problem(150, 5, 300, "float64", True)
    coef[:, 0] *= 20
    eta = X @ coef[:, :5].T + coef[:, 5]
    got = one_gpu.to_host(one_gpu.average_phi(one_gpu.to_device(eta)))
    np.testing.assert_allclose(got, np.column_stack([ndtr(-eta).mean(axis=1), ndtr(eta).mean(axis=1)]), rtol=1e-11)


def gaussian(q, n_chains, seed=4):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((2 * q, q))
    d = np.exp(rng.standard_normal((n_chains, q)))
    return A.T @ A, rng.standard_normal((n_chains, q)), d, rng.standard_normal((n_chains, q))


@pytest.mark.parametrize("q", [1, 5, 70])
def test_gaussian_draws_are_those_of_the_cpu(q, one_gpu, factors):
    H, b, d, noise = gaussian(q, 3)
    ours, theirs = one_gpu.Precision(H, None), cpu.Precision(H, ALONE)
    got = ours.draw(*map(one_gpu.to_device, (b, d, noise)))
    np.testing.assert_allclose(one_gpu.to_host(got), theirs.draw(b, d, noise), rtol=1e-9, atol=1e-12)
    expand = np.array([90.0, 80.0, 70.0]), np.array([2.0, 3.0, 4.0])
    got = ours.draw(*map(one_gpu.to_device, (b, d, noise, *expand)))
    np.testing.assert_allclose(one_gpu.to_host(got), theirs.draw(b, d, noise, *expand), rtol=1e-9, atol=1e-12)
    got = ours.inverse_diagonal(one_gpu.to_device(d), 0)
    np.testing.assert_allclose(one_gpu.to_host(got), theirs.inverse_diagonal(d, 0), rtol=1e-10)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("q", [1, 5, 70])
def test_paths_are_those_of_the_cpu(q, slow, gpu, factors):
    p, (H, x, d, noise) = max(1, q - 1), gaussian(q, 3)
    ours, theirs = gpu.Whitening(np.empty((q, q)), None, 3, p, None), cpu.Whitening(H, noise[0], 3, p, ALONE)
    ours.refer(H, noise[0])
    tuning = Tuning(0.6, 1, 6, 0.8, tuple(range(0, p, 2)) if slow else ())
    state = HmcState(x, d[:, :p] / 2, np.full(3, 2.0), noise[:, 0], noise, 7, None, None)
    reference, answer = (x[0], noise[1], H / 3), (noise[:, 0] + 1, noise / 2)

    def path(ops, gauss):
        given = ops.to_device(state)
        quadratic = Reference(*ops.to_device(reference), gauss)
        path = gauss.turn(gauss.begin(quadratic, given, KEY), tuning.step)
        yield from (path.u.copy(), path.v.copy(), path.total.copy())
        *scales, share = gauss.move_scales(*given[1:3], 0.7, tuning, 7, KEY)
        yield from (*scales, share, beta := gauss.place(path))
        yield from gauss.kick(path, tuning.step, quadratic, beta, *ops.to_device(answer))
        change = ops.to_device(np.array([np.nan, 0.7, -1.0]))
        yield from ops.metropolis(change, (beta, *scales, *ops.to_device(answer)), given[:5], KEY, 7)

    got, want = (list(map(ops.to_host, path(ops, gauss))) for ops, gauss in ((gpu, ours), (cpu, theirs)))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    assert (want[3][:, tuning.slow] != state.lambda_sq_inv[:, tuning.slow]).all()
    assert (want[4] != 2.0).any()
    assert 0 < want[5].mean() < 1
    np.testing.assert_allclose(got[-1], [0.0, np.exp(-0.7), 1.0])
    np.testing.assert_array_equal(got[-6][0], x[0])  # of a change that is not a number


@pytest.mark.parametrize("rank", [5, 40])
def test_the_root_of_a_matrix_that_may_be_singular(rank, one_gpu):
    A = np.random.default_rng(rank).standard_normal((rank, 23))
    H = A.T @ A
    x = np.random.default_rng(0).standard_normal((3, 23))
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


@pytest.mark.parametrize(("m", "q"), [(1, 1), (4, 31), (17, 70)])
def test_products_with_a_symmetric_matrix_are_those_of_numpy(m, q, gpu, factors):
    rng = np.random.default_rng(q)
    v, A = rng.standard_normal((m, q)), rng.standard_normal((q, q))
    M = A + A.T
    for given in (v, np.asfortranarray(v)):
        got = gpu.times_symmetric(*map(gpu.to_device, (given, M)))
        np.testing.assert_allclose(gpu.to_host(got), v @ M, rtol=1e-12, atol=1e-12)


def test_a_singular_precision_is_raised_for_the_chains_that_need_it(one_gpu, factors):
    H, d = np.ones((3, 3)) * 1e8, np.array([[1e-12] * 3, [1.0] * 3])
    arguments = np.ones((2, 3)), d, np.zeros((2, 3))
    draw = one_gpu.to_host(one_gpu.Precision(H, None).draw(*map(one_gpu.to_device, arguments)))
    np.testing.assert_allclose(draw[0].sum(), 1e-8, rtol=1e-3)
    np.testing.assert_allclose(draw[1], np.linalg.solve(H + np.eye(3), np.ones(3)), rtol=1e-6)


@pytest.mark.parametrize("d", [0.0, np.nan])
def test_an_indefinite_precision_is_refused_with_the_cure(d, one_gpu, factors):
    arguments = map(one_gpu.to_device, (np.ones((1, 2)), np.full((1, 2), d), np.zeros((1, 2))))
    draw = one_gpu.Precision(-np.eye(2), None).draw(*arguments)  # the host hears of it with the next values
    with pytest.raises(np.linalg.LinAlgError, match=r"2 columns, minor 1.*StandardScaler"):
        one_gpu.to_host(draw)
    assert one_gpu.to_host(one_gpu.to_device(np.ones(1))) == 1.0


def indefinite(q, d):
    """A matrix to which d is to be added. The smallest eigenvalue is then -3e-9: the fourth of the jitters helps."""
    H = np.ones((q, q)) - 3e-9 * np.eye(q)
    H[0, 1:] = H[1:, 0] = 0.0
    return H - d * np.eye(q)


@pytest.mark.parametrize("begun", [False, True])  # in the room of one chain, or of all at a time
@pytest.mark.parametrize("least", [0.0, 0.9])  # of d, nearly all of the diagonal: that is raised too
@pytest.mark.parametrize("q", [3, 70, 240, 300])
def test_a_factorisation_that_fails_is_repaired_as_on_the_cpu(q, least, begun, gpu, factors):
    d, rng = np.full((3, q), least), np.random.default_rng(q)
    d[1] = 2.0  # nothing to repair
    b, noise = rng.standard_normal((2, 3, q))
    ours, given = gpu.Precision(indefinite(q, least), None), list(map(gpu.to_device, (b, d, noise)))
    if begun:
        ours.begin(given[1])
    got = gpu.to_host(ours.draw(*given))
    want = cpu.Precision(indefinite(q, least), ALONE).draw(b, d, noise)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * abs(want).max())
    np.testing.assert_allclose(got[1], want[1], rtol=1e-8, atol=1e-12)
