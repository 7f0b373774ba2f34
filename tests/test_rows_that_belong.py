"""Groups of rows and offsets: what ``fit`` takes, what is predicted of new groups and of known ones, routing."""

import pickle
from copy import copy
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import skops.io
from laws import agree, all_draws
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.weights import arrange
from skhorseshoe.inspection import loo, predict_interval, predict_proba_samples

SHORT = HorseshoeProbitClassifier(n_iter=30, burn_in=100, n_chains=2, random_state=0)
QUICK = clone(SHORT).set_params(sampler="gibbs", n_iter=5, burn_in=5)  # where the sampler is no matter
OURS = "skhorseshoe._classifier.HorseshoeProbitClassifier"


@pytest.fixture(params=[1, 3])
def model(request, of_patients):
    """With effects that are kept of every draw, or of every third one."""
    model, stride = copy(of_patients), request.param
    draws = of_patients.group_effect_draws_
    rng = np.random.default_rng(1)
    n = model.intercept_draws_.shape[1] // stride
    model.group_effect_draws_ = draws.mean(axis=(0, 1)) + 0.3 * rng.standard_normal((3, n, 60)).astype(np.float32)
    model._group_stride = stride
    return model


def by_hand(model, X, groups):
    """Probabilities under each draw: of a new group (n, m), and of the row's own (n, k)."""
    coef, s = model.coef_draws_, model.group_scale_draws_[..., None]
    eta = coef @ X.to_numpy().T + model.intercept_draws_[..., None]
    stride = model._group_stride
    own = eta[:, stride - 1 :: stride] + model.group_effect_draws_[..., np.searchsorted(model.groups_, groups)]
    return [np.moveaxis(norm.cdf(z), -1, 0).reshape(len(X), -1) for z in (eta / np.sqrt(1 + s**2), own)]


def test_new_groups_are_averaged_over_and_known_ones_have_their_effect(model, visits):
    X, _, groups = visits
    new, own = (draws.mean(axis=1) for draws in by_hand(model, X, groups))
    assert abs(new - own).max() > 0.2
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], new, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X, groups=groups)[:, 1], own, rtol=1e-12)
    is_new = np.arange(600) % 3 == 0
    mixed = model.predict_proba(X, np.where(is_new, "another", groups))
    np.testing.assert_allclose(mixed[:, 1], np.where(is_new, new, own), rtol=1e-12)
    assert np.array_equal(mixed[is_new], model.predict_proba(X)[is_new])
    assert np.array_equal(mixed[:50], model.predict_proba(X[:50], np.where(is_new, "another", groups)[:50]))
    assert np.array_equal(model.predict(X, groups), own > 0.5)
    np.testing.assert_allclose(model.predict_log_proba(X, groups), np.log(model.predict_proba(X, groups)))
    np.testing.assert_allclose(norm.cdf(model.decision_function(X, groups)), own, rtol=1e-9)


def test_intervals_and_samples_are_of_new_groups_and_of_known_ones(model, visits):
    X, _, groups = visits
    new, own = by_hand(model, X, groups)
    ends = [0.1, 0.9]
    np.testing.assert_allclose(model.predict_interval(X, 0.8), np.quantile(new, ends, axis=1).T, rtol=1e-9)
    np.testing.assert_allclose(predict_interval(model, X, 0.8, groups), np.quantile(own, ends, axis=1).T, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba_samples(X), new, rtol=1e-12)
    np.testing.assert_allclose(predict_proba_samples(model, X, groups=groups), own, rtol=1e-12)
    is_new = np.arange(600) % 2 == 0
    mixed = model.predict_proba_samples(X, groups=np.where(is_new, "another", groups))
    stride = model._group_stride
    same = new.reshape(600, 3, -1)[:, :, stride - 1 :: stride].reshape(600, -1)  # draws for all rows
    np.testing.assert_allclose(mixed, np.where(is_new[:, None], same, own), rtol=1e-12)
    few = model.predict_proba_samples(X, 30, groups)
    assert few.shape == (600, 30)
    assert all(((own[0] - value) ** 2).min() < 1e-20 for value in few[0])


