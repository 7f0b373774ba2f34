"""The random numbers and the passes over X, against known answers, scipy.stats and plain float64 products."""

from itertools import product

import numpy as np
import pytest
from card import KEY, truncated_normals
from laws import ALONE, PHILOX_ANSWERS, philox
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import log_ndtr

from skhorseshoe._backends import LATENT_PURPOSE
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import passes, sparse
from skhorseshoe._backends._cpu.gaussian import Precision
from skhorseshoe._model import PROBIT

P_VALUE = 1e-4  # of a test that a right kernel fails once in 10,000 keys
DTYPES = [np.float32, np.float64]


@pytest.mark.parametrize(("counter", "key", "words"), PHILOX_ANSWERS)
def test_philox_gives_the_known_answers_of_random123(counter, key, words):
    assert " ".join(f"{int(word):08x}" for word in philox(counter, key)) == words


def words_of(chain, purpose, index, sweep=5):
    """Those of the first attempt, as numbers in float64."""
    index = np.asarray(index, np.uint64)
    place = chain + purpose * 2**8 + (index >> np.uint64(32)) * np.uint64(2**16)
    return [word.astype(np.float64) for word in philox((0, sweep, index % np.uint64(2**32), place), KEY)]


@pytest.mark.parametrize("purpose", [0, 3, 19])
def test_variates_are_those_of_their_place(purpose):
    """Of chain, purpose, index and sweep: all different, whoever asks for them, and in whatever order."""
    first, second, *_ = words_of(np.arange(200)[:, None], purpose, np.arange(50))
    uniform = (np.floor(first / 64) * 2**26 + np.floor(second / 64) + 0.5) / 2**52
    np.testing.assert_allclose(cpu.uniform((200, 50), KEY, 5, purpose), uniform, rtol=1e-15)
    normal = np.sqrt(-2 * np.log((first + 0.5) / 2**32)) * np.cos(2 * np.pi * (second + 0.5) / 2**32)
    np.testing.assert_allclose(cpu.normal((200, 50), KEY, 5, purpose), normal, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("first_row", [0, 7 * 2**32 - 1000])
def test_latents_far_from_zero_are_those_of_their_place_to_float32(first_row):
    """In rows of more than 32 bits too. The mean plus a standard normal far above zero, an exponential far below."""
    n, far = 50_000, 1e4
    first, second, *_ = words_of(2, LATENT_PURPOSE, first_row + np.arange(n))
    unit = np.minimum(first.astype(np.float32) * np.float32(2**-32) + np.float32(2**-33), 1 - 2.0**-24)
    exponential = -np.log(unit.astype(np.float64))
    normal = np.sqrt(2 * exponential) * np.cos(2 * np.pi * (second + 0.5) / 2**32)
    above, below = (truncated_normals(np.full(n, mean), 5, first_row, KEY, 2) for mean in (far, -far))
    np.testing.assert_allclose(above - far, normal, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(below * far, exponential, rtol=1e-6)


@pytest.mark.parametrize("shape", [1.0, 1.5, 7.0, 500.5])
def test_gamma_has_its_law(shape):
    draws = np.concatenate([cpu.gamma(shape, np.full(256, 0.3), KEY, sweep, 2) for sweep in range(80)])
    assert stats.kstest(draws, stats.gamma(shape, scale=1 / 0.3).cdf).pvalue > P_VALUE


def test_normal_and_exponential_have_their_laws():
    assert stats.kstest(cpu.normal((4, 20_000), KEY, 3, 1).ravel(), "norm").pvalue > P_VALUE
    draws = cpu.exponential(np.full((4, 20_000), 2.5), KEY, 3, 1)
    assert stats.kstest(draws.ravel(), stats.expon(scale=1 / 2.5).cdf).pvalue > P_VALUE


def test_draws_differ_between_sweeps_chains_and_purposes():
    draws = [cpu.normal((2, 50), KEY, sweep, purpose) for sweep in (0, 1) for purpose in (1, 2)]
    assert len(np.unique(draws)) == 4 * 2 * 50


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mean", [-40.0, -8.0, -2.0, -0.3, 0.0, 0.46, 0.48, 1.0, 3.0, 40.0])
def test_truncated_normal_has_its_law(mean, dtype):
    law, both = stats.truncnorm(-mean, np.inf, loc=mean), []
    for sign in (1, -1):
        z = sign * truncated_normals(np.full(40_000, sign * mean, dtype), 5, 0, KEY, positive=sign > 0).astype(float)
        assert (z > 0).all()
        assert stats.kstest(z, law.cdf).pvalue > P_VALUE
        both.append(z)
    assert abs(both[0].mean() - law.mean()) < 4 * law.std() / np.sqrt(len(z))
    np.testing.assert_array_equal(*both)  # the same proposals


@pytest.mark.parametrize("dtype", DTYPES)
def test_truncated_normal_is_finite_where_it_is_not_accurate(dtype):
    z = truncated_normals(np.repeat([-1e4, 1e4], 640).astype(dtype), 5, 0, KEY)
    assert np.isfinite(z).all()
    assert (z > 0).all()


def test_normal_tail_is_accurate_to_1e_12_and_never_zero():
    t = np.concatenate([np.linspace(-37.3, 37.3, 20_001), [1e-300, 50.0, -1e5, np.inf]])
    tail = cpu.average_probabilities(t[:, None], PROBIT).min(axis=1)
    np.testing.assert_allclose(tail[:-3], np.exp(log_ndtr(-abs(t[:-3]))), rtol=1e-12)
    assert (tail > 0).all()
    assert (tail[-3:] < 1e-300).all()


SHAPES = [(1, 1), (3, 2), (64, 5), (65, 7), (131, 33), (1030, 1), (7, 3000)]


@pytest.fixture(params=product(range(len(SHAPES)), DTYPES), ids=str)
def rows(request):
    """X, y, coefficients and bounds of blocks; and X in float64 with the intercept's column, where there is one."""
    (i, dtype), rng = request.param, np.random.default_rng(2)
    (n, p), n_ones, n_chains = SHAPES[i], i % 2, 1 + i % 3
    X = rng.standard_normal((n, p)).astype(dtype)
    X.flags.writeable = False
    coef = 2 * rng.standard_normal((n_chains, p + n_ones)) / np.sqrt(p)
    bounds = np.linspace(0, n, min(n, 3) + 1).astype(np.int64)
    bordered = np.hstack([X.astype(np.float64), np.ones((n, n_ones))])
    return X, rng.integers(0, 2, n).astype(np.uint8), coef, bounds, bordered


def test_latent_pass_sums_the_latents_of_every_row(rows):
    """Also where the number of a row begins to have more than 32 bits."""
    (X, y, coef, bounds, bordered), first = rows, 2**32 - 2
    got, squares = cpu.latent(X, y, coef, bounds, 9, KEY, ALONE, first)
    sign = np.where(y, 1.0, -1.0)
    means = (sign * (coef @ bordered.T)).astype(X.dtype)
    z = sign * np.array([truncated_normals(of_chain, 9, first, KEY, c) for c, of_chain in enumerate(means)])
    np.testing.assert_allclose(squares, (z**2).sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(got, z @ bordered, 1e-4, 2e-3 * np.sqrt(len(X)) if X.dtype == np.float32 else 1e-4)


def test_score_pass_equals_plain_scipy(rows):
    X, y, coef, bounds, bordered = rows
    sign = 2.0 * y - 1
    t = coef.astype(X.dtype).astype(np.float64) @ bordered.T * sign
    slope = np.exp(-(t**2) / 2 - log_ndtr(t)) / np.sqrt(2 * np.pi) * sign
    close = (2e-5, 2e-5 * np.sqrt(len(X))) if X.dtype == np.float32 else (1e-11, 1e-11)
    loglik, score = cpu.score(X, y, np.empty(0), coef, bounds, ALONE)
    np.testing.assert_allclose(loglik, log_ndtr(t).sum(axis=1), *close)
    np.testing.assert_allclose(score, slope @ bordered, *close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_offsets_and_effects_of_groups_are_coefficients_of_further_columns(kind, dtype, seed):
    """Of every pass, in tiles of all lengths; and what is kept of each row is what goes into the sums."""
    rng = np.random.default_rng(seed)
    n, p, n_groups = 531, 3, 4
    X, y = rng.standard_normal((n, p)).astype(dtype), rng.integers(0, 2, n).astype(np.uint8)
    offset, codes = rng.standard_normal(n).astype(dtype), rng.integers(0, n_groups, n).astype(np.int32)
    more = np.column_stack([offset, np.eye(n_groups, dtype=dtype)[codes]])
    bounds, steps = np.array([0, 200, n]), rng.standard_normal((2, 3))
    coef, direction = rng.standard_normal((2, 2, p))
    effects, slopes = rng.standard_normal((2, n_groups, 2))
    kept = np.empty((2, n, 2), dtype)
    shift = passes.Shift(offset.astype(np.float64), codes, effects, slopes, predictors=kept[0], terms=kept[1])
    wide = np.column_stack([coef, np.ones(2), effects.T]), np.column_stack([direction, np.zeros(2), slopes.T])
    close = {"rtol": 1e-10, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-3}
    given = []
    for rows, (at, along), own in (
        (kind(X), (coef, direction), shift),
        (kind(np.column_stack([X, more])), wide, None),
    ):
        draws, squares = cpu.latent(rows, y, at, bounds, 9, KEY, ALONE, first_row=5, shift=own)
        latents = kept[1].astype(np.float64)
        logliks, gradient = cpu.score(rows, y, np.empty(0), at, bounds, ALONE, shift=own)
        lines = cpu.line(rows, y, np.empty(0), at, along, steps, bounds, ALONE, shift=own)
        given.append((draws[:, :p], gradient[:, :p], logliks, lines))
        if own is not None:
            np.testing.assert_allclose(latents.T @ X, given[0][0], **close)
            np.testing.assert_allclose((latents**2).sum(axis=0), squares, **close)
            np.testing.assert_allclose(X @ coef.T, kept[0], **close)
            np.testing.assert_allclose(kept[1].astype(np.float64).T @ X, given[0][1], **close)
    (latent, *got), (full, *want) = given
    np.testing.assert_allclose(latent, full - X.T @ offset, **close)  # the offset is off, the effects are in
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10 if dtype == np.float64 else 1e-4, atol=1e-4)


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_a_part_of_the_rows_draws_what_the_whole_draws(sparse_rows):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((300, 3)), rng.integers(0, 2, 300).astype(np.uint8)
    coef = rng.standard_normal((2, 4))

    def latent(rows, **start):
        ops, some = (sparse, csr_array(X[rows])) if sparse_rows else (cpu, X[rows])
        n = some.shape[0]
        return ops.latent(ops.hold(some, y, y)[0], y[rows], coef, np.array([0, n]), 9, KEY, ALONE, **start)

    whole, parts = latent(slice(None)), [latent(slice(100)), latent(slice(100, None), first_row=100)]
    for total, first, second in zip(whole, *parts, strict=True):
        np.testing.assert_allclose(first + second, total, rtol=1e-12)


def test_sums_over_rows_keep_float64_accuracy_where_x_is_float32():
    n = 200_000
    X = np.full((n, 1), 1.0, dtype=np.float32)
    X.flags.writeable = False
    y = np.ones(n, dtype=np.uint8)
    coef = np.full((1, 1), 1000.0)  # z = 1000 + noise: a float32 sum of 2e8 would be off by hundreds
    whole, _ = cpu.latent(X, y, coef, np.array([0, n]), 0, KEY, ALONE)
    blocks, _ = cpu.latent(X, y, coef, np.linspace(0, n, 65).astype(np.int64), 0, KEY, ALONE)
    np.testing.assert_allclose(whole, blocks, rtol=1e-7)
    assert abs(whole[0, 0] / n - 1000.0) < 5 / np.sqrt(n)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gram_and_fisher_information_equal_plain_products(dtype):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 6)).astype(dtype)
    bordered = np.hstack([X.astype(np.float64), np.ones((500, 1))])
    plain = X, np.empty(0), np.zeros(6), np.ones(6), True, ALONE
    np.testing.assert_allclose(cpu.gram(*plain), bordered.T @ bordered, rtol=1e-12, atol=1e-10)
    beta = rng.standard_normal((3, 7))
    eta = bordered @ beta.T
    w = (stats.norm.pdf(eta) ** 2 / (stats.norm.cdf(eta) * stats.norm.sf(eta))).mean(axis=1)
    want = bordered.T @ (w[:, None] * bordered)
    np.testing.assert_allclose(cpu.gram(*plain, beta), want, rtol=1e-10)


def test_the_inverse_of_a_precision_has_its_diagonal():
    rng = np.random.default_rng(4)
    A, d = rng.standard_normal((10, 4)), np.exp(rng.standard_normal((2, 4)))
    want = [np.diag(np.linalg.inv(A.T @ A + np.diag(row))) for row in d]
    np.testing.assert_allclose(cpu.Precision(A.T @ A, ALONE).inverse_diagonal(d, 0), want, rtol=1e-10)


def test_a_singular_precision_is_raised_just_enough():
    H = np.ones((3, 3)) * 1e8
    draw = cpu.Precision(H, ALONE).draw(np.ones((1, 3)), np.full((1, 3), 1e-12), np.zeros((1, 3)))
    assert np.isfinite(draw).all()
    np.testing.assert_allclose(draw.sum(), 1e-8, rtol=1e-3)


@pytest.mark.parametrize("d", [0.0, np.nan])
def test_an_indefinite_precision_is_refused_with_the_cure(d):
    with pytest.raises(np.linalg.LinAlgError, match="StandardScaler"):
        cpu.Precision(-np.eye(2), ALONE).draw(np.ones((1, 2)), np.full((1, 2), d), np.zeros((1, 2)))


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_fewer_threads_than_workers_draw_all_chains(n_workers):
    H = np.eye(200)
    b, d, noise = np.arange(1.0, 5)[:, None] * np.ones(200), np.ones((4, 200)), np.zeros((4, 200))
    drawn = Precision(H, ALONE, n_workers=n_workers).draw(b, d, noise)
    np.testing.assert_allclose(drawn, b / 2)
