"""What a fit says of rows that belong together: where nobody has said so, and of columns whose group means matter."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.belonging import sign_of
from skhorseshoe._fit import group_findings
from skhorseshoe._fit.group_findings import of_means

SHORT = {"n_iter": 10, "burn_in": 10, "n_chains": 2, "random_state": 0}


@pytest.fixture
def heard(said):
    """A function that fits, and returns what its warnings say."""
    return lambda X, y, groups=None, **params: " ".join(
        said(HorseshoeProbitClassifier(**{**SHORT, **params}), X, y, groups=groups)
    )


@pytest.fixture
def table(seed):
    """400 rows of 40 patients, one after another, and their labels."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(40), 10)
    X = pd.DataFrame(rng.standard_normal((400, 3)), columns=["pulse", "dose", "age"])
    return X, (X["pulse"] + rng.standard_normal(40)[patient] + rng.standard_normal(400) > 0).to_numpy(), patient


@pytest.mark.parametrize("name", ["patient", "patient_id", "Subject no", "personId", "ID", "household.key"])
def test_a_column_that_is_called_a_label(table, name, heard):
    X, y, patient = table
    words = heard(X.assign(**{name: patient}), y)
    assert f"Column {name!r} looks like a label of what rows belong to: whole numbers, about 10 rows for each" in words
    assert f"fit(X.drop(columns={name!r}), y, groups=X[{name!r}])" in words


def test_an_array_with_a_column_that_looks_like_a_label(table, seed, heard):
    X, y, patient = table
    labels = np.random.default_rng(seed).permutation(1000)[patient]
    assert "fit(numpy.delete(X, 3, axis=1), y, groups=X[:, 3])" in heard(np.column_stack([X, labels]), y)
    assert "looks like a label" not in heard(np.column_stack([X, labels]), y, groups=patient)


def test_blocks_of_equal_rows_with_different_labels(table, heard):
    X, y, patient = table
    words = heard(X.iloc[::10].iloc[patient], y)
    assert "Rows are the same in all columns in blocks of about 10" in words
    assert "the same in all columns" not in heard(X.iloc[::10].iloc[patient], y, groups=patient)


def test_classes_without_an_order_are_told_one_by_one_to_take_groups(table, heard):
    """A fit to all of them takes none."""
    X, y, patient = table
    three, ages = y + 1 * (X["dose"].to_numpy() > 0), X.assign(age=np.random.default_rng(0).normal(50, 10, 40)[patient])
    for rows in (X.assign(patient=patient), X.iloc[::10].iloc[patient], ages):
        assert ", y == a class, groups=" in heard(rows, three)
        assert ", y, groups=" in heard(rows, three, ordered=True)
    with pytest.raises(ValueError, match=r"fit\(X, y == a class, groups=\.\.\.\)"):
        HorseshoeProbitClassifier(**SHORT).fit(X, three).group_effects()


