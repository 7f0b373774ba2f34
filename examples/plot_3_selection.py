"""
Selecting columns, against the truth
====================================

On synthetic data the truth is known. Six of a hundred columns matter. Which of them does each rule find, and how many
of the others does it let in?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.datasets import make_sparse_probit
from skhorseshoe.plotting import CoefficientsDisplay, SelectionPathDisplay, ShrinkageDisplay

RULES = ("dss", "interval", "shrinkage")

# %%
# Fit once, look at three rules
# -----------------------------

X, y, coef = make_sparse_probit(2000, 100, random_state=1)
clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)

truth = coef != 0
for rule in RULES:
    chosen = HorseshoeSelector(clf, rule=rule, prefit=True).fit(X).get_support()
    print(f"{rule}: {(chosen & truth).sum()} of {truth.sum()} found, {(chosen & ~truth).sum()} others let in")

# %%
# The same as pictures: the intervals of the twelve largest coefficients, and the shrinkage of all columns, at which the
# rule "shrinkage" looks. That is a screen where few of many columns matter, without a stated rate of errors. Squares
# are the columns that the rule keeps.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
CoefficientsDisplay.from_estimator(clf, top=12, ax=axes[0])
ShrinkageDisplay.from_estimator(clf, order="original", top=None, ax=axes[1])
plt.show()

# %%
# How many columns are needed? The rule "dss" takes the columns one after another, the most telling ones first, until
# the probabilities are as near to those of the posterior mean as half of the draws are: left of the dashed line.

selector = HorseshoeSelector(clf, prefit=True).fit(X)
SelectionPathDisplay.from_estimator(selector)
plt.show()

# %%
# In a Pipeline
# -------------
#
# The selector stands before another estimator and fits a classifier of its own.

selector = HorseshoeSelector(HorseshoeProbitClassifier(random_state=0))
model = make_pipeline(StandardScaler(), selector, RandomForestClassifier(random_state=0)).fit(X, y)
kept = model[1].get_support()
print(f"keeps {kept.sum()} columns, {(kept & truth).sum()} of {truth.sum()} that matter")

# %%
# Weak effects
# ------------
#
# The six effects above are strong. Now three of forty columns matter, with effects of one size, from weak to strong, on
# 400 rows; ten data sets for each size. Which share of the three does each rule find, and how many others does it let
# in?

classifier = HorseshoeProbitClassifier(random_state=0)
sizes = [0.1, 0.2, 0.3, 0.5]
found, others = np.zeros((2, len(RULES), len(sizes)))
rng = np.random.default_rng(0)
for s, size in enumerate(sizes):
    for _ in range(10):
        X = rng.standard_normal((400, 40))
        y = size * (X[:, 0] - X[:, 1] + X[:, 2]) + rng.standard_normal(400) > 0
        fit = classifier.fit(X, y)
        for r, rule in enumerate(RULES):
            chosen = HorseshoeSelector(fit, rule=rule, prefit=True).fit(X).get_support()
            found[r, s] += chosen[:3].mean() / 10
            others[r, s] += chosen[3:].sum() / 10

fig, axes = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
for r, (rule, style) in enumerate(zip(RULES, ["s-", "o--", "^:"], strict=True)):
    colour = ["black", "0.3", "0.55"][r]
    axes[0].plot(sizes, found[r], style, color=colour, label=rule)
    axes[1].plot(sizes, others[r], style, color=colour, label=rule)
axes[0].set(xlabel="size of the coefficients", ylabel="share found", ylim=(-0.03, 1.03))
axes[1].set(xlabel="size of the coefficients", ylabel="others let in, of 37", ylim=(-0.03, 1.03))
axes[0].legend(frameon=False, loc="lower right")
plt.show()

# %%
# "shrinkage", the screen, finds a few more of the weak effects and lets in a little more; "dss" keeps what is needed to
# predict, and hardly any noise. That holds where few columns matter; :doc:`/user_guide/which_columns_matter` shows what
# happens where many do, and where columns are strongly correlated.
