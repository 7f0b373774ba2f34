"""Cases in memory: rows, parameters, labels, weights and sparse structures that nobody would give on purpose."""

import enum
import linecache
import traceback
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from numpy.linalg import LinAlgError

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector

NUMBERS = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-308, 1e200, 1e150, 1e38, 1e16, 0.1]
THINGS = [None, "", "x", "nan", b"a", True, False, 10**400, -(10**400), 2**63, 2**64, 1j, pd.NA, pd.NaT, [], {}, ()]
THINGS += [Decimal("NaN"), Decimal(3), Fraction(1, 3), np.float16(2), np.datetime64("NaT"), pd.Timestamp(0)]
THINGS += [object, print, Decimal("sNaN"), np.ma.masked, "a\0", "a\0\0", 10**17, 10**17 + 1]
TYPES = ["f2", "f4", "f8", "g", ">f8", "i1", "i8", "u8", "?", "O", "c16", "U3", "S3", "M8[s]", "m8[s]"]
ALLOWED = ValueError, TypeError, MemoryError, LinAlgError, RuntimeError
SAMPLERS = ["auto", "hmc", "gibbs", "pxda"]


class Text(enum.StrEnum):
    A = "alpha"
    B = "beta"


def pick(rng, things):
    return things[rng.integers(len(things))]


