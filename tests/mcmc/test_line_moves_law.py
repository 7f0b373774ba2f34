"""Line moves leave the joint law of parameters and data alone (Geweke 2004), by themselves and in the sweeps of
"hmc" and "pxda", and what says so catches planted errors."""

from functools import partial

import laws
import numpy as np
import pytest
from laws import ALONE, GIVEN, KEY, MISREAD, N_CHAINS, PLAIN, TAU_0, mostly_slow, repeated
from scipy.special import log_ndtr

from skhorseshoe._backends import line_moves
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import fused_rows
from skhorseshoe._mcmc import gibbs, hmc
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import Problem

SLAB, WIDE = 2.0, 1.5  # so that the fixed prior has something to say beside six rows
FIRST = {"unpenalized": np.array([True, False, False])}  # the coefficients are those of columns 1, 2 and 0
P, Q = 2, 4


@pytest.fixture
def fused(monkeypatch):
    """The fused call of line moves takes a y for each chain."""
    monkeypatch.setattr(cpu, "fused_line_moves", laws.fused_of_many(fused_rows.fused_line_moves))


def joint_draws(rng, prior, given):
    """Independent draws of beta, lambda^-2, tau^-2 and y, written with the half-Cauchys and Gaussians themselves; with
    a slab, those by whose side a 0 was seen with its error."""
    n = 8 * N_CHAINS
    tau, lam = TAU_0 * abs(rng.standard_cauchy(n)), abs(rng.standard_cauchy((n, P)))
    beta = rng.standard_normal((n, Q))
    beta[:, :P] *= lam * tau[:, None]
    beta[:, P] *= prior.diagonal[P] ** -0.5
    beta[:, 3] = (beta[:, 3] - beta[:, :3] @ prior.anchor[:3]) / prior.anchor[3]
    kept = rng.uniform(size=n) < np.exp(-prior.slab_precision / 2 * (beta[:, :P] ** 2).sum(axis=1))
    assert kept.sum() >= N_CHAINS
    beta, *scales = (part[kept][:N_CHAINS] for part in (beta, lam**-2, tau**-2))
    return beta, *scales, given.redrawn(beta, rng)


def functions(beta, lambda_sq_inv, tau_sq_inv, y, given):
    eta = given.predictors(beta)
    loglik = (y * log_ndtr(eta) + (given.trials - y) * log_ndtr(-eta)).sum(axis=1)
    return np.column_stack([laws.bounded(beta, lambda_sq_inv, tau_sq_inv, y), np.exp(loglik / 6)])


class Alone:
    """Nothing but moves along lines."""

    sampler = "hmc"

    def __init__(self, rows, prior, lines):
        self.rows, self.lines = rows, lines

    def __call__(self, beta, lambda_sq_inv, tau_sq_inv, t, n):
        for k in range(t, t + n):
            beta, lambda_sq_inv, tau_sq_inv = self.rows.ops.move_along_lines(
                beta, lambda_sq_inv, tau_sq_inv, self.rows, self.lines, TAU_0, KEY, k
            )
        return beta, lambda_sq_inv, tau_sq_inv


class InHmc(Alone):
    """Whole sweeps, with some reference that is right for no y."""

    def __init__(self, rows, prior, lines):
        super().__init__(rows, prior, lines)
        H = rows.whole.information(np.zeros((1, Q)))
        point, score = np.array([0.3, -0.2, 0.1, 0.2]), np.array([1.5, -1.5, 1.0, -1.0])
        gauss = cpu.MassMatrix(prior.add_to(H.copy()), H @ point + score, N_CHAINS, P, ALONE)
        self.reference = hmc.Reference(point, score, H, gauss)

    def __call__(self, *parameters):
        *parameters, t, n = parameters
        state = hmc.HmcState(*parameters, *self.rows.score(parameters[0]), t, None, None)
        tuning = hmc.Tuning(0.7, 3, 2, 0.8, (0, 1))
        for _ in range(n):
            state = hmc.sweep(state, Problem(self.rows, None, TAU_0, KEY), self.reference, tuning, self.lines)
        return state[:3]


