"""Mean and variance of columns from groups of rows, for arrays of any device."""


def merge_moments(a, b):
    """Size, mean and variance of two groups of rows as those of both (Chan, Golub & LeVeque 1983)."""
    (n, mean, variance), (other_n, other_mean, other_variance) = a, b
    share = other_n / (n + other_n)
    apart = other_mean - mean
    variance = variance + share * (other_variance - variance) + share * (1 - share) * apart**2
    return n + other_n, mean + share * apart, variance


def combine_moments(blocks):
    """Weighted mean and variance, (p,) float64 each, without cancellation (Chan, Golub & LeVeque 1983).

    Columns are summed about their first number, so that one whose numbers are all alike has no variance, not even by
    rounding.

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
        apart = centre - mean
        total += share
        square = square + (weight @ block + apart**2 * (share * (total - share) / total))
        mean = mean + apart * (share / total)
    return first + mean, square / total
