"""Claims about columns and how probable it is that they are wrong, as far as the draws can tell. A claim is a sign,
or a sign and an effect of some size.

An effect is what one standard deviation of a column does to the score, whose own noise has standard deviation 1.
"""

from numbers import Real

import numpy as np

from .._data.factors import Factor
from .._utils.warn import warn
from ..diagnostics import ess_bulk
from .estimates import interval

EFFECT = 0.1
_NUMBERS = 2**22  # draws that are looked at together


def lfsr(prob_positive, ess, n_draws):
    """The local false sign rate, min(P(beta > 0), P(beta < 0)), at least what the draws can tell; nan where P is nan.

    prob_positive, ess : (k,) of k quantities, ess nan where unknown. n_draws : of all chains.
    """
    return floored(np.minimum(prob_positive, 1 - np.asarray(prob_positive)), ess, n_draws)


def floored(wrong, ess, n_draws, most=0.5):
    """Probabilities of being wrong, raised to 1 / ESS where they are below it, but not above ``most``.

    An event of this probability is expected once in as many independent draws: what the draws do not show may still be
    as probable as this. Draws that repel one another count as independent ones.
    """
    known = np.fmin(ess, n_draws)  # nan counts as independent too: there are too few draws to tell
    return np.maximum(wrong, np.minimum(1 / known, most))


def check_share(name, value):
    """The value, or a ValueError unless it is a share between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1 (0.9 for 90 %); got {value!r}.")
    return value


def check_draws(model, name, share):
    """Raise where the model has so few draws that no claim could be as sure as this share of wrong ones asks for."""
    n_draws = model.global_scale_draws_.size
    if n_draws * share < 1 - 1e-9:
        raise ValueError(
            f"{name} needs {np.ceil((1 - 1e-9) / share):.0f} independent draws or more, since draws cannot tell that "
            f"an error is rarer than one in their number, and this model has {n_draws}: fit with a larger n_iter (or "
            "max_draws)."
        )


def check_bounds(model, name):
    """Warn where the coefficients have no bound, and so a rate of false claims no meaning."""
    if model._separated:
        warn(
            f"{name} states a rate of false claims, but the columns separate the classes ({model._separated} "
            "separation) and no slab bounds the coefficients: effects of noise are large too, and the rate does not "
            f"hold. {slab_that_bounds(model)} bounds them."
        )


def slab_that_bounds(model):
    """The parameters that bound the coefficients, in words."""
    return "slab_scale='auto'" if model._asked.get("outnumber") else "slab_scale=2 with standardize=True"


def factors_of(model):
    """The complete sets of level columns that the fit has found."""
    return [Factor(**one) for one in model._factors]


def wrong_columns(model, effect):
    """Of each column, how probable it is that its effect is not beyond ``effect`` on its more probable side; (p,).

    Of a level of a category the effect is that beside the other levels: its coefficient alone is not known.
    """
    draws, ess = model.coef_draws_, model.ess_.copy()
    n_chains, n_draws, p = draws.shape
    right = np.empty(p)

    def judge(columns, sized):
        right[columns] = np.maximum((sized > effect).mean(axis=(0, 1)), (sized < -effect).mean(axis=(0, 1)))

    step = max(1, _NUMBERS // (n_chains * n_draws))
    for start in range(0, p, step):
        part = slice(start, start + step)
        judge(part, draws[..., part] * model._column_sd[part])
    for factor in factors_of(model):
        judge(factor.columns, sized := factor.effects(draws))
        ess[factor.columns] = ess_bulk(sized)
    return floored(1 - right, ess, n_chains * n_draws, most=1.0)


def scores(draws, term, root):
    """Draws (n_chains, n_draws, r) of the effect of a term along its principal components, whose norm is its size."""
    return draws[..., term.columns].astype(np.float64) @ root.T


def size_of(model, term, root):
    """Draws (n_chains, n_draws) of the size of a term's effect."""
    return np.linalg.norm(scores(model.coef_draws_, term, root), axis=-1)


def wrong_size(size, effect):
    """The probability that a size is not beyond ``effect``, as far as its draws can tell."""
    return float(floored((size <= effect).mean(), ess_bulk(size), size.size, most=1.0))


def wrong_term(model, term, root, effect):
    """The same of the size of a term's effect."""
    return wrong_size(size_of(model, term, root), effect)


def column_intervals(model, level):
    """The interval of each coefficient, of a level of a category that of its effect beside the mean over rows;
    (2, p)."""
    ends = interval(model.coef_draws_, level)
    for factor in factors_of(model):
        ends[:, factor.columns] = interval(factor.centred(model.coef_draws_), level)
    return ends


def largest_set(wrong, q):
    """Which claims, of those with these probabilities (k,) of being wrong, make the largest set of which the mean is at
    most q; (k,) bool."""
    order = np.argsort(wrong, kind="stable")
    means = np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)
    kept = np.zeros(len(wrong), bool)
    kept[order[: np.searchsorted(means, q * (1 + 1e-12), side="right")]] = True  # means of ascending numbers ascend
    return kept
