"""What y tells of groups before sampling: one outcome copied to all rows of a group, or numbers that a design fixed.

Effects of groups are told by how much the shares of the classes differ from group to group. Where a group has one
class only they have no bound, and where all groups have the same share there is nothing to tell.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

_CHANCE = np.log(1e-6)  # log probability with which independent rows look so
_MIXED = 0.1  # largest share of groups with both classes among those with the rarer one, where an outcome is copied
_COMPLETE, _ABOVE = 0.8, 0.01  # of matched sets, the least share that is complete, and the largest with more rows
_DIGITS = 9  # to which sums of weights are compared


class Copied(NamedTuple):
    """Nearly all groups of several rows have one class each."""

    n: int  # groups of several rows
    n_mixed: int  # groups with both classes


class Matched(NamedTuple):
    """Nearly all groups of several rows have the same number of rows of a class, or the same share."""

    n: int  # groups of several rows
    n_alike: int  # groups with that number or share
    by: int | None  # the class of which each has that number, or None for the share
    number: float  # of rows of that class, or the share of the second


def fixed_outcomes(y, codes, weight=None, by_class=False):
    """``Copied``, ``Matched`` or None. y : (n,) of classes from 0 on. codes : of groups, (n,). weight : (n,), or None.
    by_class : whether those of classes are in it, which count no rows.

    Whole weights count rows, and others only say which rows there are. Of more than two classes, in order, all of y >=
    a class must be so.
    """
    weight, classes = np.ones(len(y)) if weight is None else weight, range(int(y.max()) + 1)
    if by_class:
        weight = weight / np.array([weight[y == c].min() for c in classes])[y]
    found = [_of_two_classes((y >= c).astype(np.uint8), codes, weight) for c in classes[1:]]
    if len(found) == 1:
        return found[0]
    if all(isinstance(one, Copied) for one in found):
        return Copied(found[0].n, min(found[0].n, sum(one.n_mixed for one in found)))
    if all(isinstance(one, Matched) for one in found):
        return Matched(found[0].n, min(one.n_alike for one in found), None, np.nan)
    return None


def _of_two_classes(y, codes, weight):
    """The same of two classes. y : (n,) of 0 and 1."""
    is_whole = np.allclose(weight, np.rint(weight), rtol=10.0**-_DIGITS, atol=0)
    counts = np.rint(weight) if is_whole else np.ones(len(y))
    sizes, events = np.bincount(codes, counts), np.bincount(codes, counts * y)
    several = sizes > 1
    if not several.any():
        return None
    sizes, events, share = sizes[several], events[several], events.sum() / sizes.sum()
    totals = np.stack([np.bincount(codes, weight * (y == c))[several] for c in (0, 1)])
    return _copied(sizes, events, share) or _matched(sizes, events, totals)


def _copied(sizes, events, share):
    mixed = (events > 0) & (events < sizes)
    n, n_mixed, rarer = len(sizes), int(mixed.sum()), events if share <= 0.5 else sizes - events
    by_chance = (share**sizes + (1 - share) ** sizes).mean()
    if n_mixed > _MIXED * (rarer > 0).sum() or _log_chance(n - n_mixed, n, by_chance) > _CHANCE:
        return None
    return Copied(n, n_mixed)


def _matched(sizes, events, totals):
    """totals : (2, k) of the weights of the classes in each group."""
    mixed = (events > 0) & (events < sizes)
    if not mixed.any():
        return None
    # The probability of as many events where every row of the group has the probability that makes them most probable.
    most = gammaln(sizes + 1) - gammaln(events + 1) - gammaln(sizes - events + 1)
    most = np.exp(most + xlogy(events, events / sizes) + xlogy(sizes - events, 1 - events / sizes))
    for by, values in ((1, totals[1]), (0, totals[0]), (None, totals[1] / totals.sum(axis=0))):
        values = np.round(values, _DIGITS)
        found, times = np.unique(values[mixed], return_counts=True)
        number = found[times.argmax()]
        alike = mixed & (values == number)
        is_design = alike.mean() >= _COMPLETE and (values > number).mean() <= _ABOVE
        if is_design and _log_chance(alike.sum(), len(sizes), most[alike].mean()) <= _CHANCE:
            return Matched(len(sizes), int(alike.sum()), by, float(number))
    return None


def _log_chance(k, n, p):
    """A bound for the log probability of k or more of n independent events, of mean probability p (Hoeffding 1956)."""
    if k <= n * p:
        return 0.0
    return float(-n * (xlogy(k / n, k / n / p) + xlogy(1 - k / n, (1 - k / n) / max(1 - p, 1e-300))))
