"""The sampler for more columns than rows on the GPU, against that of the CPU."""

import pickle

import numpy as np
import pytest
from card import KEY, NONE
from laws import ALONE, TAU_0, all_draws, same_draws

from skhorseshoe._backends import device
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe.datasets import make_correlated_probit

LATENT = {"rtol": 2e-5, "atol": 1e-6}  # standard variates have the resolution of float32
CLOSE = {"rtol": 1e-8, "atol": 1e-10}

# Rows, columns, chains, type of X, intercept, unpenalized columns, precision of the slab, columns with huge weights.
PROBLEMS = {
    "one row": (1, 3, 1, "float64", True, 0, 0.25, 0),
    "without an intercept": (5, 12, 3, "float16", False, 0, 0.0, 0),
    "fewer columns than rows": (40, 7, 2, "float64", True, 1, 0.25, 0),
    "unpenalized": (33, 90, 2, "float32", True, 2, 0.25, 0),
    "heavy": (33, 50, 2, "float64", True, 0, 0.0, 3),
    "several blocks": (70, 150, 2, "float64", True, 0, 0.25, 0),
}


class Both:
    """The same rows on the CPU and on the GPU, and unknowns to ask them about."""

    def __init__(self, ops, n, p, n_chains, dtype, intercept, n_unpenalized, slab_precision, n_heavy):
        rng = np.random.default_rng(n + p)
        X = rng.standard_normal((n, p)).astype(dtype)
        y = rng.integers(0, 2, n).astype(np.uint8)
        centre, scale, anchor = rng.standard_normal((3, p))
        columns = rng.permutation(p), centre, np.exp(scale), anchor if intercept else None
        prior = np.array([3.0] * n_unpenalized + [100.0] * intercept), slab_precision, n_chains
        self.ops, self.n = ops, n
        self.theirs = cpu.CollapsedRows(*cpu.hold(X, y, None)[:2], *columns, *prior, ALONE)
        self.ours = ops.CollapsedRows(*ops.hold(X, y, NONE)[:2], *columns, *prior, None)
        q, n_shrunk = p + intercept, p - n_unpenalized
        self.lambda_sq_inv, self.tau_sq_inv = np.exp(rng.standard_normal((n_chains, n_shrunk))), np.full(n_chains, 2.0)
        self.lambda_sq_inv[:, 1 : 1 + n_heavy] = [1e-24, 1e-40, 1e-30][:n_heavy]
        self.beta, self.z = rng.standard_normal((n_chains, q)) / 3, rng.standard_normal((n_chains, n))
        self.prior_noise, self.row_noise = rng.standard_normal((n_chains, q)), rng.standard_normal((n_chains, n))
        self.uniform, self.chances = rng.uniform(size=(n_chains, 42)), rng.uniform(size=(n_chains, n_shrunk))
        self.z = np.where(y, 1, -1) * abs(self.z)
        self.ask("set", self.lambda_sq_inv, self.tau_sq_inv)

    def ask(self, question, *given):
        """The answers of the GPU and of the CPU."""
        ours, theirs = getattr(self.ours, question), getattr(self.theirs, question)
        copies = [value.copy() if isinstance(value, np.ndarray) else value for value in given]
        return self.ops.to_host(ours(*map(self.ops.to_device, given))), theirs(*copies)

    def same_matrices(self, **tolerance):
        for name in ("P", "log_det", "w"):
            got, want = self.ops.to_host(getattr(self.ours, name)), getattr(self.theirs, name)
            np.testing.assert_allclose(got, want, err_msg=name, **(tolerance or CLOSE))


@pytest.fixture(params=PROBLEMS)
def both(request, gpu):
    return Both(gpu, *PROBLEMS[request.param])


def test_matrices_and_products_are_those_of_the_cpu(both):
    both.same_matrices()
    np.testing.assert_allclose(*both.ask("predictor", both.beta), **CLOSE)
    np.testing.assert_allclose(*both.ask("some_latent", both.beta), **CLOSE)
    ours, theirs = both.ask("information", both.beta)
    np.testing.assert_allclose(ours, theirs, **CLOSE)
    np.testing.assert_allclose(*both.ask("shrinkage", both.lambda_sq_inv, both.tau_sq_inv, theirs), **CLOSE)


