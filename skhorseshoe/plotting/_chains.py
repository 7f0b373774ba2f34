"""Displays of chains: traces, ranks and autocorrelations of named quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import rankdata

from .._posterior import estimates
from .._posterior.pipeline import named_classifier
from .._utils.counts import check_count
from .._utils.names import finder, names_of
from .._utils.sklearn_compat import check_matplotlib_support
from ..diagnostics import autocorrelation, convergence
from ._base import MUTED, AxesDisplay, Display, check_axes, ink, is_dark
from ._texts import drawable

if TYPE_CHECKING:
    from .._types import Axes, Floats, Model, Names, NDArray, Sequence

_MOST_CURVES = 8
_FEWEST = 4  # fewest draws of a chain for an autocorrelation
_TITLE_LETTER = 5.5  # width of a letter of a title in points
_DASHES = ("-", "--", "-.", ":")


class TraceDisplay(Display):
    """For each quantity the trace of every chain, and the ranks of each chain's draws among all draws.

    If the chains have converged, the traces overlap and look like noise, and the ranks of every chain are spread
    evenly: all bars reach about as high as the dashed line (Vehtari et al. 2021, see `skhorseshoe.diagnostics`).

    Parameters
    ----------
    names : sequence of str of length n_quantities
        Names of the quantities.
    draws : ndarray of shape (n_quantities, n_chains, n_draws)
        Their draws.

    Attributes
    ----------
    ranks_ : ndarray of shape (n_quantities, n_chains, n_bins)
        How many draws of each chain rank in each bin among the draws of all chains, as a share of what is expected.
    lines_ : list of list of matplotlib.lines.Line2D
        For each quantity the traces, by chain.
    bars_ : list of list of matplotlib.container.BarContainer
        For each quantity the rank histograms, by chain.
    axes_ : ndarray of matplotlib.axes.Axes of shape (n_quantities, 2)
        Traces on the left, ranks on the right.
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> display = plotting.TraceDisplay.from_estimator(clf, names=["x4", "(global scale)"])
    >>> display.axes_.shape
    (2, 2)
    """

    names: Sequence[str]
    draws: Floats

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        *,
        names: Names = None,
        worst: int = 3,
        n_bins: int = 20,
        ax: Axes | NDArray[Any] | None = None,
    ) -> Self:
        """Take the draws of some quantities and draw them.

        Parameters
        ----------
        names : str, list of str or None, default=None
            Names of features, ``"(intercept)"``, ``"(global scale)"`` and, with groups of rows, ``"(group scale)"``;
            of several classes of each, such as ``"age (oak)"`` and ``"(intercept oak)"``. None takes those with the
            smallest effective sample sizes.
        worst : int, default=3
            How many to take if ``names`` is None.
        n_bins : int, default=20
            Bins of the ranks, at least 2.
        ax : matplotlib.axes.Axes, ndarray of such of shape (n_quantities, 2), or None, default=None
            Where to draw. A single one is split. None makes a figure.
        """
        names, draws = _choose(estimator, names, worst)
        return cls(names=names, draws=draws).plot(n_bins=n_bins, ax=ax)

    def plot(self, *, n_bins: int = 20, ax: Axes | NDArray[Any] | None = None) -> Self:
        check_count("n_bins", n_bins, 2)
        check_matplotlib_support("TraceDisplay.plot")
        self.axes_ = axes = self._grid(ax)
        self.figure_ = axes[0, 0].figure
        _, n_chains, n_draws = self.draws.shape
        self.ranks_ = np.stack([_rank_shares(draws, n_bins) for draws in self.draws])
        self.lines_, self.bars_ = [], []
        checks = convergence(np.moveaxis(self.draws, 0, -1))
        colours = _shades(n_chains, axes[0, 0])
        width = 0.5 * min(1, (1000 / n_draws) ** 0.5)  # lines of long chains overlap
        for row, (name, (trace, ranks)) in enumerate(zip(drawable(self.names), axes, strict=True)):
            chains = zip(self.draws[row], colours, strict=True)
            self.lines_.append(
                [trace.plot(chain, color=colour, linewidth=width, alpha=0.8)[0] for chain, colour in chains]
            )
            _set_title(trace, f"{name}:", f"R-hat {checks.rhat[row]:.3f},", f"ESS {checks.ess_bulk[row]:.0f}")
            trace.set_xlim(-0.5, n_draws - 0.5)
            self.bars_.append(_draw_ranks(ranks, self.ranks_[row], colours))
        _set_title(axes[0, 1], "ranks", "(dashed: even)")
        axes[-1, 0].set_xlabel("draw")
        axes[-1, 1].set_xlabel("rank among all draws")
        for panel in axes.flat:
            panel.spines[["right", "top"]].set_visible(False)
        return self

    def _grid(self, ax):
        """An array of axes: the given one, or made in the place of a single one or in a new figure."""
        n = len(self.names)
        if isinstance(ax, np.ndarray):
            if ax.shape != (n, 2):
                raise ValueError(f"ax: {n} quantities need axes of shape {(n, 2)}; got shape {ax.shape}.")
            return ax
        if ax is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(figsize=(8, 0.6 + 1.7 * n), layout="constrained")
            return figure.subplots(n, 2, squeeze=False, width_ratios=(3, 2))
        check_axes(ax)
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError(f"ax: only axes of plt.subplots can be split; give such, or an array of shape {(n, 2)}.")
        ax.set_axis_off()
        layout = ax.figure.get_layout_engine()
        # A constrained layout makes room for the titles, and interprets hspace as a share of the whole figure.
        hspace = 0.5 if layout is None or layout.adjust_compatible else None
        within = place.subgridspec(n, 2, width_ratios=(3, 2), hspace=hspace)
        return within.subplots(squeeze=False)


class AutocorrelationDisplay(AxesDisplay):
    """Autocorrelation of the draws at each lag; the effective sample size follows from it.

    Parameters
    ----------
    names : sequence of str of length n_quantities
        Names of the quantities, at most 8.
    autocorrelations : ndarray of shape (n_quantities, n_lags)
        From lag 0 on, as `skhorseshoe.diagnostics.autocorrelation` gives them.
    ess : ndarray of shape (n_quantities,)
        Bulk effective sample sizes.

    Attributes
    ----------
    lines_ : list of matplotlib.lines.Line2D
        A curve for each quantity.

    Examples
    --------
    >>> display = plotting.AutocorrelationDisplay.from_estimator(clf, names=["x4", "x10"], max_lag=30)
    >>> display.autocorrelations.shape
    (2, 31)
    """

    names: Sequence[str]
    autocorrelations: Floats
    ess: Floats

    @classmethod
    def from_estimator(
        cls, estimator: Model, *, names: Names = None, worst: int = 4, max_lag: int = 50, ax: Axes | None = None
    ) -> Self:
        """Compute the autocorrelations and draw them.

        Parameters
        ----------
        names : str, list of str or None, default=None
            Names as of `TraceDisplay`, at most 8. None takes those with the smallest effective sample sizes.
        worst : int, default=4
            How many to take if ``names`` is None, at most 8.
        max_lag : int, default=50
            Largest lag, in draws. Where the chains are too short it is the largest that they have.
        """
        names, draws = _choose(estimator, names, worst)
        if len(names) > _MOST_CURVES:
            raise ValueError(f"names: at most {_MOST_CURVES} curves can be told apart; got {len(names)}.")
        check_count("max_lag", max_lag)
        draws = np.moveaxis(draws, 0, -1)
        if draws.shape[1] < _FEWEST:
            raise ValueError(f"An autocorrelation needs at least {_FEWEST} draws of each chain; got {draws.shape[1]}.")
        curves = autocorrelation(draws, max_lag=min(max_lag, draws.shape[1] // 2 - 1))
        return cls(names=names, autocorrelations=curves.T, ess=convergence(draws).ess_bulk).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        n_curves, n_lags = self.autocorrelations.shape
        ax = self._axes(ax, height=3.2 + 0.2 * n_curves)
        gap = max(1, n_lags // 10)
        self.lines_: list[Any] = []
        curves = zip(drawable(self.names), self.autocorrelations, _shades(n_curves, ax), strict=True)
        for i, (name, curve, colour) in enumerate(curves):
            self.lines_ += ax.plot(
                curve,
                color=colour,
                linestyle=_DASHES[i % len(_DASHES)],
                marker="osv^D<P>"[i],
                markevery=(i * gap // n_curves, gap),
                markersize=4.5,
                # A legend leaves out labels that begin with an underscore.
                label=f"{' ' * name.startswith('_')}{name} (ESS {self.ess[i]:.0f})",
            )
        ax.axhline(0, color=ink(ax, MUTED), linewidth=0.8, zorder=1)
        ax.set(xlim=(-0.01 * n_lags, n_lags - 1))
        ax.set_ylim(top=1.03)
        return self._finish("lag in draws", "autocorrelation")


def _choose(estimator, names, worst):
    """Names and draws (n_quantities, n_chains, n_draws) of the named quantities, or of those with the smallest ESS."""
    classifier = named_classifier(estimator)
    extra, _, ess = estimates.other_quantities(classifier)
    coef = classifier.coef_draws_.reshape(*classifier.global_scale_draws_.shape, -1)
    known = [*estimates.names_by_class(classifier, names_of(classifier)), *extra]
    if names is None:
        check_count("worst", worst)
        chosen = np.argsort(ess, kind="stable")[:worst]
    else:
        find = finder(known, "quantities of this model", f" The last ones are {known[-3:]}.")
        chosen = [find(name, "names") for name in ([names] if np.isscalar(names) else names)]
        if not chosen:
            raise ValueError("names is empty: give at least one, or None.")
    draws = [coef[..., j] if j < coef.shape[-1] else extra[known[j]] for j in chosen]
    return [known[j] for j in chosen], np.stack(draws)


def _rank_shares(draws, n_bins):
    """Draws (n_chains, n_draws) -> counts of pooled ranks (n_chains, n_bins) as a share of the expected count."""
    ranks = rankdata(draws).reshape(draws.shape)
    counts = [np.histogram(chain, n_bins, range=(0.5, draws.size + 0.5))[0] for chain in ranks]
    return np.array(counts) * (n_bins / draws.shape[1])


def _draw_ranks(ax, shares, colours):
    """Draw one histogram above another, the first chain on top, with a dashed line at the height of even ranks."""
    n_chains, n_bins = shares.shape
    scale = 0.9 / max(2.0, shares.max())
    bars = []
    for c, (heights, colour) in enumerate(zip(shares, colours, strict=True)):
        base = n_chains - c - 1
        bars.append(ax.bar(np.arange(n_bins), scale * heights, width=0.9, bottom=base, color=colour))
        ax.axhline(base, color=ink(ax, "black"), linewidth=0.5)
        ax.axhline(base + scale, color=ink(ax, "black"), linewidth=0.8, linestyle="--", zorder=3)
    ax.set(xlim=(-0.7, n_bins - 0.3), ylim=(0, n_chains), xticks=[])
    if n_chains <= 8:
        ax.set_yticks(np.arange(n_chains) + 0.4, [f"chain {n_chains - c}" for c in range(n_chains)], fontsize="small")
        ax.tick_params(axis="y", length=0)
    else:
        ax.set_yticks([])
    return bars


def _set_title(ax, name, *details):
    """A title on one line, or on several where the axes are narrow."""
    letters = ax.get_window_extent().width / ax.figure.dpi * 72 / _TITLE_LETTER
    behind = " ".join(details)
    lines = [name, behind] if len(behind) <= letters else [name, *details]
    title = f"{name} {behind}" if len(f"{name} {behind}") <= letters else "\n".join(lines)
    ax.set_title(title, fontsize="medium", loc="left")


def _shades(n, ax):
    """Colours that differ for colour-blind readers and in grey and suit thin lines; the strongest contrast first."""
    from matplotlib import colormaps

    return colormaps["cividis"](np.linspace(1, 0.3, n) if is_dark(ax) else np.linspace(0, 0.8, n))
