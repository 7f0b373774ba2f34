"""Data sets of many columns, with a seed: WIDE by name, and rare columns.

Data of one name and seed stay as they are: figures in `results` and in the pages are of them.
"""

import numpy as np
from _data import SIZES, in_blocks, signals
from scipy import sparse

ONE_HOT = 0.01  # share of events among rows of categories


def blocks_of_ten(rng, n, p):
    """Five signals in blocks of their own; columns of unit variance."""
    X = in_blocks(rng, n, p, 10)
    return (X - X.mean(axis=0)) / X.std(axis=0), signals(p, (p // 60) * np.array([0, 10, 20, 40, 50]))


def chain_of_columns(rng, n, p):
    """Neighbours have correlation .6."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    return X, signals(p, np.linspace(5, p - 5, 5).astype(int))


def independent(rng, n, p):
    return rng.standard_normal((n, p)), signals(p, np.arange(5))


def counts(rng, n, p):
    """Counts of words, of which 3 % are stored."""
    X = rng.poisson(rng.gamma(0.3, 0.1, p) * np.ones((n, 1))).astype(np.float32)
    order = np.argsort(-X.var(axis=0))[:50:10]
    return sparse.csr_array(X), signals(p, order, np.array(SIZES) / X.std(axis=0)[order])


def hashed(rng, n, p):
    """Texts of 100 words whose frequencies are as 1 / rank, hashed; five of the 50 most frequent words tell."""
    chance = 1 / np.arange(1, p + 1)
    words = rng.choice(p, size=(n, 100), p=chance / chance.sum())
    X = sparse.csr_array((np.ones(words.size, np.float32), words.ravel(), np.arange(0, words.size + 1, 100)), (n, p))
    X.sum_duplicates()
    return X, signals(p, np.arange(5, 55, 10))


def genotypes(rng, n, p):
    """0, 1 or 2, neighbours in blocks of ten alike."""
    common = rng.uniform(0.1, 0.5, p)
    shared = np.repeat(rng.uniform(size=(2, n, p // 10)), 10, axis=2)
    own = np.where(rng.uniform(size=(2, n, p)) < 0.7, shared, rng.uniform(size=(2, n, p)))
    return (own < common).sum(axis=0).astype(np.int8), signals(p, (p // 60) * np.array([0, 10, 20, 40, 50])) * 1.5


def sparse_genotypes(rng, n, p):
    X, beta = genotypes(rng, n, p)
    return sparse.csr_array(X), beta


def one_hot(rng, n, p):
    """Eight categories whose levels have frequencies by a power law, and effects on one level of twelve in each."""
    shares = np.array([200, 150, 100, 50, 30, 15, 8, 3]) / 556
    sizes = np.maximum(2, np.round(p * shares).astype(int))
    ends = p - sizes[1:].sum() + np.append(0, np.cumsum(sizes[1:]))
    columns, beta, first = [], np.zeros(p), 0
    for end in ends:
        often = np.arange(1, end - first + 1) ** -1.2
        columns.append(first + rng.choice(end - first, n, p=often / often.sum()))
        told = rng.choice(end - first, -(-(end - first) // 12), replace=False)
        beta[first + told], first = rng.normal(0, 0.6, len(told)), end
    places = np.stack(columns, axis=1)
    X = sparse.csr_matrix((np.ones(places.size), places.ravel(), np.arange(0, places.size + 1, len(ends))), (n, p))
    return X, beta


WIDE = {
    "100 x 300, AR(.6)": (chain_of_columns, 100, 300),
    "120 x 300, blocks": (blocks_of_ten, 120, 300),
    "120 x 3000, blocks": (blocks_of_ten, 120, 3000),
    "100 x 7000, blocks": (blocks_of_ten, 100, 7000),
    "500 x 1000": (independent, 500, 1000),
    "1000 x 3000": (independent, 1000, 3000),
    "200 x 2765, sparse counts": (counts, 200, 2765),
    "300 x 2000, genotypes": (genotypes, 300, 2000),
    "1000 x 2^18, hashed": (hashed, 1000, 2**18),
    "5000 x 2^16, hashed": (hashed, 5000, 2**16),
    "300 x 2000, genotypes in CSR": (sparse_genotypes, 300, 2000),
    "14,300 x 129, one-hot": (one_hot, 14_300, 129),
    "167,000 x 556, one-hot": (one_hot, 167_000, 556),
}


def wide(name, seed, part=1):
    """X and y, half of it events but for ``one_hot``; ``part`` = 5 : a fifth of the rows and of the columns."""
    make, n, p = WIDE[name]
    rng = np.random.default_rng(seed)
    X, beta = make(rng, n // part, p // part)
    eta = X @ beta
    if make is one_hot:
        eta += rng.standard_normal(len(eta))
        return X, (eta > np.quantile(eta, 1 - ONE_HOT)).astype(int)
    return X, (eta - np.median(eta) + rng.standard_normal(len(eta)) > 0).astype(int)


def rare_columns(seed, part=1, n=10_000, p=1000):
    """Binary columns with frequencies by a power law, in CSR, 14 % events, and the numbers of 20 columns that tell."""
    rng, n, p = np.random.default_rng(seed), n // part, p // part
    often = np.minimum(0.3, 0.01 * rng.pareto(1.2, p) + 0.001)
    rows = [rng.choice(n, max(5, int(share * n)), replace=False) for share in often]
    columns = np.repeat(np.arange(p), [len(own) for own in rows])
    X = sparse.csr_matrix((np.ones(len(columns)), (np.concatenate(rows), columns)), shape=(n, p))
    told = np.argsort(-often)[: 400 // part : 20 // part]
    eta = X @ signals(p, told, rng.choice([-1, 1], 20) * rng.uniform(0.3, 1, 20))
    return X, (eta - np.median(eta) - 1.6 + rng.standard_normal(n) > 0).astype(int), told
