"""
Selecting columns, against the truth
====================================

On synthetic data the truth is known. Six of a hundred columns matter. Which of them does each rule find, and how many
of the others does it let in?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit
from skhorseshoe.plotting import CoefficientsDisplay, ShrinkageDisplay

# %%
# Fit once, look at both rules
# ----------------------------

X, y, coef = make_sparse_probit(1000, 100, random_state=1)
clf = HorseshoeProbitClassifier(n_iter=4000, random_state=0).fit(X, y)

truth = coef != 0
low, high = np.quantile(clf.coef_draws_, [0.05, 0.95], axis=(0, 1))
clear = (low > 0) | (high < 0)
included = clf.inclusion_score_ > 0.5

for name, chosen in {"interval leaves out zero": clear, "inclusion score above 0.5": included}.items():
    print(f"{name}: {(chosen & truth).sum()} of {truth.sum()} found, {(chosen & ~truth).sum()} others let in")

# %%
# The same as pictures: the intervals of the twelve largest coefficients, and the shrinkage of all columns, which is 1
# less the inclusion score. Squares are the columns that the rule keeps.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
CoefficientsDisplay.from_estimator(clf, top=12, ax=axes[0])
ShrinkageDisplay.from_estimator(clf, order="original", ax=axes[1])
plt.show()

# %%
# In a Pipeline
# -------------
#
# ``SelectFromModel`` applies either rule before another estimator. Always pass a threshold: its default keeps what is
# larger than the average, which is not a rule about evidence.

selecting = HorseshoeProbitClassifier(n_iter=4000, coef_summary="selected", random_state=0)
selectors = {
    "interval": SelectFromModel(selecting, threshold=1e-10),
    "inclusion score": SelectFromModel(selecting, importance_getter="inclusion_score_", threshold=0.5),
}
for name, selector in selectors.items():
    model = make_pipeline(StandardScaler(), selector, RandomForestClassifier(random_state=0))
    model.fit(X, y)
    kept = model[1].get_support()
    print(f"{name}: keeps {kept.sum()} columns, {(kept & truth).sum()} of {truth.sum()} that matter")

# %%
# Weak effects
# ------------
#
# The six effects above are strong. Now three of forty columns matter, with effects of one size, from weak to strong, on
# 400 rows; ten data sets for each size. Which share of the three does each rule find, and how many others does it let
# in? ``target_ess`` ends each fit as soon as it will do.

classifier = HorseshoeProbitClassifier(
    target_ess=400, n_iter=10000, burn_in=500, coef_summary="selected", random_state=0
)
sizes = [0.1, 0.2, 0.3, 0.5]
found, others = np.zeros((2, 2, len(sizes)))
rng = np.random.default_rng(0)
for s, size in enumerate(sizes):
    for _ in range(10):
        X = rng.standard_normal((400, 40))
        y = size * (X[:, 0] - X[:, 1] + X[:, 2]) + rng.standard_normal(400) > 0
        fit = classifier.fit(X, y)
        for rule, chosen in enumerate([fit.coef_[0] != 0, fit.inclusion_score_ > 0.5]):
            found[rule, s] += chosen[:3].mean() / 10
            others[rule, s] += chosen[3:].sum() / 10

fig, axes = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
for rule, (label, style) in enumerate({"interval": "s-", "inclusion score": "o--"}.items()):
    colour = ["black", "0.45"][rule]
    axes[0].plot(sizes, found[rule], style, color=colour, label=label)
    axes[1].plot(sizes, others[rule], style, color=colour, label=label)
axes[0].set(xlabel="size of the coefficients", ylabel="share found", ylim=(-0.03, 1.03))
axes[1].set(xlabel="size of the coefficients", ylabel="others let in, of 37", ylim=(-0.03, 1.03))
axes[0].legend(frameon=False, loc="lower right")
plt.show()

# %%
# The score finds a few more of the weak effects and lets in a little more. That holds where few columns matter;
# :doc:`/user_guide/which_columns_matter` shows what happens where many do.