@pytest.mark.parametrize(
    "kind",
    [
        lambda g: g.tolist(),
        lambda g: np.array([int(name[1:]) for name in g]),
        lambda g: np.array([int(name[1:]) for name in g], np.float32) / 2,
        lambda g: pd.Series(g, dtype="category"),
        lambda g: pd.Series([int(name[1:]) for name in g], dtype="Int16"),
        lambda g: g.astype(object),
        lambda g: pd.DataFrame({"patient": g}),
        lambda g: pd.Series(g, dtype="string"),
        pl.Series,
        pa.array,
        lambda g: np.datetime64("2020-01-01") + np.array([int(name[1:]) for name in g]),
    ],
)
@pytest.mark.filterwarnings("error:A column-vector y")
def test_labels_of_groups_may_be_of_any_type(visits, kind):
    X, y, groups = visits
    expected = clone(QUICK).fit(X, y, groups=groups)
    model = clone(QUICK).fit(X, y, groups=kind(groups))
    assert np.array_equal(model.coef_draws_, expected.coef_draws_)
    assert len(model.groups_) == 60
    assert (model.groups_[1:] > model.groups_[:-1]).all()
    assert np.array_equal(model.predict_proba(X, kind(groups)), expected.predict_proba(X, groups))


def test_one_group_tells_nothing_of_groups(visits):
    X, y, _ = visits
    with pytest.warns(UserWarning, match=r"groups has one label for all rows, .*\(group_scale\)\. Leave groups out"):
        clone(QUICK).fit(X, y, groups=["all"] * 600)


def test_two_groups_by_booleans(visits):
    X, y, groups = visits
    with pytest.warns(UserWarning, match="2 different labels: so few hardly tell"):
        model = clone(QUICK).fit(X, y, groups=groups < "p30")
    assert model.groups_.tolist() == [False, True]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"groups": ["a", "b"]}, ValueError, r"groups has the shape \(2,\), and X has 600 rows"),
        ({"groups": "patient"}, ValueError, "groups is 'patient': give one label for each row"),
        ({"groups": [None] * 600}, ValueError, "label of row 0 in groups is missing"),
        ({"groups": [*range(599), np.nan]}, ValueError, "label of row 599 in groups is missing"),
        ({"groups": np.arange(600)}, ValueError, "600 labels for 600 rows: no two rows belong together"),
        ({"groups": [1] * 300 + ["a"] * 300}, ValueError, "groups holds int and str"),
        ({"offset": np.zeros(5)}, ValueError, r"offset has the shape \(5,\), and X has 600 rows"),
        ({"offset": [np.inf] * 600}, ValueError, "that of row 0 is inf"),
        ({"offset": ["a"] * 600}, ValueError, "offset must be numbers"),
    ],
)
def test_what_cannot_be_a_group_or_an_offset(visits, wrong, error, words):
    X, y, _ = visits
    with pytest.raises(error, match=words):
        clone(SHORT).fit(X, y, **wrong)


