"""A sweep with the coefficients integrated out leaves the joint law of parameters and data alone (Geweke 2004), and
what says so catches planted errors."""

from functools import partial
from types import SimpleNamespace

import laws
import numpy as np
import pytest
from laws import (
    GIVEN,
    KEY,
    MISREAD,
    N_CHAINS,
    TAU_0,
    Given,
    X,
    bounded,
    from_python,
    mostly_slow,
    planted,
    prior_draws,
    repeated,
)

from skhorseshoe._backends import COEF, collapsed_base, density_of_tau
from skhorseshoe._backends._cpu import collapsed
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._mcmc.collapsed import CollapsedState, sweep

pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")
ANCHOR = np.array([0.4, 0.0, -0.3])
SLAB = 1.0
PLAIN = Given(2 * X, 2 * X)  # so that the data have something to say


class RowsOfManyDataSets(cpu.CollapsedRows):
    """Each chain has its own y."""

    def latent(self, z, n_scans, index, t, key):
        z = z.copy()
        for c in range(N_CHAINS):
            y = z[c] > 0
            collapsed.scan_latent(z[c], self.P_of_latent(c), y, n_scans, n_scans * index, c, t, *key)
        return z

    def P_of_latent(self, c):
        return self.P[c]


def rows_given(told, kind, slab_precision):
    """``kind`` of rows as a fit gives them, but for the intercept: with ANCHOR it has the prior N(0, 1)."""
    rows = told.rows("collapsed", planted(CollapsedRows=kind))
    rows.columns.mean = ANCHOR
    return rows.collapsed(SimpleNamespace(variances=np.ones(1), slab_precision=slab_precision), N_CHAINS)


def joint_draws(rng, slab_precision, given):
    """beta, lambda^-2, tau^-2 and z; with a slab, those by whose side a 0 was seen with its error."""
    parts = []
    while sum(len(part[0]) for part in parts) < N_CHAINS:
        beta, *scales, _ = prior_draws(4 * N_CHAINS, rng, (*ANCHOR, 1.0))
        keep = rng.uniform(size=len(beta)) < np.exp(-slab_precision / 2 * (beta[:, :3] ** 2).sum(axis=1))
        parts.append([part[keep] for part in (beta, *scales)])
    beta, *scales = (np.concatenate(part)[:N_CHAINS] for part in zip(*parts, strict=True))
    return beta, *scales, latent_given(beta, rng, given)


def latent_given(beta, rng, given):
    eta = given.predictors(beta).repeat(given.trials, axis=1)
    return eta + rng.standard_normal(eta.shape)


def geweke(ops=cpu, kind=RowsOfManyDataSets, slab=None, n_batches=14, n_sweeps=4, given=PLAIN, misread=()):
    """``laws.geweke`` for whole sweeps; the data are the signs of z, which is redrawn with them. misread : what the
    rows take wrong of how they are given."""
    rng, slab_precision = np.random.default_rng(5), 0.0 if slab is None else slab**-2
    rows = rows_given(given._replace(**dict(misread)), kind, slab_precision)

    def advance(parameters, z, k):
        beta, lambda_sq_inv, tau_sq_inv = parameters
        state = CollapsedState(beta, z, lambda_sq_inv, tau_sq_inv, k * n_sweeps)
        for _ in range(n_sweeps):
            state = sweep(state, rows, TAU_0, ops, KEY)
        return state.beta, state.lambda_sq_inv, state.tau_sq_inv

    start, redraw = partial(joint_draws, rng, slab_precision, given), partial(latent_given, rng=rng, given=given)
    return laws.geweke(start, advance, redraw, functions, n_batches, 2)


def functions(beta, lambda_sq_inv, tau_sq_inv, z):
    usual = bounded(beta, lambda_sq_inv, tau_sq_inv, (z > 0).astype(float))
    return np.column_stack([usual, np.tanh(z), np.tanh((z**2).mean(axis=1) / 10)])


# Without the updates given beta, what the collapsed ones do is all there is.
COLLAPSED_ONLY = planted(
    global_scale=lambda beta, tau_sq_inv, *rest: tau_sq_inv,
    local_scales=lambda beta, tau_sq_inv, *rest: 1 / (1e-300 + COLLAPSED_ONLY.lambda_sq),
)


class KeptScales(RowsOfManyDataSets):
    """Tells the back end above the lambda that it shall leave as they are."""

    def global_scale(self, *rest):
        tau_sq_inv, lambda_sq_inv = super().global_scale(*rest)
        COLLAPSED_ONLY.lambda_sq = 1 / lambda_sq_inv
        return tau_sq_inv, lambda_sq_inv


@pytest.fixture
def held_often(monkeypatch):
    monkeypatch.setattr(density_of_tau, "HELD", 2.0)


@pytest.mark.parametrize("slab", mostly_slow([SLAB, None]))
def test_sweep_passes_gewekes_joint_test(slab, held_often):
    assert geweke(slab=slab, n_batches=repeated(8, 24)) < 4


@pytest.mark.parametrize("slab", mostly_slow([SLAB, None]))
def test_collapsed_updates_alone_pass_gewekes_joint_test(slab, held_often):
    assert geweke(COLLAPSED_ONLY, KeptScales, slab, n_batches=repeated(8, 24)) < 4


class VarianceOfLatent(KeptScales):
    def P_of_latent(self, c):
        return 2.0 * self.P[c]


class LengthTooLong(KeptScales):
    def length(self, z, *rest):
        return 1.2 * super().length(z, *rest)


def normal_without(purpose):
    def normal(shape, key, t, which):
        return cpu.normal(shape, key, t, which) * (0.0 if which == purpose else 1.0)

    return planted(normal=normal)


