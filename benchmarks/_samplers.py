"""The samplers and predictors that ours is compared with, each as a user would call it, on one thread.

A sampler takes X (n, p), y (n,) 0 or 1, the standard deviation of a slab (inf: none), sweeps of burn-in and kept ones
of each chain, and a seed. It returns ``Run``. The model is probit regression with the horseshoe, tau ~ C+(0, 1), but
that of bayesbridge: logit, and the bridge prior.
"""

import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from _measure import fit, sweep_times
from scipy.linalg import helmert, solve_triangular
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score

N_CHAINS = 4
TARGET_ACCEPT = 0.95  # what authors of NUTS advise for the horseshoe
FAR = 1e3  # an end of the first and the last of ordered classes


class Run(NamedTuple):
    coef: np.ndarray  # (n_chains, n_draws, p)
    intercept: np.ndarray  # (n_chains, n_draws)
    tau: np.ndarray  # (n_chains, n_draws)
    burn_in: float  # seconds, compilation apart
    sampling: float  # seconds
    compilation: float = 0.0  # seconds
    divergent: int | None = None  # draws at the end of a divergent path
    link: str = "probit"
    group_scale: np.ndarray | None = None  # (n_chains, n_draws), or of several (n_chains, n_draws, k)


def ours(X, y, slab, burn_in, n_iter, seed, sampler="auto"):
    settings = {"slab_scale": None if np.isinf(slab) else slab, "sampler": sampler, "n_chains": N_CHAINS, "n_jobs": 1}
    begin = time.perf_counter()
    fit(X, y, {"n_iter": 8, "burn_in": 120, **settings})  # loads what is compiled
    compiled = time.perf_counter()
    with sweep_times() as times:
        model = fit(X, y, {"n_iter": n_iter, "burn_in": burn_in, "random_state": seed, **settings})
    end = time.perf_counter()
    draws = model.coef_draws_, model.intercept_draws_, model.global_scale_draws_
    return Run(*draws, times[burn_in] - compiled, end - times[burn_in], compiled - begin)


# In NumPy and SciPy ---------------------------------------------------------------------------------------------------


def plain_gibbs(X, y, slab, burn_in, n_iter, seed):
    begin = time.perf_counter()
    rng = np.random.default_rng(seed)
    coef, intercept, tau = reference_gibbs(X, y, n_iter, burn_in, N_CHAINS, rng, slab_scale=slab)
    seconds = time.perf_counter() - begin
    share = burn_in / (burn_in + n_iter)  # sweeps are alike
    return Run(coef, intercept, tau, share * seconds, (1 - share) * seconds)


def reference_gibbs(X, y, n_iter, burn_in, n_chains, rng, global_scale=1.0, intercept_sd=100.0, slab_scale=np.inf):
    """Draws from the posterior of probit regression with an intercept and the horseshoe prior, as one would write it.

    The same full conditionals as "gibbs" in the same order, with its own random numbers: a baseline of speed, and a
    second opinion on the draws. z is inverted from uniforms, X is read by two matrix products a sweep, all chains at
    once. X : (n, p) float32 or float64; products with X are made in its dtype, the rest in float64.
    Returns coef (n_chains, n_iter, p), intercept (n_chains, n_iter) and tau (n_chains, n_iter).
    """
    n, p = X.shape
    positive = np.asarray(y, dtype=bool)[:, None]
    ones = np.ones(n, X.dtype)
    gram = np.empty((p + 1, p + 1))
    gram[:p, :p] = X.T @ X
    gram[:p, p] = gram[p, :p] = ones @ X
    gram[p, p] = n

    coef, intercept = np.zeros((n_chains, p)), np.zeros(n_chains)
    lambda_sq_inv, nu_inv = np.ones((n_chains, p)), np.ones((n_chains, p))
    tau_sq_inv = np.full(n_chains, global_scale**-2.0)
    xi_inv = np.full(n_chains, global_scale**2.0)
    coef_draws = np.empty((n_chains, n_iter, p))
    intercept_draws, tau_draws = np.empty((2, n_chains, n_iter))

    for t in range(-burn_in, n_iter):
        mean = X @ coef.T.astype(X.dtype) + intercept
        z = truncated_normal(mean, positive, rng)
        xtz = np.column_stack([(X.T @ z.astype(X.dtype)).T, z.sum(axis=0)])

        precision = np.repeat(gram[None], n_chains, axis=0)
        diagonal = np.einsum("cjj->cj", precision)
        diagonal[:, :p] += tau_sq_inv[:, None] * lambda_sq_inv + slab_scale**-2.0
        diagonal[:, p] += intercept_sd**-2.0
        for c, factor in enumerate(np.linalg.cholesky(precision)):
            half = solve_triangular(factor, xtz[c], lower=True) + rng.standard_normal(p + 1)
            beta = solve_triangular(factor, half, lower=True, trans="T")
            coef[c], intercept[c] = beta[:p], beta[p]

        half_sq = coef**2 / 2
        lambda_sq_inv = rng.standard_exponential((n_chains, p)) / (nu_inv + tau_sq_inv[:, None] * half_sq)
        nu_inv = rng.standard_exponential((n_chains, p)) / (1 + lambda_sq_inv)
        rate = xi_inv + (lambda_sq_inv * half_sq).sum(axis=1)
        tau_sq_inv = rng.standard_gamma((p + 1) / 2, n_chains) / rate
        xi_inv = rng.standard_exponential(n_chains) / (global_scale**-2.0 + tau_sq_inv)

        if t >= 0:
            coef_draws[:, t], intercept_draws[:, t], tau_draws[:, t] = coef, intercept, tau_sq_inv**-0.5
    return coef_draws, intercept_draws, tau_draws