def test_latent_scores_are_those_of_the_cpu(both):
    got, want = both.ask("latent", both.z, 3, 2, 9, KEY)
    np.testing.assert_allclose(got, want, **LATENT)
    assert (np.sign(got) == np.sign(both.z)).all()
    assert (got != both.z).all()
    np.testing.assert_allclose(*both.ask("length", want, 2, 9, KEY), **CLOSE)
    redrawn, their_own = both.ask("redrawn", both.beta, 10, 9, KEY)
    np.testing.assert_allclose(redrawn, their_own, **LATENT)
    assert (np.sign(redrawn) == np.sign(both.z)).all()


def test_scales_are_those_of_the_cpu_and_take_the_matrices_along(both):
    before = both.lambda_sq_inv
    n_columns = both.n if both.n > 1 else before.shape[1]  # one row is as close to every column, but for rounding
    got, want = both.ask("local_scales", both.z, before, both.tau_sq_inv, n_columns, 1, 9, KEY)
    np.testing.assert_allclose(got, want, **CLOSE)
    assert (got != before).any()
    both.same_matrices()
    given = both.z, want, both.tau_sq_inv, TAU_0, both.uniform, both.chances
    (tau_sq_inv, lambda_sq_inv), (their_tau_sq_inv, theirs) = both.ask("global_scale", *given)
    np.testing.assert_allclose(tau_sq_inv, their_tau_sq_inv, **CLOSE)
    np.testing.assert_allclose(lambda_sq_inv, theirs, **CLOSE)
    assert (tau_sq_inv != both.tau_sq_inv).any()
    both.same_matrices()


def test_draws_of_lambda_carry_forms_of_the_matrices_along(one_gpu, monkeypatch):
    """z'Pz and the trace of P, which decide what a lambda_j may be, follow from column to column without P."""
    both, forms = Both(one_gpu, *PROBLEMS["several blocks"]), []
    plain = both.ours._forms
    monkeypatch.setattr(both.ours, "_forms", lambda *given: forms.append(plain(*given)) or forms[-1])
    both.ask("local_scales", both.z, both.lambda_sq_inv, both.tau_sq_inv, both.n, 0, 9, KEY)
    (forms,), P = map(one_gpu.to_host, (tuple(forms), both.ours.P))
    np.testing.assert_allclose(forms[:, 0], np.einsum("ci,cij,cj->c", both.z, P, both.z), rtol=1e-9)
    np.testing.assert_allclose(forms[:, 1], P.trace(axis1=1, axis2=2), rtol=1e-9)