def beside_tau(term):
    """``DensityOfTau`` with something added to its log-density."""

    class Changed(collapsed_base.DensityOfTau):
        def _value(self, shift, P):
            return super()._value(shift, P) + term(self, shift, P)

    return Changed


def of_free(m, shift, numbers):
    """The sum of log(1 + numbers e^(2 shift)) over the columns that are not held, of each chain."""
    return np.where(m.held, 0.0, np.log1p(numbers * np.exp(2 * shift)[:, None])).sum(axis=1)


TAU_ERRORS = {
    "the choice of the held": lambda m, shift, P: of_free(m, shift, m.odds),
    "without |V|": lambda m, shift, P: 0.5 * m.rows.log_det,
    "without z'Pz": lambda m, shift, P: 3 * np.log(np.einsum("ci,cij,cj->c", m.z, P, m.z)),
    "its prior twice": lambda m, shift, P: shift - np.log1p(np.exp(2 * shift) / (TAU_0**2 * m.tau_sq_inv)),
    "the slab": lambda m, shift, P: 0.5 * of_free(m, shift, m.bound),
    "the Jacobian of the held": lambda m, shift, P: shift * m.held.sum(axis=1),
}
LOCAL_ERRORS = {
    "without (1 + w s)^(-1/2)": lambda new, e, w, b, s, r, q, n: new + 0.5 * np.log1p(w * s),
    "without r": lambda new, e, w, b, s, r, q, n: new + n / 2 * np.log1p(-w * r * r / (1 + w * s) / q),
    "r twice": lambda new, e, w, b, s, r, q, n: new - n / 2 * np.log1p(-w * r * r / (1 + w * s) / q),
    "without the prior": lambda new, e, w, b, s, r, q, n: new + 0.5 * (abs(e) + np.log1p(np.exp(-2 * abs(e)))),
    "without the slab": lambda new, e, w, b, s, r, q, n: new + 0.5 * np.log1p(b),
}


@pytest.mark.parametrize("error", mostly_slow([VarianceOfLatent, LengthTooLong]))
def test_gewekes_joint_test_catches(error, held_often):
    assert geweke(COLLAPSED_ONLY, error, n_batches=8) > 6


@pytest.mark.slow
def test_gewekes_joint_test_catches_noise_of_beta():
    assert geweke(normal_without(COEF)) > 6


@pytest.mark.parametrize("error", mostly_slow(TAU_ERRORS))
def test_gewekes_joint_test_catches_in_the_law_of_tau(error, held_often, monkeypatch):
    monkeypatch.setattr(collapsed_base, "DensityOfTau", beside_tau(TAU_ERRORS[error]))
    n_batches = {"the slab": 30, "without z'Pz": 20, "the choice of the held": 4}.get(error, 10)
    assert geweke(COLLAPSED_ONLY, KeptScales, SLAB, n_batches=n_batches) > 6


@pytest.mark.slow
@pytest.mark.parametrize("error", LOCAL_ERRORS)
def test_gewekes_joint_test_catches_in_the_law_of_lambda(error, monkeypatch):
    for name in ("dot", "add_square", "stream", "exponential_1", "philox", "unit"):
        monkeypatch.setattr(collapsed, name, from_python(getattr(collapsed, name)))
    density = from_python(collapsed._log_density)
    monkeypatch.setattr(collapsed, "scan_local_scales", collapsed.scan_local_scales.py_func)
    monkeypatch.setattr(collapsed, "_log_density", lambda *a: LOCAL_ERRORS[error](density(*a), *a))
    assert geweke(COLLAPSED_ONLY, KeptScales, SLAB, n_batches=10) > 6


def test_turns_of_a_sweep_share_no_random_numbers():
    used = []

    def noted(law):
        def draw(*args):
            used.append((law.__name__, args[-1]))
            return law(*args)

        return draw

    def move(*parameters, key, sweep):
        used.append(("move", sweep))
        return parameters

    ops = planted(global_scale=noted(cpu.global_scale), local_scales=noted(cpu.local_scales))
    beta, lambda_sq_inv, tau_sq_inv, z = joint_draws(np.random.default_rng(5), 0.0, PLAIN)
    state = CollapsedState(beta, z, lambda_sq_inv, tau_sq_inv, 0)
    for _ in range(3):
        state = sweep(state, rows_given(PLAIN, RowsOfManyDataSets, 0.0), TAU_0, ops, KEY, move)
    moves = sum(law == "move" for law, _ in used)
    assert moves >= 6
    assert len(set(used)) == len(used) == 3 * moves + 6  # the scales once before the first turn


# How rows are given ---------------------------------------------------------------------------------------------------


class SeenOnce(RowsOfManyDataSets):
    """Of the observations of a row, all but the first tell nothing."""

    def __init__(self, X, *rest):
        X = X.copy()
        X[np.arange(len(X)) % GIVEN["whole weights"].trials > 0] = 0.0
        super().__init__(X, *rest)


ERRORS = {name: {"misread": MISREAD[name]} for name in ("standardised", "float32")} | {
    "whole weights": {"kind": SeenOnce}
}


@pytest.mark.parametrize("name", mostly_slow(ERRORS))
def test_sweep_passes_gewekes_joint_test_with(name, held_often):
    assert geweke(n_batches=repeated(8, 24), given=GIVEN[name]) < 4


@pytest.mark.parametrize("name", mostly_slow(ERRORS))
def test_gewekes_joint_test_catches_misread(name, held_often):
    assert geweke(given=GIVEN[name], n_batches=6, **ERRORS[name]) > 6
