"""Data sets: DATA by name, and kinds of which it is known which columns matter.

Data of one name and seed stay as they are: figures in `results` and in the pages are of them. Only public parts of the
library are used, since other commits have the same ones.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from sklearn import datasets
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, scale

from skhorseshoe.datasets import make_correlated_probit, make_rare_events, make_sparse_probit

SLAB = 2.0
SIZES = 1.5, -1.5, 1.2, -1.2, 1.0

# Real and simulated tables -------------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Rows and columns, where they come from, and how to have X and y."""

    shape: str
    source: str
    make: Callable


def sklearn_set(name, positive, classes=None, scaled=False):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if classes is not None:
        X, y = X[np.isin(y, classes)], y[np.isin(y, classes)]
    if scaled:
        varies = X.std(axis=0) > 0
        X = scale(X if varies.all() else X[:, varies])
    return X, y == positive


def statsmodels_set(name, target, positive):
    from statsmodels import datasets as others  # only in the environment of the peers

    table = getattr(others, name).load_pandas().data
    return table.drop(columns=target).to_numpy(), positive(table[target].to_numpy())


def moderate_effects():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((532, 7))
    return X, X @ [0.25, 0.65, -0.05, 0.05, 0.4, 0.3, 0.2] - 0.5 + rng.standard_normal(532) > 0


def strong_effects():
    rng = np.random.default_rng(7)
    X, beta = rng.standard_normal((1000, 100)), np.zeros(100)
    beta[:6] = 1.3, 4, -1, 1.6, 5, -2
    return X, rng.random(1000) < ndtr(X @ beta)


def spam():
    rng = np.random.default_rng(0)
    X = np.log1p(rng.gamma(0.3, 2.0, (4600, 57)) * (rng.random((4600, 57)) < 0.3))
    return X, scale(X)[:, :20] @ (1.5 * rng.standard_normal(20)) + rng.standard_normal(4600) > 0


def genes():
    rng = np.random.default_rng(0)
    X = in_blocks(rng, 80, 500)
    return X, 2 * X[:, 5] - 2 * X[:, 105] + rng.standard_normal(80) > 0


