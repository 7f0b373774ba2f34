"""
Hours of patients: rows that belong together
============================================

Hourly records of patients in intensive care, and a rare event. Hours of one patient are more alike than those of two,
for reasons that no column has. A model that does not know this is too sure, and lets noise in.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupShuffleSplit

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.plotting import CoefficientsDisplay, GroupEffectsDisplay, ProbabilityIntervalDisplay

# %%
# Made-up data: 400 patients of 5 to 60 hours. Ten columns are one number for each patient, ten change from hour to
# hour. One of each matters, "age" and "lactate"; the others are noise. One hour in fifty has the event.

rng = np.random.default_rng(2)
hours = rng.integers(5, 61, 400)
patient = np.repeat(np.arange(400), hours)
of_patient = rng.standard_normal((400, 10))[patient]
of_hour = rng.standard_normal((len(patient), 10))
names = ["age", *(f"history {k}" for k in range(2, 11)), "lactate", *(f"reading {k}" for k in range(2, 11))]
X = pd.DataFrame(np.column_stack([of_patient, of_hour]), columns=names)
unmeasured = rng.standard_normal(400)[patient]
score = -3 + 0.7 * X["age"] + 0.3 * X["lactate"] + unmeasured + rng.standard_normal(len(patient))
y = (score > 0).to_numpy().astype(int)  # 1 is the event
print(f"{len(y)} hours, {100 * y.mean():.1f} % with the event")

# %%
# A quarter of the patients are set aside, with all their hours. The fit that is not told of patients warns.

(train, test), *_ = GroupShuffleSplit(1, test_size=0.25, random_state=0).split(X, y, patient)
clf = HorseshoeProbitClassifier(random_state=0)
naive = HorseshoeProbitClassifier(random_state=0).fit(X.iloc[train], y[train])
grouped = clf.fit(X.iloc[train], y[train], groups=patient[train])
print(grouped.summary(sort_by="mean").head(3))

# %%
# Coefficients, if hours are taken as independent, and if they belong to patients. Coefficients given the patient are
# larger, by what the header says. On the same scale, the left interval of "age" is about half as wide as the right one:
# it counts ten thousand hours, where there are three hundred patients.

fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, model, title in zip(axes, (naive, grouped), ("without groups", "with groups=patient"), strict=True):
    CoefficientsDisplay.from_estimator(model, top=None, order="original", ax=ax)
    ax.set_title(title, pad=30)
plt.show()

# %%
# Patients who are new
# --------------------
#
# The labels of the patients in the test set are unknown to the model: it averages over what no column measures.

for title, model in (("without groups", naive), ("with groups", grouped)):
    print(f"{title:15} log loss {log_loss(y[test], model.predict_proba(X.iloc[test])):.4f}")

# %%
# Patients who are known
# ----------------------
#
# What is known of the patients in the fit: a hundred of them, evenly from the largest effect to the smallest.

GroupEffectsDisplay.from_estimator(grouped)
plt.show()

# %%
# An hour at the mean of all columns, for the three patients with the largest effects, the three with the smallest, and
# a new one:

effects = grouped.group_effects()["mean"].sort_values()
who = [*effects.index[:3], *effects.index[-3:], -1]  # -1 is no patient of the fit
hour = pd.DataFrame(np.tile(X.mean(), (7, 1)), columns=X.columns, index=[*(f"patient {k}" for k in who[:-1]), "new"])
ProbabilityIntervalDisplay.from_estimator(grouped, hour, groups=who, new_groups=False, threshold=None)
plt.show()
