"""
Which measurements tell malignant from benign?
==============================================

Thirty measurements of cells from breast tumours: ten properties, each as a mean, a standard error and a worst value.
They are strongly correlated. Which of them matter, how sure is that, and which probability should a doctor act on?
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.plotting import CoefficientsDisplay, SelectionPathDisplay

# %%
# The data are a pandas frame with a name for each column. The label is 0 for malignant and 1 for benign. Three tenths
# of the patients are set aside.

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
print(f"{len(X_train)} patients to learn from, {len(X_test)} to test on")

# %%
# Fit
# ---
#
# The scaler gives all columns one unit, as the prior needs. ``set_output`` makes it hand on their names. The columns
# separate the classes completely, so the data alone do not bound the coefficients: ``slab_scale=2`` does
# (:doc:`/user_guide/prior`). ``n_iter`` is how many sweeps each chain makes: many more than the default makes, so that
# the last digits of the intervals below are those of the posterior.

clf = HorseshoeProbitClassifier(slab_scale=2, n_iter=4000, random_state=0)
model = make_pipeline(StandardScaler(), clf).set_output(transform="pandas").fit(X_train, y_train)

# %%
# There is no warning, so the chains agree. The two smallest effective sample sizes:

clf.summary()[["ess", "rhat"]].nsmallest(2, "ess").round(3)

# %%
# Read the summary
# ----------------
#
# One row for each column. ``prob_positive`` is the probability that the coefficient is above zero, that is, that a
# higher value speaks for ``classes_[1]``, which is 1, benign. Near zero, a higher value speaks for a malignant tumour.
# ``shrinkage`` near 1 means that the data say nothing about the coefficient. :doc:`/user_guide/first_fit` explains all
# columns. The ten with the clearest sign:

summary = clf.summary().loc[X.columns]
certainty = (summary["prob_positive"] - 0.5).abs()
summary.loc[certainty.nlargest(10).index].round(2)

# %%
# Which columns matter
# --------------------
#
# Two rules. One asks whether the 90 % interval leaves out zero, so that the sign is clear. The other, "dss", asks which
# few columns predict as well as all of them, within the uncertainty of the posterior.

CoefficientsDisplay.from_estimator(model, top=None)
plt.show()

# %%
# Squares have a clear sign. Below, they are needed to predict.

selector = HorseshoeSelector(clf, rule="dss", prefit=True).fit(model[:-1].transform(X_train))
SelectionPathDisplay.from_estimator(selector)
plt.show()

# %%
# One column has a clear sign. The long lines belong to columns that are strongly correlated: radius, perimeter and
# area of a cell say nearly the same thing. That the tumour is large matters, but the data cannot tell which of the
# three deserves the credit. So "not selected" does not mean "has nothing to do with it".
#
# Which probability to act on
# ---------------------------
#
# Beside it, logistic regression with an L1 penalty that is chosen by cross-validation. Log loss judges the
# probabilities: smaller is better. The area under the ROC curve (AUC) judges their order: larger is better.

lasso = LogisticRegressionCV(
    Cs=10, l1_ratios=(1,), solver="liblinear", scoring="neg_log_loss", random_state=0, use_legacy_attributes=False
)
others = make_pipeline(StandardScaler(), lasso).fit(X_train, y_train)

scores = {}
for name, fitted in {"horseshoe probit": model, "L1 logistic regression": others}.items():
    proba = fitted.predict_proba(X_test)[:, 1]
    scores[name] = {"log loss": log_loss(y_test, proba), "AUC": roc_auc_score(y_test, proba)}
pd.DataFrame(scores).T.round(4)

# %%
# On 171 patients such figures are themselves uncertain. Repeat the split before you conclude that one method is better.
