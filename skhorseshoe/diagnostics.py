"""Convergence diagnostics of Markov chains, for many parameters at once.

The definitions are those of Vehtari et al. (2021) [1]_ as ArviZ computes them, with these departures: one chain
has an R-hat too, from its two halves; whether a draw is in a tail is decided by order statistics, where ArviZ
compares with an interpolated quantile that rounding can put just beside draws equal to it; and draws that move by
less than 1e-15 do move.

References
----------
.. [1] Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021). Rank-normalization, folding,
   and localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16(2), 667-718.
"""

from math import log10, prod
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import next_fast_len
from scipy.special import ndtri

__all__ = ["Convergence", "autocorrelation", "convergence", "ess_bulk", "ess_tail", "mcse_mean", "rhat"]

# Draws at a time. An array of them has 256 KiB: ten fit into the cache. The allocator would return larger ones to the
# system and fault them in again, which takes longer than the sums.
_BLOCK_VALUES = 2**15
_TAIL_PROBABILITIES = (0.05, 0.95)

# Chains have not converged where R-hat is above, or bulk effective samples are fewer (Vehtari et al. 2021, section 4).
MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100


class Convergence(NamedTuple):
    """What `skhorseshoe.diagnostics.convergence` returns: diagnostics, each of the trailing shape of the draws.

    Parameters
    ----------
    rhat, ess_bulk, ess_tail, mcse_mean : ndarray of float64 or float
        Each as the function of its name returns it.
    """

    rhat: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray
    mcse_mean: np.ndarray


def convergence(draws: Any) -> Convergence:
    """All diagnostics of this module, at less than the cost of asking for each.

    Parameters
    ----------
    draws : array_like of shape (n_chains, n_draws, ...)
        Finite real numbers. Anything but float64 is converted to it, a few parameters at a time.

    Returns
    -------
    Convergence
        Named tuple of `rhat`, `ess_bulk`, `ess_tail` and `mcse_mean`, each float64 of the trailing shape (a
        scalar if there is none) and NaN with fewer than 4 draws per chain.

    Raises
    ------
    ValueError
        If ``draws`` has fewer than two dimensions, no chain, or a value that is NaN or infinite.
    TypeError
        If ``draws`` does not hold real numbers.
    """
    return Convergence._make(_diagnose(draws, Convergence._fields))


def rhat(draws: Any) -> Any:
    """Rank-normalised split R-hat: the larger of the bulk and the folded one.

    Parameters
    ----------
    draws : array_like of shape (n_chains, n_draws, ...)
        As for `convergence`, which also states what is raised.

    Returns
    -------
    ndarray of float64 or float
        Of the trailing shape. About 1, possibly just below, where the half-chains agree; infinite where they
        differ and none moves; NaN, as not computable, where all draws are equal or with fewer than 4 per chain.

    Notes
    -----
    The bulk part depends on the ranks of the draws only. The folded part ranks distances from the median: it stays
    the same under shifts and scalings, but not under every monotone transform.
    """
    return _diagnose(draws, ["rhat"])[0]


def ess_bulk(draws: Any) -> Any:
    """Effective sample size in the bulk: of the rank-normalised split chains.

    Parameters
    ----------
    draws : array_like of shape (n_chains, n_draws, ...)
        As for `convergence`, which also states what is raised.

    Returns
    -------
    ndarray of float64 or float
        Of the trailing shape, in (0, n log10(n)] with n the number of draws in the half-chains, which leave out
        the middle one of an odd number. It is n where all draws are equal; NaN with fewer than 4 per chain.
    """
    return _diagnose(draws, ["ess_bulk"])[0]


def ess_tail(draws: Any) -> Any:
    """Effective sample size in the tails: the smaller of those for the 5 % and the 95 % quantile.

    Parameters
    ----------
    draws : array_like of shape (n_chains, n_draws, ...)
        As for `convergence`, which also states what is raised.

    Returns
    -------
    ndarray of float64 or float
        As `ess_bulk`, but of the indicators of lying at or below a quantile.
    """
    return _diagnose(draws, ["ess_tail"])[0]


