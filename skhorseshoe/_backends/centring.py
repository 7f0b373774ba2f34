"""Matrices over centred columns of sparse rows, from sums over uncentred columns, since centred ones are not sparse."""


def uncentred(beta, centre, scale, p):
    """Coefficients (m, p) and intercepts (m,) of X's own columns from those of (x - centre) / scale."""
    coef = beta[:, :p] / scale
    return coef, (beta[:, p] if beta.shape[1] > p else 0.0) - coef @ centre


def centre_gram(H, sums, size, centre, scale):
    """Turn H of uncentred columns, in place, into that of (x - centre) / scale and ones; symmetric.

    H : (q, q), q = p or p + 1. sums : (p,) of the columns. size : sum of the weights.
    """
    p = len(centre)
    for j in range(p):
        H[j, :p] += centre[j] * (size * centre - sums) - sums[j] * centre
        H[j, :p] /= scale[j] * scale
    if len(H) > p:
        H[p, :p] = H[:p, p] = (sums - size * centre) / scale
        H[p, p] = size
