"""The samplers that `peers.py` compares, each as a user would call it, on one thread.

Each function takes X (n, p), y (n,) 0 or 1, the standard deviation of a slab (inf: none), sweeps of burn-in and kept
ones of each of 4 chains, and a seed. It returns ``Run``. The model is probit regression with the horseshoe, tau ~
C+(0, 1), but that of bayesbridge: logit, and the bridge prior.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np

N_CHAINS = 4
TARGET_ACCEPT = 0.95  # what authors of NUTS advise for the horseshoe


class Run(NamedTuple):
    coef: np.ndarray  # (n_chains, n_draws, p)
    intercept: np.ndarray  # (n_chains, n_draws)
    tau: np.ndarray  # (n_chains, n_draws)
    burn_in: float  # seconds, compilation apart
    sampling: float  # seconds
    compilation: float = 0.0  # seconds
    divergent: int | None = None  # draws at the end of a divergent path
    link: str = "probit"


def ours(X, y, slab, burn_in, n_iter, seed, sampler="auto"):
    from skhorseshoe import HorseshoeProbitClassifier
    from skhorseshoe._utils import progress

    times = {}
    progress.reporter = lambda *args: lambda t: times.__setitem__(t, time.perf_counter())
    settings = {"slab_scale": None if np.isinf(slab) else slab, "sampler": sampler, "n_chains": N_CHAINS, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # R-hat is in the table
        begin = time.perf_counter()
        HorseshoeProbitClassifier(n_iter=8, burn_in=120, **settings).fit(X, y)  # loads what is compiled
        compiled = time.perf_counter()
        model = HorseshoeProbitClassifier(n_iter=n_iter, burn_in=burn_in, random_state=seed, **settings).fit(X, y)
        end = time.perf_counter()
    draws = model.coef_draws_, model.intercept_draws_, model.global_scale_draws_
    return Run(*draws, times[burn_in] - compiled, end - times[burn_in], compiled - begin)


def gibbs(*args):
    return ours(*args, sampler="gibbs")


def plain_gibbs(X, y, slab, burn_in, n_iter, seed):
    from reference_gibbs import reference_gibbs

    begin = time.perf_counter()
    rng = np.random.default_rng(seed)
    coef, intercept, tau = reference_gibbs(X, y, n_iter, burn_in, N_CHAINS, rng, slab_scale=slab)
    seconds = time.perf_counter() - begin
    share = burn_in / (burn_in + n_iter)  # sweeps are alike
    return Run(coef, intercept, tau, share * seconds, (1 - share) * seconds)


def numpyro_nuts(X, y, slab, burn_in, n_iter, seed, tau_0=1.0):
    import jax
    import numpyro
    import numpyro.distributions as dist
    from jax.scipy.special import log_ndtr
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(seconds) if event.startswith("/jax/core/compile/") else None
    )
    X, sign = jax.numpy.asarray(X), jax.numpy.asarray(2.0 * y - 1)
    p = X.shape[1]

    def model():
        tau = numpyro.sample("tau", dist.HalfCauchy(tau_0))
        lam = numpyro.sample("lambda", dist.HalfCauchy(1.0).expand([p]))
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([p]))
        beta = numpyro.deterministic("beta", z * lam * tau)
        b0 = numpyro.sample("b0", dist.Normal(0.0, 100.0))
        numpyro.factor("likelihood", log_ndtr(sign * (X @ beta + b0)).sum() - (beta**2).sum() / (2 * slab**2))

    kernel = NUTS(model, target_accept_prob=TARGET_ACCEPT)
    lengths = {"num_warmup": burn_in, "num_samples": n_iter, "num_chains": N_CHAINS, "chain_method": "sequential"}
    mcmc = MCMC(kernel, progress_bar=False, **lengths)
    seconds = []
    for stage in (mcmc.warmup, mcmc.run):
        begin, before = time.perf_counter(), sum(compiled)
        stage(jax.random.PRNGKey(seed))
        jax.block_until_ready(mcmc.last_state.z)
        seconds.append(time.perf_counter() - begin - (sum(compiled) - before))
    draws = {name: np.asarray(values) for name, values in mcmc.get_samples(group_by_chain=True).items()}
    divergent = int(np.asarray(mcmc.get_extra_fields()["diverging"]).sum())
    return Run(draws["beta"], draws["b0"], draws["tau"], *seconds, sum(compiled), divergent)


def nutpie_nuts(X, y, slab, burn_in, n_iter, seed):
    warnings.simplefilter("ignore")  # that PyTensor finds no BLAS of its own: the model is compiled by Numba
    import nutpie
    import pymc as pm
    import pytensor.tensor as pt

    begin = time.perf_counter()
    sign, p = 2.0 * y - 1, X.shape[1]
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 1.0)
        lam = pm.HalfCauchy("lambda", 1.0, shape=p)
        beta = pm.Deterministic("beta", pm.Normal("z", 0.0, 1.0, shape=p) * lam * tau)
        b0 = pm.Normal("b0", 0.0, 100.0)
        log_ndtr = pm.logcdf(pm.Normal.dist(0.0, 1.0), sign * (pt.dot(X, beta) + b0))
        pm.Potential("likelihood", log_ndtr.sum() - (beta**2).sum() / (2 * slab**2))
    compiled = nutpie.compile_pymc_model(model)
    between = time.perf_counter()
    settings = {"cores": 1, "seed": seed, "progress_bar": False, "target_accept": TARGET_ACCEPT}
    trace = nutpie.sample(compiled, draws=n_iter, tune=burn_in, chains=N_CHAINS, **settings)
    seconds = time.perf_counter() - between
    steps = [float(group["n_steps"].sum()) for group in (trace.warmup_sample_stats, trace.sample_stats)]
    share = steps[0] / sum(steps)  # a step is a gradient
    draws = [trace.posterior[name].to_numpy() for name in ("beta", "b0", "tau")]
    divergent = int(trace.sample_stats["diverging"].sum())
    return Run(*draws, share * seconds, (1 - share) * seconds, between - begin, divergent)


def bayesbridge(X, y, slab, burn_in, n_iter, seed):
    warnings.simplefilter("ignore")
    from bayesbridge import BayesBridge, RegressionCoefPrior, RegressionModel

    prior = RegressionCoefPrior(sd_for_intercept=170.0, regularizing_slab_size=1.7 * slab)  # logit: 1.7 times as large
    sampler = BayesBridge(RegressionModel(y.astype(float), X, family="logit"), prior)
    seconds, coef, tau = np.zeros(2), [], []
    for chain in range(N_CHAINS):
        start = time.perf_counter()
        _, info = sampler.gibbs(burn_in + 1, burn_in, seed=seed + chain)
        between = time.perf_counter()
        draws, _ = sampler.gibbs_resume(info, n_iter)
        seconds += between - start, time.perf_counter() - between
        coef.append(draws["coef"].T)
        tau.append(draws["global_scale"])
    coef = np.array(coef)
    return Run(coef[..., 1:], coef[..., 0], np.array(tau), *seconds.tolist(), link="logit")


SAMPLERS = {
    "skhorseshoe": ours,
    'skhorseshoe, "gibbs"': gibbs,
    "NumPyro NUTS": numpyro_nuts,
    "nutpie (PyMC) NUTS": nutpie_nuts,
    "bayesbridge (logit)": bayesbridge,
    "Gibbs in NumPy": plain_gibbs,
}
