"""Labels of groups at prediction: equal ones are found whatever their type, and others are refused in words."""

from datetime import date

import numpy as np
import pytest

from skhorseshoe._data.row_groups import check_groups, check_offset, encode_groups, known_codes

NUMBERS = np.array([3, 0, 1, 1, 0])
DATES = np.datetime64("2020-01-01") + NUMBERS


@pytest.mark.parametrize(
    ("of_fit", "given"),
    [
        (NUMBERS > 0, (NUMBERS > 0).astype(int)),
        ((NUMBERS > 0).astype(int), NUMBERS > 0),
        ((NUMBERS > 0).astype(object), (NUMBERS > 0).astype(float)),
        (NUMBERS, NUMBERS.astype(np.float32)),
        (NUMBERS.astype(np.uint64) + 2**62, (NUMBERS + 2**62).astype(object)),
        (DATES, DATES.astype("M8[ns]")),
        (np.array([*"abccb"]), np.array([*"abccb"], object)),
        (np.array(["\ud800", *"accb"], object), np.array(["\ud800", *"accb"])),
    ],
)
def test_equal_labels_are_found(of_fit, given):
    groups, codes = encode_groups(check_groups(of_fit, 5))
    assert np.array_equal(known_codes(groups, check_groups(given, 5)), codes)
    assert known_codes(groups, check_groups(given[:0], 0)).shape == (0,)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.array([*"abc"], "S"), "holds bytes, and in fit it held text"),
        (NUMBERS * np.timedelta64(1, "D"), "holds durations"),
        (DATES, "holds dates"),
        ([date(2020, 1, 1)], "holds dates"),
        (NUMBERS, "holds numbers"),
    ],
)
def test_labels_of_another_kind_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        known_codes(np.array([*"abc"]), check_groups(given, len(given)))


def test_offsets_that_are_no_scores_are_refused():
    assert check_offset([1e6, -1e6, 0], 3).tolist() == [1e6, -1e6, 0]
    with pytest.raises(ValueError, match=r"row 1 is -1e\+300, and no score .*norm.ppf"):
        check_offset([0.0, -1e300], 2)
