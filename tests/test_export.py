"""Models as ONNX: run by onnxruntime, they give the probabilities and the labels of the model."""

import sys
from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from skhorseshoe import HorseshoeProbitClassifier, export
from skhorseshoe._posterior import onnx_converters
from skhorseshoe._posterior.grouped_prediction import evenly
from skhorseshoe.export import to_onnx
from skhorseshoe.inspection import at_least, one_vs_rest, with_prevalence

onnxruntime = pytest.importorskip("onnxruntime", reason="runs models of ONNX, an optional library")
SHORT = {"n_iter": 40, "burn_in": 20, "random_state": 0}


def run(graph, inputs):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def assert_same(model, X, graph, inputs=None, rtol=1e-10):
    label, probabilities = run(graph, {"X": X} if inputs is None else inputs)
    assert np.array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=rtol, atol=1e-290)


@pytest.mark.parametrize("labels", [None, (False, True), ("no", "yes"), (1.0, 2.0)])
def test_probabilities_and_labels_are_those_of_the_model(problem, fitted, labels):
    """Rows far out have small probabilities, which keep their digits."""
    model, X = copy(fitted), np.vstack([problem[0] * size for size in (1, 30, 1e9)])
    model.classes_ = fitted.classes_ if labels is None else np.array(labels)
    graph = to_onnx(model)
    assert_same(model, X, graph)
    assert [output.name for output in graph.graph.output] == ["label", "probabilities"]
    assert {entry.key: entry.value for entry in graph.metadata_props}["columns"].split() == [f"x{j}" for j in range(8)]
    for n in (0, 1):
        assert run(graph, {"X": X[:n]})[1].shape == (n, 2)


@pytest.mark.parametrize("n_draws", [3, 100, 10_000])
def test_fewer_draws_are_those_of_samples(problem, fitted, n_draws):
    X, expected = problem[0], fitted.predict_proba_samples(problem[0], max_draws=n_draws).mean(axis=1)
    np.testing.assert_allclose(run(to_onnx(fitted, n_draws=n_draws), {"X": X})[1][:, 1], expected, rtol=1e-10)


@pytest.mark.parametrize("n_draws", [None, 30])
def test_ordered_classes(problem, short_fit, n_draws):
    X, y = problem[0], np.array(["low", "mid", "high", "top"])[np.digitize(problem[0][:, 0], [-0.8, 0.1, 1.2])]
    y = np.random.default_rng(0).permuted(y.reshape(20, 10), axis=0).ravel()
    model = short_fit(X, y, ordered=["low", "mid", "high", "top"], draws_dtype="float32")
    fewer = copy(model)
    for name in ("coef_draws_", "intercept_draws_", "_own_draws"):
        setattr(fewer, name, evenly(getattr(model, name), n_draws))
    far = np.vstack([X, 20 * X])
    assert_same(fewer, far, to_onnx(model, n_draws=n_draws))
    part = at_least(model, "high")
    assert_same(part, far, to_onnx(part))


