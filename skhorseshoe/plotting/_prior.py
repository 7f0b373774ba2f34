"""Display of what the prior says, beside the posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._backends import device
from .._data.input_table import refuse_lazy
from .._model.before_data import MOST_ROWS, before_data, share_certain
from .._posterior.claim_errors import EFFECT
from .._posterior.classes import needs_one_score, refuse_several
from .._posterior.grouped_prediction import evenly, population
from .._posterior.pipeline import prepared, unwrap
from .._posterior.shrunk_columns import shrunk_columns
from ._base import DARK, MUTED, AxesDisplay, ink

if TYPE_CHECKING:
    from .._types import Axes, Floats, Model, RowsLike

_EDGES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
_LABELS = ["", "0.01", "", "0.1", "", "0.3", "", "0.5", "", "0.7", "", "0.9", "", "0.99", ""]  # of the edges
_DRAWS = 400


class PriorDisplay(AxesDisplay):
    """What the prior says of the rows before any data, and what the posterior says of them.

    The probability that the shrunk columns alone give a row, where a row at the mean of all columns has 0.5: how often,
    over rows and draws, it is in each range. A prior with most rows at both ends says that nearly all of them are
    certain.

    Parameters
    ----------
    prior, posterior : ndarray of shape (14,)
        Shares of the ranges between 0, 0.01, 0.05, 0.1, 0.2, ..., 0.8, 0.9, 0.95, 0.99 and 1.
    share_certain : tuple of two float
        Shares beyond 0.01 and 0.99, of prior and posterior.
    n_relevant : tuple of two float
        Medians over draws of the number of columns with an effect above 0.1 for one standard deviation.
    n_columns : int
        Number of shrunk columns.

    Attributes
    ----------
    prior_ : matplotlib.patches.StepPatch
        The shares under the prior.
    posterior_ : matplotlib.lines.Line2D
        The shares under the posterior.

    Examples
    --------
    >>> display = plotting.PriorDisplay.from_estimator(clf, X)
    >>> prior, posterior = display.n_relevant
    >>> posterior < prior
    True
    """

    prior: Floats
    posterior: Floats
    share_certain: tuple[float, float]
    n_relevant: tuple[float, float]
    n_columns: int

    @classmethod
    def from_estimator(cls, estimator: Model, X: RowsLike, *, ax: Axes | None = None) -> Self:
        """Compute the shares and draw them.

        Parameters
        ----------
        X : array-like, table or sparse matrix of shape (n_samples, n_features)
            Rows as the model takes them, best those of the fit. 256 of them are taken, evenly spaced, 400 draws of each
            law, and of the prior fewer where columns are very many. Of a model with groups, coefficients of the
            posterior are averaged over these.
        """
        steps, classifier = unwrap(estimator)
        refuse_several(classifier, "PriorDisplay", one_score=True)
        needs_one_score(classifier, "PriorDisplay")
        refuse_lazy(X)
        classifier = population(classifier)
        X, shrunk = classifier._check_rows(prepared(steps, X)), shrunk_columns(classifier)
        if not len(shrunk.places):
            raise ValueError("No column of this model is shrunk: there is no prior to draw but wide ones.")
        taken = np.linspace(0, X.shape[0] - 1, min(X.shape[0], MOST_ROWS)).astype(int)
        some = device.to_host(X[device.put_on_device_of(X, taken)])[:, shrunk.places]
        mean = classifier._column_means[shrunk.places] * classifier._fit_facts["fit_intercept"]
        coef = evenly(classifier.coef_draws_, _DRAWS)[..., shrunk.places].reshape(-1, len(shrunk.places))
        size, law, tau_0 = shrunk.unit * shrunk.sd, classifier._likelihood_of_fit, classifier.prior_["tau_0"]
        of_prior = before_data(tau_0, shrunk.slabs, some, mean, shrunk.unit, shrunk.sd, EFFECT, law.n_predictors)
        of_posterior = some @ coef.T - coef @ mean, (np.abs(coef) * size > EFFECT).sum(axis=1)
        both = of_prior, of_posterior
        probabilities = [law.probability(predictors) for predictors, _ in both]
        prior, posterior = (np.histogram(values, _EDGES)[0] / values.size for values in probabilities)
        certain: Any = tuple(share_certain(predictors, law) for predictors, _ in both)
        n_relevant: Any = tuple(float(np.median(counts)) for _, counts in both)
        return cls(
            prior=prior, posterior=posterior, share_certain=certain, n_relevant=n_relevant, n_columns=len(shrunk.places)
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        ax, at = self._axes(ax), np.arange(len(_EDGES))
        labels = [
            f"{name}: {100 * share:.0f} % certain,\n{count:g} of {self.n_columns} effects above {EFFECT:g}"
            for name, share, count in zip(("prior", "posterior"), self.share_certain, self.n_relevant, strict=True)
        ]
        muted, dark = ink(ax, MUTED), ink(ax, DARK)
        self.prior_ = ax.stairs(self.prior, at, color=muted, fill=True, alpha=0.5, label=labels[0])
        steps = np.append(self.posterior, self.posterior[-1:])
        self.posterior_: Any
        (self.posterior_,) = ax.plot(at, steps, color=dark, linewidth=1.8, drawstyle="steps-post", label=labels[1])
        ax.set(xlim=(0, at[-1]), ylim=(0, None), xticks=at, xticklabels=_LABELS)
        return self._finish("probability by the columns alone\n(certain: beyond 0.01 and 0.99)", "share")