@pytest.mark.parametrize("alike", [False, True])
def test_lambda_stays_where_rounding_leaves_something_of_its_law(alike, one_gpu):
    """Near both limits: columns that say nearly all, and a column that another one says already."""
    both = Both(one_gpu, 5, 12, 16, "float64", False, 0, 0.0, 0)
    for rows in (both.ours, both.theirs):
        rows.X = rows.X.copy()
        rows.blocks.clear()  # which are of X before
        if alike:
            for values in (rows.X.T, rows.centre, rows.root):
                order = rows.order if values is not rows.root else np.arange(12)
                values[int(order[2])] = values[int(order[1])]
            rows.square[2] = rows.square[1]
    if alike:  # |x_j|^2 w_j of the chains is around its limit
        both.lambda_sq_inv[:, 1] = both.theirs.square[1] / (2.0 * 1e6)
        both.lambda_sq_inv[:, 2] = both.theirs.square[1] / (2.0 * 10.0 ** np.linspace(7, 10, 16))
    else:  # x_j'P x_j w_j is just below
        both.lambda_sq_inv[:, 1] = 1e30
        both.ask("set", both.lambda_sq_inv, both.tau_sq_inv)
        (x,) = both.theirs._columns(np.array([1]))
        both.lambda_sq_inv[:, 1] = x @ (both.theirs.P @ x).T / (2.0 * 10.0 ** np.linspace(4.4, 4.95, 16))
    for t in range(10):
        both.ask("set", both.lambda_sq_inv, both.tau_sq_inv)
        got, want = both.ask("local_scales", both.z, both.lambda_sq_inv, both.tau_sq_inv, 12, 0, t, KEY)
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_coefficients_are_those_of_the_cpu(both):
    np.testing.assert_allclose(*both.ask("coefficients", both.z, both.prior_noise, both.row_noise), **CLOSE)


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_a_matrix_that_is_not_definite_is_repaired_or_noticed(bad, one_gpu):
    """Where it is no more than rounding that makes it so, the diagonal is raised, on both devices alike."""
    both, nearly, never = Both(one_gpu, *PROBLEMS["unpenalized"]), np.ones((33, 33)), np.eye(33)
    never[20, 20] = bad

    def factor(rows, matrix, place):
        out = place(matrix)
        rows._factorise(out, lambda: out.__setitem__(..., place(matrix)))
        return out

    want = factor(both.theirs, nearly, np.array)
    got = one_gpu.to_host(factor(both.ours, nearly, one_gpu.to_device))
    np.testing.assert_allclose(np.triu(got).T @ np.triu(got), nearly, atol=1e-11)
    np.testing.assert_allclose(np.tril(want), np.triu(got).T, atol=1e-8)
    message = r"I \+ X W X' is not positive definite \(33 rows, minor 21\)"
    if bad < 0:  # whether the CPU's LAPACK lets NaN pass is up to its maker
        with pytest.raises(np.linalg.LinAlgError, match=message):
            factor(both.theirs, never, np.array)
    factor(both.ours, never, one_gpu.to_device)
    with pytest.raises(np.linalg.LinAlgError, match=message):
        one_gpu.to_host(one_gpu.to_device(np.zeros(1)))


# Whole fits -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide():
    X, y, _ = make_correlated_probit(20, 60, n_signals=3, random_state=1)
    return X, y


FITS = {
    "no intercept, float32": {"slab_scale": 2.0, "fit_intercept": False, "dtype": "float32"},
    "other columns": {"slab_scale": 2.0, "standardize": True, "unpenalized": [1, 4], "n_chains": 3},
    "no slab": {},
}


@pytest.mark.parametrize("fit", FITS)
def test_chains_are_those_of_the_cpu(fit, one_gpu, wide, short_fit):
    # A truncated normal has the resolution of float32, so one proposal in some 10^4, of which moves along lines of a
    # sweep have hundreds, is accepted here and rejected there, and the chains part: few sweeps.
    params = {"burn_in": 1, "n_iter": 2, "n_chains": 2, **FITS[fit]}
    X, y = wide[0].astype(params.pop("dtype", "float64")), wide[1]
    ours, theirs = (short_fit(X, y, device=device, **params) for device in ("cuda", "cpu"))
    assert (ours.sampler_, ours.device_) == ("collapsed", "cuda:0")
    assert (theirs.sampler_, theirs.device_) == ("collapsed", "cpu")
    np.testing.assert_allclose(all_draws(ours), all_draws(theirs), rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(ours.shrinkage_, theirs.shrinkage_, atol=1e-3)


def test_chains_can_be_gone_on_with_on_a_gpu(one_gpu, wide, few_lines, short_fit):
    params = {"device": "cuda", "burn_in": 2, "n_chains": 2, "slab_scale": 2.0}
    whole = short_fit(*wide, n_iter=4, **params)
    parts = pickle.loads(pickle.dumps(short_fit(*wide, n_iter=2, warm_start=True, **params)))
    assert same_draws(parts.fit(*wide), whole)


def test_auto_leaves_more_columns_than_rows_to_the_cpu(card, wide, short_fit, monkeypatch):
    monkeypatch.setattr(device, "_WORTH_A_GPU", 0)
    model = short_fit(*wide, n_chains=1, burn_in=0, n_iter=1)
    assert (model.sampler_, model.device_) == ("collapsed", "cpu")
