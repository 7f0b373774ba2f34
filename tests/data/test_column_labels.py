"""Labels of columns that are no text: remembered, compared and shown, and a number that is a label means that label."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

from skhorseshoe import HorseshoeSelector, inspection
from skhorseshoe.sets import correlated_sets, credible_sets

RNG = np.random.default_rng(0)
A = RNG.standard_normal((200, 6))
Y = A[:, 2] + RNG.standard_normal(200) > 0
LABELS = {
    "numbers": pd.Index(range(1, 7)),
    "places in another order": pd.Index([3, 4, 2, 1, 0, 5]),
    "floats": pd.Index(np.arange(6) / 2),
    "levels": pd.MultiIndex.from_product([["bp", "hr"], ["min", "mean", "max"]]),
    "dates": pd.date_range("2020-01-01", periods=6),
    "periods": pd.period_range("2020-01", periods=6, freq="M"),
    "as they come": pd.RangeIndex(6),
}
every_kind = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


@pytest.fixture(scope="module")
def fit(short_fit):
    return lambda labels, **params: short_fit(pd.DataFrame(A, columns=labels), Y, n_iter=100, burn_in=100, **params)


@every_kind
def test_a_label_means_its_column_everywhere(labels, fit):
    model, frame, label = fit(labels), pd.DataFrame(A, columns=labels), labels[2]
    assert model.summary_of_sets({"one": [label]}).loc["one", "mean"] == pytest.approx(model.coef_[0, 2])
    one, every = (inspection.marginal_effects(model, frame, some) for some in ([label], None))
    assert one["mean"].tolist() == [pytest.approx(every["mean"].iloc[2], rel=1e-12)]
    assert inspection.marginal_effects(model, frame, label)["mean"].tolist() == one["mean"].tolist()
    assert np.flatnonzero(fit(labels, unpenalized=[label]).shrinkage_ == 0).tolist() == [2]
    sets = correlated_sets(frame)
    assert list(sets) == model.summary().index[:6].tolist()
    assert model.summary_of_sets(sets)["n_columns"].tolist() == [1] * 6
    assert credible_sets(model, frame).sets.index.tolist() == [model.summary().index[2]]


@every_kind
def test_labels_are_shown_as_they_are(labels, fit):
    model = pickle.loads(pickle.dumps(fit(labels)))
    shown = model.summary()
    if getattr(labels.dtype, "kind", "") in "if":
        assert shown.index[:6].tolist() == labels.tolist()
    assert str(labels[2]) in str(shown)
    parts = inspection.contributions(model, pd.DataFrame(A[:1], columns=labels), terms=None)
    assert parts.index.get_level_values("feature")[2] == shown.index[2]


@every_kind
def test_columns_in_another_order_or_number_are_refused(labels, fit):
    model, frame = fit(labels), pd.DataFrame(A, columns=labels)
    assert np.array_equal(model.predict_proba(frame), model.predict_proba(A))
    other = frame.set_axis([-1.5, *range(5)], axis=1)
    for moved in (frame[labels[::-1]], frame[labels[[0, 2, 1, 3, 4, 5]]], other):
        with pytest.raises(ValueError, match=r"not those of fit, or are in another order: number . is .* was .* in"):
            model.predict(moved)
    selector = HorseshoeSelector(model, rule="interval", prefit=True).fit(frame)
    for other in (frame[labels[:4]], pd.DataFrame(np.hstack([A, A]))):
        with pytest.raises(ValueError, match=r"has (4|12) features"):
            selector.transform(other)


def test_a_number_is_no_place_where_labels_are_numbers(fit):
    model, frame = fit(LABELS["numbers"]), pd.DataFrame(A, columns=LABELS["numbers"])
    uses = (
        lambda given: fit(LABELS["numbers"], unpenalized=[given]),
        lambda given: model.summary_of_sets({"one": [given]}),
        lambda given: inspection.marginal_effects(model, frame, given),
    )
    for use, given in itertools.product(uses, (0, -1, 7)):
        with pytest.raises(ValueError, match=f"no {given} among the 6 .*a number is a label"):
            use(given)


def test_another_fit_forgets_the_labels(fit):
    model = fit(LABELS["numbers"])
    assert model.fit(A, Y).summary().index[0] == "x0"
    assert np.isfinite(model.predict_proba(pd.DataFrame(A, columns=LABELS["levels"]))).all()


@pytest.mark.parametrize("name", ["(intercept)", "(global scale)", "(group scale)", "(total)"])
def test_a_column_may_not_have_the_name_of_another_row_of_a_table(name, fit):
    with pytest.raises(ValueError, match=r"a column named .* as a row of summary\(\) is: rename it"):
        fit(["a", "b", name, "d", "e", "f"])
