"""Conversion of frames and labels to rows of finite numbers and codes of labels."""

import json

import numpy as np
import pandas as pd

from .._utils.arrays import first_whole_rounded, kind_of
from .._utils.names import check_different, shorten

MOST_LABELS, LETTERS = 256, 1000  # most labels, and letters of one: in an array each takes the room of the longest
_LARGEST_EXACT = 2**53  # float64 distinguishes whole numbers up to this one


def to_rows(frames, known, first, groups):
    """Yields for each frame rows (m, p), float64 where float32 is not exact, and codes (m,) uint8; with groups also the
    results of ``group_codes``. A ValueError if the frames do not agree.

    known : manifest of the rows so far, with the parameters of ``convert`` as "what"; its "names" and "classes" are
    completed from the frames. first : number of the first row. groups : codes of the groups before it, by label.
    """
    y, dtype, largest = known["what"]["y"], known["what"]["dtype"], 0.0
    by = known["what"].get("groups")
    for frame, labels, group_labels in frames:
        names = known["names"] = _column_names(frame.columns, known, first)
        codes = _codes(labels if y is None else frame[y], len(frame), known, first)
        X, largest = _floats(frame[names], dtype, first, largest)
        group_labels = frame[by] if isinstance(by, str) else group_labels
        yield X, codes, *(() if group_labels is None else group_codes(group_labels, len(frame), groups, first))
        first += len(frame)


def _column_names(columns, known, first):
    """The names of the columns for X; a ValueError if these columns do not agree with earlier rows."""
    if odd := [name for name in columns if not isinstance(name, str | int | float) or name != name]:
        raise ValueError(f"Columns need names, strings or numbers: rename {odd[:3]}, as by columns.map(str).")
    check_different(columns, "X")
    y, asked, by = known["what"]["y"], known["what"]["columns"], known["what"].get("groups")
    not_for_X = {y, by if isinstance(by, str) else None} - {None}
    names = known["names"] or asked or [name for name in columns if name not in not_for_X]
    wanted = {*names, *not_for_X}
    unknown = {*columns} - wanted if asked is None else {}
    missing, more = (sorted(extra, key=str)[:9] for extra in (wanted - {*columns}, unknown))
    if not names or missing or more:
        and_groups = f" and groups={by!r}" if isinstance(by, str) else ""
        problem = f"missing are {missing}" + f", unknown are {more}" * bool(more) if names else "none is for X"
        raise ValueError(
            f"The part of the source from row {first} on has the columns {[*columns[:9]]}, with y={y!r}{and_groups}: "
            f"{problem}. columns=[...] takes those that all have; labels of arrays are arrays too."
        )
    if unnamed := [name for name in names if not (known["names"] or asked) and str(name).startswith("Unnamed: ")]:
        raise ValueError(f"Column {unnamed[0]!r} has no heading: write with index=False, or name columns=[...] here.")
    return names


def _codes(labels, m, known, first):
    """The codes (m,) uint8 of the labels, or 0 without labels; new labels are added to the classes."""
    if first and (labels is None) != (known["classes"] is None):
        raise ValueError(f"From row {first} on the source has {'no ' * (labels is None)}labels, unlike before.")
    if labels is None:
        return np.zeros(m, np.uint8)
    codes = {label: k for k, label in enumerate(known["classes"] or [])}
    encoded = _encoded(labels, m, codes, first, "label", MOST_LABELS)
    known["classes"] = [*codes]
    return encoded.astype(np.uint8)


def group_codes(labels, m, codes, first):
    """The codes (m,) int32 of the groups, and the lines of new groups as bytes. codes : as in ``_encoded``."""
    n_known, encoded = len(codes), _encoded(labels, m, codes, first, "group")
    lines = "".join(json.dumps(label) + "\n" for label in [*codes][n_known:])
    return encoded.astype(np.int32), np.frombuffer(lines.encode("ascii"), np.uint8)


