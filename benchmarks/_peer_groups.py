"""NumPyro's NUTS for the model with groups, effects non-centred; one thread."""

import os
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import log_ndtr
from numpyro.diagnostics import effective_sample_size


def model(X, sign, groups, n_groups):
    tau = numpyro.sample("tau", dist.HalfCauchy(1.0))
    lam = numpyro.sample("lambda", dist.HalfCauchy(1.0).expand([X.shape[1]]))
    z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([X.shape[1]]))
    beta = numpyro.deterministic("beta", z * lam * tau)
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 100.0))
    s = numpyro.sample("s", dist.HalfCauchy(1.0))
    u = numpyro.sample("u", dist.Normal(0.0, 1.0).expand([n_groups])) * s
    numpyro.factor("likelihood", log_ndtr(sign * (X @ beta + intercept + u[groups])).sum())


def nuts_with_groups(X, y, groups, quick=False):
    """Seconds of processor time to 400 effective draws of everything, from one chain; with what they come from."""
    numpyro.enable_x64()
    warmup, n = (10, 10) if quick else (100, 50)
    mcmc = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=warmup, num_samples=n, progress_bar=False)
    begin = time.process_time()
    data = jax.numpy.asarray(X), 2.0 * y - 1, groups, groups.max() + 1
    mcmc.run(jax.random.PRNGKey(0), *data, extra_fields=("num_steps",))
    jax.block_until_ready(mcmc.get_samples())
    seconds = time.process_time() - begin
    draws = mcmc.get_samples(group_by_chain=True)
    ess = {
        name: float(effective_sample_size(np.asarray(draws[name])).min()) for name in ("beta", "intercept", "tau", "s")
    }
    steps = float(np.asarray(mcmc.get_extra_fields()["num_steps"]).mean())
    least = max(1.0, min(ess.values()))
    share = warmup / (warmup + n)
    return {
        "seconds": seconds * (share + (1 - share) * 400 / least),
        "seconds, each draw effective": seconds * (share + (1 - share) * 400 / n),
        "of the fit": seconds,
        "ESS": ess,
        "steps": steps,
    }