def mcse_mean(draws: Any) -> Any:
    """Monte Carlo standard error of the mean of all draws.

    Parameters
    ----------
    draws : array_like of shape (n_chains, n_draws, ...)
        As for `convergence`, which also states what is raised.

    Returns
    -------
    ndarray of float64 or float
        Of the trailing shape, at least 0, in the unit of the draws: their standard deviation over the square root
        of the effective sample size of the mean. 0 where all draws are equal; NaN with fewer than 4 per chain.
    """
    return _diagnose(draws, ["mcse_mean"])[0]


def autocorrelation(draws: Any, max_lag: int) -> np.ndarray:
    """Autocorrelation over all chains, at lags from 0 to ``max_lag``: what the effective sample size is made from.

    Parameters
    ----------
    draws : array_like of shape (n_chains, n_draws, ...)
        As for `convergence`, which also states what is raised.
    max_lag : int
        Largest lag, in draws: at least 0 and below half the number of draws a chain.

    Returns
    -------
    ndarray of float64 of shape (max_lag + 1, ...)
        1 at lag 0. About 0 where draws have forgotten one another; it stays above 0 where the chains disagree, since
        a draw then tells which chain it is from. NaN where all draws are equal.

    Raises
    ------
    ValueError
        Also if the chains are too short for ``max_lag``.
    TypeError
        Also if ``max_lag`` is not a whole number.
    """
    if isinstance(max_lag, bool) or not isinstance(max_lag, Integral):
        raise TypeError(f"max_lag must be a whole number, at least 0; got {max_lag!r}.")
    flat, trailing = _flat(draws)
    n_draws = flat.shape[1]
    if max_lag < 0:
        raise ValueError(f"max_lag must be at least 0; got {max_lag}.")
    if n_draws < (needed := max(4, 2 * max_lag + 2)):
        raise ValueError(f"max_lag={max_lag} needs {needed} draws a chain or more; got {n_draws}.")
    chains = np.array(flat.transpose(2, 0, 1), dtype=np.float64, order="C")  # a copy: it is centred in place
    _check_finite(chains, 0, trailing)
    with np.errstate(all="ignore"):
        rho, _ = _autocorrelation(_spread(_split(_in_units(chains)[0])))
    return rho[:, : max_lag + 1].T.reshape(max_lag + 1, *trailing)


def _flat(draws):
    """The draws as an array (n_chains, n_draws, parameters), and their trailing shape; an error if they are none."""
    if np.ma.is_masked(draws):
        raise ValueError("draws must be finite, got a masked array with values under its mask")
    draws = np.asarray(draws)
    if draws.ndim < 2 or len(draws) == 0:
        expected = "draws must have shape (n_chains, n_draws, ...) with at least one chain"
        raise ValueError(f"{expected}, got an array of shape {draws.shape}")
    if draws.dtype.kind not in "biuf":
        raise TypeError(f"draws must be real numbers, got an array of dtype {draws.dtype}")
    n_chains, n_draws, *trailing = draws.shape
    return draws.reshape(n_chains, n_draws, prod(trailing)), trailing


