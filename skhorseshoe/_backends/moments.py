"""Mean and variance of columns from blocks of rows, for arrays of any device."""


def merge_moments(a, b):
    """Size, mean and variance of two blocks of rows together (Chan, Golub & LeVeque 1983)."""
    (n, mean, variance), (other_n, other_mean, other_variance) = a, b
    share = other_n / (n + other_n)
    shift = other_mean - mean
    variance = variance + share * (other_variance - variance) + share * (1 - share) * shift**2
    return n + other_n, mean + share * shift, variance


def combine_moments(blocks):
    """Weighted mean and variance, (p,) float64 each, without cancellation (Chan, Golub & LeVeque 1983).

    Columns are summed about their first number, so that a constant column has a variance of exactly zero.

    blocks : pairs of rows (m, p) float64, which are overwritten, and their weights (m,).
    """
    first, total, mean, square = None, 0.0, 0.0, 0.0
    for block, weight in blocks:
        share = float(weight.sum())
        if share == 0.0:
            continue
        if first is None:
            first = block[0].copy()
        block -= first
        centre = weight @ block / share
        block -= centre
        block *= block
        shift = centre - mean
        total += share
        square = square + (weight @ block + shift**2 * (share * (total - share) / total))
        mean = mean + shift * (share / total)
    return first + mean, square / total
