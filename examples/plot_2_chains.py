"""
What a chain looks like
=======================

R-hat and effective sample size are numbers. This page shows what they measure: the trace, the density and the
autocorrelation of one coefficient, as in Figure 2 of Terenin, Dong & Draper (2019), on data made as in that paper: six
of the columns matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit

# %%
# A large coefficient mixes slowest. The fit is long enough for the picture and too short for comfort, so that there is
# something to see.

X, y, coef = make_sparse_probit(500, 20, random_state=0)
clf = HorseshoeProbitClassifier(n_iter=10000, burn_in=2000, random_state=0).fit(X, y)
print("true coefficients:", coef[:6])

# %%
# The pictures are of two coefficients: that of column 4, which is 5 in truth, and that of column 10, which is 0.

CHAIN_STYLES = [("0", "-"), ("0.35", "--"), ("0.55", "-."), ("0.7", ":")]


def autocorrelation(draws, max_lag):
    """Autocorrelations at lags 0 to max_lag, averaged over the chains; draws (n_chains, n_draws)."""
    centred = draws - draws.mean(axis=1, keepdims=True)
    n_draws = centred.shape[1]
    sums = [np.sum(centred[:, : n_draws - lag] * centred[:, lag:]) for lag in range(max_lag + 1)]
    return np.array(sums) / sums[0]


def plot_chains(column, max_lag=400):
    draws = clf.coef_draws_[:, :, column]
    layout = [["trace", "trace"], ["density", "lags"]]
    fig, axes = plt.subplot_mosaic(layout, figsize=(8, 5.5), layout="constrained")
    edges = np.linspace(draws.min(), draws.max(), 40)
    for chain, (colour, line) in zip(draws, CHAIN_STYLES, strict=True):
        axes["trace"].plot(chain, color=colour, linewidth=0.5)
        density, _ = np.histogram(chain, edges, density=True)
        middles = (edges[1:] + edges[:-1]) / 2
        axes["density"].plot(middles, density, color=colour, linestyle=line)
    axes["density"].axvline(coef[column], color="black", linewidth=0.8)
    axes["density"].text(coef[column], 0, " truth", va="bottom")
    axes["lags"].plot(autocorrelation(draws, max_lag), color="black")
    axes["lags"].axhline(0, color="0.6", linewidth=0.8)
    axes["trace"].set(xlabel="sweep after burn-in", ylabel=f"coefficient {column}")
    axes["trace"].set(xlim=(0, draws.shape[1]))
    axes["density"].set(xlabel=f"coefficient {column}", ylabel="density")
    axes["lags"].set(xlabel="lag in sweeps", ylabel="autocorrelation")
    axes["lags"].set(ylim=(-0.2, 1.02), xlim=(0, max_lag))
    rhat, ess = clf.rhat_[column], clf.ess_[column]
    fig.suptitle(f"column {column}: R-hat {rhat:.2f}, effective sample size {ess:.0f}")
    plt.show()


plot_chains(4)

# %%
# **Trace.** The chains wander. A good trace looks like noise; this one looks like four slow walks over the same ground.
#
# **Density.** The four chains should draw one curve. They do not do so yet, and R-hat says so.
#
# **Autocorrelation.** How much a draw tells about the draw so many sweeps later. It falls slowly. The effective sample
# size in the title follows from this curve: of 40000 draws, few are worth an independent one.

plot_chains(10)

# %%
# The coefficient of a column that does not matter forgets its past in a few sweeps. Nearly all draws are close to zero,
# with an excursion now and then: the horseshoe keeps the door open for a large coefficient.
#
# What helps
# ----------
#
# More sweeps, and ``thin`` so that the kept draws stay few. The warning says how many more.

longer = clone(clf).set_params(n_iter=150000, thin=100, burn_in=15000).fit(X, y)
longer.summary().loc[["x4", "x10"], ["mean", "sd", "ess", "rhat"]].round(3)

# %%
# The long run says what the short one could not: how far its numbers can be trusted.
