"""Mean and variance of columns from blocks of rows, for arrays of any device."""


def combine_moments(blocks):
    """Weighted mean and variance, (p,) float64 each, without cancellation (Chan, Golub & LeVeque 1983).

    blocks : pairs of rows (m, p) float64, which are overwritten, and their weights (m,).
    """
    total = mean = square = 0.0
    for block, weight in blocks:
        share = float(weight.sum())
        if share == 0.0:
            continue
        centre = weight @ block / share
        block -= centre
        block *= block
        apart = centre - mean
        total += share
        square = square + (weight @ block + apart**2 * (share * (total - share) / total))
        mean = mean + apart * (share / total)
    return mean, square / total