class InPxda(Alone):
    """Whole sweeps, from draws of nu and xi given the scales."""

    sampler = "pxda"

    def __init__(self, rows, prior, lines):
        super().__init__(rows, prior, lines)
        self.precision = cpu.Precision(prior.add_to(rows.whole.gram()), ALONE)
        self.rng = np.random.default_rng(1)

    def __call__(self, beta, lambda_sq_inv, tau_sq_inv, t, n):
        nu_inv = self.rng.standard_exponential(lambda_sq_inv.shape) / (1 + lambda_sq_inv)
        xi_inv = self.rng.standard_exponential(len(tau_sq_inv)) / (TAU_0**-2 + tau_sq_inv)
        state = gibbs.State(beta, lambda_sq_inv, nu_inv, tau_sq_inv, xi_inv, t)
        for _ in range(n):
            state = gibbs.sweep(state, Problem(self.rows, None, TAU_0, KEY), self.precision, True, self.lines)
        return state.beta, state.lambda_sq_inv, state.tau_sq_inv


def rows_given(kind, takes_fused_calls, given=PLAIN, misread=()):
    """How the rows are given, and those of many data sets as a sampler reads them. misread : what it takes wrong."""
    given = given._replace(**FIRST)
    return given, laws.RowsOfManyDataSets(given.ops, given._replace(**dict(misread)), kind.sampler, takes_fused_calls)


def geweke(
    kind=Alone, takes_fused_calls=True, sampler_prior=None, slab=SLAB, n_batches=24, n_splits=0, n_columns=None, **rows
):
    """``laws.geweke`` for some kind of moves. sampler_prior : change(prior) makes the fixed prior that they have.
    rows : as for ``rows_given``."""
    rng = np.random.default_rng(5)
    given, rows = rows_given(kind, takes_fused_calls, **rows)
    prior, theirs = (FixedPrior(given.rows(kind.sampler).columns, slab, WIDE) for _ in range(2))
    if sampler_prior is not None:
        sampler_prior(theirs)
    widths = line_moves.line_widths(P, theirs, np.full(Q, 1.0))
    lines = rows.whole.lines(theirs, widths, n_splits=n_splits, n_columns=n_columns)
    lines = lines._replace(square=lines.square * 20)  # as of so many more rows, so that columns are held
    moves = kind(rows, prior, lines)

    def advance(parameters, y, k):
        rows.y = y
        return moves(*parameters, 2 * k, 2)

    with np.errstate(all="ignore"):  # half-Cauchys go far
        start, redraw = partial(joint_draws, rng, prior, given), partial(given.redrawn, rng=rng)
        return laws.geweke(start, advance, redraw, partial(functions, given=given), n_batches, 4)


@pytest.mark.parametrize("kind", [Alone, InHmc, InPxda])
@pytest.mark.parametrize("slab", mostly_slow([SLAB, None]))
def test_fused_line_moves_pass_geweke(kind, slab, fused):
    assert geweke(kind, slab=slab, n_batches=24 if kind is Alone else 12) < 4


@pytest.mark.parametrize("kind", mostly_slow([Alone, InHmc, InPxda]))
def test_line_moves_by_passes_pass_geweke(kind):
    assert geweke(kind, takes_fused_calls=False, n_batches=6) < 4


@pytest.mark.parametrize("takes_fused_calls", mostly_slow([True, False]))
def test_split_line_moves_pass_geweke(takes_fused_calls, fused):
    assert geweke(takes_fused_calls=takes_fused_calls, n_batches=24 if takes_fused_calls else 6, n_splits=4) < 4


# Planted errors, in what the slice steps of fused calls are given. Rows that take none move alike to the bit, see
# test_line_moves.py.

