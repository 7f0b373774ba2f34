"""Simulation-based calibration (Talts et al. 2018): parameters are drawn from the prior and rows given them. Among the
draws from the posterior the rank of what the rows were made of is then uniform, whatever that is. Groups have 1 to 200
rows, and in every other set of rows an event is rare. Fits of the default sampler have the default length: burn-in
until chains agree, draws until they suffice. Rows have no weights, as a weighted likelihood is no law that y could be
drawn from; ``test_groups_law.py`` has them."""

import numpy as np
import pytest
from laws import ALONE, repeated
from scipy.special import ndtr
from scipy.stats import kstest

from skhorseshoe._backends import device
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import PRIOR_COORDINATES, Problem, Run, Settings

SIZES = 200, 40, 20, 10, 5, 3, 2, 2, 1, 1, 1, 1
SCALE, SLAB, TAU_0, RARE = 0.7, 2.0, 0.5, -2.3
WIDE = 0.7  # of a prior of the intercept that rows can be drawn from
N_CHAINS, EACH = 4, 10  # draws of a chain that have a rank, evenly spaced
LENGTH = {"hmc": (10_000, "auto", 400.0)}  # n_iter, burn_in and target_ess of a default fit
SHORT = 250, 150, None  # of other samplers
pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")
NAMES = "intercept", "within", "between", "log s", "u of 200 rows", "u of one row"


def of_prior(rng, mean):
    """Intercept, coefficients and s. mean : of the columns."""
    while True:
        lambdas, tau = abs(rng.standard_cauchy(len(mean))), TAU_0 * abs(rng.standard_cauchy())
        coef = lambdas * tau * rng.standard_normal(len(mean))
        if np.log(rng.random()) < -((coef / SLAB) ** 2).sum() / 2:
            return WIDE * rng.standard_normal() - coef @ mean, coef, SCALE * abs(rng.standard_cauchy())


def ranks_of(seed, sampler):
    """For each of ``NAMES`` where what rows were made of is among its draws, in (0, 1)."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES)).astype(np.int32)
    X = rng.standard_normal((len(codes), 2))
    X[:, 1] = rng.standard_normal(len(SIZES))[codes] + 0.7
    intercept, coef, s = of_prior(rng, X.mean(axis=0))
    u = s * rng.standard_normal(len(SIZES))
    offset = rng.standard_normal(len(codes)) / 2 + RARE * (seed % 2)
    y = (rng.random(len(codes)) < ndtr(offset + intercept + X @ coef + u[codes])).astype(np.uint8)
    rows = Rows(X, y, True, device.resolve("cpu").ops, ALONE, offset=offset, groups=Groups(codes, len(SIZES), SCALE))
    n_iter, burn_in, target_ess = LENGTH.get(sampler, SHORT)
    settings = Settings(sampler, n_iter, burn_in, N_CHAINS, 1, target_ess, None, None, "float64")
    key = rng.integers(2**32, size=2, dtype=np.uint32)
    run = Run(Problem(rows, FixedPrior(rows.columns, SLAB, WIDE), TAU_0, key), settings)
    with np.errstate(all="ignore"):  # of trajectories that are rejected
        run.go(lambda t: False)
    drawn, n = run.draws, run.draws.n
    effects = np.moveaxis(drawn.of_blocks[0].effects[:, :n, [0, -1]], 2, 0)
    ours = [drawn.intercept[:, :n], *np.moveaxis(drawn.coef[:, :n], 2, 0), drawn.of_blocks[0].scale[:, :n], *effects]
    spaced = np.linspace(0, n - 1, EACH).astype(int)
    ours, truth = [values[:, spaced] for values in ours], [intercept, *coef, s, u[0], u[-1]]
    below = np.array([(values < one).sum() for values, one in zip(ours, truth, strict=True)])
    return (below + rng.random(len(below))) / (N_CHAINS * EACH + 1)


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "n_sets"), [("hmc", 40), ("gibbs", 40), (PRIOR_COORDINATES, 24)])
def test_ranks_are_uniform(sampler, n_sets):
    ranks = np.array([ranks_of(seed, sampler) for seed in range(repeated(n_sets, 200))])
    found = {name: kstest(ranks[:, k], "uniform").pvalue for k, name in enumerate(NAMES)}
    print(sampler, {name: round(float(p), 3) for name, p in found.items()})
    assert min(found.values()) > 1e-4, found