def _encoded(labels, m, codes, first, what, most=None):
    """The codes (m,) of labels. codes : those of the rows before ``first``, by label; new ones are added. most : the
    largest number of different labels."""
    if np.shape(labels) != (m,):
        one = " Rows on disk have one factor." if what == "group" else ""
        raise ValueError(f"{m} rows from row {first} on need as many {what}s; got the shape {np.shape(labels)}.{one}")
    places, distinct = pd.factorize(pd.Series(labels))
    if (places < 0).any():
        raise ValueError(f"The {what} of row {first + np.argmin(places)} is missing: leave the row out.")
    if (rounded := first_whole_rounded(np.asarray(distinct))) is not None:
        raise ValueError(
            f"A {what} from row {first} on is {rounded!r}: such large floats do not tell a whole number from the next. "
            f"Give {what}s as whole numbers or text."
        )
    distinct = distinct.tolist()
    if any(isinstance(label, str) for label in distinct):  # which older pandas compares up to a zero byte
        values = pd.Series(labels).tolist()
        place_of = {label: k for k, label in enumerate(dict.fromkeys(values))}
        distinct, places = [*place_of], np.array([place_of[label] for label in values])
    if long := next((label for label in distinct if isinstance(label, str) and len(label) > LETTERS), None):
        raise ValueError(f"The {what} {shorten(long, 30)!r} has {len(long)} letters, of {LETTERS} at most: shorten it.")
    earliest = next(iter(codes), distinct[0])
    kinds = str if isinstance(earliest, str) else int | float
    for place, label in enumerate(distinct):
        if not isinstance(label, kinds) or codes.setdefault(label, len(codes)) == most:
            row, rule = first + np.argmax(places == place), "" if most is None else f", {most} at most"
            beside = f", the first is {earliest!r}" if isinstance(label, str | int | float) else ""
            raise ValueError(
                f"The {what} of row {row} is {label!r}{beside}: {what}s on disk must be all text or numbers "
                f"(astype(str)){rule}."
            )
    return np.array([codes[label] for label in distinct])[places]


def _floats(frame, dtype, first, largest):
    """The numbers of a frame as floats of a dtype, None for the narrowest exact one; and the largest of each column."""
    kinds = [kind.kind for kind in frame.dtypes]
    frame = frame.copy(deep=False)
    for j in (j for j, kind in enumerate(kinds) if kind not in "biuf"):
        kinds[j] = "i" if pd.api.types.infer_dtype(column := frame.iloc[:, j]) == "integer" else kinds[j]
        frame.isetitem(j, _numbers(column, first))
    values = frame.to_numpy(np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        X = values.astype(dtype or np.float32, copy=False)
    bad = ~np.isfinite(values if dtype is None else X)
    why = f"Rows must be finite numbers of {dtype or 'float64'}: fill them in, or leave the row or the column out."
    if dtype is not None and not bad.any():  # subnormal numbers are fine if the column has larger ones
        largest = np.maximum(largest, abs(X).max(axis=0))
        bad = (values != X) & (largest < np.finfo(dtype).smallest_normal)
        why = f"The numbers of its column are too small for {dtype}: take a wider dtype, or multiply the column."
    elif not bad.any():
        bad = np.isin(kinds, ["i", "u"]) & (abs(values) >= _LARGEST_EXACT)
        why = "No float64 holds it exactly. Leave an identifier out, with columns=[...]; dtype='float64' rounds it."
    if bad.any():
        row, j = np.argwhere(bad)[0]
        value = "a missing value" if np.isnan(values[row, j]) else frame.iat[row, j]
        raise ValueError(f"Column {frame.columns[j]!r} holds {value} in row {first + row}. {why}")
    return X if dtype is not None or np.array_equal(X, values) else values, largest


def _numbers(column, first):
    kind = kind_of(values := column.to_numpy(object))
    if kind == "numbers" and not isinstance(column.dtype, pd.CategoricalDtype):  # numbers of a category are names
        return np.where(pd.isna(values), np.nan, values).astype(np.float64)
    k = (column.notna() & pd.to_numeric(column, errors="coerce").isna()).argmax()
    cure = "convert it to numbers, such as days since an event," if kind == "times" else "encode it (OneHotEncoder)"
    raise ValueError(
        f"Column {column.name!r} is not numeric: its dtype is {column.dtype}, such as {column.iloc[k]!r} in row "
        f"{first + k}. Leave it out, with columns=[...], or {cure} and give frames of that as the source."
    )