@pytest.mark.parametrize(("params", "words"), [({"sampler": "pxda"}, "sampler='hmc'"), ({"device": "cuda"}, "'cpu'")])
@pytest.mark.parametrize("given", [{"groups": np.arange(600) // 10}, {"offset": np.zeros(600)}])
def test_where_there_are_no_groups_or_offsets(visits, params, words, given):
    X, y, _ = visits
    with pytest.raises(ValueError, match=f"{next(iter(given))}.*{words}"):
        clone(SHORT).set_params(**params).fit(X, y, **given)


def test_dask_has_no_groups(visits, of_patients):
    da = pytest.importorskip("dask.array")
    X, y, groups = visits
    lazy = da.from_array(X.to_numpy(), chunks=100)
    with pytest.raises(TypeError, match="groups goes with rows in the memory"):
        clone(SHORT).fit(lazy, da.from_array(y, chunks=100), groups=groups)
    for ask in (of_patients.predict_proba, of_patients.predict):
        with pytest.raises(TypeError, match="groups goes with rows in the memory"):
            ask(lazy, groups)
    new = of_patients.predict_proba(lazy).compute(scheduler="synchronous")
    assert np.array_equal(new, of_patients.predict_proba(X.to_numpy()))


def test_predictions_need_what_the_fit_had(visits, of_patients):
    X, y, groups = visits
    plain, shifted = clone(QUICK).fit(X, y), clone(QUICK).fit(X, y, offset=np.ones(600))
    with pytest.raises(ValueError, match="fitted without groups"):
        plain.predict_proba(X, groups)
    with pytest.raises(ValueError, match=r"row 1 in groups is missing: .* give any label that the fit has not"):
        of_patients.predict_proba(X[:2], ["p03", None])
    with pytest.raises(ValueError, match="fitted without an offset"):
        plain.predict(X, offset=np.ones(600))
    with pytest.raises(ValueError, match=r"a number for each row \(np.zeros\(len\(X\)\) for none\)\. scikit-learn's"):
        shifted.predict_interval(X)
    with pytest.raises(ValueError, match="groups holds numbers, and in fit it held text"):
        of_patients.predict_proba(X, np.arange(600))
    with pytest.raises(ValueError, match="groups has the shape"):
        of_patients.predict_proba(X, groups[:5])
    with pytest.raises(ValueError, match="GroupKFold"):
        loo(of_patients, X, y)
    eta = shifted.coef_draws_ @ X.to_numpy().T + shifted.intercept_draws_[..., None] + np.linspace(-1, 1, 600)
    expected = norm.cdf(eta).mean(axis=(0, 1))
    np.testing.assert_allclose(shifted.predict_proba(X, offset=np.linspace(-1, 1, 600))[:, 1], expected, rtol=1e-12)


def test_an_offset_shifts_the_intercept(visits, seed):
    """A constant offset is no news: the intercept takes it back, but for its wide prior."""
    X, y, _ = visits
    long = clone(SHORT).set_params(n_iter=400, n_chains=4, random_state=seed)
    plain, shifted = long.fit(X, y), clone(long).fit(X, y, offset=np.full(600, 2.0))
    error = 5 * plain.intercept_draws_.std() / 10
    assert abs(shifted.intercept_[0] + 2 - plain.intercept_[0]) < error


@pytest.mark.parametrize("by", ["weights", "classes"])
def test_rows_of_weight_0_take_their_groups_along(visits, by):
    X, y, groups = visits
    weight = (groups != "p07").astype(float)
    params = {"class_weight": {False: 2, True: 1}} if by == "classes" else {}
    model = clone(QUICK).set_params(**params).fit(X, y, weight, groups)
    kept = weight > 0
    expected = clone(QUICK).set_params(**params).fit(X[kept], y[kept], groups=groups[kept])
    assert "p07" not in model.groups_
    assert np.array_equal(model.groups_, expected.groups_)
    assert np.array_equal(model.coef_draws_, expected.coef_draws_)
    assert np.array_equal(model.group_effect_draws_, expected.group_effect_draws_)


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_are_merged_within_a_group_alone(sampler, kind):
    X, y = kind(np.array([[1.0], [1.0], [1.0], [2.0]])), np.array([1, 1, 1, 0], np.uint8)
    codes, offset = np.array([1, 0, 1, 0], np.int32), np.array([0.5, 0.5, 0.5, 0.0])
    A, b, weight, c, o = arrange(X, y, None, sampler, (codes, offset))
    A = A.toarray() if sp.issparse(A) else A
    if sampler == "hmc":
        assert weight.tolist() == [1.0, 2.0, 1.0]
        assert list(zip(A[:, 0], b, c, o, strict=True)) == [(1, 1, 0, 0.5), (1, 1, 1, 0.5), (2, 0, 0, 0)]
    else:
        assert list(zip(A[:, 0], b, c, strict=True)) == [(1, 1, 0), (1, 1, 1), (1, 1, 1), (2, 0, 0)]
    *_, weight, c, o = arrange(X, y, None, "hmc", (None, np.arange(4.0)))
    assert (weight, c) == (None, None)
    *_, repeated, _ = arrange(X, y, np.array([1.0, 2.0, 1.0, 3.0]), "gibbs", (codes, offset))
    assert repeated.tolist() == [0, 0, 1, 1, 0, 0, 0]


def test_too_many_columns_for_a_factor_are_for_hmc(seed):
    X, group = np.random.default_rng(seed).standard_normal((40, 8001)), np.arange(40) // 4
    with pytest.raises(ValueError, match="sampler='gibbs' does not take groups with so many columns"):
        clone(SHORT).set_params(sampler="gibbs").fit(X, X[:, 0] > 0, groups=group)


def test_samplers_agree_on_groups(visits):
    X, y, groups = visits
    draws = []
    for sampler, n_iter, burn_in in (("hmc", 400, 100), ("gibbs", 1400, 50)):
        model = HorseshoeProbitClassifier(sampler=sampler, n_iter=n_iter, burn_in=burn_in, random_state=0)
        model.fit(X, y, groups=groups)
        log_scale = np.log(model.group_scale_draws_)[..., None]
        draws.append(np.concatenate([all_draws(model), log_scale, model.group_effect_draws_], axis=2))
    agree(*draws, level=5)


def test_short_burn_in_is_for_gibbs(visits):
    X, y, groups = visits
    assert clone(SHORT).set_params(burn_in=20).fit(X, y, groups=groups).sampler_ == "gibbs"


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_may_outnumber_rows(kind, seed):
    rng = np.random.default_rng(seed)
    X, group = rng.standard_normal((60, 70)) * (rng.random((60, 70)) < 0.3), np.arange(60) // 4
    y = X[:, 0] + rng.standard_normal(15)[group] + rng.standard_normal(60) > 0
    model = clone(SHORT).fit(kind(X), y, groups=group)
    assert model.sampler_ == "hmc"
    assert model.group_effect_draws_.shape == (2, 30, 15)
    assert model.predict_proba(kind(X), group).shape == (60, 2)


def test_the_order_of_the_rows_is_nothing(visits, seed):
    X, y, groups = visits
    order = np.random.default_rng(seed).permutation(600)
    one, other = clone(QUICK).fit(X, y, groups=groups), clone(QUICK).fit(X.iloc[order], y[order], groups=groups[order])
    assert np.array_equal(one.coef_draws_, other.coef_draws_)
    assert np.array_equal(one.group_effect_draws_, other.group_effect_draws_)


def test_an_order_of_labels_that_differs_is_told(visits, of_patients):
    X, y, groups = visits
    labels = pd.Series(groups)[::-1]
    for use in partial(clone(QUICK).fit, X, y), partial(of_patients.predict, X):
        for given, name in ((labels, "groups"), ({"patient": labels}, r"groups\['patient'\]")):
            with pytest.warns(UserWarning, match=f"X and {name} have the same index labels in another order"):
                use(groups=given)


def test_a_fit_without_groups_forgets_those_before(visits):
    X, y, groups = visits
    model = clone(QUICK).fit(X, y, groups=groups, offset=np.zeros(600)).fit(X, y)
    assert not [name for name in vars(model) if "groups" in name or "offset" in name or "group_effect" in name]
    expected = clone(QUICK).fit(X, y)
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_a_saved_model_predicts_the_same(visits, of_patients):
    X, _, groups = visits
    copies = [pickle.loads(pickle.dumps(of_patients))]
    copies.append(skops.io.loads(skops.io.dumps(of_patients), trusted=[OURS]))
    for loaded in copies:
        assert np.array_equal(loaded.predict_proba(X, groups), of_patients.predict_proba(X, groups))
    for name in ("group_scale_draws_", "group_effect_draws_", "group_effect_moments_", "_group_stride"):
        state = of_patients.__getstate__()
        del state[name]
        with pytest.raises(ValueError, match=f"damaged.*lacks {name}"):
            clone(of_patients).__setstate__(state)
    for name, wrong in [("groups_", ["a"]), ("_group_stride", 1000), ("group_scale_draws_", np.ones(3))]:
        with pytest.raises(ValueError, match=r"damaged.*groups_ cannot be right"):
            clone(of_patients).__setstate__({**of_patients.__getstate__(), name: wrong})


def test_a_column_of_names_points_to_groups(visits):
    X, y, groups = visits
    with pytest.raises(
        ValueError, match=r"Column 'patient' is not numeric.* give it as groups: fit\(X, y, groups="
    ) as told:
        clone(SHORT).fit(X.assign(patient=groups), y)
    assert "OneHotEncoder" in str(told.value)
    with pytest.raises(ValueError, match="Column 'sex' is not numeric") as told:
        clone(SHORT).fit(X.assign(sex=np.where(y, "f", "m")), y)
    assert "groups" not in str(told.value)


def test_a_run_that_was_stopped_goes_on_with_its_groups_alone(visits, stop_at, tmp_path):
    X, y, groups = visits
    model = clone(SHORT).set_params(checkpoint=tmp_path / "run")  # which is written where an error ends the run
    stop_at(120, RuntimeError("the end"))
    with pytest.raises(RuntimeError, match="the end"):
        model.fit(X, y, groups=groups)
    for changed in ({"groups": np.roll(groups, 1)}, {}, {"groups": groups, "offset": np.ones(600)}):
        with pytest.raises(ValueError, match="holds another run"):
            model.fit(X, y, **changed)
    with pytest.raises(ValueError, match=r"holds another run.*group_scale"):
        clone(model).set_params(group_scale=2.0).fit(X, y, groups=groups)


def test_warm_start_goes_on_with_the_same_groups_alone(visits):
    X, y, groups = visits
    model = clone(SHORT).set_params(warm_start=True, n_iter=15).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="have changed since"):
        model.fit(X, y, groups=np.roll(groups, 1))


def test_metadata_are_routed(visits):
    X, y, groups = visits
    with config_context(enable_metadata_routing=True):
        asked = clone(QUICK).set_fit_request(groups=True, offset=True)
        asked = asked.set_predict_proba_request(groups=True, offset=True).set_score_request(groups=True, offset=True)
        model = make_pipeline(StandardScaler(), asked).fit(X, y, groups=groups, offset=np.zeros(600))
        own = model.predict_proba(X, groups=groups, offset=np.ones(600))
        rows = StandardScaler().fit_transform(X)
        assert np.array_equal(own, model[-1].predict_proba(rows, groups, np.ones(600)))
        assert model.score(X, y, groups=groups, offset=np.zeros(600)) > 0.6
        for name in ("predict", "predict_log_proba", "decision_function"):
            getattr(asked, f"set_{name}_request")(groups=True, offset=True)


def test_a_search_fits_with_groups_only_where_they_are_routed(visits, said):
    """GroupKFold takes groups from a search; without routing no fit is told of them, which its columns may show."""
    X, y, groups = visits
    order = np.argsort(groups, kind="stable")
    X, y, groups = X.iloc[order], y[order], groups[order]
    grid = {"expected_nonzero": [1, 2]}
    unrouted = GridSearchCV(clone(QUICK), grid, cv=GroupKFold(2))
    assert any("Column 'age' keeps its value" in words for words in said(unrouted, X, y, groups=groups))
    assert not hasattr(unrouted.best_estimator_, "groups_")
    with config_context(enable_metadata_routing=True):
        asked = clone(QUICK).set_fit_request(groups=True).set_score_request(groups=False)
        routed = GridSearchCV(asked, grid, cv=GroupKFold(2))
        assert not any("keeps its value" in words for words in said(routed, X, y, groups=groups))
        found = cross_validate(
            asked, X, y, params={"groups": groups}, cv=GroupKFold(2), return_estimator=True, return_indices=True
        )
    assert len(routed.best_estimator_.groups_) == 60
    for model, rows in zip(found["estimator"], found["indices"]["train"], strict=True):
        assert set(model.groups_) == set(groups[rows])
