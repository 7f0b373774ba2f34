"""Data of which it is known which columns matter, for selection.py.

Each kind has ``make(seed, n)``, for X (n, p), y (n,) of 0 and 1, and the coefficients (p,).
"""

from typing import NamedTuple

import numpy as np

from skhorseshoe.datasets import make_sparse_probit

SLAB = 2.0
_QUARTILE = 0.6744897501960817  # the third, of the standard normal


class Case(NamedTuple):
    """n rows of p columns, the first k of which matter, with coefficients of one size and alternating signs."""

    n: int
    p: int
    k: int
    size: float = 0.0
    rho: float = 0.0  # correlation of every pair of columns

    def make(self, seed, n):
        rng = np.random.default_rng(seed)
        X = np.sqrt(1 - self.rho) * rng.standard_normal((n, self.p)) + np.sqrt(self.rho) * rng.standard_normal((n, 1))
        coef = np.zeros(self.p)
        coef[: self.k] = self.size * (-1.0) ** np.arange(self.k)
        return X, (X @ coef + rng.standard_normal(n) > 0).astype(int), coef

    def __str__(self):
        what = f"{self.k or 'none'} of {self.p}" + (f"; {self.size:g}" if self.k else "")
        return f"{self.n}; {what}" + (f", correlated by {self.rho:g}" if self.rho else "")


class Paper(NamedTuple):
    """Data made as by Terenin, Dong & Draper (2019)."""

    n: int
    p: int

    def make(self, seed, n):
        return make_sparse_probit(n, self.p, random_state=seed)

    def __str__(self):
        return f"{self.n}; 6 of {self.p}; the paper's"


class Twins(NamedTuple):
    """Two columns matter; a third is nearly a copy of the first and counts as one to be let in."""

    n: int
    p: int
    r: float = 0.99875  # of the copy with the first

    def make(self, seed, n):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, self.p))
        X[:, 2] = X[:, 0] + np.sqrt(1 / self.r**2 - 1) * rng.standard_normal(n)
        coef = np.zeros(self.p)
        coef[:2] = 1.0, -0.7
        return X, (X @ coef + rng.standard_normal(n) > 0).astype(int), coef

    def __str__(self):
        return f"{self.n}; 2 of {self.p}; 1 and -0.7, one with a twin"


class Blocks(NamedTuple):
    """Blocks of 20 columns with correlations of 0.7; one column matters in each of the first three blocks."""

    n: int
    p: int
    size: float = 1.5

    def make(self, seed, n):
        rng = np.random.default_rng(seed)
        common = np.repeat(rng.standard_normal((n, self.p // 20)), 20, axis=1)
        X = np.sqrt(0.7) * common + np.sqrt(0.3) * rng.standard_normal((n, self.p))
        coef = np.zeros(self.p)
        coef[[3, 27, 51]] = self.size * np.array([1, -1, 1])
        return X, (X @ coef + rng.standard_normal(n) > 0).astype(int), coef

    def __str__(self):
        return f"{self.n}; 3 of {self.p}; {self.size:g}, in blocks of 20 with r = 0.7"


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
        rng = np.random.default_rng(seed)
        X = (
            rng.standard_normal((n, self.p))
            if self.columns == "normal"
            else rng.standard_t(3, (n, self.p)) / np.sqrt(3)
        )
        X[:, 1 : 2 * self.pairs : 2] = 0.9 * X[:, : 2 * self.pairs : 2] + np.sqrt(0.19) * X[:, 1 : 2 * self.pairs : 2]
        neighbours = slice(2 * self.pairs, 2 * self.pairs + self.omitted)
        left_out = 0.7 * X[:, neighbours] + np.sqrt(0.51) * rng.standard_normal((n, self.omitted))
        every = self._coefficients(rng)
        coef, others = every[: self.p], every[self.p :]
        truths = {"effects": coef}
        if self.omitted:  # given X the score is still normal, since all columns are
            associations = coef.copy()
            associations[neighbours] += 0.7 * others
            truths["associations"] = associations / np.sqrt(1 + 0.51 * np.sum(others**2))
        return X, (X @ coef + left_out @ others + self._noise(rng, n) > 0).astype(int), truths

    def _coefficients(self, rng):
        p = self.p + self.omitted
        if self.nonzero:
            coef = np.zeros(p)
            coef[rng.choice(p, self.nonzero, replace=False)] = 0.5 * rng.choice([-1.0, 1.0], self.nonzero)
            return coef
        while True:
            tau = self.tau_0 * abs(rng.standard_cauchy())
            coef = tau * abs(rng.standard_cauchy(p)) * rng.standard_normal(p)
            if np.log(rng.random()) < -0.5 * np.sum((coef / SLAB) ** 2):  # the slab, by rejection
                return coef

    def _noise(self, rng, n):
        if self.noise == "logistic":
            return _QUARTILE / np.log(3) * rng.logistic(size=n)
        if self.noise == "t3":
            return _QUARTILE / 0.7648923284043517 * rng.standard_t(3, n)
        return rng.standard_normal(n)

    def prior(self):
        return {"fit_intercept": False} | ({} if self.nonzero else {"global_scale": self.tau_0, "slab_scale": SLAB})

    def __str__(self):
        if self.nonzero:
            return f"{self.n} x {self.p}, {self.nonzero} coefficients of 0.5, default prior"
        odd = [f"noise {self.noise}"] * (self.noise != "normal") + [f"columns {self.columns}"] * (
            self.columns != "normal"
        )
        odd += [f"{self.omitted} columns left out"] * (self.omitted > 0)
        return f"{self.n} x {self.p}, " + (", ".join(odd) or "from the model")
