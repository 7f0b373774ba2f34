"""
Rare events: which probabilities can be believed?
=================================================

One row in two hundred is an event. Nobody predicts the event itself; what counts is whether a probability of 3 % means
3 %. The data are synthetic, so that the truth is known. :doc:`/user_guide/rare_events` has the advice behind this page.
"""

import matplotlib.pyplot as plt
import pandas as pd
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_rare_events
from skhorseshoe.plotting import CoefficientsDisplay, PosteriorCalibrationDisplay

# %%
# 10000 rows to learn from, 50 columns, five of which matter. 40000 rows to test on.

X, y, coef, intercept = make_rare_events(50_000, 50, random_state=0)
X_train, X_test, y_train, y_test = X[:10_000], X[10_000:], y[:10_000], y[10_000:]
print(f"{y_train.sum()} events to learn from, {y_test.sum()} to test on")

# %%
# Fit
# ---
#
# Nothing is resampled or weighted: the probabilities are to be true to the population. Beside it, logistic regression
# with an L1 and with an L2 penalty, each chosen by cross-validation.

clf = HorseshoeProbitClassifier(random_state=0).fit(X_train, y_train)
penalties = {"L1": {"l1_ratios": (1,), "solver": "liblinear"}, "L2": {"l1_ratios": (0,)}}
models = {"horseshoe probit": clf}
for name, penalty in penalties.items():
    logistic = LogisticRegressionCV(
        Cs=10, scoring="neg_log_loss", random_state=0, use_legacy_attributes=False, **penalty
    )
    models[f"{name} logistic regression"] = logistic.fit(X_train, y_train)

# %%
# The score of the true probabilities is the best that any model can reach.

scores = {"true probabilities": ndtr(intercept + X_test @ coef)}
scores |= {name: model.predict_proba(X_test)[:, 1] for name, model in models.items()}
rows = {name: {"log loss": log_loss(y_test, p), "AUC": roc_auc_score(y_test, p)} for name, p in scores.items()}
pd.DataFrame(rows).T.round(4)

# %%
# Calibration
# -----------
#
# Observed shares against predicted ones. The band is where the curve lies if the model is right: from the chance in the
# outcomes, and from what the data leave open about the coefficients. Where it is wide, even 40000 rows say little. The
# axes end where 95 % of the expected events do.

PosteriorCalibrationDisplay.from_estimator(clf, X_test, y_test)
plt.show()

# %%
# All three, in groups of rows: three quarters with the smallest probabilities, then ever smaller groups towards the
# largest. Both axes are logarithmic.

edges = [0, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 1]
fig, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for (name, model), style, shade in zip(models.items(), ["s-", "o--", "^:"], ["#004488", "0.35", "0.6"], strict=True):
    p = model.predict_proba(X_test)[:, 1]
    group = pd.cut(pd.Series(p).rank(pct=True), edges)
    means = pd.DataFrame({"predicted": p, "observed": y_test}).groupby(group, observed=True).mean()
    ax.plot(means["predicted"], means["observed"], style, color=shade, label=name)
ax.axline((1e-3, 1e-3), (1e-1, 1e-1), color="black", linewidth=0.8)
ax.set(xscale="log", yscale="log", xlabel="mean predicted probability", ylabel="share of events", aspect="equal")
ax.legend(frameon=False)
plt.show()

# %%
# Which columns matter
# --------------------
#
# With 42 events the strong effects are found and the weak ones are open. Marked are the columns that matter in
# truth; their coefficients are 1, -0.8, 0.6, -0.4 and 0.3.

display = CoefficientsDisplay.from_estimator(clf, selected=coef != 0, top=10)
for text, words in zip(display.legend_.get_texts(), ["matters", "does not"], strict=True):
    text.set_text(words)
plt.show()
