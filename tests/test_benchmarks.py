"""Benchmarks run through at tiny sizes, and write what they found; those of GPUs and clusters are run elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["callbacks", "cpu", "disk", "first_session", "mixing", "predict", "sparse_rows"])
def test_a_benchmark_runs_and_writes_what_it_found(name, tmp_path):
    file = tmp_path / "out.json"
    command = [sys.executable, FOLDER / f"{name}.py", "--quick", "--output", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(file.read_text())
    assert record["table"]
    assert record["machine"]["cores"]
    assert record["commit"]