def test_what_is_no_sign(table, seed):
    X, y, patient = table
    rng = np.random.default_rng(seed)
    n = np.arange(400)
    others = {
        "age in years": X.assign(age=rng.integers(30, 80, 400)),
        "sorted by age": X.assign(age=np.sort(rng.integers(30, 80, 400))),
        "days": X.assign(day=n // 4),
        "a label for each row": X.assign(patient_id=n),
        "few hospitals": X.assign(hospital_id=patient // 4),
        "sorted by an outcome and by age": X.assign(age=rng.integers(30, 80, 400)).iloc[np.lexsort((X["age"], y))],
        "sorted by sex and by age": X.assign(age=np.concatenate([np.sort(rng.integers(30, 80, 200)) for _ in "fm"])),
        "a time series in steps": X.assign(stock=np.cumsum(rng.choice([-1, 0, 0, 0, 1], 400)) / 7),
        "mostly zeros": X.assign(dose=np.where(rng.random(400) < 0.9, 0, X["dose"])),
        "spells of rain": X.assign(rain=np.where(np.repeat(rng.random(40) < 0.4, 10), rng.gamma(1, size=400), 0)),
        "levels": X.assign(**{f"ward {k}": (rng.integers(0, 30, 400) == k) - 0.03 for k in range(30)}),
        "named as if": X.rename(columns={"pulse": "covid", "dose": "uric acid"}).round(),
        "a bootstrap": X.iloc[np.sort(rng.integers(0, 400, 400))],
        "two columns of zeros and ones": pd.DataFrame(rng.integers(0, 2, (400, 2)), columns=["a", "b"]).sort_values(
            "a"
        ),
    }
    for what, rows in others.items():
        assert sign_of(rows.to_numpy(np.float64), y, list(rows.columns)) is None, what
    repeated = np.repeat(X.to_numpy()[:80], 5, axis=0)  # as weights would have it
    assert sign_of(repeated, np.repeat(y[:80], 5), [0, 1, 2]) is None
    assert sign_of(sp.csr_array(np.column_stack([X, patient])), y, ["a", "b", "c", "patient"]) is None
    assert sign_of(X.to_numpy()[:0], y[:0], [0, 1, 2]) is None
    for load in (load_breast_cancer, load_digits, load_iris):
        data, target = load(return_X_y=True)
        assert sign_of(data, (target > 0).astype(np.uint8), range(data.shape[1])) is None


@pytest.mark.parametrize("sizes", [np.full(60, 10), np.arange(100) % 7 + 1])
def test_a_column_that_is_constant_in_blocks(sizes, seed, heard):
    """What is known of patients, whose numbers are not in the table; whatever the scale, and whether values repeat."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(len(sizes)), sizes)
    X = pd.DataFrame(rng.standard_normal((len(patient), 2)), columns=["pulse", "dose"])
    y = X["pulse"] + rng.standard_normal(len(sizes))[patient] + rng.standard_normal(len(X)) > 0
    for age in (rng.normal(50, 10, len(sizes)), rng.integers(30, 80, len(sizes)), rng.integers(30, 80, len(sizes)) / 7):
        words = heard(X.assign(sex=(age[patient] > 45).astype(float), age=age[patient]), y)
        assert "Column 'age' keeps its value for about" in words
        assert "fit(X, y, groups=...) with a label for each row" in words
    assert "keeps its value" not in heard(X.assign(age=age[patient]), y, groups=patient)


def test_many_rows_are_not_all_read(seed):
    rng = np.random.default_rng(seed)
    patient = np.arange(200_000) // 20
    X = np.column_stack([rng.standard_normal(200_000), rng.permutation(10_000)[patient]])
    seen = []

    class Counted(np.ndarray):
        def __getitem__(self, at):
            seen.append(at)
            return np.asarray(self)[at]

    sign = sign_of(X.view(Counted), (X[:, 0] > 0).astype(np.uint8), [0, 1])
    assert (sign.column, sign.size) == (1, 20)
    assert sum(one.stop - one.start for one in seen if isinstance(one, slice)) <= 16 * 256
    assert len(seen) == 17  # runs, and the column that looks like a label


def simulated(rng, between):
    """Rows of 200 groups; ``lab`` has the effect .6 within a group and .6 + between between them."""
    group = rng.permutation(np.repeat(np.arange(200), 10))
    X = pd.DataFrame(rng.standard_normal((2000, 4)), columns=["a", "b", "age", "lab"])
    X["age"] = rng.standard_normal(200)[group]
    X["lab"] += rng.standard_normal(200)[group]
    means = X.groupby(group)["lab"].transform("mean")
    score = 0.5 * X["a"] + 0.5 * X["age"] + 0.6 * X["lab"] + between * means + rng.standard_normal(200)[group]
    return X, (score + rng.standard_normal(2000) > 0).to_numpy(), group


@pytest.mark.parametrize("kind", [lambda X: X, lambda X: sp.csr_array(X.to_numpy())])
def test_group_means_that_matter_by_themselves_are_told_with_their_remedy(seed, kind, heard):
    X, y, group = simulated(np.random.default_rng(seed), 1.0)
    words = heard(kind(X), y, group, n_iter=100, burn_in=100)
    name = "lab" if isinstance(kind(X), pd.DataFrame) else "x3"
    assert f"Column {name!r}: the means of groups go together with the effects of groups" in words
    assert "Add to X, before any Pipeline, the mean of such a column in each row's group as another column" in words
    assert "x3_mean" not in words  # which would be no name of a table


def test_the_remedy_cures_and_others_are_not_told(seed, heard):
    X, y, group = simulated(np.random.default_rng(seed), 1.0)
    X["lab_mean"] = X.groupby(group)["lab"].transform("mean")
    assert "the means of groups" not in heard(X, y, group, n_iter=100, burn_in=100)
    for k in range(3):
        X, y, group = simulated(np.random.default_rng(seed + k), 0.0)
        assert "the means of groups" not in heard(X, y, group, n_iter=100, burn_in=100)


def test_a_column_of_patients_has_no_other_means(visits, heard):
    """The mean of a column that is constant within groups is the column itself: nothing to add."""
    X, y, groups = visits
    age = X["age"].groupby(groups).mean().to_numpy()  # which are the effects of the groups, say
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_findings, "of_means", lambda rows, _, names: of_means(rows, age, names))
        assert "the means of groups" not in heard(X, y, groups, burn_in=100)
        told = heard(X.assign(age=X["age"] + 0.1 * X["noise"]), y, groups, burn_in=100)
    assert "Column 'age': the means of groups" in told


def test_rows_on_disk_are_not_read_for_signs(tmp_path):
    rng = np.random.default_rng(0)
    repeated, y = np.repeat(rng.standard_normal((80, 3)), 5, axis=0), rng.integers(0, 2, 400)
    assert sign_of(repeated, y, [0, 1, 2]) is not None
    file = np.memmap(tmp_path / "X", np.float64, "w+", shape=repeated.shape)
    file[...] = repeated
    assert sign_of(file, y, [0, 1, 2]) is None


def test_matched_sets_are_told_before_sampling_and_get_no_means(seed, heard):
    """Case-control pairs: the effects of groups cannot be told, whatever columns do to these."""
    rng = np.random.default_rng(seed)
    pair = np.repeat(np.arange(300), 2)
    X = pd.DataFrame({"x": rng.standard_normal(300)[pair] + rng.standard_normal(600)})
    y = np.where(np.arange(600) % 2 == (rng.random(300) < 0.5)[pair], "ill", "a control")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_findings, "of_means", lambda *_: pytest.fail("means of groups are no remedy"))
        words = heard(X, y, pair)
    assert words.startswith("Each of the 300 groups has exactly 1 row with y == 'ill', as matched sets have")
    assert "conditional logistic regression" in words
    assert "matched sets" not in heard(X, rng.permutation(y), pair)


@pytest.mark.parametrize("unpenalized", [None, [0]])
def test_an_outcome_that_is_copied_is_told_before_sampling_and_longer_chains_are_no_cure(seed, unpenalized, heard):
    rng = np.random.default_rng(seed)
    x, group = rng.standard_normal((80, 2)), np.repeat(np.arange(80), 4)
    outcome = x[:, 0] + rng.standard_normal(80) > 0
    words = heard(x[group], outcome[group], group, burn_in=100, unpenalized=unpenalized)
    assert words.startswith("y is the same in all rows of each of the 80 groups of several rows")
    assert "Longer chains are no cure. Fit one row for each group" in words
    assert not any(wrong in words for wrong in ("Fit again with", "collinear", "so few hardly"))
    y = outcome[group]
    y[5] ^= True
    assert "in all rows of all but 1 of 80 groups" in heard(x[group], y, group)


@pytest.mark.parametrize("unpenalized", [None, [0]])
def test_separation_within_groups_is_named_and_cured(seed, unpenalized, heard):
    """A plane that the effects of groups move divides the classes; without these none does."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(30), 4)
    X = rng.standard_normal((120, 2))
    u = np.linspace(-2, 2, 30)[group]
    y = X[:, 0] + u > 0
    short = {"n_iter": 50, "burn_in": 50, "sampler": "gibbs"}
    words = heard(X, y, group, unpenalized=unpenalized, **short)
    assert "classes (within-group separation: one plane divides them in each group with both" in words
    assert ("Remove them from unpenalized and set slab_scale='per_contrast'" in words) == (unpenalized is not None)
    assert "collinear" not in words
    assert "Fit again with slab_scale='per_contrast'" in words
    assert "separation" not in heard(X, y, group, slab_scale="per_contrast", **short)
    noisy = X[:, 0] + u + rng.standard_normal(120) > 0
    assert "separation" not in heard(X, noisy, group, **short)


def test_few_groups_are_told_to_set_the_prior_of_their_scale(seed, heard):
    rng = np.random.default_rng(seed)
    X, group = rng.standard_normal((60, 2)), np.arange(60) % 5
    words = heard(X, X[:, 0] + rng.standard_normal(60) > 0, group)
    assert "5 different labels: so few hardly tell" in words
    assert "set a smaller one (0.3 is" in words
    assert "OneHotEncoder" not in words
    alone = np.arange(60)
    alone[1:3] = 0
    assert "1 of 58 labels in two rows or more: so few hardly tell" in heard(X, X[:, 0] > 0.1, alone, n_iter=20)
    pairs = np.repeat(np.arange(30), 2)  # rows that count little are rows all the same
    light = {"class_weight": {False: 0.1, True: 0.1}, "n_iter": 20}
    assert "hardly tell" not in heard(X, X[:, 0] > 0.1, pairs, **light)
