"""Models of several classes without an order: one class beside another or the mean of all, and the sizes of columns."""

from copy import copy

import numpy as np
import pandas as pd

from .._utils.names import class_texts, names_of
from ..diagnostics import convergence, ess_bulk, rhat
from .claim_errors import EFFECT, prob_columns_wrong
from .classes import is_several
from .estimates import means
from .table import MEANS_BY_CLASS, Summary, is_heading

_MOST_CLASSES_SHOWN = 12  # most classes whose mean coefficients the table of sizes has


def place_of_class(model, label, name):
    labels = model.classes_.tolist()
    if label not in labels:
        raise ValueError(f"{name} takes one of the classes {labels}; got {label!r}.")
    return labels.index(label)


def of_class(model, label, name="of"):
    """A copy of a model whose coefficients are those of one class beside the mean of all."""
    if not is_several(model):
        raise ValueError("of is for more than two classes without an order: leave it out.")
    k = place_of_class(model, label, name)
    one = with_coefficients(model, model.coef_draws_[:, :, k], model.intercept_draws_[..., k])
    one._favours = f"{class_texts(model.classes_)[k]} beside the mean of all classes"
    if model.moments_ is not None:
        n_classes, p = model.coef_draws_.shape[2:]
        own = [*range(k * p, (k + 1) * p), n_classes * p + k, -1]  # coefficients, the intercept and tau
        one.moments_ = {name: v if name == "n_draws" else v[own] for name, v in model.moments_.items()}
    return one


def with_coefficients(model, coef, intercept):
    one, checks = copy(model), convergence(coef)
    one.coef_draws_, one.intercept_draws_, one.rhat_, one.ess_ = coef, intercept, checks.rhat, checks.ess_bulk
    one.coef_ = coef.mean(axis=(0, 1), dtype=np.float64)[None]
    one.intercept_ = np.atleast_1d(intercept.mean())
    one.moments_ = one._saved_run = None  # of all classes
    return one


def sizes(model, described, level):
    """The frame of ``summary()``: of each column the size of its coefficients, and their means by class. described : as
    in ``summary.py``."""
    draws = np.linalg.norm(model.coef_draws_.astype(np.float64), axis=2)
    tau = model.global_scale_draws_[..., None]
    columns = described(np.concatenate([draws, tau], axis=-1), level)
    del columns["prob_positive"]
    by_class = np.column_stack([means(model)[0], np.full(len(model.classes_), np.nan)])
    headings = [f"{label}" for label in model.classes_.tolist()]
    if any(map(is_heading, headings)):  # a class called "mean" would take the place of the mean
        headings = class_texts(model.classes_)
    if len(by_class) <= _MOST_CLASSES_SHOWN:
        columns |= dict(zip(headings, by_class, strict=True))
    columns |= {
        "probability": np.append(1 - prob_columns_wrong(model, EFFECT), np.nan),
        "shrinkage": np.append(model.shrinkage_, np.nan),
        "ess": np.append(model.ess_.min(axis=0), ess_bulk(tau)),
        "rhat": np.append(model.rhat_.max(axis=0), rhat(tau)),
    }
    frame = Summary(columns, index=pd.Index([*names_of(model), "(global scale)"], name="feature"))
    frame.attrs[MEANS_BY_CLASS] = headings
    return frame
