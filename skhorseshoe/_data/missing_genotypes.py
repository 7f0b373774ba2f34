"""Codes for missing genotypes as near as the next step of a score: 3 or -1 beside 0, 1 and 2 copies of an allele."""

import numpy as np
from scipy.special import betaln, gammaln

from .._utils.arrays import dense
from .._utils.memmap import cut

_NEAR_CODES = 3, -1
_COLUMNS_AT_A_TIME = 2**14  # columns to read and to judge at a time
_EVIDENCE = 10.0  # nats for Hardy-Weinberg proportions against any others
_MOST_ROWS = 250  # that evidence counts: more would tell mixed populations from one, whose proportions differ a little
_FEWEST_TWICE = 3  # rows with the rarer allele twice, to expect in a column that is asked for its proportions
_LEAST_GAP, _ERRORS = 0.05, 3.0  # from the mean of columns around a code to those around a step, also in errors
_FEWEST_ALIKE, _CHANCE = 3, 20.0  # columns with a code in the same rows, and nats against so many by chance


def missing_genotypes(rows):
    """Values that look like codes for missing genotypes, as pairs of the number of a column and a list of one.

    Of columns of 0, 1, 2 and a value next to these, that value may also be one more step of a score, a count or a
    grade. It looks like a code if 0, 1 and 2 have the proportions of genotypes (Hardy-Weinberg), and 3 is not where 2
    is common (-1: where 0 is); or if several columns have it in the same rows, and else nothing in common.

    rows : as ``column_checks.sample`` returns them.
    """
    found = []
    for columns in cut(0, rows.shape[1], _COLUMNS_AT_A_TIME):
        block = dense(rows[:, columns])
        for code in _NEAR_CODES:
            times = np.array([(block == value).sum(axis=0) for value in (0, 1, 2, code)], float)
            alike = np.flatnonzero((times[:3] > 0).all(axis=0) & (times.sum(axis=0) == len(block)))
            with_code = alike[times[3, alike] > 0]
            several = with_code[times[3, with_code] > 1]
            if times[3, alike].sum() > 1 and (
                _is_no_step(times[:, alike], code) or (len(several) and _is_in_same_rows(block[:, several], code))
            ):
                found += [(columns.start + int(j), [code]) for j in with_code]
    return sorted(found)


def _is_no_step(times, code):
    """Whether columns have the proportions of genotypes and a code that does not go with the value next to it.

    times : (4, k) that 0, 1, 2 and the code occur in each column.
    """
    zero, one, two, other = times * min(1.0, _MOST_ROWS / times[:, 0].sum())
    called, alleles = zero + one + two, one + 2 * two
    # The marginal likelihoods of any share of the allele, and of any shares of 0, 1 and 2.
    of_genotypes = one * np.log(2) + betaln(alleles + 1, 2 * called - alleles + 1)
    of_others = gammaln(3) + sum(gammaln(each + 1) for each in (zero, one, two)) - gammaln(called + 3)
    twice = np.minimum(alleles, 2 * called - alleles) ** 2 / (4 * called)
    mean = alleles / called
    at_code, at_step = (np.average(mean, weights=weights) for weights in (other, two if code > 0 else zero))
    error = np.sqrt(max(mean.var(), np.average((mean - at_code) ** 2, weights=other)) / times[3].sum())
    is_apart = np.sign(code) * (at_step - at_code) > max(_LEAST_GAP, _ERRORS * error)
    return is_apart and (of_genotypes - of_others)[twice > _FEWEST_TWICE].sum() > _EVIDENCE


def _is_in_same_rows(block, code):
    """Whether several columns of (m, k) have a code in the same rows, not by chance, and no correlation in others."""
    (m, k), is_code = block.shape, block == code
    patterns, which, number = np.unique(is_code, axis=1, return_inverse=True, return_counts=True)
    size = patterns.sum(axis=0)
    chance = number * np.log(k) - (number - 1) * (gammaln(m + 1) - gammaln(size + 1) - gammaln(m - size + 1))
    for at in np.flatnonzero((number >= _FEWEST_ALIKE) & (chance < -_CHANCE)):
        others = block[~patterns[:, at]][:, which.ravel() == at].astype(float)
        others -= others.mean(axis=0)
        others /= np.linalg.norm(others, axis=0)
        squares = np.square(others @ others.T).sum() - number[at]  # of the correlations of all pairs
        if squares < 2 * number[at] * (number[at] - 1) / len(others):  # half of that is usual without any
            return True
    return False
