"""Benchmarks run through at tiny sizes, and write what they found; those of GPUs and clusters are run elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _calibration import CASES, ranks

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["callbacks", "cpu", "disk", "mixing", "paper", "predict", "scaling", "sparse_rows"])
def test_a_benchmark_runs_and_writes_what_it_found(name, tmp_path):
    file = tmp_path / "out.json"
    command = [sys.executable, FOLDER / f"{name}.py", "--quick", "--output", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(file.read_text())
    assert record["table"]
    assert record["machine"]["cores"]
    assert record["commit"]


@pytest.mark.slow
def test_peers_that_need_no_environment_are_compared(tmp_path):
    methods = ["skhorseshoe", "Gibbs in NumPy", "logistic regression, L1", "gradient boosting"]
    command = [sys.executable, FOLDER / "peers.py", "--quick", "--here", "--only", "iris", "--methods", *methods]
    subprocess.run([*command, "--output", tmp_path / "out.json"], check=True)
    found = json.loads((tmp_path / "out.json").read_text())["figures"]["iris"]["methods"]
    assert all("failed" not in one and one["log loss"] > 0 for one in found.values())
    assert found["skhorseshoe"]["ESS/s"] > 0


@pytest.mark.slow
def test_ranks_and_joint_tests_are_recorded(tmp_path):
    sections = ["--only", "agreement", "geweke"]
    command = [sys.executable, FOLDER / "exactness.py", "--quick", *sections, "--output", tmp_path / "out.json"]
    subprocess.run(command, check=True)
    figures = json.loads((tmp_path / "out.json").read_text())["figures"]
    assert {one["planted"] for one in figures["geweke"].values()} == {False, True}
    assert all(one["passed"] for one in figures["geweke"].values())
    assert figures["agreement"]["hmc"]["rms"] < 3


@pytest.mark.slow
@pytest.mark.parametrize("scale", [None, 0.002])
def test_ranks_show_a_wrong_scale_of_tau(scale, monkeypatch):
    """The mean rank of tau over 30 data sets, in its own standard error."""
    if scale:
        monkeypatch.setitem(CASES, "hmc", CASES["hmc"]._replace(settings={"global_scale": scale}))
    of_tau = np.array([ranks("hmc", seed)[-1] for seed in range(30)])
    z = (of_tau.mean() - 49.5) / (29 / np.sqrt(30))
    assert abs(z) < 4 if scale is None else z > 5
