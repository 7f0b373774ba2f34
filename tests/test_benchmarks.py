"""Benchmarks run through at tiny sizes, and write what they found; those of GPUs and clusters are run elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from exactness import CASES, ranks
from laws import repeated
from scipy.stats import logistic, norm, t

FOLDER = Path(__file__).parents[1] / "benchmarks"


SOME = {  # parts of each, those that need neither a cluster nor another environment
    "exactness": ["agreement"],
    "first_session": ["sessions"],
    "follow_recipes": ["recipes"],
    "paper": ["figure", "real"],
    "per_second": ["pairs", "levels", "ordered", "several"],
    "repeated_rows": ["cohort"],
    "scaling": ["pass", "predictions"],
    "selection": ["rates", "terms", "sets", "peers", "components-few"],
    "sensitivity": ["prior", "likelihood"],
    "several_classes": ["tables"],
    "wide": ["100 x 300, AR(.6)", "default fit of 120 x 3000, blocks", "default fit of 14,300 x 129, one-hot"],
}
MORE = {**SOME, "scaling": ["pass", "seconds", "memory", "predictions"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_a_benchmark_runs_and_writes_what_it_found(name, tmp_path):
    file = tmp_path / "out.json"
    parts = repeated(SOME, MORE)[name]
    command = [sys.executable, FOLDER / f"{name}.py", "--quick", "--output", file, "--only", *parts]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(file.read_text())
    assert record["table"]
    assert record["machine"]["cores"]
    assert record["commit"]


def test_every_benchmark_is_run():
    assert {file.stem for file in FOLDER.glob("[a-z]*.py")} == {*SOME, "peers", "gpu"}


def test_claims_are_judged_by_what_they_say():
    """A claim with weights is of the sum of its columns, on one side; one without is of any of its columns."""
    from selection import judged

    coef, sd = np.array([1.0, -0.5, 0.05, 0.0]), np.array([1.0, 2.0, 1.0, 1.0])
    right = [(np.array([0, 2]), np.array([1.0, 1.0])), (np.array([1]), np.array([-2.0])), ([0, 3], None)]
    wrong = [(np.array([1]), np.array([2.0])), (np.array([2]), np.array([1.0])), ([2, 3], None)]
    counts = judged(right, coef, sd)
    assert (counts["claims"], counts["false share"], counts["wrong sign"]) == (3, 0, 0)
    assert (counts["found"], counts["signals"], counts["columns"], counts["located"]) == (2, 2, 5, 2)
    counts = judged(wrong, coef, sd)
    assert (counts["false share"], counts["wrong sign"], counts["found"]) == (1, 1 / 3, 1)
    assert judged([], coef, sd)["false share"] == 0


@pytest.mark.parametrize("fields", [{"omitted": 10, "nonzero": 12}, {"noise": "logistic"}, {"noise": "t3"}])
def test_scores_of_data_have_the_law_that_is_stated(fields):
    """Given all columns, y is 1 with the probability of the stated noise; without those left out, of the probit."""
    from _data import FromModel

    n, laws = (
        200_000,
        {"logistic": logistic(scale=norm.ppf(0.75) / np.log(3)), "t3": t(3, scale=norm.ppf(0.75) / t(3).ppf(0.75))},
    )
    X, y, truths = FromModel(n, 15, pairs=2, tau_0=0.5, **fields).make_judged(1, n)
    p = laws.get(fields.get("noise"), norm).cdf(X @ truths.get("associations", truths["effects"]))
    Z = np.column_stack([np.ones(n), X, p])  # what is left of y goes along with nothing
    moments = (y - p) @ Z / np.sqrt((p * (1 - p)) @ Z**2)
    assert abs(moments).max() < 4.5


@pytest.mark.slow
def test_peers_that_need_no_environment_are_compared(tmp_path):
    methods = ["skhorseshoe", "logistic regression, L1"]
    command = [sys.executable, FOLDER / "peers.py", "--quick", "--here", "--only", "iris 1 v 2", "--methods", *methods]
    subprocess.run([*command, "--output", tmp_path / "out.json"], check=True)
    found = json.loads((tmp_path / "out.json").read_text())["figures"]["iris 1 v 2"]["methods"]
    assert all("failed" not in one and one["log loss"] > 0 for one in found.values())
    assert found["skhorseshoe"]["ESS/s"] > 0


@pytest.mark.slow
def test_ranks_show_a_wrong_scale_of_tau(monkeypatch):
    """The mean rank of tau over 30 data sets, in its own standard error."""
    monkeypatch.setitem(CASES, "hmc", CASES["hmc"]._replace(settings={"global_scale": 0.002}))
    of_tau = np.array([ranks("hmc", seed)[-1] for seed in range(30)])
    assert (of_tau.mean() - 49.5) / (29 / np.sqrt(30)) > 5


@pytest.mark.parametrize(("with_groups", "factor"), [(True, 1.0), (False, 1 / np.sqrt(2))])
def test_a_fit_without_groups_is_judged_by_effects_averaged_over_patients(with_groups, factor):
    """A patient's effect of standard deviation 1 makes a probit coefficient b into b / sqrt(2)."""
    from repeated_rows import EFFECTS, cohort_set, judged

    data, new = cohort_set(0, 2000, 5)
    true, eta = np.zeros(20), data[0] @ np.eye(20)[:, list(EFFECTS)] @ list(EFFECTS.values()) - 1.0
    true[list(EFFECTS)] = np.array(list(EFFECTS.values())) * factor
    assert abs(data[1].mean() - norm.cdf(eta / np.sqrt(2)).mean()) < 4 * np.sqrt(0.3 / 2000)

    class Exact:
        coef_draws_ = true + 1e-3 * np.linspace(-1, 1, 100)[None, :, None]

        def predict_interval(self, X, **_):
            p = norm.cdf(eta / np.sqrt(2))[::5]
            return np.column_stack([p - 1e-9, p + 1e-9])

        def predict_proba(self, X):
            return np.tile([0.5, 0.5], (len(X), 1))

    found = judged(Exact(), data, new, **({"groups": data[2]} if with_groups else {}))
    assert found["covers effects"] == found["covers zeros"] == 1.0
    assert found["covers probabilities"] == 1.0 - with_groups
