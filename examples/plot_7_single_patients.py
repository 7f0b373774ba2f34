"""
One patient: which probability, how sure?
=========================================

A probability of 50 % can mean two things: the data say that half of such patients are ill, or they say nothing about
such patients. The posterior tells the two apart.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.plotting import PosteriorCalibrationDisplay, ProbabilityIntervalDisplay

# %%
# Thirty measurements of breast tumours, and the model of :doc:`plot_1_breast_cancer`.

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
clf = HorseshoeProbitClassifier(slab_scale=2, n_iter=4000, random_state=0)
model = make_pipeline(StandardScaler(), clf).set_output(transform="pandas").fit(X_train, y_train)

# %%
# All patients that were set aside, the most probable first. The line is the 90 % interval of the probability.

ProbabilityIntervalDisplay.from_estimator(model, X_test, y_test)
plt.show()

# %%
# Most are clear. These are the twenty least clear, by the number of the patient:

proba = model.predict_proba(X_test)[:, 1]
open_cases = np.argsort(np.abs(proba - 0.5))[:20]
ProbabilityIntervalDisplay.from_estimator(model, X_test.iloc[open_cases], y_test.iloc[open_cases])
plt.show()

# %%
# The probability to act on is the mark: it already averages over all that the line shows. The line answers another
# question: would more data change the answer? A long line says that it could. A second reading, or a further test, pays
# there first.
#
# Do the probabilities come true?
# -------------------------------
#
# With 171 patients, of whom most are clear, the band is wide: only gross errors would show.

PosteriorCalibrationDisplay.from_estimator(model, X_test, y_test)
plt.show()