def on_purpose(error):
    """Whether the line that has raised it says so, or it comes of scikit-learn's own checks."""
    if not isinstance(error, ALLOWED) or isinstance(error, Warning | RecursionError | NotImplementedError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    ours = max((i for i, frame in enumerate(frames) if "/skhorseshoe/" in frame.filename), default=-1)
    if any("/sklearn/" in frame.filename for frame in frames[ours + 1 :]):
        return True
    last = frames[-1]
    return ours == len(frames) - 1 and linecache.getline(last.filename, last.lineno).strip().startswith("raise")


def rows(rng):
    n, p = int(rng.integers(4, 25)), int(rng.integers(1, 6))
    return rng.standard_normal((n, p)), np.append([0, 1], rng.integers(0, 2, n - 2))


def use(rng, X, y, sample_weight=None, other=None, **params):
    """Fit, and ask; returns the model."""
    given = {"n_iter": 8, "burn_in": int(rng.integers(0, 12)), "n_chains": 2, "n_jobs": int(rng.integers(1, 3))}
    given |= {"sampler": pick(rng, SAMPLERS), "random_state": 0, "standardize": bool(rng.integers(2))}
    model = HorseshoeProbitClassifier(**(given | params)).fit(X, y, sample_weight=sample_weight)
    model.summary()
    asked = X if other is None else other
    assert np.isfinite(model.predict_proba(asked)).all(), "a probability is not finite"
    model.predict(asked)
    return model


class Odd:
    """Something that says of itself that it is an array, or has rows."""

    def __init__(self, X, what):
        if what < 2:
            self.__array_interface__ = X.__array_interface__ if what else "none"
        elif what < 4:
            self.shape = X.shape
        self.held, self.what = X, what

    def __len__(self):
        return [len(self.held), -1, 10**400, 0, 3, 2][self.what]

    def __getitem__(self, at):
        return self.held[at]


def contain(rng, X):
    """X in another container, some with what no float has."""
    held = [np.ma.masked_array(row, rng.random(len(row)) < rng.choice([0.0, 0.1])) for row in X]
    with np.errstate(all="ignore"):
        large = (2 ** int(rng.integers(50, 64)) + (4 * X).round()).astype(pick(rng, ["i8", "u8", "O"]))
    labels = [pd.MultiIndex.from_product([["a"], range(X.shape[1])]), pd.date_range("2020", periods=X.shape[1])]
    table = pd.DataFrame(X, columns=pick(rng, labels))
    tables = [table, table[table.columns[::-1]], pd.DataFrame(large), pl.DataFrame(X), pa.table(dict(enumerate(X.T)))]
    whole = pl.DataFrame({"a": pl.Series([int(one) for one in large[:, 0]], dtype=pick(rng, [pl.Int128, pl.Int64]))})
    others = [held, tuple(held), memoryview(X), Odd(X, int(rng.integers(6))), large, large.tolist(), whole]
    return pick(rng, others + tables)


def spoil_rows(rng, X):
    """X in another form, or with odd numbers in it."""
    X, kind = X.copy(), rng.integers(19)
    if kind >= 16:
        X = contain(rng, X)
    elif kind < 4:
        for _ in range(rng.integers(1, 4)):
            X[tuple(rng.integers(X.shape))] = pick(rng, NUMBERS)
    elif kind < 6:
        X = X * 10.0 ** rng.integers(-300, 300, X.shape[1])
    elif kind < 8:
        with np.errstate(all="ignore"):
            X = (X * 10).astype(pick(rng, TYPES), order=pick(rng, "CF"))
    elif kind == 8:
        X = X.astype(object)
        X[tuple(rng.integers(X.shape))] = pick(rng, THINGS)
    elif kind == 9:
        X = pick(rng, [X[::-1], X[:, ::-1], X[::2], np.repeat(X, 2, axis=1)[:, ::2], np.broadcast_to(X[:1], X.shape)])
    elif kind == 10:
        X = pick(rng, [X[0], X[None], X[:0], X[:, :0], X.ravel(), np.float64(3), X[:1], X[:2]])
    elif kind == 11:
        X = np.ma.masked_array(X, rng.random(X.shape) < rng.choice([0.0, 0.1]))
    elif kind == 12:
        X = X.tolist()
        X[0] = pick(rng, [X[0], X[0][:-1], [*X[0], 1.0], pick(rng, THINGS), [pick(rng, THINGS)] * len(X[0])])
    else:
        X = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
        column = pick(rng, list(X))
        if kind == 13:
            kinds = ["f4", "Int64", "Float64", "string", "category", "boolean", "O"]
            X[column] = X[column].astype(pick(rng, kinds), errors="ignore")
        elif kind == 14:
            X[column] = X[column].astype(object)
            X.loc[0, [column]] = pd.Series({column: pick(rng, THINGS[:-1])}, dtype=object)
        else:
            X.columns = pick(rng, [["c0"] * X.shape[1], [*range(X.shape[1])], [None] * X.shape[1], [*X][::-1]])
    return X


def inputs(rng, folder):
    X, y = rows(rng)
    other = X
    try:
        spoilt = spoil_rows(rng, X)
    except (ValueError, TypeError, OverflowError):  # NumPy or pandas makes no such thing
        return None
    if rng.integers(3) == 0:
        other, spoilt = spoilt, X
    return use(rng, spoilt, y[: len(spoilt)] if hasattr(spoilt, "__len__") else y, other=other)


POOL = [*NUMBERS, *THINGS, 2, 3, 7, 10**9, 2**31, 2**53, "auto", "mean", "balanced", "cuda:7", range(2), {0}, ["c0"]]
POOL += [np.array(7), np.arange(3), np.zeros((2, 2)), sp.eye_array(2), [0, "c1"]]
POOL += [{0: 1, 1: 2}, {0: 0}, {1: np.nan}, {"a": 3}]
HELD = {"checkpoint", "warm_start", "verbose", "device"}


def parameters(rng, folder):
    X, y = rows(rng)
    names = sorted(set(HorseshoeProbitClassifier().get_params()) - HELD)
    params = {pick(rng, names): pick(rng, POOL) for _ in range(rng.integers(1, 4))}
    for name in ("n_iter", "burn_in"):  # long runs are no findings
        value = params.get(name)
        if isinstance(value, int | np.number) and 50 < value <= 2**53:
            del params[name]
    return use(rng, X, y, **params)


def labels(rng, folder):
    X, y = rows(rng)
    kinds = [(0, 1), ("a", "b"), (b"a", b"b"), (True, False), (0.5, 1.5), (-1, 1), (1, 2**62), ("a", 1)]
    two = pick(rng, [*kinds, ("a\0", "a"), (Text.A, Text.B), (2**64, 2**64 + 1)])
    y = [two[label] for label in y]
    for _ in range(rng.integers(0, 3)):
        y[rng.integers(len(y))] = pick(rng, [*NUMBERS, *THINGS, *two])
    if rng.integers(4) == 0:
        y = y[: rng.integers(len(y) + 1)]
    form = rng.integers(8)
    try:
        if form == 0:
            y = np.array(y)
        elif form == 1:
            y = np.array(y, object)
        elif form == 2:
            y = pd.Series(y, dtype=pick(rng, [None, "category", "string", "O"]))
        elif form == 3:
            y = np.array([pick(rng, ["2020", "2021", "NaT"]) for _ in y], pick(rng, ["M8[s]", "m8[s]", "U4"]))
        elif form == 4:
            y = pick(rng, [tuple(y), [y], [[label] for label in y], np.array(y)[:, None], iter(y), None, "ab", 3])
        elif form == 5:
            y = np.ma.masked_array(np.array(y), rng.random(len(y)) < 0.1)
    except (ValueError, TypeError, OverflowError):
        return None
    return use(rng, X, y)


def weights(rng, folder):
    X, y = rows(rng)
    weight = [1.0, 10.0 ** rng.uniform(-320, 308), rng.integers(0, 4)][rng.integers(3)] * np.ones(len(y))
    if rng.integers(2):
        with np.errstate(all="ignore"):
            weight = weight * 10.0 ** rng.uniform(-20, 20, len(y))
    for _ in range(rng.integers(0, 3)):
        weight[rng.integers(len(y))] = pick(rng, NUMBERS)
    if rng.integers(5) == 0:
        weight = [pick(rng, [*THINGS, 1.0]) for _ in y]
    elif rng.integers(8) == 0:
        others = [weight[:-1], weight[:, None], weight[0], weight.astype("c16"), weight.astype("U8"), "w", None]
        weight = pick(rng, others)
    by_class = [None, None, "balanced", {0: 10.0 ** rng.uniform(-320, 308), 1: 1}, {1: 2}, {0: 0, 1: 1}, {2: 1}]
    with np.errstate(all="ignore"):
        return use(rng, X, y, sample_weight=weight, class_weight=pick(rng, by_class))


def sparse(rng, folder):
    n, p = int(rng.integers(4, 30)), int(rng.integers(1, 12))
    kind = pick(rng, ["csr", "csr", "csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
    X = sp.random_array((n, p), density=rng.uniform(0, 1), rng=rng).asformat(kind)
    if kind == "csr" and rng.integers(2):
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    good = X.tocsr().copy()
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        spoil_sparse(rng, X)
    y = np.append([0, 1], rng.integers(0, 2, n - 2))
    given = [X, good] if rng.integers(2) else [good, X]
    if rng.integers(6) == 0:
        return HorseshoeSelector(HorseshoeProbitClassifier(n_iter=4, burn_in=2, sampler="pxda")).fit(X, y)
    return use(rng, given[0], y, other=given[1], sampler=pick(rng, SAMPLERS))


PLACES = [-1, -7, 10**8, 2**31 - 1, -(2**31), 0, 1, 5, 12, 40]


def spoil_sparse(rng, X):
    names = {"coo": ["row", "col", "data"], "lil": ["rows", "data"], "dia": ["offsets", "data"]}
    names = names.get(X.format, ["indices", "indptr", "data"])
    if X.format == "dok":
        X._dict[int(pick(rng, PLACES)), int(pick(rng, PLACES))] = pick(rng, NUMBERS)
        return
    for _ in range(rng.integers(1, 4)):
        name = pick(rng, names)
        values, how = getattr(X, name), rng.integers(8)
        if how < 4 and len(values):
            at = rng.integers(len(values))
            if X.format == "lil":
                values[at] = [pick(rng, PLACES)] * int(rng.integers(4)) if how < 3 else pick(rng, THINGS)
            else:
                number = pick(rng, NUMBERS if name == "data" else PLACES)
                values[at] = np.float64(number).astype(values.dtype)
        elif how == 4:
            setattr(X, name, values[: rng.integers(len(values) + 1)])
        elif how == 5 and X.format != "lil":
            setattr(X, name, np.concatenate([values, values[: rng.integers(len(values) + 1)]]))
        elif how == 6 and X.format != "lil":
            setattr(X, name, values.astype(pick(rng, ["i2", "u4", "i8", "f8", "f4", "?", "O", "c16"])))
        elif how == 7 and X.format != "lil":
            setattr(X, name, pick(rng, [values[None], values[::-1], values[:0], np.asfortranarray(values)]))
