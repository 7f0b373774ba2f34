"""What answers about a model are held against: plain loops over its draws and the rows."""

import operator

import numpy as np
import pandas as pd
from scipy import stats

COMPARED = {
    "difference": operator.sub,
    "ratio": operator.truediv,
    "odds_ratio": lambda high, low: high / (1 - high) / (low / (1 - low)),
}


def effect_by_hand(model, X, column, high, low=None, weight=None, compare=operator.sub):
    """A marginal effect on the rows that have a value, under each draw; (n_draws,).

    high, low : values, or functions of the column; None for the column as it is. compare : of two average
    probabilities.
    """
    clf, has = model[-1], X[column].notna().to_numpy()
    coef = clf.coef_draws_.reshape(-1, clf.n_features_in_).astype(float)
    ends = []
    for value in (high, low):
        new = X.loc[has, column]
        if value is not None:
            new = value(new) if callable(value) else pd.Series([value] * len(new), new.index, new.dtype)
        seen = model[:-1].transform(X[has].assign(**{column: new}))
        ends.append(stats.norm.cdf(np.asarray(seen) @ coef.T + clf.intercept_draws_.ravel()))
    w = np.ones(len(X)) if weight is None else weight
    return compare(*(np.average(end, axis=0, weights=w[has]) for end in ends))


def sizes_by_hand(draws, Z, w):
    """The standard deviation over rows of what columns do together, for each draw."""
    scores = np.einsum("cmk,nk->cmn", draws.astype(float), Z)
    centred = scores - np.average(scores, axis=-1, weights=w)[..., None]
    return np.sqrt(np.average(centred**2, axis=-1, weights=w))
