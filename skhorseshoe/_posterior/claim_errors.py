"""Claims about columns, and the probability that they are wrong, as far as the draws can tell. A claim is a sign, or a
sign and a least effect.

The effect of a column is the change of the linear predictor for one standard deviation of the column, or for the
difference between its two values: one standard deviation is no change that a row can make there, and for a rare level a
small part of the difference.
"""

from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from .._data.indicator_sets import IndicatorSet
from .._mcmc.prior import PER_CONTRAST
from .._utils.arrays import dense
from .._utils.memmap import blocks, cut
from .._utils.warn import warn
from ..diagnostics import ess_bulk
from .classes import has_sizes
from .estimates import excludes_zero, interval
from .shrunk_columns import unseen_draws

EFFECT = 0.1
_DRAWS_AT_A_TIME = 2**22  # draws to read at a time
_BETWEEN = 1e-5  # share of a column's variance, below which values between its smallest and its largest do not count


def lfsr(prob_positive, ess, n_draws):
    """The local false sign rate, min(P(beta > 0), P(beta < 0)), not below what the draws can tell; nan where P is nan.
    prob_positive, ess : (k,), ess nan where unknown. n_draws : of all chains."""
    return at_least_one_in_ess(np.minimum(prob_positive, 1 - np.asarray(prob_positive)), ess, n_draws)


def at_least_one_in_ess(wrong, ess, n_draws, most=0.5):
    """Probabilities of being wrong, raised to 1 / ESS where they are below it, but not above ``most``.

    An event of probability 1 / ESS is expected once among ESS independent draws, so an event that no draw shows may
    still be as probable as that. Antithetic draws count as independent.
    """
    known = np.fmin(ess, n_draws)  # nan, from too few draws, counts as independent too
    return np.maximum(wrong, np.minimum(1 / known, most))


