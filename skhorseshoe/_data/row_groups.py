"""Groups of rows, such as the rows of one patient, and offsets."""

from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from .._backends import device
from .._utils.arrays import first_not_finite, first_whole_rounded, refuse_masked
from .input_table import table_of
from .labels import check_labels, cure_of_kind

_TIMES = "durations", "dates or times without a zone", "times with a zone"
_KINDS = {"text": str, "bytes": bytes}
_KINDS |= {"durations": (np.timedelta64, timedelta)}  # of NumPy a subtype of numbers
_KINDS |= {"numbers": (bool, int, float, np.bool_, np.number), "dates or times without a zone": (np.datetime64, date)}
_ATTOSECONDS = {unit: 10 ** (18 - 3 * k) for k, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))}
_ATTOSECONDS |= {u: n * 10**18 for u, n in {"m": 60, "h": 3600, "D": 86400, "W": 604800}.items()}
_LARGEST_OFFSET = 1e6  # its square leaves enough digits for the likelihood


class Groups(NamedTuple):
    """The groups of the sampler's rows, or with several factors the combinations of their levels."""

    codes: np.ndarray  # (n,) int32, from 0
    n: int  # number of groups or combinations
    scale: Any  # scale of the half-Cauchy prior of s, the standard deviation of the groups' effects; of each factor
    levels: np.ndarray | None = None  # (n, n_factors) int32, as in ``Factors``
    names: tuple = ()  # of the factors, where there are several
    # Where factors have slopes, groups are single rows, and each slope stands for a factor: the column of X, or None.
    columns: tuple | None = None

    def factors(self):
        """Of each factor: codes of rows (n,), number of levels, scale of the prior, and column of a slope or None."""
        if self.levels is None:
            return [(self.codes, self.n, self.scale, None)]
        columns = zip(self.levels.T, self.scale, self.columns or (None,) * len(self.scale), strict=True)
        return [(of_all[self.codes], int(of_all.max()) + 1, *more) for of_all, *more in columns]

    def levels_of_rows(self):
        """The level of each factor that rows have, (n, n_factors)."""
        return np.stack([codes for codes, *_, slope in self.factors() if slope is None], axis=1)

    def families(self):
        """The numbers of the factors that are the intercept and the slopes of one, for each with slopes."""
        families = []
        for k, column in enumerate(self.columns or ()):
            if column is None:
                families.append([k])
            else:
                families[-1].append(k)
        return [numbers for numbers in families if len(numbers) > 1]


def check_groups(groups, n, name="groups"):
    """The labels of the groups of n rows, checked; (n,). Time stamps with a zone are in UTC, numbers as an array of
    theirs. name : in errors."""
    labels = check_labels(_zoned(_one_column(name, groups, n, "label", "patient")), name)
    if (rounded := first_whole_rounded(labels)) is not None:
        raise ValueError(
            f"{name} holds {rounded!r}, and such large floats ({labels.dtype}) do not tell a whole number from the "
            "next, which may be another group. Give whole numbers (missing values make them floats in pandas; its type "
            "Int64 does not), or text."
        )
    if labels.dtype == object and any(issubclass(cls, datetime) for cls in {*map(type, labels)}):
        return _in_utc(labels, name)
    return labels


def _zoned(labels):
    """Time stamps with a zone of polars and pyarrow as a Series; NumPy would drop the zone. Others unchanged."""
    dtype = getattr(labels, "dtype", getattr(labels, "type", None))
    zone = getattr(dtype, "time_zone", getattr(dtype, "tz", None))
    if zone is None or isinstance(dtype, pd.DatetimeTZDtype):
        return labels
    return pd.Series(np.asarray(labels)).dt.tz_localize("UTC").astype(object)


def _in_utc(stamps, name):
    """Time stamps with a zone in UTC, so that an instant has one label; those without a zone unchanged."""
    have_zone = {stamp.tzinfo is not None for stamp in stamps}
    if len(have_zone) > 1:
        raise ValueError(
            f"{name} holds time stamps with a time zone and without, which have no order: tz_localize the latter."
        )
    if have_zone == {False}:
        return stamps
    in_utc = (pd.Timestamp(stamp).tz_convert("UTC") for stamp in stamps)
    # Those of Python where these are as fine, since all formats of models keep them.
    return np.array([stamp if stamp.nanosecond else stamp.to_pydatetime() for stamp in in_utc], object)


