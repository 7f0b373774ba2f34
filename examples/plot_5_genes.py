"""
More genes than patients
========================

A hundred patients, three hundred genes, five of which matter. The data are synthetic: they have the shape of a study of
gene expression, and a truth to compare with. :doc:`/user_guide/more_columns_than_rows` has the advice behind this page.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_correlated_probit
from skhorseshoe.plotting import CoefficientsDisplay
from skhorseshoe.sets import correlated_sets

# %%
# Neighbouring genes are correlated by 0.6. Another 2000 patients are there to test on.

X, y, coef = make_correlated_probit(2100, 300, random_state=1)
genes = pd.DataFrame(X, columns=[f"gene {j}" for j in range(300)])
train, test = genes[:100], genes[100:]
y_train, y_test = y[:100], y[100:]
truth = genes.columns[coef != 0]
print(*truth, sep=", ")

# %%
# With more columns than rows some combination of columns always tells the classes of the training data apart, and the
# data place no limit on the coefficients. The default does, a slab of 4 per contrast of each column (2.5 standard
# deviations, where it is normal): beyond 3 or so, a coefficient is not believed.

clf = HorseshoeProbitClassifier(expected_nonzero=5, random_state=0).fit(train, y_train)

# %%
# Marked are the genes that matter in truth.

display = CoefficientsDisplay.from_estimator(clf, selected=coef != 0, top=15)
for text, words in zip(display.legend_.get_texts(), ["matters", "does not"], strict=True):
    text.set_text(words)
plt.show()

# %%
# A hundred patients do not say for sure how strong an effect is: the intervals of the genes that matter are wide. What
# the posterior does know is that most genes can be left out:

scores = pd.Series(clf.inclusion_score_, index=genes.columns)
ranks = scores.rank(ascending=False)
print("ranks of the five by inclusion score:", sorted(ranks[truth].astype(int)))
print(f"genes with an inclusion score below 0.1: {(scores < 0.1).sum()} of 300")

# %%
# Neighbours are strongly correlated, so the posterior is surer of a set of them than of any gene in it.
# ``correlated_sets`` finds such sets; the mean is the effect on the score if all genes of a set rise by one
# standard deviation together, and ``m_eff`` is how many of them are effectively nonzero. The last column, which no
# real study has, says which sets hold a gene that matters.

sets = correlated_sets(train, threshold=0.5)
by_set = clf.summary_of_sets(sets).nlargest(8, "m_eff")
by_set["truth"] = [", ".join(truth.intersection(list(sets[title]))) for title in by_set.index]
by_set[["n_columns", "mean", "5%", "95%", "prob_positive", "m_eff", "truth"]].round(2)

# %%
# How good are the probabilities?
# -------------------------------
#
# On the 2000 patients that were set aside, beside logistic regression with an L1 penalty chosen by cross-validation:

lasso = LogisticRegressionCV(
    Cs=10, l1_ratios=(1,), solver="liblinear", scoring="neg_log_loss", random_state=0, use_legacy_attributes=False
).fit(train, y_train)
rows = {}
for name, fit in {"horseshoe probit": clf, "L1 logistic regression": lasso}.items():
    proba = fit.predict_proba(test)[:, 1]
    rows[name] = {"log loss": log_loss(y_test, proba), "AUC": roc_auc_score(y_test, proba)}
rows["base rate"] = {"log loss": log_loss(y_test, np.full(2000, y_train.mean())), "AUC": 0.5}
pd.DataFrame(rows).T.round(3)

# %%
# One data set of a hundred patients: another one may turn out the other way.
