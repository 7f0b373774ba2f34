"""Observed shares beside predicted ones, by columns and groups."""

import numpy as np
import pandas as pd
import pytest
from artists import drawn, segments
from scipy import sparse
from scipy.special import ndtr
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting
from skhorseshoe._posterior import predictive_check

LABELS = np.array(["ill", "well"])


@pytest.fixture(scope="module")
def patients(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.normal(60, 10, 1500), "dose": rng.integers(0, 3, 1500), "sex": rng.integers(0, 2, 1500)}
    )
    y = (frame["age"] - 60) / 10 + 0.3 * frame["sex"] + rng.standard_normal(1500) > 0
    return frame, LABELS[y.astype(int)]


@pytest.fixture(scope="module")
def model(patients, seed):
    short = HorseshoeProbitClassifier(n_iter=100, burn_in=60, random_state=seed)
    return make_pipeline(StandardScaler().set_output(transform="pandas"), short).fit(*patients)


def by_hand(model, X, y, codes, m, seed):
    """Shares, predicted shares and a band, from the draws of the model."""
    p = ndtr(
        model[:-1].transform(X).to_numpy() @ model[-1].coef_draws_.reshape(-1, 3).T + model[-1].intercept_draws_.ravel()
    )
    drawn = np.random.default_rng(seed).random(p.shape) < p
    counts = np.bincount(codes, minlength=m)
    repeated = np.array([np.bincount(codes, one, m) for one in drawn.T]) / counts
    return np.bincount(codes, y == "well", m) / counts, np.bincount(codes, p.mean(axis=1), m) / counts, repeated


@pytest.mark.parametrize("by", ["dose", 1, "labels"])
@pytest.mark.parametrize("blocks", [False, True])
def test_shares_and_bands_are_those_of_the_draws(model, patients, by, blocks, seed, monkeypatch):
    X, y = patients
    codes = X["dose"].to_numpy()
    if blocks:
        monkeypatch.setattr(predictive_check, "_NUMBERS_AT_A_TIME", 400 * 200)
    check = inspection.predictive_check(model, X, y, codes.astype(str) if by == "labels" else by, level=0.8)
    observed, predicted, repeated = by_hand(model, X, y, codes, 3, seed)
    np.testing.assert_allclose(check["observed"], observed)
    np.testing.assert_allclose(check["predicted"], predicted, atol=1e-6)
    np.testing.assert_allclose(check[["10%", "90%"]].T, np.quantile(repeated, [0.1, 0.9], axis=0), atol=0.012)
    assert check["n"].tolist() == np.bincount(codes).tolist()
    assert check.index.tolist() == ["0", "1", "2"]
    spread, low, high = check.attrs["spread"]
    assert spread == pytest.approx(observed.std())
    assert [low, high] == pytest.approx(np.quantile(repeated.std(axis=1), [0.1, 0.9]), abs=0.008)


def test_numbers_are_cut_into_ranges_of_as_many_rows(model, patients):
    X, y = patients
    check = inspection.predictive_check(model, X, y, "age", bins=5)
    assert check["n"].tolist() == [300] * 5
    assert check.index[0].startswith(f"{X['age'].min():.4g} to ")
    for values in (X["age"], X["age"].astype("Float64"), X["age"].tolist()):
        other = inspection.predictive_check(model, X, y, values, bins=5)
        assert other.index.tolist() == check.index.tolist()
        assert other["observed"].tolist() == check["observed"].tolist()
    sites = inspection.predictive_check(model, X, y, np.arange(1500) % 12)
    assert sites.index.tolist() == [f"{site}" for site in range(12)]
    missing = inspection.predictive_check(model, X, y, X["age"].where(X["age"] > 50).round(-1))
    assert missing.index[-1] == "missing"
    assert missing["n"].sum() == len(X)


@pytest.mark.parametrize("dtype", [bool, "boolean", object])
def test_a_column_of_booleans_has_them_as_labels(model, patients, dtype):
    X = patients[0].assign(sex=patients[0]["sex"].astype(bool).astype(dtype))
    for by in ("sex", X["sex"]):
        check = inspection.predictive_check(model, X, patients[1], by)
        assert check.index.tolist() == ["False", "True"]
        assert check["n"].tolist() == np.bincount(patients[0]["sex"]).tolist()


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_are_cut_as_numbers_are(patients, zone, seed):
    X, y = patients
    days = np.random.default_rng(seed).permutation(1500)
    dates = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")).dt.tz_localize(zone).where(days > 0)
    table, number = X.assign(day=dates), np.where(days > 0, days, np.nan)
    short = HorseshoeProbitClassifier(n_iter=20, burn_in=20, random_state=seed)
    whole = make_pipeline(make_column_transformer(("passthrough", ["age"])), StandardScaler(), short).fit(table, y)
    by_number, *by_date = (inspection.predictive_check(whole, table, y, by, bins=5) for by in (number, dates, "day"))
    assert by_number["n"].tolist() == [299, 300, 300, 300, 300, 1]
    for check in by_date:
        np.testing.assert_array_equal(check, by_number)
        assert check.index[0].startswith("2020-01-02 00:00:00")
        assert check.index[-1] == "missing"