def check_offset(offset, n, classes=()):
    """The offsets of n rows, checked; (n,) float64. classes : those without an order, more than two, each of which has
    a column of its own: (n, K)."""
    refuse_masked(offset, "offset")
    one_each = _by_class(offset, n, classes) if len(classes) else _one_column("offset", offset, n, "number", "score")
    array = np.asarray(device.to_host(one_each))
    if array.dtype.kind not in "biufO":
        raise ValueError(f"offset must be numbers; got {array.dtype}.")
    try:
        array = array.astype(np.float64).reshape((n, -1) if len(classes) else n)
    except (TypeError, ValueError) as error:
        raise ValueError(f"offset must be finite numbers, one for each row: {error}.") from error
    if first := first_not_finite(array):
        raise ValueError(f"offset must be finite numbers; that of row {first[0]} is {array[first]}.")
    if abs(array).max(initial=0.0) > _LARGEST_OFFSET:
        first = np.unravel_index(abs(array).argmax(), array.shape)
        scale = "the scale of utilities" if len(classes) else "the probit scale, as norm.ppf(p) of a probability p"
        raise ValueError(
            f"The offset of row {first[0]} is {array[first]:.3g}, and no score is beyond {_LARGEST_OFFSET:g}: is it on "
            f"{scale}?"
        )
    return array


def _by_class(offset, n, classes):
    """Offsets with a column for each class; a ValueError if they have other columns."""
    labels = classes.tolist()
    if (shape := np.shape(offset)) != (n, len(labels)):
        raise ValueError(
            f"offset of {len(labels)} classes without an order is added to their utilities: give a column for each in "
            f"the order of classes_, {labels!r:.100}, of {n} rows; got the shape {shape}."
        )
    names = table_of(offset).names
    if {*names} == {*labels} and names != labels:
        raise ValueError(f"The columns of offset must be in the order of classes_: offset[{labels!r:.100}].")
    return offset


def _one_column(name, values, n, entry, such):
    """Values for n rows, or the only column of a table; a ValueError if they are neither. entry : of a row, in words.
    such : a column that may hold them."""
    try:
        shape = np.shape(values)
    except ValueError:  # of lists that are not equally long
        shape = (len(values),)
    give, columns = f"give one {entry} for each row", table_of(values).names
    if shape == () or issparse(values):
        such = values if isinstance(values, str) else such
        what = f"is {values!r}" if isinstance(values, str | int | float) else f"is of type {type(values).__name__}"
        raise ValueError(f"{name} {what}: {give}, as an array, a list or a column, {name}=frame[{such!r}].")
    if shape == (n, 1):
        return values[columns[0]] if columns else values
    if len(shape) == 2 and shape[0] == n:
        kind = "a table" if columns else "a list" if isinstance(values, list | tuple) else "an array"
        such = f"frame[{columns[0]!r}]" if columns else f"numpy.asarray({name})[:, 0]"
        more = ", or a text that joins them, or all as factors, a table or a dict by name" if entry == "label" else ""
        raise ValueError(f"{name} is {kind} of {shape[1]} columns: give one of them, such as {name}={such}{more}.")
    if shape != (n,):
        are_names = isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)
        cure = f" If these are names of columns, {name}=frame[{list(values)!r:.60}]." if are_names else ""
        raise ValueError(f"{name} has the shape {shape}, and X has {n} rows: {give}.{cure}")
    return values


