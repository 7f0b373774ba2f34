"""Labels of groups at prediction: equal ones are found whatever their type, and others are refused in words."""

from datetime import date, timedelta
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from skhorseshoe._data.row_groups import check_groups, check_offset, encode_groups, match_groups

NUMBERS = np.array([3, 0, 1, 1, 0])
DATES = np.datetime64("2020-01-01") + NUMBERS
LARGE = 2**53 + NUMBERS
TEXT = np.array([*"dabba"])
DAY = np.timedelta64(1, "D")
NIGHT = pd.date_range("2020-10-25 00:00", periods=4, freq="30min", tz="UTC")[NUMBERS]  # an hour that Oslo has twice
OSLO = NIGHT.tz_convert("Europe/Oslo")
Ward = Enum("Ward", ["A", "B", "C", "D"])


@pytest.mark.parametrize(
    ("of_fit", "given"),
    [
        (NUMBERS > 0, (NUMBERS > 0).astype(int)),
        ((NUMBERS > 0).astype(int), NUMBERS > 0),
        ((NUMBERS > 0).astype(object), (NUMBERS > 0).astype(float)),
        (NUMBERS, NUMBERS.astype(np.float32)),
        (NUMBERS.astype(np.uint64) + 2**62, (NUMBERS + 2**62).astype(object)),
        (LARGE, pd.Series(LARGE, dtype="Int64")),
        (LARGE, pd.DataFrame({"id": pd.Series(LARGE, dtype=pd.ArrowDtype(pa.int64()))})),
        (LARGE.astype(np.uint64), [np.int64(k) for k in LARGE]),
        (-LARGE, pl.Series(-LARGE)),
        (2**53 - 1 - NUMBERS, (2**53 - 1 - NUMBERS).astype(float)),
        (DATES, DATES.astype("M8[ns]")),
        (DATES.astype("M8[s]"), DATES.tolist()),
        (DATES.tolist(), DATES.astype("M8[us]").tolist()),
        (DATES.astype("M8[ns]") + 1, pd.Series(DATES.astype("M8[ns]") + 1)),
        (NUMBERS + np.datetime64("1000", "Y"), (NUMBERS + np.datetime64("1000", "Y")).astype("M8[h]")),
        (NIGHT, OSLO),
        (OSLO, NIGHT.tz_convert("Asia/Kolkata").tolist()),
        ([*OSLO[:2], *NIGHT[2:]], [stamp.to_pydatetime() for stamp in OSLO]),
        (OSLO, pl.Series(NIGHT.to_pydatetime().tolist())),
        (pa.array(OSLO.tolist()), pd.DataFrame({"time": NIGHT})),
        (NUMBERS * DAY, (NUMBERS * DAY).astype("m8[ns]")),
        (NUMBERS * DAY, [timedelta(days=int(k)) for k in NUMBERS]),
        (pd.PeriodIndex(DATES, freq="D"), pd.PeriodIndex(DATES, freq="D").tolist()),
        ([Decimal(int(k)) for k in NUMBERS], np.array([Decimal(int(k)) for k in NUMBERS])),
        (pd.Series([("a", k) for k in NUMBERS]), pd.MultiIndex.from_product([["a"], NUMBERS])),
        (TEXT, pd.Categorical(TEXT, [*"dcba"])),
        (TEXT, pd.Series(TEXT, dtype="string")),
        (pd.Series(TEXT, dtype=pd.ArrowDtype(pa.string())), [*TEXT]),
        (TEXT, pl.DataFrame({"patient": TEXT.tolist()})),
        (pa.table({"patient": TEXT.tolist()}), pa.array(TEXT.tolist()).dictionary_encode()),
        (TEXT.astype("S"), [label.encode() for label in TEXT]),
        (np.array([*"abccb"]), np.array([*"abccb"], object)),
        (np.array(["\ud800", *"accb"], object), np.array(["\ud800", *"accb"])),
    ],
)
def test_equal_labels_are_found(of_fit, given):
    groups, codes = encode_groups(check_groups(of_fit, 5))
    matched = match_groups(groups, check_groups(given, 5), False)
    assert np.array_equal(matched.codes, codes)
    assert np.array_equal(matched.own, codes)
    assert matched.counts == (len(groups), len(groups))
    none = match_groups(groups, check_groups(given, 5), True)
    assert (none.codes == -1).all()
    assert np.array_equal(none.own, codes)
    assert match_groups(groups, check_groups(given[:0], 0), False).counts == (0, 0)


@pytest.mark.parametrize(
    ("of_fit", "given"),
    [
        (LARGE, (LARGE + 4).astype(object)),
        (LARGE.astype(np.uint64) + 2**63, LARGE),
        (NUMBERS, (NUMBERS - 5).astype(np.uint64)),
        (NUMBERS, NUMBERS + 0.5),
        (DATES.astype("M8[ns]") + 1, DATES),
        (OSLO, OSLO + pd.Timedelta("1s")),
        (np.array(["a", "b"]), np.array(["a\0", "b "], object)),
        (TEXT, np.array([" a", "A", "\u00e1"])),
    ],
)
def test_labels_that_differ_are_of_other_groups(of_fit, given):
    groups, _ = encode_groups(check_groups(of_fit, len(of_fit)))
    matched = match_groups(groups, check_groups(given, len(given)), False)
    assert (matched.codes == -1).all()
    assert matched.counts[0] == 0


