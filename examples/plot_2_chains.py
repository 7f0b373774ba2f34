"""
What a chain looks like
=======================

R-hat and effective sample size are numbers. This page shows what they measure: the trace, the density and the
autocorrelation of one coefficient, as in Figure 2 of Terenin, Dong & Draper (2019), on data made as in that paper: six
of the columns matter. On the left is the sampler of that paper, on the right the default.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit

# %%
# Both draw from the same posterior, with as many sweeps. A large coefficient mixes slowest. For ``"gibbs"`` the run is
# too short, and the warning says so.

X, y, coef = make_sparse_probit(500, 20, random_state=0)
print("true coefficients:", coef[:6])

fits = {
    sampler: HorseshoeProbitClassifier(sampler=sampler, n_iter=10000, random_state=0).fit(X, y)
    for sampler in ("gibbs", "hmc")
}

# %%
# The pictures are of two coefficients: that of column 4, which is 5 in truth, and that of column 10, which is 0.

CHAIN_STYLES = [("0", "-"), ("0.35", "--"), ("0.55", "-."), ("0.7", ":")]


def autocorrelation(draws, max_lag):
    """Autocorrelations at lags 0 to max_lag, averaged over the chains; draws (n_chains, n_draws)."""
    centred = draws - draws.mean(axis=1, keepdims=True)
    n_draws = centred.shape[1]
    sums = [np.sum(centred[:, : n_draws - lag] * centred[:, lag:]) for lag in range(max_lag + 1)]
    return np.array(sums) / sums[0]


def plot_chains(column, max_lag=200):
    _, axes = plt.subplots(3, 2, figsize=(8, 7.5), sharex="row", sharey="row", layout="constrained")
    every = np.concatenate([clf.coef_draws_[:, :, column] for clf in fits.values()])
    edges = np.linspace(*np.quantile(every, [0.0005, 0.9995]), 40)
    for (trace, density, lags), (sampler, clf) in zip(axes.T, fits.items(), strict=True):
        draws = clf.coef_draws_[:, :, column]
        for chain, (colour, line) in zip(draws, CHAIN_STYLES, strict=True):
            trace.plot(chain, color=colour, linewidth=0.4)
            heights, _ = np.histogram(chain, edges, density=True)
            density.plot((edges[1:] + edges[:-1]) / 2, heights, color=colour, linestyle=line)
        density.axvline(coef[column], color="black", linewidth=0.8)
        density.text(coef[column], 0, " truth", va="bottom")
        lags.plot(autocorrelation(draws, max_lag), color="black")
        lags.axhline(0, color="0.6", linewidth=0.8)
        rhat, ess = clf.rhat_[column], clf.ess_[column]
        trace.set_title(f'"{sampler}"\nR-hat {rhat:.3f}, effective sample size {ess:.0f}', fontsize="medium")
        trace.set(xlabel="sweep after burn-in", xlim=(0, draws.shape[1]))
        density.set(xlabel=f"coefficient {column}")
        lags.set(xlabel="lag in sweeps", ylim=(-0.2, 1.02), xlim=(0, max_lag))
    for ax, label in zip(axes[:, 0], [f"coefficient {column}", "density", "autocorrelation"], strict=True):
        ax.set_ylabel(label)
    plt.show()


plot_chains(4)

# %%
# **Trace.** A good trace looks like noise, as on the right. On the left are four slow walks over the same ground.
#
# **Density.** The four chains should draw one curve. On the left they do not, and R-hat says so.
#
# **Autocorrelation.** How much a draw tells about the draw so many sweeps later. On the left it falls slowly. The
# effective sample size follows from this curve: of 40000 draws, few are worth an independent one.

plot_chains(10)

# %%
# The coefficient of a column that does not matter forgets its past sooner under both. Nearly all draws are close to
# zero, with an excursion now and then: the horseshoe keeps the door open for a large coefficient.
#
# What a large effective sample size buys
# ---------------------------------------
#
# The error of a posterior mean that is due to the sampling alone is ``sd / sqrt(ess)``.

rows = {}
for sampler, clf in fits.items():
    x4 = clf.summary().loc["x4"]
    rows[sampler] = {"mean": x4["mean"], "sd": x4["sd"], "ess": x4["ess"], "error": x4["sd"] / np.sqrt(x4["ess"])}
pd.DataFrame(rows).T.round(3)

# %%
# ``"gibbs"`` needs more than two hundred times as many sweeps to know this mean as well. They are cheaper, but not by
# that much: a sweep of ``"hmc"`` takes two to four times as long. :doc:`/user_guide/convergence` has figures.