def truncated_normal(mean, positive, rng):
    """N(mean, 1) given that it is positive, or negative where ``positive`` is False; float64.

    The positive case inverts P(Z > z) = Phi(mean - z), the negative one is its mirror image. Where the condition is
    improbable, in logarithms.
    """
    sign = np.where(positive, 1.0, -1.0)
    m = sign * mean
    z = m - ndtri(rng.uniform(2.0**-54, 1.0, m.shape) * ndtr(m))
    far = m < -5.0
    z[far] = m[far] - ndtri_exp(log_ndtr(m[far]) - rng.standard_exponential(far.sum()))
    return sign * z


# Other packages -------------------------------------------------------------------------------------------------------


def numpyro_nuts(
    X, y, slab, burn_in, n_iter, seed, *, tau_0=1.0, free=(), groups=None, n_chains=N_CHAINS, accept=TARGET_ACCEPT,
    logistic=False, ordered=False, several=False, slope=None,
):  # fmt: skip
    """NumPyro's NUTS, the model as the documentation states it, not as our samplers see it; all scales non-centred.

    free : columns that are not shrunk, N(0, (100 / sd)^2). groups : (n,) numbers of the groups of the rows, (n, k) of
    their levels of k factors, or None. slope : a column whose effect differs between the groups of a factor, or None;
    then ``group_scale`` has both deviations and the correlation.
    logistic : the likelihood, in place of probit. ordered : whether y has numbers 0, 1, ... of classes in order, whose
    cut points (n_chains, n_draws, K - 1) stand for the intercept. several : whether y has numbers of K classes without
    an order: multinomial logistic regression with one scale a column, and coefficients by column and class.
    """
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from jax.nn import log_sigmoid, log_softmax
    from jax.scipy.special import log_ndtr
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(seconds) if event.startswith("/jax/core/compile/") else None
    )
    mean, sd, sign = X.mean(axis=0), X.std(axis=0), jnp.asarray(2.0 * y - 1)
    centred, free = jnp.asarray(X - mean), np.array(free, int)
    shrunk = np.delete(np.arange(X.shape[1]), free)

    def normal(name, scale, n):
        return numpyro.sample(name, dist.Normal(0.0, scale).expand([n]))

    def model_of_several():
        tau, contrasts = numpyro.sample("tau", dist.HalfCauchy(tau_0)), helmert(int(y.max()) + 1)
        scale = numpyro.sample("lambda", dist.HalfCauchy(1.0).expand([X.shape[1]])) * tau
        shape = X.shape[1], len(contrasts)
        gamma = numpyro.sample("z", dist.Normal(0.0, 1.0).expand(shape)) * scale[:, None]
        middle = normal("middle", 100.0, len(contrasts))
        numpyro.deterministic("beta", (gamma @ contrasts).ravel())
        numpyro.deterministic("intercept", (middle - mean @ gamma) @ contrasts)
        utilities = (centred @ gamma + middle) @ contrasts
        numpyro.factor("likelihood", log_softmax(utilities)[np.arange(len(y)), y].sum())

    def model():
        tau = numpyro.sample("tau", dist.HalfCauchy(tau_0))
        scale = numpyro.sample("lambda", dist.HalfCauchy(1.0).expand([len(shrunk)])) * tau
        if np.isfinite(slab):
            # N(b; 0, s^2) N(0; b, c^2) = N(b; 0, s^2 c^2 / (s^2 + c^2)) N(0; 0, s^2 + c^2), so that z has no funnel.
            far = jnp.hypot(scale, slab)
            numpyro.factor("slab", -jnp.log(far).sum())
            scale = scale * slab / far
        beta = jnp.zeros(X.shape[1]).at[shrunk].set(normal("z", 1.0, len(shrunk)) * scale)
        if len(free):
            beta = beta.at[free].set(normal("free", 100.0, len(free)) / sd[free])
        numpyro.deterministic("beta", beta)
        if ordered:
            order = dist.ImproperUniform(dist.constraints.ordered_vector, (), (int(y.max()),))
            middle = numpyro.sample("middle", order)
            numpyro.factor("cuts", dist.Normal(0.0, 100.0).log_prob(middle).sum())
            numpyro.deterministic("intercept", middle + mean @ beta)
            ends = jnp.pad(middle, 1, constant_values=(-FAR, FAR))
            low, high = ends[y] - centred @ beta, ends[y + 1] - centred @ beta
            flipped = low > 0  # to the lower tail, where differences keep their digits
            a, b = log_ndtr(jnp.where(flipped, -high, low)), log_ndtr(jnp.where(flipped, -low, high))
            numpyro.factor("likelihood", (b + jnp.log1p(-jnp.exp(a - b))).sum())
            return
        middle = numpyro.sample("middle", dist.Normal(0.0, 100.0))
        numpyro.deterministic("intercept", middle - mean @ beta)
        score = centred @ beta + middle
        if slope is not None:  # Huang & Wand's prior: half-t deviations, uniform correlations
            s = numpyro.sample("s", dist.FoldedDistribution(dist.StudentT(2.0, 0.0, 1.0)).expand([2]))
            unit = jnp.array([1.0, sd[slope]])  # of our prior is that of the column
            root = (unit * s)[:, None] * numpyro.sample("root", dist.LKJCholesky(2, 1.0))
            numpyro.deterministic("s0", s[0])
            numpyro.deterministic("s1", s[1])
            numpyro.deterministic("s2", root[1, 0] / (unit * s)[1])
            u, v = root @ numpyro.sample("u", dist.Normal(0.0, 1.0).expand([2, int(groups.max()) + 1]))
            score = score + u[groups] + v[groups] * centred[:, slope] / sd[slope]
        elif groups is not None:
            for k, codes in enumerate(np.atleast_2d(groups.T)):
                s = numpyro.sample(f"s{k}", dist.HalfCauchy(1.0))
                score = score + s * normal(f"u{k}", 1.0, int(codes.max()) + 1)[codes]
        numpyro.factor("likelihood", (log_sigmoid if logistic else log_ndtr)(sign * score).sum())

    lengths = {"num_warmup": burn_in, "num_samples": n_iter, "num_chains": n_chains, "chain_method": "sequential"}
    mcmc, seconds = (
        MCMC(NUTS(model_of_several if several else model, target_accept_prob=accept), progress_bar=False, **lengths),
        [],
    )
    for stage in (mcmc.warmup, mcmc.run):
        begin, before = time.perf_counter(), sum(compiled)
        stage(jax.random.PRNGKey(seed))
        jax.block_until_ready(mcmc.last_state.z)
        seconds.append(time.perf_counter() - begin - (sum(compiled) - before))
    draws = {name: np.asarray(values) for name, values in mcmc.get_samples(group_by_chain=True).items()}
    divergent = int(np.asarray(mcmc.get_extra_fields()["diverging"]).sum())
    found = Run(draws["beta"], draws["intercept"], draws["tau"], *seconds, sum(compiled), divergent)
    scales = [draws[name] for name in sorted(draws) if name.startswith("s") and name[1:].isdigit()]
    return found._replace(group_scale=scales[0] if len(scales) == 1 else np.stack(scales, axis=-1) if scales else None)


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