def _diagnose(draws, names):
    """List of the named statistics of `_Block`, each of the trailing shape of the draws."""
    flat, trailing = _flat(draws)
    n_chains, n_draws, n_parameters = flat.shape
    scores = _score_table(2 * n_chains * (n_draws // 2))
    step = max(1, _BLOCK_VALUES // max(1, n_chains * n_draws))
    results = np.full((len(names), n_parameters), np.nan)
    for start in range(0, n_parameters, step):
        columns = slice(start, start + step)
        chains = np.ascontiguousarray(flat[:, :, columns].transpose(2, 0, 1), dtype=np.float64)
        _check_finite(chains, start, trailing)
        if n_draws >= 4:
            # A parameter that does not move divides by zero, which each statistic handles.
            with np.errstate(all="ignore"):
                block = _Block(chains, scores)
                for row, name in zip(results, names, strict=True):
                    row[columns] = getattr(block, name)
    return [row.reshape(trailing)[()] for row in results]


def _check_finite(chains, start, trailing):
    """Raise if a draw is not finite; `start` is the flat index of the first parameter of `chains`."""
    bad = np.count_nonzero(~np.isfinite(chains), axis=(1, 2))
    if bad.any():
        first = int(np.argmax(bad > 0))
        index = tuple(map(int, np.unravel_index(start + first, trailing))) if trailing else ()
        where = f" at parameter {index}" if trailing else ""
        raise ValueError(f"draws must be finite, got {bad[first]} NaN or infinite of {chains[0].size}{where}")


class _Block:
    """The statistics of a few parameters (parameters, chains, draws), 4 draws at least; common results are computed
    once."""

    def __init__(self, chains, scores):
        self.chains = chains
        self.halves = _split(chains)
        self.scores = scores
        pooled = self.halves.reshape(len(self.halves), -1)
        order = _flat_order(pooled)
        self._ascending = order, np.take(pooled, order)  # flat order of the pooled half-chains, and sorted values
        middle = pooled.shape[1] // 2
        self._median = self._ascending[1][:, middle - 1 : middle + 1].sum(axis=1) / 2
        self._known_spread = None

    @property
    def rhat(self):
        order, values = self._ascending
        distances = np.abs(values - self._median[:, None])
        # Two monotone runs, which the stable sort merges in linear time.
        refold = _flat_order(distances, kind="stable")
        folded = self._rank_normalised(np.take(order, refold), np.take(distances, refold))
        # The folded draws can be all equal where the draws are not (a fair coin), hence fmax.
        return np.fmax(_rhat(self._bulk_spread), _rhat(_spread(folded)))

    @property
    def ess_bulk(self):
        return _ess(self._bulk_spread)

    @property
    def ess_tail(self):
        return np.minimum.reduce([_ess(_spread(self._at_most_quantile(p))) for p in _TAIL_PROBABILITIES])

    @property
    def mcse_mean(self):
        # About the median, a parameter that does not move is exactly zero; about its rounded mean it may not be.
        deviations, power = _in_units(self.chains - self._median[:, None, None])
        n = deviations[0].size
        squares = np.einsum("pcn,pcn->p", deviations, deviations)
        # Mean and median are within a standard deviation of each other, so little cancels.
        variance = (squares - n * deviations.mean(axis=(1, 2)) ** 2) / (n - 1)
        return np.ldexp(np.sqrt(variance / _ess(_spread(_split(deviations)))), power)

    @property
    def _bulk_spread(self):
        if self._known_spread is None:
            self._known_spread = _spread(self._rank_normalised(*self._ascending))
        return self._known_spread

    def _rank_normalised(self, order, values):
        """Normal scores of the (average) ranks, in the shape of the half-chains."""
        ranked = np.repeat(self.scores[None, 2::2], len(values), axis=0)
        _average_ties(ranked, values, self.scores)
        normalised = np.empty(self.halves.shape)
        normalised.reshape(-1)[order] = ranked
        return normalised

    def _at_most_quantile(self, probability):
        """Indicators of lying at or below the quantile of all draws, as half-chains."""
        n = self.chains[0].size
        # The quantile is at least this order statistic and less than the next. The small number corrects a whole
        # number that was rounded down.
        k = int((n - 1) * probability + 1e-9)
        if self.halves[0].size == n:
            quantile = self._ascending[1][:, k]
        else:
            quantile = np.partition(self.chains.reshape(-1, n), k, axis=1)[:, k]
        return (self.halves <= quantile[:, None, None]).astype(np.float64)


def _in_units(chains):
    """Chains, in place, in units 2^power in which squares neither overflow nor vanish; and the powers (parameters,)."""
    _, power = np.frexp(np.abs(chains).max(axis=(1, 2)))
    return np.ldexp(chains, -power[:, None, None], out=chains), power


def _split(chains):
    """Halves of the chains as chains of their own, without the middle draw of an odd number."""
    n_parameters, n_chains, n_draws = chains.shape
    half = n_draws // 2
    if n_draws % 2:
        chains = np.delete(chains, half, axis=2)
    return chains.reshape(n_parameters, 2 * n_chains, half)


def _flat_order(values, kind=None):
    """Places in the raveled array that put each row in ascending order."""
    order = np.argsort(values, axis=1, kind=kind)
    order += np.arange(len(values))[:, None] * values.shape[1]
    return order


def _score_table(n):
    """Normal scores of the ranks 0, 1/2, 1, ..., n among n, at twice the rank."""
    return ndtri(np.maximum(np.arange(2 * n + 1) / 2 - 0.375, 0) / (n + 0.25))


def _average_ties(ranked, values, scores):
    """Give equal values the score of their average rank, in place; the rows of `values` ascend."""
    n = values.shape[1]
    same_as_next = np.zeros(values.shape, dtype=bool)
    same_as_next[:, :-1] = values[:, 1:] == values[:, :-1]
    at = np.flatnonzero(same_as_next)
    opens = np.flatnonzero(np.diff(at, prepend=-2) > 1)
    lengths = np.diff(opens, append=at.size)
    average = np.repeat(scores[2 * (at[opens] % n) + lengths + 2], lengths)
    ranked.reshape(-1)[at] = average
    ranked.reshape(-1)[at + 1] = average


def _spread(chains):
    """Chains minus their means (in place), mean of their variances, and variance of their means."""
    _, n_chains, n_draws = chains.shape
    means = chains.mean(axis=2)
    chains -= means[:, :, None]
    within = np.einsum("pcn,pcn->p", chains, chains) / (n_chains * (n_draws - 1))
    between = means.var(axis=1, ddof=1)
    # The rounded mean of equal numbers can differ from them, which is no variance.
    within[within < 1e-28 * between] = 0
    return chains, within, between


def _rhat(spread):
    """R-hat of chains from their `_spread`; NaN where nothing moves."""
    centred, within, between = spread
    n = centred.shape[2]
    return np.sqrt(between / within + (n - 1) / n)


def _autocorrelation(spread):
    """Autocorrelations (parameters, lags) over all chains, from the `_spread`, and the total variance (parameters,)."""
    centred, within, between = spread
    _, n_chains, n = centred.shape
    length = next_fast_len(2 * n, real=True)
    squares = np.fft.rfft(centred, length).view(np.float64)
    np.square(squares, out=squares)
    power = squares.sum(axis=1)
    power = power[:, ::2] + power[:, 1::2]
    autocovariance = np.fft.irfft(power, length)[:, :n] / (n_chains * n)
    total = within * (n - 1) / n + between
    rho = 1 - (within[:, None] - autocovariance) / total[:, None]
    rho[:, 0] = 1
    return rho, total


def _ess(spread):
    """Effective sample size of the mean from the `_spread`, by Geyer's initial monotone sequence."""
    n_parameters, n_chains, n = spread[0].shape
    size = n_chains * n
    rho, total = _autocorrelation(spread)

    # Lags in pairs: sums up to the first that is not positive (or the last pair), made to descend.
    limit = max(0, (n - 3) // 2)
    even = rho[:, : 2 * limit + 1 : 2]
    sums = even + rho[:, 1 : 2 * limit + 2 : 2]
    ends = sums <= 0
    ends[:, limit] = True
    stop = ends.argmax(axis=1)
    counted = np.arange(limit + 1) < stop[:, None]
    monotone = np.where(counted, np.minimum.accumulate(sums, axis=1), 0).sum(axis=1)
    # The even lag of the pair that ends the sequence counts, unless it and the pair are negative.
    ending = np.arange(n_parameters), stop
    edge = np.where((even[ending] > 0) | (sums[ending] >= 0), even[ending], 0)
    tau = np.maximum(2 * monotone + edge - 1, 1 / log10(size))
    return np.where(total == 0, size, size / tau)