def encode_groups(labels, name="groups"):
    """The labels of the groups, sorted, and the code of each row's group, int32. labels : from ``check_groups``."""
    if labels.dtype.kind in "OU":  # hashing is faster than sorting for these; in older pandas it stops at a zero byte
        values = labels.tolist()
        try:
            groups = sorted({*values})
            has_order = all(a < b for a, b in pairwise(groups))
        except TypeError:
            has_order = False
        if not has_order:
            cls = type(labels[0])
            raise ValueError(
                f"{name} holds labels of type {cls.__name__}, which have no order. {cure_of_kind(cls, name)}"
            )
        codes = {label: k for k, label in enumerate(groups)}
        return np.fromiter(groups, labels.dtype, len(groups)), np.array([codes[label] for label in values], np.int32)
    groups, codes = np.unique(labels, return_inverse=True)
    return groups, codes.ravel().astype(np.int32)


def are_repeated(codes, weight):
    """Which groups have two rows, or rows that count as more than one; (n_groups,). weight : of the rows, or None."""
    repeated = np.bincount(codes) > 1
    return repeated if weight is None else repeated | (np.bincount(codes, weight) > 1)


def check_sizes(codes, weight, name="groups"):
    """Raise a ValueError if no group has two rows. weight : of the rows, or None."""
    n = len(codes)
    if are_repeated(codes, weight).any():
        return
    raise ValueError(
        f"{name} has {n} labels for {n} rows: no two rows belong together, so the data do not tell what a group does. "
        f"Leave {name} out, or give labels that rows share, such as the numbers of patients."
    )


class Matched(NamedTuple):
    """The groups of rows beside those of a fit. ``match_factors`` gives arrays with a column for each factor."""

    codes: np.ndarray  # (n,) int32, codes of the groups of the fit; -1 for a group that is new
    own: np.ndarray  # (n,) int32, equal for rows of one label
    counts: tuple[int, int]  # how many labels are of groups of the fit, and how many there are
    told: str  # the counts in words
    given: Any = None  # the names, by number, of the factors of which labels are given; from ``match_factors``


def match_groups(groups, labels, are_new, name="groups"):
    """``Matched``. groups : of the fit. labels : of rows, from ``check_groups``. are_new : whether to match none."""
    distinct, own = encode_groups(labels, name)
    found = np.full(len(distinct), -1, np.int32)
    if len(labels) and not are_new:
        of_fit, kind = (_kind_of(values) for values in (groups, labels))
        if of_fit != kind:
            raise ValueError(
                f"{name} holds {kind}, and in fit it held {of_fit}: no label could be one of these. Give labels as in "
                "fit, or new_groups=True if all groups are new."
                + " tz_localize gives times a zone."
                * ("with a zone" in of_fit + kind)
            )
        places = {key: k for k, key in enumerate(_keys(groups))}
        found[:] = [places.get(key, -1) for key in _keys(distinct)]
    n_known = int((found >= 0).sum())
    return Matched(found[own], own, (n_known, len(distinct)), f"{n_known} of {len(distinct)}")


def _keys(labels):
    """Python objects that are equal, exactly, for equal labels whatever their types: True, 1 and 1.0 are the same."""
    kind = _kind_of(labels) if len(labels) else ""
    return map(_in_attoseconds, labels) if kind in _TIMES else labels.tolist()


def _in_attoseconds(label):
    """A date or a duration of any unit as a whole number of attoseconds; of months, for durations in months."""
    if isinstance(label, date):
        label = pd.Timestamp(label).to_datetime64()
    elif isinstance(label, timedelta):
        label = pd.Timedelta(label).to_timedelta64()
    if np.datetime_data(label)[0] in ("Y", "M"):
        label = label.astype("M8[D]" if isinstance(label, np.datetime64) else "m8[M]")
    unit, count = np.datetime_data(label)
    return int(label.astype(np.int64)) * count * _ATTOSECONDS.get(unit, 1)


def _kind_of(labels):
    """The kind of the labels in words."""
    first = labels[0] if labels.dtype == object and len(labels) else None
    kind = labels.dtype.type if first is None else type(first)
    if isinstance(first, datetime) and first.tzinfo is not None:
        return "times with a zone"
    if isinstance(first, pd.Period):
        return f"periods of the frequency {first.freqstr}"
    kinds = [words for words, types in _KINDS.items() if issubclass(kind, types)]
    return kinds[0] if kinds else f"labels of type {kind.__name__}"
