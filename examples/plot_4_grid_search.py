"""
How many sweeps do the probabilities need?
==========================================

``n_iter`` counts the sweeps after burn-in, so every pair of ``n_iter`` and ``burn_in`` makes sense, and a grid search
over both shows from where on longer chains no longer improve the probabilities. The score is the log loss, which judges
probabilities; accuracy would hardly see a difference.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier

# %%
# The search
# ----------
#
# Short chains are the point here, so the convergence warnings are switched off. Without burn-in there is nothing to
# tune the default sampler with, and ``sampler="auto"`` takes ``"pxda"``; from 100 sweeps on it takes ``"hmc"``. With
# ``n_jobs=2`` two fits run at once; each takes its share of the cores, and nothing has to be set on the classifier.

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
model = make_pipeline(StandardScaler(), HorseshoeProbitClassifier(random_state=0))
grid = {
    "horseshoeprobitclassifier__burn_in": [0, 100, 1000],
    "horseshoeprobitclassifier__n_iter": [10, 50, 200, 1000],
}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=folds, n_jobs=2)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    search.fit(X, y)

# %%
# The result
# ----------

losses = -search.cv_results_["mean_test_score"].reshape(3, 4)

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
styles = ["o:", "s--", "^-"]
for burn_in, row, style, grey in zip([0, 100, 1000], losses, styles, ["0.55", "0.3", "0"], strict=True):
    ax.plot([10, 50, 200, 1000], row, style, color=grey, label=f"burn_in={burn_in}")
ax.set(xscale="log", xlabel="n_iter", ylabel="log loss, mean of 5 folds")
ax.legend(frameon=False)
plt.show()

# %%
# Without burn-in, the start spoils the average until there are many sweeps. With burn-in, the log loss is nearly flat:
# ten sweeps of four chains already give an average over forty draws. Probabilities need fewer draws than the ends of an
# interval do.
#
# The differences between folds are larger than those between the longer chains, so do not take the best cell too
# seriously. The longest chains without burn-in are as good as the others here, and have not converged. What matters is
# where the curves become flat.

spread = search.cv_results_["std_test_score"][-1]
print(f"standard deviation between folds: {spread:.3f}")
print(f"burn_in=1000, n_iter 200 against 1000: {np.ptp(losses[2, 2:]):.3f}")