def test_a_model_that_is_right_has_its_shares_within_and_a_wrong_one_has_not(patients, model, seed):
    X, y = patients
    assert inspection.predictive_check(model, X, y, "age", level=0.99)["outside"].sum() <= 1
    rng = np.random.default_rng(seed)
    curved = LABELS[(((X["age"] - 60) / 10) ** 2 + rng.standard_normal(len(X)) > 1).astype(int)]
    wrong = make_pipeline(StandardScaler().set_output(transform="pandas"), model[-1].__class__(n_iter=60, burn_in=60))
    check = inspection.predictive_check(wrong.fit(X, curved), X, curved, "age", level=0.99)
    assert check["outside"].sum() >= 5
    assert "of 10 are outside the 99 % band" in check.attrs["header"].replace("\n", " ")


def test_groups_that_the_model_was_not_told_of_differ_more_than_they_should(seed):
    """Known groups are within; new ones have the band that their scale gives."""
    rng = np.random.default_rng(seed)
    site, X = np.arange(1200) % 12, rng.standard_normal((1200, 3))
    y = X[:, 0] + np.linspace(-1.2, 1.2, 12)[site] + rng.standard_normal(1200) > 0
    short = HorseshoeProbitClassifier(n_iter=100, burn_in=100, random_state=seed)
    check = inspection.predictive_check(short.fit(sparse.csr_array(X), y), sparse.csr_array(X), y, site)
    assert check.attrs["spread"][0] > 3 * check.attrs["spread"][2]
    told = short.fit(X, y, groups=site)
    known, new = (inspection.predictive_check(told, X, y, site, groups=site, new_groups=new) for new in (False, True))
    assert known["outside"].sum() <= 2
    low, high = new.attrs["spread"][1:]
    assert low < new.attrs["spread"][0] < high
    assert (new["95%"] - new["5%"] > 2 * (known["95%"] - known["5%"])).all()
    with pytest.warns(UserWarning, match="band is too narrow"):
        inspection.predictive_check(told, X, y, "x0")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"by": "weight"}, "'weight' is none of the columns of X, which are 'age', 'dose', 'sex'"),
        ({"by": 7}, "by=7 is none of the columns"),
        ({"by": ["a", "b"]}, r"label for each of its rows; got an array of shape \(2,\) for 1500"),
        ({"by": "age", "bins": 1}, "bins must be at least 2; got 1"),
        ({"by": "age", "n_draws": 5}, "n_draws must be at least 20"),
    ],
)
def test_what_cannot_be_is_refused(model, patients, given, says):
    with pytest.raises(ValueError, match=says):
        inspection.predictive_check(model, *patients, **given)


def test_ordered_classes_are_asked_one_by_one(patients, seed):
    X, _ = patients
    three = np.digitize(X["age"] + 5 * np.random.default_rng(seed).standard_normal(len(X)), [50, 65])
    ordered = HorseshoeProbitClassifier(ordered=True, n_iter=40, burn_in=40, standardize=True, random_state=seed)
    ordered.fit(X, three)
    with pytest.raises(ValueError, match="A predictive check is of two classes"):
        inspection.predictive_check(ordered, X, three, "sex")
    check = inspection.predictive_check(inspection.at_least(ordered, 2), X, three == 2, "sex")
    assert len(check) == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", range(3))
def test_a_class_of_new_groups_is_more_frequent_in_some(label, seed):
    """The middle one is rarer where the effect of a group is far from zero, on either side."""
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((240, 2)), np.repeat(np.arange(20), 12)
    y = np.digitize(X[:, 0] / 2 + 1.5 * rng.standard_normal(20)[groups] + rng.standard_normal(240), [-0.7, 0.8])
    model = HorseshoeProbitClassifier(ordered=True, n_iter=100, burn_in=100, random_state=seed)
    model.fit(X, y, groups=groups)
    s, cuts = model.group_scale_draws_.ravel(), model.cut_points_draws_.reshape(-1, 2)
    u = (s * rng.standard_normal((20, len(s))))[groups]
    score = X @ model.coef_draws_.reshape(-1, 2).T + u + rng.standard_normal(u.shape)
    is_one = (score[..., None] > cuts).sum(axis=-1) == label
    wanted = np.quantile(is_one.reshape(20, 12, -1).mean(axis=1).std(axis=0), [0.05, 0.95])
    one = inspection.one_vs_rest(model, label)
    check = inspection.predictive_check(one, X, y == label, groups, groups=groups, new_groups=True)
    np.testing.assert_allclose(check.attrs["spread"][1:], wanted, atol=0.03)


def test_the_display_shows_the_table(model, patients):
    pytest.importorskip("matplotlib").use("Agg")
    frame = inspection.predictive_check(model, *patients, "age")
    display = plotting.PredictiveCheckDisplay.from_frame(frame)
    assert np.array_equal(drawn(display.points_, 1), frame["observed"])
    assert np.array_equal(segments(display.lines_, 1), frame[["5%", "95%"]].to_numpy().T)
    assert np.array_equal(display.predicted_.get_xdata(), frame["predicted"])
    with pytest.raises(ValueError, match="must be a table of inspection"):
        plotting.PredictiveCheckDisplay.from_frame(frame[["observed"]])