def in_blocks(rng, n, p, size=20):
    """Columns in blocks, with a correlation of 0.7 within each."""
    X = np.sqrt(0.7) * np.repeat(rng.standard_normal((n, p // size)), size, axis=1)
    return X + np.sqrt(0.3) * rng.standard_normal((n, p))


def two_levels(seed, n=3000):
    """A column for each of two levels, and 60 of noise but for the first."""
    rng = np.random.default_rng(seed)
    level, X = rng.integers(0, 2, n), rng.standard_normal((n, 60))
    return levels_beside(rng, X, 0.7 * level - 0.8, level)


def hospitals(seed, n=5000):
    """The levels of four regions and of the three hospitals of each, of which both matter, and 20 columns of noise but
    for the first."""
    rng = np.random.default_rng(seed)
    hospital, X = rng.integers(0, 12, n), rng.standard_normal((n, 20))
    region = hospital // 3
    eta = np.array([0, 0, 0.6, 1.2])[region] + np.r_[0.5, np.zeros(10), -0.7][hospital] - 0.5
    return levels_beside(rng, X, eta, region, hospital)


def wards(seed, n=14_000):
    """The levels of three regions, twelve hospitals, 120 wards and a crossed category of 40, sparse."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, 120, n)
    hospital, region = ward // 10, ward // 40
    eta = np.array([0, 0.4, 0.8])[region] + np.r_[0.3, -0.4, np.zeros(10)][hospital] + 0.6 * (ward % 15 == 0) - 1.5
    X, y = levels_beside(rng, np.zeros((n, 1)), eta, region, hospital, ward, rng.integers(0, 40, n))
    return sparse.csr_array(X[:, :-1]), y


def nearly_copies(seed, n=3000, r=0.99999, p=20):
    """Two columns that correlate by r, of which one matters, and p of noise but for the first."""
    rng = np.random.default_rng(seed)
    X, first = rng.standard_normal((n, p)), rng.standard_normal(n)
    second = r * first + np.sqrt(1 - r**2) * rng.standard_normal(n)
    X, y = levels_beside(rng, X, 0.7 * first - 0.5)
    return np.column_stack([first, second, X]), y


def alike_levels(seed, n=5000, differ=3, p=300):
    """Levels of two categories that differ in few rows, of which one matters, and p of noise but for the first;
    sparse."""
    rng = np.random.default_rng(seed)
    X, first = rng.random((n, p)) < 0.05, rng.random(n) < 0.2
    second = first ^ (np.arange(n) < differ)
    X, y = levels_beside(rng, X, first - 1.2)
    return sparse.csr_array(np.column_stack([first, second, X]), dtype=np.float64), y


def levels_beside(rng, X, eta, *categories):
    """A column for each level of the categories (n,) before the columns of X, and classes of eta and the first of X."""
    y = eta + 0.5 * X[:, 0] + rng.standard_normal(len(X)) > 0
    return np.column_stack([*(np.eye(of.max() + 1)[of] for of in categories), X]), y


def signals(p, where, sizes=SIZES):
    beta = np.zeros(p)
    beta[where] = sizes
    return beta


def simulated(maker, n, p, seed=0):
    return lambda: maker(n, p, random_state=seed)[:2]


PAPER = "make_sparse_probit: six columns matter, as in the paper"
RARE = "make_rare_events: 0.5 %, neighbours correlated by 0.5"
DATA = {
    "wine": Data("178 x 13", "class 0 against the others", partial(sklearn_set, "wine", 0)),
    "wine, scaled": Data("178 x 13", "the same", partial(sklearn_set, "wine", 0, scaled=True)),
    "setosa": Data("150 x 4", "iris, against the others", partial(sklearn_set, "iris", 0)),
    "versicolor": Data("150 x 4", "the same", partial(sklearn_set, "iris", 1)),
    "virginica": Data("150 x 4", "the same", partial(sklearn_set, "iris", 2)),
    "iris 1 v 2": Data("100 x 4", "without setosa", partial(sklearn_set, "iris", 2, (1, 2))),
    "breast cancer": Data("569 x 30", "scikit-learn", partial(sklearn_set, "breast_cancer", 1)),
    "breast cancer, scaled": Data("569 x 30", "the same", partial(sklearn_set, "breast_cancer", 1, scaled=True)),
    "digits": Data("357 x 64", "3 against 8; separated", partial(sklearn_set, "digits", 8, (3, 8))),
    "digits, scaled": Data("357 x 54", "no constant columns", partial(sklearn_set, "digits", 8, (3, 8), scaled=True)),
    "fair": Data("6366 x 8", "statsmodels: affairs", partial(statsmodels_set, "fair", "affairs", lambda y: y > 0)),
    "anes96": Data("944 x 10", "statsmodels: vote", partial(statsmodels_set, "anes96", "vote", lambda y: y == 1)),
    "spector": Data("32 x 3", "statsmodels: grade", partial(statsmodels_set, "spector", "GRADE", lambda y: y == 1)),
    "532 x 7": Data("532 x 7", "simulated, moderate effects", moderate_effects),
    "strong": Data("1000 x 100", "six columns nearly tell the classes apart", strong_effects),
    "spam": Data("4600 x 57", "counts of words, most of them 0", spam),
    "genes": Data("80 x 500", "blocks of 20", genes),
    "500 x 20": Data("500 x 20", PAPER, simulated(make_sparse_probit, 500, 20)),
    "500 x 20, seed 850": Data("500 x 20", PAPER, simulated(make_sparse_probit, 500, 20, 850)),
    "4000 x 50": Data("4000 x 50", PAPER, simulated(make_sparse_probit, 4000, 50)),
    "rare events, 30 columns": Data("20,000 x 30", RARE, simulated(make_rare_events, 20_000, 30, 850)),
    "rare events, 40,000": Data("40,000 x 50", RARE, simulated(make_rare_events, 40_000, 50)),
    "correlated, 1100": Data("1100 x 300", "make_correlated_probit", simulated(make_correlated_probit, 1100, 300)),
}


def plain(n, p, dtype=np.float32, stored=None):
    """Normal columns of which the first three matter, for what only takes time and memory: no second copy of X.

    stored : numbers of CSR rows, as many in each; dense without it.
    """
    rng = np.random.default_rng(0)
    if stored:
        per_row = max(1, stored // n)
        places = np.sort(rng.integers(0, p // per_row, (n, per_row), np.int32) * per_row + np.arange(per_row), axis=1)
        values, starts = rng.standard_normal(places.size).astype(dtype), np.arange(0, places.size + 1, per_row)
        X = sparse.csr_array((values, places.ravel().astype(np.int32), starts.astype(np.int32)), shape=(n, p))
        return X, (X[:, [0, 1, 2]].sum(axis=1) + rng.standard_normal(n) > 0).astype(np.uint8)
    X = np.empty((n, p), dtype)
    for start in range(0, n, 10_000):
        X[start : start + 10_000] = rng.standard_normal((len(X[start : start + 10_000]), p), dtype=np.float32)
    y = X[:, :3].sum(axis=1, dtype=np.float32) + rng.standard_normal(n, dtype=np.float32) > 0
    return X, y.astype(np.uint8)


def as_in_the_paper(n, p):
    """Data of the paper's Figure 1, float32, without a second copy of X."""
    rng = np.random.default_rng(0)
    X, beta = rng.standard_normal((n, p), dtype=np.float32), np.zeros(p, np.float32)
    beta[:6] = (1.3, 4.0, -1.0, 1.6, 5.0, -2.0)[:p]
    return X, (X @ beta + rng.standard_normal(n, dtype=np.float32) > 0).astype(np.uint8)


# Which columns matter is known ----------------------------------------------------------------------------------------


class Known(NamedTuple):
    """A kind of data: ``make(seed, n)`` gives X (n, p), y (n,) of 0 and 1, and the coefficients (p,)."""

    title: str
    n: int
    make: Callable

    def __str__(self):
        return self.title


def few(n, p, k=0, size=0.0, rho=0.0):
    """The first k of p columns matter, by coefficients of one size with alternating signs; rho : of every pair."""
    what = f"{k or 'none'} of {p}" + (f"; {size:g}" if k else "") + (f", correlated by {rho:g}" if rho else "")
    return Known(f"{n}; {what}", n, partial(_few, p=p, k=k, size=size, rho=rho))


def _few(seed, n, p, k, size, rho):
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - rho) * rng.standard_normal((n, p)) + np.sqrt(rho) * rng.standard_normal((n, 1))
    return _answered(rng, X, range(k), size * (-1.0) ** np.arange(k))


CUTS = -1.2, -0.3, 0.4, 1.5


def in_order(seed, n, p, n_classes):
    """Classes 0, 1, ... of a score of which the first four columns tell."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.digitize(X[:, :4] @ [0.8, -0.5, 0.3, 0.2] + rng.standard_normal(n), CUTS[: n_classes - 1])


def of_utilities(seed, n, p, n_classes):
    """Classes 0, 1, ... of which the first four columns tell, each of one class."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    coef = np.zeros((p, n_classes))
    coef[np.arange(4), np.arange(4) % n_classes] = [1.2, -1.0, 0.8, 0.6]
    return X, (X @ coef + rng.standard_normal((n, n_classes))).argmax(axis=1)


def twins(n, p, r=0.99875):
    """Two columns matter; a third is nearly a copy of the first, correlated by r, and counts as one to be let in."""
    return Known(f"{n}; 2 of {p}; 1 and -0.7, one with a twin", n, partial(_twins, p=p, r=r))


def _twins(seed, n, p, r):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, 2] = X[:, 0] + np.sqrt(1 / r**2 - 1) * rng.standard_normal(n)
    return _answered(rng, X, [0, 1], [1.0, -0.7])


def three_in_blocks(n, p, size=1.5, shift=0.0, of_batch=0.0):
    """One column matters in each of the first three blocks of 20. Batches may shift columns and the score."""
    more = f"; batches shift columns by {shift:g}, the score by {of_batch:g}" if shift else ""
    make = partial(_three, p=p, size=size, shift=shift, of_batch=of_batch)
    return Known(f"{n}; 3 of {p}; {size:g}, in blocks of 20 with r = 0.7{more}", n, make)


def _three(seed, n, p, size, shift, of_batch):
    rng = np.random.default_rng(seed)
    X, batch = in_blocks(rng, n, p), 0
    if shift:
        batch = rng.integers(-1, 2, n)
        X += shift * rng.standard_normal((3, p))[batch]
    return _answered(rng, X, [3, 27, 51], size * np.array([1, -1, 1]), of_batch * batch)


def _answered(rng, X, where, sizes, more=0):
    coef = signals(X.shape[1], where, sizes)
    return X, (X @ coef + more + rng.standard_normal(len(X)) > 0).astype(int), coef


class FromModel(NamedTuple):
    """Coefficients from the prior of the fit itself: the horseshoe with tau ~ C+(0, tau_0), times the slab.

    Columns have unit variance. The first 2 * pairs of them are pairs with a correlation of 0.9. With any of the fields
    after ``tau_0`` the model of the fit is wrong.
    """

    n: int
    p: int
    pairs: int = 0
    tau_0: float = 0.05
    noise: str = "normal"  # of the score; "logistic" and "t3" have the same quartiles
    columns: str = "normal"  # or "t3", with the same variance
    omitted: int = 0  # further columns that y depends on, each correlated by 0.7 with one, not of a pair, that is in X
    nonzero: int = 0  # coefficients of +-0.5, all others 0, where that is not 0; the fit has its default prior

    def make(self, seed, n):
        X, y, truths = self.make_judged(seed, n)
        return X, y, truths["effects"]

    def make_judged(self, seed, n):
        """X, y, and the coefficients by what they are: "effects" of the columns themselves, "associations" those of
        the probit of y on X alone, where these are others."""
        rng, two = np.random.default_rng(seed), 2 * self.pairs
        is_normal, shape = self.columns == "normal", (n, self.p)
        X = rng.standard_normal(shape) if is_normal else rng.standard_t(3, shape) / np.sqrt(3)
        pair(X, self.pairs)
        neighbours = slice(two, two + self.omitted)
        left_out = 0.7 * X[:, neighbours] + np.sqrt(0.51) * rng.standard_normal((n, self.omitted))
        every = self._coefficients(rng)
        coef, others = every[: self.p], every[self.p :]
        truths = {"effects": coef}
        if self.omitted:  # given X the score is still normal, since all columns are
            associations = coef.copy()
            associations[neighbours] += 0.7 * others
            truths["associations"] = associations / np.sqrt(1 + 0.51 * np.sum(others**2))
        quartile = 0.6744897501960817  # the third, of the standard normal
        noise = {
            "logistic": lambda: quartile / np.log(3) * rng.logistic(size=n),
            "t3": lambda: quartile / 0.7648923284043517 * rng.standard_t(3, n),
            "normal": lambda: rng.standard_normal(n),
        }
        return X, (X @ coef + left_out @ others + noise[self.noise]() > 0).astype(int), truths

    def _coefficients(self, rng):
        p = self.p + self.omitted
        if not self.nonzero:
            return from_prior(rng, p, self.tau_0)
        sizes = 0.5 * rng.choice([-1.0, 1.0], self.nonzero)
        return signals(p, rng.choice(p, self.nonzero, replace=False), sizes)

    def prior(self):
        return {"fit_intercept": False} | ({} if self.nonzero else {"global_scale": self.tau_0, "slab_scale": SLAB})

    def __str__(self):
        if self.nonzero:
            return f"{self.n} x {self.p}, {self.nonzero} coefficients of 0.5, default prior"
        odd = {"noise": self.noise, "columns": self.columns}
        odd = [f"{what} {law}" for what, law in odd.items() if law != "normal"]
        odd += [f"{self.omitted} columns left out"] * (self.omitted > 0)
        return f"{self.n} x {self.p}, " + (", ".join(odd) or "from the model")


class ClassesFromModel(NamedTuple):
    """As ``FromModel``, with more than two classes. Without an order the coefficients are contrasts of those of the
    classes, with a local scale for each column; the truth is the size of a column."""

    n: int
    p: int
    classes: int
    ordered: bool
    pairs: int = 0
    tau_0: float = 0.05

    def make_judged(self, seed, n):
        """X, y, and the coefficients or sizes of columns."""
        rng, d = np.random.default_rng(seed), self.classes - 1
        X = rng.standard_normal((n, self.p))
        pair(X, self.pairs)
        if self.ordered:
            coef = from_prior(rng, self.p, self.tau_0)
            return X, np.digitize(X @ coef + rng.standard_normal(n), 0.8 * np.arange(d)), {"effects": coef}
        coef = from_prior(rng, (d, self.p), self.tau_0)
        contrasts = np.linalg.svd(np.eye(self.classes) - 1 / self.classes)[0][:, :d].T  # any that are orthonormal
        utilities = X @ coef.T @ contrasts + rng.standard_normal((n, self.classes))
        return X, utilities.argmax(axis=1), {"effects": np.linalg.norm(coef, axis=0)}

    def prior(self):
        of_fit = {"fit_intercept": False, "global_scale": self.tau_0, "slab_scale": SLAB}
        return of_fit | {"ordered": self.ordered}

    def __str__(self):
        return f"{self.n} x {self.p}, {self.classes} classes{' in order' * self.ordered}, from the model"


def pair(X, n):
    """Give the second column of each of the first n pairs a correlation of 0.9 with the first, in place."""
    X[:, 1 : 2 * n : 2] = 0.9 * X[:, : 2 * n : 2] + np.sqrt(0.19) * X[:, 1 : 2 * n : 2]


def from_prior(rng, shape, tau_0):
    """Coefficients (p,) or contrasts (d, p) of the horseshoe with a slab, which is a rejection."""
    p = np.atleast_1d(shape)[-1]
    while True:
        coef = tau_0 * abs(rng.standard_cauchy()) * abs(rng.standard_cauchy(p)) * rng.standard_normal(shape)
        if np.log(rng.random()) < -0.5 * np.sum((coef / SLAB) ** 2):
            return coef


TERMS_TAU_0 = 0.1


def with_terms(seed, n):
    """X, y, the numbers of the columns of each term by name, and the true size of the effect of each term."""
    rng, parts = np.random.default_rng(seed), {}
    for k in range(3):
        levels = rng.integers(2, 9)
        shares = 0.3 / levels + 0.7 * rng.dirichlet(np.full(levels, 2.0))
        parts[f"factor {k}"] = OneHotEncoder(sparse_output=False).fit_transform(rng.choice(levels, (n, 1), p=shares))
    parts["spline"] = SplineTransformer(n_knots=4).fit_transform(rng.normal(60, 15, (n, 1)))
    parts |= {f"single {j}": rng.standard_normal((n, 1)) for j in range(10)}
    starts = np.cumsum([0, *(part.shape[1] for part in parts.values())])
    terms = {name: np.arange(*starts[k : k + 2]) for k, name in enumerate(parts)}
    X = np.hstack(list(parts.values()))
    coef = from_prior(rng, X.shape[1], TERMS_TAU_0)
    score = X @ coef
    y = (score - np.median(score) + rng.standard_normal(n) > 0).astype(int)
    return X, y, terms, np.array([(X[:, own] @ coef[own]).std() for own in terms.values()])
