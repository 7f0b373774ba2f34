"""How two average probabilities are compared, and numbers needed to treat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._utils.names import class_texts
from .estimates import ends_of
from .summary import by_heading, described, in_lines
from .table import interval_ends

if TYPE_CHECKING:
    from .._types import DataFrame

COMPARISONS = {"difference": "Change", "ratio": "Ratio", "odds_ratio": "Odds ratio"}
SIGNS = {"difference": "-", "ratio": "/", "odds_ratio": "/"}  # between two levels
_ZERO = 1e-16  # effects below this are set to 0, since rounding determines their sign
_SMALLEST = 1e-9  # probability of which a ratio is taken; averages are known to about 1e-13


class NoRatio(ValueError):
    """An average probability is too near 0 or 1."""


def check_comparison(comparison):
    if not isinstance(comparison, str) or comparison not in COMPARISONS:
        raise ValueError(f"comparison must be one of {', '.join(map(repr, COMPARISONS))}; got {comparison!r}.")


def check_told(effects, name):
    """Raise a ValueError if a table of effects does not tell what its numbers are: pandas drops ``attrs`` where tables
    differ."""
    if "comparison" not in effects.attrs:
        raise ValueError(
            f"{name} does not tell what its numbers are, differences or ratios, as after pd.concat or from a file: ask "
            "marginal_effects for all features in one call."
        )


def contrast_draws(comparison, contrast, states, unchanged, known):
    """The draws of an effect in each part of the rows, (parts, m).

    states : (parts, states, m) changes of sums, relative to the rows as they are. unchanged : (parts, m) the sums for
    these, which a difference does not need. known : (parts, 1) the share of rows in both, those that have a value.
    """
    high, low = states[:, contrast.high], 0 if contrast.low is None else states[:, contrast.low]
    if comparison == "difference":
        effect = high - low
        effect[np.abs(effect) < _ZERO] = 0.0
        # Rows without a value do not change: they add nothing to the sum, and do not count in the mean.
        return effect / known
    high, low = (unchanged + high) / known, (unchanged + low) / known
    odds = (high, low) if comparison == "ratio" else (high, low, 1 - high, 1 - low)
    if np.min(odds) < _SMALLEST:
        raise NoRatio(
            f"The average probability behind {contrast.label!r} is within {_SMALLEST:g} of 0 or 1 under some draws, "
            "too near for a ratio: take comparison='difference', a smaller change, or leave it out of features."
        )
    return high / low if comparison == "ratio" else high * (1 - low) / (low * (1 - high))


def statistics(comparison, draws, level):
    """The columns of a table of effects (n_chains, n_draws, k). A ratio has a median, since its mean need not exist."""
    if comparison == "difference":
        return described(draws, level)
    low, median, high = np.quantile(draws, [ends_of(level)[0], 0.5, ends_of(level)[1]], axis=(0, 1))
    above = described(np.log(draws), level)["prob_positive"]
    return {"median": median, **by_heading((low, high), level), "prob_above_1": above}


def number_needed_to_treat(effects: DataFrame, *, adverse: bool) -> DataFrame:
    """The number needed to treat beside each difference of a table of marginal effects, with its interval.

    Where the interval of the difference includes zero, that of the number needed to treat passes infinity, and is
    written as Altman (1998) proposes: "NNTB 20 (NNTB 7 to ∞ to NNTH 25)" is a benefit for one in 20 or in as few as 7,
    none, or harm for one in as few as 25.

    Parameters
    ----------
    effects : pandas.DataFrame
        Of `marginal_effects`, or some of its rows, with ``comparison="difference"``.
    adverse : bool
        Whether the second class, whose probability changes, is an adverse outcome such as death, so that to raise its
        probability is harm (NNTH) and to lower it benefit (NNTB).

    Returns
    -------
    frame : pandas.DataFrame
        The rows with the columns change, mean, the ends of the interval, and nnt, a text. It is empty for rows that
        compare levels of ``by``, and ∞ for an effect of zero.

    Raises
    ------
    ValueError
        If ``effects`` is no table of `marginal_effects` with ``comparison="difference"``, or no longer tells that it
        is, as after ``pd.concat``, or ``adverse`` is no bool.

    Notes
    -----
    It is one divided by the mean difference, which tells of treating patients only if the effect of the column is that
    of a treatment.

    References
    ----------
    Altman, D. G. (1998). Confidence intervals for the number needed to treat. BMJ 317, 1309-1312.
    """
    ends = interval_ends(effects)
    if len(ends) == 2 and "change" in effects:
        check_told(effects, "effects")
    if len(ends) != 2 or effects.attrs.get("comparison") != "difference":
        raise ValueError(
            "effects must be a table of inspection.marginal_effects with comparison='difference': the number needed "
            "to treat is one divided by a difference of probabilities."
        )
    if not isinstance(adverse, bool | np.bool_):
        raise ValueError(f"adverse must be True or False, whether the second class is a harm; got {adverse!r}.")
    out, kinds = effects[["change", "mean", *ends]].copy(), "HB" if adverse else "BH"
    out["nnt"] = [
        "" if label in effects.attrs["between"] else _needed(mean, low, high, kinds)
        for label, mean, low, high in zip(effects.index, *(effects[name] for name in ("mean", *ends)), strict=True)
    ]
    name = class_texts(effects.attrs["classes"])[1]
    what = f"nnt: number needed to treat, where {name} is {'an adverse' if adverse else 'a good'} outcome (NNTB: for "
    out.attrs["header"] += "\n" + in_lines(f"{what}one to benefit, NNTH: for one to be harmed)")
    return out


def _needed(mean, low, high, kinds):
    """One number needed to treat with its interval (Altman 1998). kinds : letters for more, and less, of the second
    class."""

    def number(difference):
        inverse = 1 / abs(difference)
        return f"{inverse:.0f}" if inverse >= 100 else f"{inverse:.2g}"

    def whose(difference):
        return f"NNT{kinds[int(difference < 0)]} {number(difference)}"

    if mean == 0:
        return "\N{INFINITY}"
    if low > 0 or high < 0:
        return f"{whose(mean)} ({' to '.join(map(number, sorted((low, high), key=abs, reverse=True)))})"
    ends = sorted(filter(None, (low, high)), key=lambda end: -end * mean)  # those on the side of the mean come first
    both = " to \N{INFINITY} to ".join(map(whose, ends)) + " to \N{INFINITY}" * (len(ends) < 2)
    return f"{whose(mean)} ({both})"
