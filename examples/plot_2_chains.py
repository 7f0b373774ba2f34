"""
What a chain looks like
=======================

R-hat and effective sample size are numbers. This page shows what they measure: the trace, the density and the
autocorrelation of one coefficient, as in Figure 2 of Terenin, Dong & Draper (2019), on data made as in that paper: six
of the columns matter. One sampler is that of the paper, the other is the default.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit
from skhorseshoe.plotting import AutocorrelationDisplay, TraceDisplay

# %%
# Both draw from the same posterior, with as many sweeps. For ``"gibbs"`` the run is too short, and the warning says so.

X, y, coef = make_sparse_probit(500, 20, random_state=0)
print("true coefficients:", coef[:6])

gibbs = HorseshoeProbitClassifier(sampler="gibbs", n_iter=10000, random_state=0).fit(X, y)
hmc = HorseshoeProbitClassifier(sampler="hmc", n_iter=10000, random_state=0).fit(X, y)

# %%
# Trace and ranks
# ---------------
#
# The coefficient of the first column, which is 1.3 in truth, as ``"gibbs"`` draws it:

TraceDisplay.from_estimator(gibbs, names="x0")
plt.show()

# %%
# and as the default does:

TraceDisplay.from_estimator(hmc, names="x0")
plt.show()

# %%
# **Trace.** A good trace looks like noise, as the second one does. The first are four slow walks over the same ground.
#
# **Ranks.** All draws of all chains are put in order. Where the chains agree, each has its share of the low, the middle
# and the high ranks, and all bars are about as high as the dashed line. In the first picture they are not, and R-hat
# says so.
#
# Density
# -------
#
# The four chains should draw one curve.

fig, axes = plt.subplots(1, 2, figsize=(8, 3), sharex=True, sharey=True, layout="constrained")
for ax, fit, name in zip(axes, [gibbs, hmc], ["gibbs", "hmc"], strict=True):
    for chain, style, shade in zip(fit.coef_draws_[..., 0], ["-", "--", "-.", ":"], [0, 0.3, 0.45, 0.6], strict=True):
        heights, edges = np.histogram(chain, 40, density=True)
        ax.plot((edges[1:] + edges[:-1]) / 2, heights, style, color=str(shade))
    ax.axvline(coef[0], color="black", linewidth=0.8)
    ax.text(coef[0], 0, " truth", va="bottom")
    ax.set(title=f'"{name}"', xlabel="coefficient x0")
axes[0].set_ylabel("density")
plt.show()

# %%
# Autocorrelation
# ---------------
#
# How much a draw tells about the draw a given number of sweeps later: for the first coefficient, for the largest
# (x4), and for that of a column that does not matter (x10).

fig, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True, layout="constrained")
for ax, fit, name in zip(axes, [gibbs, hmc], ["gibbs", "hmc"], strict=True):
    AutocorrelationDisplay.from_estimator(fit, names=["x0", "x4", "x10"], max_lag=200, ax=ax)
    ax.set_xlabel(f'lag in draws of "{name}"')
plt.show()

# %%
# On the left it falls slowly. The effective sample size (ESS) follows from this curve: 40000 draws are worth few
# independent ones. The coefficient of a column that does not matter forgets its past sooner.
#
# What a large effective sample size buys
# ---------------------------------------
#
# The error of a posterior mean that is due to the sampling alone is ``sd / sqrt(ess)``.

rows = {}
for name, fit in {"gibbs": gibbs, "hmc": hmc}.items():
    x4 = fit.summary().loc["x4"]
    rows[name] = {"mean": x4["mean"], "sd": x4["sd"], "ess": x4["ess"], "error": x4["sd"] / np.sqrt(x4["ess"])}
pd.DataFrame(rows).T.round(3)

# %%
# ``"gibbs"`` needs more than a thousand times as many sweeps here to know this mean as well (so small an ESS is itself
# a guess). They are cheaper, but not by that much: a sweep of ``"hmc"`` takes 1.4 to 5.6 times as long on the
# developers' benchmarks. :doc:`/user_guide/convergence` has figures.