@pytest.mark.parametrize(
    ("of_fit", "given", "words"),
    [
        (TEXT, np.array([*"abc"], "S"), "holds bytes, and in fit it held text"),
        (TEXT, NUMBERS * DAY, "holds durations"),
        (TEXT, DATES, "holds dates"),
        (TEXT, [date(2020, 1, 1)], "holds dates"),
        (TEXT, NUMBERS, "holds numbers, and in fit it held text"),
        (NUMBERS, NUMBERS.astype(str), "holds text, and in fit it held numbers"),
        (NUMBERS, [Decimal(3)], "holds labels of type Decimal, and in fit it held numbers"),
        (NIGHT, NIGHT.tz_localize(None), "without a zone, and in fit it held times with a zone.* tz_localize"),
        (NIGHT.tz_localize(None), OSLO, "times with a zone, and in fit it held dates or times without"),
        (pd.PeriodIndex(DATES, freq="D"), pd.PeriodIndex(DATES, freq="M"), "of the frequency M, and .* frequency D"),
    ],
)
def test_labels_of_another_kind_are_refused_unless_all_groups_are_new(of_fit, given, words):
    groups, labels = encode_groups(check_groups(of_fit, 5))[0], check_groups(given, len(given))
    with pytest.raises(ValueError, match=words):
        match_groups(groups, labels, False)
    assert (match_groups(groups, labels, True).codes == -1).all()


TWO = {"ward": NUMBERS, "patient": TEXT.tolist()}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (LARGE.astype(float), r"holds 9007199254740996\.0, and such large floats \(float64\) .* Give whole numbers"),
        (pd.Series(LARGE, dtype="Float64"), "such large floats"),
        ((2**24 + NUMBERS).astype(np.float32), r"such large floats \(float32\)"),
        ([-(2.0**53), 1, 0, 0, 1], "such large floats"),
        ([2**53 + 1, 0.5, 1, 1, 1], "too large for an array to tell apart"),
        ([np.int64(2**53 + 1), np.float64(0.5), 1, 1, 1], "too large for an array to tell apart"),
        ([np.uint64(2**63 + 1), np.int64(-1), 1, 1, 1], "too large for an array to tell apart"),
        ([2**64, 2**64 + 1, 1, 1, 1], "too large for an array to tell apart"),
        ([*NIGHT[:4], pd.Timestamp("2020")], "time stamps with a time zone and without"),
        (pd.DataFrame(TWO), r"a table of 2 columns: give one of them, such as groups=frame\['ward'\]"),
        (pl.DataFrame(TWO), "a table of 2 columns"),
        (pa.table(TWO), "a table of 2 columns"),
        (np.c_[NUMBERS, NUMBERS], "an array of 2 columns"),
        ([("a", 1)] * 5, "a list of 2 columns: .* or a text that joins them"),
        ([[1], [1, 2], [3], [3], [1]], r"labels of type list, which have no order\. Give one for each row"),
        (pd.Series([[1, 2]] * 5), "labels of type list"),
        (pd.Series([{"a": 1}] * 5), "labels of type dict"),
        (pd.Series([frozenset({k}) for k in NUMBERS]), "labels of type frozenset"),
        ([*Ward, Ward.A], r"labels of type Ward, which have no order\. .*\[label\.name for label in groups\]"),
        (np.array([1j, 2j, 1j, 2j, 1j], object), "labels of type complex"),
        ({k: "a" for k in range(5)}, "groups is of type dict: give one label for each row"),
        ((k for k in NUMBERS), "groups is of type generator"),
        (csr_array(NUMBERS[:, None]), "groups is of type csr_array"),
        ("ward", r"groups is 'ward': .* groups=frame\['ward'\]"),
        (5, "groups is 5: give one label"),
    ],
)
def test_what_is_no_label_for_each_row_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        encode_groups(check_groups(given, 5))


def test_an_offset_is_one_column():
    assert check_offset(pd.DataFrame({"score": NUMBERS}), 5).tolist() == NUMBERS.tolist()
    with pytest.raises(ValueError, match=r"offset is a table of 2 columns: .*such as offset=frame\['ward'\]\.$"):
        check_offset(pd.DataFrame(TWO), 5)
    with pytest.raises(ValueError, match=r"offset is 0.5: give one number for each row"):
        check_offset(0.5, 5)


def test_offsets_that_are_no_scores_are_refused():
    assert check_offset([1e6, -1e6, 0], 3).tolist() == [1e6, -1e6, 0]
    with pytest.raises(ValueError, match=r"row 1 is -1e\+300, and no score .*norm.ppf"):
        check_offset([0.0, -1e300], 2)