ERRORS = {
    "the Jacobian of the global move": "if (n_moved > 1) density.jacobian = largest(density.jacobian - 1, 1e-300)",
    "the Jacobian of a local move": "if (n_moved == 1 && density.jacobian > 0) density.jacobian = 1e-300",
    "the Jacobian of the others": "density.jacobian = least(density.jacobian, 1.0)",
    "the prior of tau": "if (n_moved > 1) density.ratio = 0",
    "the prior of lambda": "if (n_moved == 1) density.ratio = 0",
}
SPLIT_ERRORS = {
    "the Jacobian of the columns that are held": "density.n_held = 0",
    "their prior and the law of the choice": "density.n_terms = 0",
}


@pytest.mark.parametrize("error", mostly_slow(ERRORS))
def test_geweke_catches_line_moves_without(error, fused, plant):
    plant(f"SLICE={ERRORS[error]}")
    assert geweke(n_batches=4) > 6


@pytest.mark.parametrize("error", mostly_slow(SPLIT_ERRORS))
def test_geweke_catches_split_line_moves_without(error, fused, plant):
    plant(f"SLICE={SPLIT_ERRORS[error]}")
    assert geweke(n_batches=8, n_splits=4) > 6


def without_slab(prior):
    prior.diagonal[:P] = 0.0


def without_the_intercept(prior):
    prior.anchor = 0.0 * prior.anchor


def without_the_unpenalised(prior):
    prior.diagonal[P:] = 0.0


@pytest.mark.parametrize("kind", mostly_slow([Alone, InHmc, InPxda]))
@pytest.mark.parametrize("prior", mostly_slow([without_the_intercept, without_slab, without_the_unpenalised]))
def test_geweke_catches_line_moves_with_another_prior(prior, kind, fused):
    assert geweke(kind, sampler_prior=prior, n_batches=12 if kind is Alone else 16) > 6


@pytest.mark.slow
def test_geweke_catches_line_moves_of_columns_chosen_by_the_state(fused, plant):
    plant("COLUMN_OF_STATE")  # the largest coefficient; the global move comes after it
    assert geweke(n_columns=1) > 6


SLICE_ERRORS = {
    "old predictors": "OLD_PREDICTORS",
    "bounds that do not hold": "SLICE=bounds.second *= 0.5, bounds.least_fourth = bounds.fourth = 0",
    "widths of the state": "SLICE=width = 0.2 + 4 * least(density.ratio, 1.0)",  # as if learning went on
}


@pytest.mark.slow
@pytest.mark.parametrize("error", SLICE_ERRORS)
def test_geweke_catches_errors_in_slice_steps_of_line_moves(error, fused, plant):
    plant(SLICE_ERRORS[error])
    assert geweke(n_batches=48, n_splits=4) > 6


# How rows are given ---------------------------------------------------------------------------------------------------

NOT_FUSED = "whole weights", "sparse"  # which take no fused calls, and longer
SWEEPS = [(kind, name) for name in GIVEN for kind in (InHmc, InPxda)]
SWEEPS.remove((InPxda, "parts of rows"))  # which only "hmc" takes
FEW = (InHmc, "parts of rows"), (InPxda, "standardised"), (InHmc, "float32")
OTHERS_ARE_SLOW = [pytest.param(*one, marks=[pytest.mark.slow] * (one not in FEW)) for one in SWEEPS]
LONG = [
    pytest.param(*one, repeated(8, 16) * (1 if one[1] in NOT_FUSED else 6), marks=pytest.mark.slow) for one in SWEEPS
]


@pytest.mark.parametrize(("kind", "name", "n_batches"), [*((*one, 12) for one in FEW), *LONG])
def test_sweeps_with_line_moves_pass_geweke_however_rows_are_given(kind, name, n_batches, fused):
    assert geweke(kind, name not in NOT_FUSED, n_batches=n_batches, given=GIVEN[name]) < 4


@pytest.mark.parametrize(("kind", "name"), OTHERS_ARE_SLOW)
def test_geweke_catches_misread_rows_in_sweeps_with_line_moves(kind, name, fused):
    n_batches = {"sparse": 12, "whole weights": 8, "float32": 16}.get(name, 4)
    assert geweke(kind, name not in NOT_FUSED, n_batches=n_batches, given=GIVEN[name], misread=MISREAD[name]) > 6
