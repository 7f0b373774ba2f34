"""Which measurements of a tumour matter? The main job, on real data, from frame to probabilities."""

import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)

# Sampling goes on until the chains have converged. The columns separate the classes: a slab bounds the coefficients.
horseshoe = make_pipeline(
    StandardScaler().set_output(transform="pandas"),
    HorseshoeProbitClassifier(slab_scale="per_contrast", random_state=0),
).fit(X_train, y_train)
lasso = make_pipeline(
    StandardScaler(),
    LogisticRegressionCV(
        Cs=10, l1_ratios=(1,), solver="liblinear", scoring="neg_log_loss", random_state=0, use_legacy_attributes=False
    ),
).fit(X_train, y_train)

classifier = horseshoe[-1]
print(classifier.summary(), "\n")

interval = classifier.summary(level=0.9)
selected = interval.index[(interval["5%"] > 0) | (interval["95%"] < 0)]
print("90 % interval excludes zero:", ", ".join(name for name in selected if not name.startswith("(")))
selector = HorseshoeSelector(classifier, rule="dss", prefit=True).fit(horseshoe[:-1].transform(X_train))
print("predict as well as all do:  ", ", ".join(selector.get_feature_names_out()), "\n")

models = {"horseshoe probit": horseshoe, "L1 logistic regression": lasso}
proba = {name: model.predict_proba(X_test)[:, 1] for name, model in models.items()}
scores = {name: {"log loss": log_loss(y_test, p), "AUC": roc_auc_score(y_test, p)} for name, p in proba.items()}
print(pd.DataFrame(scores).T.round(4).to_string())
