"""The benchmark of a GPU runs through; what it measures in the emulator means nothing."""

import json

import gpu
import pytest


@pytest.mark.slow
def test_the_benchmark_runs_and_writes_what_it_found(card, tmp_path):
    gpu.main(["--quick", "--output", str(tmp_path / "out.json")])
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["figures"]["card"]["name"] == "emulator"
    whats = {row["what"] for row in record["table"]}
    assert {"copy", "10000 sweeps of gibbs, 100 x 5, 4 chains", "fit of rare events, 200 x 3"} <= whats
    assert record["commit"]


def test_without_a_gpu_there_is_nothing_to_measure(monkeypatch, capsys):
    monkeypatch.setattr(gpu._device, "gpu_status", lambda: (False, "no card"))
    with pytest.raises(SystemExit, match="Nothing to measure: no card"):
        gpu.main([])
    assert capsys.readouterr().out.count("; modelled floor ") == len(gpu.TARGETS)