@pytest.mark.parametrize("n_draws", [None, 30])
@pytest.mark.parametrize("n_classes", [3, 8])
def test_several_classes(n_classes, n_draws, short_fit, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    X, coef = rng.standard_normal((160, 4)), 2 * rng.standard_normal((n_classes, 4))
    y = np.array(list("hgfedcba"))[(X @ coef.T + rng.standard_normal((160, n_classes))).argmax(axis=1)]
    model = make_pipeline(StandardScaler(), short_fit(X, y, draws_dtype="float32", n_iter=30))
    model[0].fit(X)
    far = np.vstack([X[:40], 30 * X[:40], 1e9 * X[:40]])
    graph = to_onnx(model, n_draws=n_draws)
    assert run(graph, {"X": far[:0]})[1].shape == (0, n_classes)
    label, probabilities = run(graph, {"X": far})
    wanted = model[-1].predict_proba_samples(model[0].transform(far), max_draws=n_draws).mean(axis=1)
    np.testing.assert_allclose(probabilities, wanted, atol=1e-8)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert np.array_equal(label, model.classes_[wanted.argmax(axis=1)])
    monkeypatch.setattr(export, "_MOST_BYTES", 8 * 4 * n_classes * 20)
    with pytest.raises(ValueError, match=rf"draws of {4 * n_classes} coefficients .* give n_draws=20 or less"):
        to_onnx(model)
    assert to_onnx(model, n_draws=20).graph.node
    with pytest.raises(ValueError, match="takes the model of all classes"):
        to_onnx(one_vs_rest(model, "h"))


def test_another_share_of_events(problem, fitted):
    corrected = with_prevalence(fitted, 0.003)
    label, probabilities = run(to_onnx(corrected), {"X": problem[0]})
    np.testing.assert_allclose(probabilities, corrected.predict_proba(problem[0]), rtol=1e-9, atol=1e-13)
    assert np.array_equal(label, corrected.predict(problem[0]))


def test_pipelines(patients, seed):
    X, y = patients
    X = X.assign(site=np.random.default_rng(seed).choice(["Oslo", "Rome", "Bergen"], len(X)))
    encode = make_column_transformer(
        (StandardScaler(), ["age", "dose", "sex"]), (OneHotEncoder(sparse_output=False), ["site"])
    )
    table = make_pipeline(encode, HorseshoeProbitClassifier(**SHORT)).set_output(transform="pandas").fit(X, y)
    graph = to_onnx(table, X)
    columns = {name: X[[name]].to_numpy(object if name == "site" else None) for name in X}
    assert [entry.name for entry in graph.graph.input] == list(X)
    assert_same(table, X, graph, columns)
    scaled = make_pipeline(StandardScaler(), HorseshoeProbitClassifier(**SHORT)).fit(X[["age", "dose"]].to_numpy(), y)
    numbers = X[["age", "dose"]].to_numpy()
    assert_same(scaled, numbers, to_onnx(scaled, n_draws=1000))
    single = numbers.astype(np.float32)
    assert_same(scaled, single, to_onnx(scaled, single), rtol=1e-5)  # scaled in float32


def columns_of(X):
    """The columns of a frame as a server sends them: strings, booleans, whole numbers, or floats with nan."""
    plain = {"Int64": float, "boolean": float, "str": object, "category": object}
    return {name: X[[name]].astype(plain.get(str(X[name].dtype), X[name].dtype)).to_numpy() for name in X}


def fitted_steps(steps, X):
    y = np.random.default_rng(0).permuted(np.arange(len(X)) % 2)
    return make_pipeline(steps, HorseshoeProbitClassifier(**SHORT)).fit(X, y)


SCALERS = [StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False), MaxAbsScaler()]
SCALERS += [MinMaxScaler(), MinMaxScaler((-1, 2), clip=True), RobustScaler(), RobustScaler(with_centering=False)]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_columns_of_several_types_are_scaled_in_float64(scaler, seed):
    """float32 would lose most of what differs between these times."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"opened": rng.normal(1.7e9, 1e4, 120), "age": rng.integers(20, 80, 120), "male": rng.random(120) < 0.5}
    )
    model = fitted_steps(scaler, X)
    X.loc[0] = [1.8e9, 200, True]  # clipped by some
    assert_same(model, X, to_onnx(model, X[1:]), columns_of(X), rtol=1e-9)


def test_inputs_have_the_names_of_the_columns(patients, seed):
    """Also where skl2onnx gives others, or these to values within the graph."""
    X, y = patients
    X = (
        X[["age", "dose", "sex"]]
        .set_axis(["debt/income", "debt_income", "variable"], axis=1)
        .assign(label=y, other=1.0)
    )
    model = make_pipeline(make_column_transformer((StandardScaler(), [1, 0, 2])), HorseshoeProbitClassifier(**SHORT))
    with pytest.raises(ValueError, match=r"X has a column 'label', and so is an output .* leave it out of X"):
        to_onnx(model.fit(X, y), X)
    graph = to_onnx(model, X.drop(columns="label"))
    assert [entry.name for entry in graph.graph.input] == ["debt/income", "debt_income", "variable", "other"]
    assert_same(model, X.drop(columns="label"), graph, columns_of(X.drop(columns="label")))


@pytest.mark.parametrize("dtype", ["float64", "float32", "Int64"])
@pytest.mark.parametrize("code", [np.nan, -9])
@pytest.mark.parametrize("scaler", [[StandardScaler()], []])
def test_missing_values_are_filled_in_and_marked(scaler, code, dtype, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.integers(0, 9, 120) for name in "abc"}).astype(dtype)
    for name in "ac":
        X.loc[rng.random(120) < 0.2, name] = pd.NA if dtype == "Int64" and code != code else code
    imputer = SimpleImputer(add_indicator=True, missing_values=code)
    model = fitted_steps(make_column_transformer((make_pipeline(imputer, *scaler), ["b", "c", "a"])), X)
    assert model[:-1].transform(X).shape[1] == 5
    assert_same(model, X, to_onnx(model, X), columns_of(X), rtol=1e-10 if dtype != "float32" else 1e-5)


def levels(seed):
    rng = np.random.default_rng(seed)
    ward, site = (rng.permutation(list("a" * 60 + "b" * 40 + "c" * 12 + "d" * 8)) for _ in range(2))
    X = {"ward": ward, "site": pd.Categorical(site), "code": rng.permutation(120) % 3 + 2**53}
    X["grade"] = rng.permutation([np.nan] * 30 + [0.5] * 80 + [1.0] * 10)
    return pd.DataFrame(X | {"smokes": rng.random(120) < 0.4, "asked": pd.array(rng.random(120) < 0.5, "boolean")})


OTHERS = ["code", "smokes", "asked", "site", "grade"]
RARE = [{}, {"min_frequency": 15}, {"max_categories": 2}]
GATHERED = [(names, rare, drop) for names in (["ward"], OTHERS) for rare in RARE for drop in (None, "first")]
# The site is text as well.
GATHERED = [
    pytest.param(*one, marks=[pytest.mark.slow] * (len(one[0]) < 2 and one[1:] != ({}, None))) for one in GATHERED
]


@pytest.mark.parametrize(("names", "rare", "drop"), GATHERED)
@pytest.mark.parametrize("unknown", ["error", "ignore", "infrequent_if_exist"])
@pytest.mark.filterwarnings("ignore:Found unknown categories", "ignore:.*a weighted sum of these")
def test_levels_that_are_rare_or_new(unknown, drop, rare, names, seed):
    """A new level is taken as in Python; where Python refuses it, its row has nan."""
    X = levels(seed)
    encoder = OneHotEncoder(handle_unknown=unknown, drop=drop, sparse_output=False, **rare)
    model = fitted_steps(make_column_transformer((encoder, names)), X)
    graph = to_onnx(model, X)
    assert_same(model, X, graph, columns_of(X))
    new = X.assign(ward="z", code=7, grade=3.0)
    if unknown != "error":
        assert_same(model, new, graph, columns_of(new))
        return
    with pytest.raises(ValueError, match="unknown categories"):
        model.predict_proba(new)
    assert np.isnan(run(graph, columns_of(pd.concat([X, new])))[1]).any(axis=1).tolist() == [False] * 120 + [True] * 120


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_the_first_row_may_have_no_level(dtype, seed):
    X = levels(seed).assign(ward=lambda X: X["ward"].where(X.index > 0, None).astype(dtype))
    encoder = OneHotEncoder(sparse_output=False)
    model = fitted_steps(make_column_transformer((encoder, ["ward"]), (StandardScaler(), ["code"])), X)
    graph = to_onnx(model, X)
    assert_same(model, X, graph, columns_of(X))


CODES = [
    {},
    {"min_frequency": 15, "encoded_missing_value": 9},
    {"handle_unknown": "use_encoded_value", "unknown_value": -1},
]


@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize("names", [["ward"], ["code", "smokes", "site", "grade"]])
def test_codes_of_levels(names, how, seed):
    X = levels(seed)
    how = {"encoded_missing_value": -2} | how
    model = fitted_steps(make_column_transformer((OrdinalEncoder(**how), names)), X)
    graph, new = to_onnx(model, X), X.assign(ward="z", code=7, grade=3.0)
    assert_same(model, X, graph, columns_of(X))
    if "unknown_value" in how:
        assert_same(model, new, graph, columns_of(new))
    else:
        assert np.isnan(run(graph, columns_of(new))[1]).all()


def test_steps_that_cannot_be_converted_are_named(problem, monkeypatch, seed):
    X = pd.DataFrame(problem[0][:, :2], columns=["u", "m"])
    scaled = fitted_steps(make_column_transformer((StandardScaler(), ["u", "m"])), X)
    assert to_onnx(scaled, pl.from_pandas(X)).graph.input[1].name == "m"
    with pytest.raises(ValueError, match=r"on a frame: give some of its rows, to_onnx\(model, X") as without_rows:
        to_onnx(scaled)
    with pytest.raises(ValueError, match=r"the step PowerTransformer\(\): .*export the classifier alone") as unknown:
        to_onnx(fitted_steps(make_column_transformer((PowerTransformer(), ["u", "m"])), X), X)
    imputer = SimpleImputer(strategy="most_frequent", missing_values="d", add_indicator=True)
    words = levels(seed)[["ward"]].astype(object)
    filled = fitted_steps(make_pipeline(imputer, OneHotEncoder()), words)
    with pytest.raises(ValueError, match=r"the step SimpleImputer.*add_indicator=True is for numbers") as of_strings:
        to_onnx(filled, words)
    with pytest.raises(ValueError, match=r"of column 'when' of X. .*only the columns that the steps use") as of_dates:
        to_onnx(scaled, X.assign(when=pd.Timestamp("2026-01-01")))
    products = fitted_steps(PolynomialFeatures(), X)
    for given in (None, X):
        with pytest.raises(ValueError, match=r"No runtime takes.*float32 where.*therwise: put a step in") as not_run:
            to_onnx(products, given)
    for error in (without_rows, unknown, of_strings, of_dates, not_run):
        assert error.value.__cause__ is not None
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "onnxruntime", None)
        assert to_onnx(scaled, X).graph.node
        with pytest.raises(ValueError, match="No runtime takes the steps"):
            to_onnx(products, X)
    encoded = fitted_steps(OneHotEncoder(), words)
    monkeypatch.setattr(onnx_converters, "_columns_of_levels", lambda *_: (np.zeros((4, 4)), np.zeros(4)))
    with pytest.raises(ValueError, match=r"wrongly, .*OneHotEncoder.* of X the score differs by"):
        to_onnx(encoded, words)


def test_what_cannot_be_exported_is_refused(problem, fitted, visits, monkeypatch):
    X, y = problem
    for n_draws in (2, 0, 2.5, "few"):
        with pytest.raises(ValueError, match=r"n_draws must be None or a whole number from 3 on.*got"):
            to_onnx(fitted, n_draws=n_draws)
    with pytest.raises(ValueError, match=r"with groups.*Serve predict_proba of the saved model in Python"):
        to_onnx(HorseshoeProbitClassifier(**SHORT).fit(visits[0], visits[1], groups=visits[2]))
    with pytest.raises(ValueError, match="to_onnx takes no model that was fitted with an offset"):
        to_onnx(HorseshoeProbitClassifier(sampler="hmc", **SHORT).fit(X, y, offset=np.zeros(200)))
    dated = copy(fitted)
    dated.classes_ = np.array([pd.Timestamp("2026-01-01"), pd.Timestamp("2026-02-01")])
    with pytest.raises(ValueError, match="no type of ONNX"):
        to_onnx(dated)
    monkeypatch.setattr(export, "_MOST_BYTES", 8 * 8 * 100)
    with pytest.raises(ValueError, match="give n_draws=100 or less"):
        to_onnx(fitted)
    assert len(to_onnx(fitted, n_draws=100).graph.node) > 10
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"to_onnx needs onnx: pip install onnx skl2onnx"):
        to_onnx(fitted)