def check_share(name, value):
    """The value; a ValueError unless it is between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1 (0.9 for 90 %); got {value!r}.")
    return value


def check_draws(model, name, share):
    """Raise a ValueError if the model has too few draws for any claim to have an error rate as low as ``share``."""
    n_draws = model.global_scale_draws_.size
    if n_draws * share < 1 - 1e-9:
        raise ValueError(
            f"{name} needs {np.ceil((1 - 1e-9) / share):.0f} independent draws or more, since draws cannot tell that "
            f"an error is rarer than one in their number, and this model has {n_draws}: fit with a larger n_iter (or "
            "max_draws)."
        )


def check_bounds(model, name):
    """Warn if the coefficients have no bound, so that a rate of false claims has no meaning."""
    if model._separated:
        warn(
            f"{name} states a rate of false claims, but the columns separate the classes ({model._separated} "
            "separation) and no slab bounds the coefficients: effects of noise are large too, and the rate does not "
            f"hold. slab_scale={PER_CONTRAST!r} bounds them."
        )


def indicator_sets_of(model):
    """The ``IndicatorSet``s that the fit has found."""
    return [IndicatorSet(**fields) for fields in model._factors]


def prob_columns_wrong(model, effect, scale=None):
    """The probability, for each column, that its effect is not beyond ``effect`` on its more probable side; (p,).

    Of several classes, whose effects are a vector, the side is the direction of its posterior mean. The effect of a
    level of a category is relative to the other levels, since its coefficient alone is not known.

    effect : a number, or (p,). scale : (p,) the changes of the columns; None for one standard deviation each.
    """
    draws, ess = model.coef_draws_, np.atleast_2d(model.ess_).min(axis=0)
    _, _, *of_classes, p = draws.shape
    wrong, effect = np.empty(p), np.broadcast_to(effect, p)
    scale = model._column_sd if scale is None else scale

    def judge(columns, sized):
        if of_classes:
            sized = _in_their_direction(sized)
        wrong[columns] = wrong_contrast(sized, ess[columns], effect[columns])

    for columns in cut(0, p, max(1, _DRAWS_AT_A_TIME // draws[..., 0].size)):
        judge(columns, draws[..., columns] * scale[columns])
    for indicators in indicator_sets_of(model):
        sized = indicators.effects(draws) * scale[indicators.columns] / model._column_sd[indicators.columns]
        ess[indicators.columns] = np.atleast_2d(ess_bulk(sized)).min(axis=0)
        judge(indicators.columns, sized)
    return wrong


def _in_their_direction(draws):
    """Lengths of effects (n_chains, n_draws, K, k) on classes along their posterior means; (n_chains, n_draws, k)."""
    mean = draws.mean(axis=(0, 1), dtype=np.float64)
    length = np.linalg.norm(mean, axis=0)
    return np.einsum("cmjk,jk->cmk", draws, mean / np.where(length > 0, length, 1.0))


def wrong_contrast(draws, ess, effect):
    """The probability (k,) that quantities (n_chains, n_draws, k) are not beyond ``effect`` on their more probable
    side."""
    beyond = np.maximum((draws > effect).mean(axis=(0, 1)), (draws < -effect).mean(axis=(0, 1)))
    return at_least_one_in_ess(1 - beyond, ess, draws[..., 0].size, most=1.0)


def scores(draws, columns, root):
    """Draws (n_chains, n_draws, r) of a term's effect along its principal components, whose norm is its size, of
    several classes of each; or in rows (r, k), in place of the root."""
    return (draws[..., columns].astype(np.float64) @ root.T).reshape(*draws.shape[:2], -1)


def size_of(draws, term):
    """Draws (n_chains, n_draws) of the size of the effect of a term with a root, for those of all coefficients."""
    columns, root = term.columns, term.root
    if not isinstance(root, LevelPoints):
        return np.linalg.norm(scores(draws, columns, root), axis=-1)
    low, high = np.full(draws.shape[:2], np.inf), np.full(draws.shape[:2], -np.inf)
    for rows in cut(0, len(root.values), max(1, _DRAWS_AT_A_TIME // low.size)):
        of_levels = scores(draws, columns, root.values[rows])
        low, high = np.minimum(low, of_levels.min(axis=-1)), np.maximum(high, of_levels.max(axis=-1))
    return high - low


def wrong_size(size, effect, ess):
    """The probability that a size is not beyond ``effect``, as far as its draws can tell. ess : of these."""
    return float(at_least_one_in_ess((size <= effect).mean(), ess, size.size, most=1.0))


def prob_term_wrong(model, term, effect):
    """The probability that the size of a term's effect is not beyond ``effect``; where the prior of shrunk columns says
    that it is, as if both had been equally likely before the data.

    Of many columns one or another is likely to have an effect. A term of which the data say nothing, or which they
    speak against, would count as one that matters.
    """
    size = size_of(model.coef_draws_, term)
    wrong = wrong_size(size, effect, ess_bulk(size))
    if not model.shrinkage_[term.columns].all() or (unseen := unseen_size(model, term)) is None:
        return wrong
    small, small_before = prob_small(size, effect), prob_small(unseen, effect)
    if small == 1 or not 0 < small_before < 0.5:
        return wrong
    odds = small / (1 - small) * (1 - small_before) / small_before
    return max(wrong, odds / (1 + odds))


def prob_small(size, effect):
    """The share of draws of a size that are not beyond ``effect``; where none is, that of the log-normal law with their
    median and their 16 % quantile, since of many columns both prior and posterior may be beyond what draws can tell."""
    share = (size <= effect).mean()
    if share > 0 or effect == 0:
        return share
    middle, low = np.log(np.quantile(size, [0.5, ndtr(-1.0)]))
    return ndtr((np.log(effect) - middle) / (middle - low))


def prior_probability(model, term, effect):
    """The probability that the size of a term's effect is beyond ``effect``, or of a single column that its effect is
    on one side, if the data said nothing of it; None if that is unknown."""
    is_single = len(term.columns) == 1
    size = unseen_size(model, term, has_side=is_single)
    return None if size is None else (size > effect).mean() / (1 + is_single)


def unseen_size(model, term, has_side=False):
    """Draws of a term's size if the data said nothing of it, by ``unseen_draws``; None if that is unknown. has_side :
    whether it is meant along a direction of the classes, which are alike: that of the first one."""
    draws = unseen_draws(model, term.columns)
    if draws is not None and has_side and has_sizes(model):
        draws = draws[:, :, :1] / np.sqrt(1 - 1 / draws.shape[2])
    return None if draws is None else size_of(draws, term._replace(columns=slice(None)))


def column_intervals(model, level):
    """The interval of each coefficient, or for a level of a category, of its effect relative to the mean over rows;
    (2, p), of several classes (2, K, p)."""
    ends = interval(model.coef_draws_, level)
    for indicators in indicator_sets_of(model):
        ends[..., indicators.columns] = interval(indicators.centred(model.coef_draws_), level)
    return ends


def sure_signs(model, level):
    """Which columns have an interval without zero, and how probable it is that the surest sign of each is wrong; (p,)
    each. Of several classes it is that of a class, each at level 1 - (1 - level) / K."""
    if not has_sizes(model):
        return excludes_zero(column_intervals(model, level)), prob_columns_wrong(model, 0.0)
    n_classes, above = len(model.classes_), (model.coef_draws_ > 0).mean(axis=(0, 1))
    clear = excludes_zero(column_intervals(model, 1 - (1 - level) / n_classes)).any(axis=0)
    return clear, np.minimum(1.0, n_classes * np.minimum(above, 1 - above).min(axis=0))


def largest_set(wrong, q):
    """The largest set of claims whose mean probability of being wrong is at most q; (k,) bool."""
    order = np.argsort(wrong, kind="stable")
    means = np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)
    chosen = np.zeros(len(wrong), bool)
    chosen[order[: np.searchsorted(means, q * (1 + 1e-12), side="right")]] = True  # means of ascending numbers ascend
    return chosen


class LeastEffects(NamedTuple):
    """What the effect of each column is the effect of, and the least that counts."""

    scale: np.ndarray  # (p,) the change of a column
    least: np.ndarray  # (p,) the least effect of that
    has_levels: np.ndarray  # (p,) bool, whether it is the difference between its two values
    per_sd: float  # the least effect of terms that have other columns
    between_levels: float | None  # that of terms that have none; None if it is not asked for

    def for_columns(self, columns):
        """The least effect of a term with these columns."""
        return self.least[columns[0]] if self.has_levels[columns].all() else self.per_sd


class LevelPoints(NamedTuple):
    """The different rows (m, k) of the columns of a term that hold two values each, as those of a category do.

    In place of the root of the term: the size of its effect is the largest difference between two of these rows.
    """

    values: np.ndarray


def check_effect(effect):
    """Raise a ValueError unless ``effect`` is a number from 0 on, or a dict of such numbers."""
    values = effect.values() if isinstance(effect, Mapping) else [effect]
    is_known = not isinstance(effect, Mapping) or (effect and effect.keys() <= {"sd", "levels"})
    if not is_known or not all(map(_is_size, values)):
        raise ValueError(
            "effect must be a number from 0 on, or a dict such as {'sd': 0.1, 'levels': 0.3}, with numbers for one "
            f"standard deviation and for the difference between two levels; got {effect!r:.80}."
        )


def check_difference(effect):
    """Raise a ValueError unless ``effect`` is a number from 0 on or None."""
    if effect is not None and not _is_size(effect):
        raise ValueError(
            "effect must be a number from 0 on, the least difference in the score that counts, or None; got "
            f"{effect!r:.80}."
        )


def _is_size(value):
    return isinstance(value, Real) and not isinstance(value, bool) and value >= 0


def asks_for_levels(effect):
    """Whether ``effect`` has a number of its own for the difference between two levels."""
    return isinstance(effect, Mapping) and "levels" in effect


def least_effects(model, effect, X=None):
    """``LeastEffects`` of a checked ``effect``. X : the rows of the fit, on the host, needed if ``asks_for_levels``."""
    sd, p = model._column_sd, model.n_features_in_
    per_sd = effect.get("sd", EFFECT) if isinstance(effect, Mapping) else effect
    if not asks_for_levels(effect):
        return LeastEffects(sd, np.full(p, per_sd), np.zeros(p, bool), per_sd, None)
    if has_sizes(model):
        raise ValueError("effect has 'levels', which is of two classes or classes in order: give one number.")
    if X is None:
        raise ValueError(
            "effect has 'levels', the least difference between two levels: give X, the rows of the fit, which tell the "
            "columns that have two."
        )
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    for rows in blocks(X):
        block = X[rows]
        low = np.minimum(low, dense(block.min(axis=0)).ravel())
        high = np.maximum(high, dense(block.max(axis=0)).ravel())
    # The mean of (high - x) (x - low), which is 0 if no value lies between these.
    between = (high - model._column_means) * (model._column_means - low) - sd**2
    has_levels = (sd > 0) & (np.abs(between) <= _BETWEEN * sd**2)
    scale = np.where(has_levels, high - low, sd)
    least = np.where(has_levels, effect["levels"], per_sd)
    return LeastEffects(scale, least, has_levels, per_sd, effect["levels"])


def level_points(X, columns):
    """``LevelPoints`` of these columns of X."""
    points = np.empty((0, len(columns)))
    for rows in blocks(X):
        points = np.unique(np.vstack([points, np.asarray(dense(X[rows][:, columns]), np.float64)]), axis=0)
    return LevelPoints(points)
