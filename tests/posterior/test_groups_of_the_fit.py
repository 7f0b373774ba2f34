"""Groups that are given with the rows of a fit: those that went with these rows, in any order, and no others."""

import copy
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.inspection import loo, sensitivity

RNG = np.random.default_rng(0)
N = 200
X = RNG.standard_normal((N, 3))
PATIENT, DOCTOR = RNG.integers(0, 20, N), RNG.integers(0, 5, N)
SCORE = X[:, 0] + RNG.standard_normal(20)[PATIENT] + RNG.standard_normal(N)
TWO, THREE = SCORE > 0, np.digitize(SCORE, [-0.7, 0.7])
ONE, BOTH, WEIGHT = {"patient": PATIENT}, {"patient": PATIENT, "doctor": DOCTOR}, RNG.uniform(0.5, 2, N)
CASES = {
    "one factor": ({}, {"y": TWO, "groups": ONE}),
    "weights and offset": ({}, {"y": TWO, "groups": ONE, "sample_weight": WEIGHT, "offset": SCORE / 2}),
    "two factors": ({}, {"y": TWO, "groups": BOTH}),
    "slopes": ({"group_slopes": {"patient": [1]}}, {"y": TWO, "groups": BOTH}),
    "ordered": ({"ordered": True}, {"y": THREE, "groups": ONE}),
}
pytestmark = pytest.mark.filterwarnings("ignore")


def fit(rows=X, y=TWO, groups=ONE, sample_weight=None, offset=None, **params):
    model = HorseshoeProbitClassifier(random_state=0, n_iter=30, burn_in=30, target_ess=None, **params)
    return model.fit(rows, y, sample_weight, groups, offset)


@pytest.fixture(scope="module", params=CASES)
def asked(request):
    """What goes with the rows of a fit, and the functions that are asked of it."""
    params, of_rows = CASES[request.param]
    model = fit(csr_array(X) if request.param == "two factors" else X, **of_rows, **params)
    functions = (sensitivity, loo) if len(of_rows["groups"]) == 1 and not params.get("group_slopes") else (sensitivity,)
    return of_rows, [partial(ask, model) for ask in functions]


def at(values, order):
    return {k: v[order] for k, v in values.items()} if isinstance(values, dict) else values[order]


def refuses(ask, of_rows, rows=X, match="or the groups went with other rows of X"):
    with pytest.raises(ValueError, match=match):
        ask(rows, **of_rows)


def test_groups_in_one_order_with_their_rows_are_those_of_the_fit(asked):
    of_rows, functions = asked
    order = RNG.permutation(N)
    for ask in functions:
        ask(X[order].astype(np.float32), **{name: at(values, order) for name, values in of_rows.items()})


def test_groups_that_went_with_other_rows_are_refused(asked):
    of_rows, functions = asked
    order, two = RNG.permutation(N), np.arange(N)
    two[[PATIENT.argmin(), PATIENT.argmax()]] = PATIENT.argmax(), PATIENT.argmin()
    groups = of_rows["groups"]
    traded = [at(groups, order), at(groups, slice(None, None, -1)), at(groups, two)]
    traded += [{**groups, name: groups[name][order]} for name in groups]  # a single factor against the others
    for ask, others in ((ask, others) for ask in functions for others in traded):
        refuses(ask, {**of_rows, "groups": others})


def test_of_rows_alike_but_for_their_label_groups_are_told_apart():
    alike = X.copy()
    i, j = TWO.argmin(), np.flatnonzero(TWO & (PATIENT[TWO.argmin()] != PATIENT))[0]
    alike[i] = alike[j]
    order = np.arange(N)
    order[[i, j]] = j, i
    refuses(partial(sensitivity, fit(alike)), {"y": TWO, "groups": at(ONE, order)}, alike)


def test_labels_that_fit_has_not_seen_or_that_no_row_has_are_named():
    model, other = fit(groups=BOTH), PATIENT.copy()
    other[3] = 99
    groups_of = partial(dict, BOTH)
    match = r"groups\['patient'\] must be those of the fit, a label for each row: that of row 3 is new"
    refuses(partial(sensitivity, model), {"y": TWO, "groups": groups_of(patient=other)}, match=match)
    match = r"groups\['doctor'\] .*: no row has 4\."
    refuses(partial(sensitivity, model), {"y": TWO, "groups": groups_of(doctor=DOCTOR % 4)}, match=match)


def test_a_group_whose_rows_all_have_weight_0_counts_nowhere():
    weight, groups, left = np.ones(N), PATIENT.copy(), np.arange(N) >= 5
    weight[~left], groups[:2] = 0, 77
    model = fit(groups=groups, sample_weight=weight)
    all_rows, others = loo(model, X, TWO, weight, groups=groups), loo(model, X[left], TWO[left], groups=groups[left])
    assert repr(all_rows) == repr(others)
    moved = sensitivity(model, X, TWO, weight, groups=groups)
    assert np.allclose(moved["likelihood"], sensitivity(model, X[left], TWO[left], groups=groups[left])["likelihood"])


def test_a_model_of_an_older_version_has_no_facts_of_groups(asked):
    of_rows, functions = asked
    older = copy.deepcopy(functions[0].args[0])
    del older._fitted_rows["groups"], older._fitted_rows["paired_means"]
    sensitivity(older, X, **{**of_rows, "groups": at(of_rows["groups"], RNG.permutation(N))})
