"""The reference with a slab and unpenalised columns: a long run of NumPyro's NUTS, in an environment that has it.

    python benchmarks/reference_nuts.py     # some minutes; writes tests/data/gold_slab_150x8.npz

The model as the documentation states it, not as the samplers see it: half-Cauchy scales, a density N(beta_j; 0, c^2)
beside the horseshoe of each shrunk column, N(0, (100 / sd)^2) for each that is not shrunk, and N(0, 100^2) for the
intercept at the mean of the columns. The shrunk columns have unit variance, so that scaling them changes nothing.
"""

import os
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import log_ndtr, ndtr
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

DATA = Path(__file__).parents[1] / "tests" / "data"
FREE, SLAB, TAU_0, WIDE = [5, 7], 0.3, 0.5, 100.0
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def data():
    """150 rows and 8 columns of the other reference, moved; the last column, which is not shrunk, is small."""
    rng = np.random.default_rng(2)
    with np.load(DATA / "gold_synthetic_300x20.npz") as gold:
        X = gold["X"][:150, :8]
    X = X / X.std(axis=0) * [1, 1, 1, 1, 1, 1, 1, 0.01] + [0, 1, -2, 0, 0, 1, 0, 0.02]
    y = X @ [1.0, -0.7, 0.4, 0, 0, 0.5, 0, 80.0] - 1.5 + rng.standard_normal(len(X)) > 0
    return X, y.astype(np.int8)


def model(X, sign):
    sd, mean, free = X.std(axis=0), X.mean(axis=0), np.array(FREE)
    shrunk = np.delete(np.arange(X.shape[1]), free)
    tau = numpyro.sample("tau", dist.HalfCauchy(TAU_0))
    lam = numpyro.sample("lambda", dist.HalfCauchy(1.0).expand([len(shrunk)]))
    z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([len(shrunk)]))
    # N(beta; 0, s^2) N(0; beta, c^2) = N(beta; 0, s^2 c^2 / (s^2 + c^2)) N(0; 0, s^2 + c^2), so that z has no funnel.
    far = jax.numpy.hypot(lam * tau, SLAB)
    numpyro.factor("slab", -jax.numpy.log(far).sum())
    coef = z * lam * tau * SLAB / far
    scaled = numpyro.sample("free", dist.Normal(0.0, WIDE).expand([len(free)]))
    middle = numpyro.sample("middle", dist.Normal(0.0, WIDE))
    beta = jax.numpy.zeros(X.shape[1]).at[shrunk].set(coef).at[free].set(scaled / sd[free])
    numpyro.deterministic("beta", beta)
    numpyro.deterministic("intercept", (middle - mean @ beta)[None])
    numpyro.deterministic("logtau", jax.numpy.log(tau)[None])
    numpyro.deterministic("prob", ndtr((X - mean) @ beta + middle))
    numpyro.factor("likelihood", log_ndtr(sign * ((X - mean) @ beta + middle)).sum())


def main():
    numpyro.enable_x64()
    X, y = data()
    lengths = {"num_warmup": 2000, "num_samples": 20_000, "num_chains": 4, "chain_method": "sequential"}
    mcmc = numpyro.infer.MCMC(numpyro.infer.NUTS(model, target_accept_prob=0.99), progress_bar=False, **lengths)
    mcmc.run(jax.random.PRNGKey(1), X, 2.0 * y - 1)
    draws = mcmc.get_samples(group_by_chain=True)
    found = {"X": X, "y": y, "unpenalized": FREE, "slab_scale": SLAB, "global_scale": TAU_0, "quantile_levels": LEVELS}
    for name in ("beta", "intercept", "logtau"):
        x = np.asarray(draws[name])
        ess, rhat = effective_sample_size(x), split_gelman_rubin(x)
        print(f"{name}: ESS {ess.min():.0f}, R-hat {rhat.max():.4f}, means {x.mean(axis=(0, 1))}")
        assert ess.min() >= 2000
        assert rhat.max() <= 1.01
        sd = x.std(axis=(0, 1))
        found |= {f"{name}_mean": x.mean(axis=(0, 1)), f"{name}_sd": sd, f"{name}_mcse_mean": sd / np.sqrt(ess)}
        found[f"{name}_q"] = np.quantile(x, LEVELS, axis=(0, 1))
    found["prob_mean"] = np.asarray(draws["prob"]).mean(axis=(0, 1))
    print("divergent:", int(mcmc.get_extra_fields()["diverging"].sum()))
    np.savez_compressed(DATA / "gold_slab_150x8.npz", **found)


if __name__ == "__main__":
    main()