def bayesbridge(X, y, slab, burn_in, n_iter, seed, n_chains=N_CHAINS, solver=None):
    warnings.simplefilter("ignore")
    from bayesbridge import BayesBridge, RegressionCoefPrior, RegressionModel

    prior = RegressionCoefPrior(sd_for_intercept=170.0, regularizing_slab_size=1.7 * slab)  # logit: 1.7 times as large
    sampler = BayesBridge(RegressionModel(y.astype(float), X, family="logit"), prior)
    seconds, coef, tau = np.zeros(2), [], []
    for chain in range(n_chains):
        start = time.perf_counter()
        _, info = sampler.gibbs(burn_in + 1, burn_in, seed=seed + chain, coef_sampler_type=solver)
        between = time.perf_counter()
        draws, _ = sampler.gibbs_resume(info, n_iter)
        seconds += between - start, time.perf_counter() - between
        coef.append(draws["coef"].T)
        tau.append(draws["global_scale"])
    coef = np.array(coef)
    return Run(coef[..., 1:], coef[..., 0], np.array(tau), *seconds.tolist(), link="logit")


SAMPLERS = {
    "skhorseshoe": ours,
    'skhorseshoe, "gibbs"': partial(ours, sampler="gibbs"),
    "NumPyro NUTS": numpyro_nuts,
    "nutpie (PyMC) NUTS": nutpie_nuts,
    "bayesbridge (logit)": bayesbridge,
    "Gibbs in NumPy": plain_gibbs,
}


def logistic(cv, l1, **how):
    """Logistic regression, whose penalty cross-validation chooses."""
    how = {"l1_ratios": (l1,), "scoring": "neg_log_loss", "use_legacy_attributes": False, **how}
    return LogisticRegressionCV(cv=cv, **how)


PREDICTORS = {
    "logistic regression, L1": lambda cv: logistic(cv, 1.0, solver="saga", max_iter=2000),
    "logistic regression, L2": lambda cv: logistic(cv, 0.0, max_iter=2000),
    "gradient boosting": lambda cv: HistGradientBoostingClassifier(random_state=0),
}


def scores(probability, y):
    clipped = np.clip(probability, 1e-9, 1 - 1e-9)
    return {"log loss": float(log_loss(y, clipped)), "AUC": float(roc_auc_score(y, probability))}
