"""Two thousand odd cases, seeded: none ends the process, hangs, raises a raw error or fits a number that is none.

Each kind runs in a process of its own, which is begun anew behind a case that has ended it.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("child.py")
CASES = {"inputs": 300, "parameters": 250, "labels": 200, "weights": 200, "sparse": 300, "outcomes": 250}
CASES |= {"manifests": 250, "checkpoints": 250}


def findings(kind, seed, n):
    first, found = 0, []
    while first < n:
        command = [sys.executable, str(CHILD), kind, str(seed), str(first), str(n)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found += [one for one in said if "found" in one]
        if done.returncode == 0:
            return found
        last = max((one["begun"] for one in said if "begun" in one), default=n)
        how = "hangs" if done.returncode == -signal.SIGALRM else f"ends the process with {done.returncode}"
        found.append({"case": last, "found": how, "stderr": done.stderr[-2000:]})
        first = last + 1
    return found


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="a case that hangs is ended by an alarm")
@pytest.mark.parametrize("kind", CASES)
def test_no_case_ends_the_process_hangs_or_raises_a_raw_error(kind, seed):
    found = findings(kind, seed, CASES[kind])
    lines = [f"python {CHILD} {kind} {seed} {one['case']} {one['case'] + 1}: {one['found']}" for one in found]
    assert not found, "\n".join(lines)


def test_a_few_cases_of_each_kind_are_tried(seed):
    """The machinery, in the quick tests; and it finds what it is for."""
    assert sum(CASES.values()) == 2000
    assert findings("labels", seed, 5) == []
