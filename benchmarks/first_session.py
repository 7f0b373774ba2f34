"""A whole first session, as a new user has it: install, first fit, second fit in another process.

    python benchmarks/first_session.py           # three rounds; wants two free cores and a connection
    python benchmarks/first_session.py --quick   # one round with the packages that are installed already

Every round makes an environment and an empty cache of compiled code. The first install of a round downloads the wheels,
the second has them from pip's cache, so that the connection can be told from the rest.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from _measure import HERE, Report, figure

# The front page of the documentation, without its picture.
SESSION = """
import json, time
begin = time.perf_counter()
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skhorseshoe import HorseshoeProbitClassifier
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.filter(like="mean ")
imported = time.perf_counter()
make_pipeline(StandardScaler(), HorseshoeProbitClassifier(random_state=0)).fit(X, y).predict_proba(X)
print(json.dumps({"import": imported - begin, "fit": time.perf_counter() - imported}))
"""


def install(folder, cache):
    """Seconds of ``pip install .`` into a new environment, and its Python; making the environment is not counted."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--cache-dir", cache, HERE.parent]
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begin, python


def session(python, folder):
    """Seconds of importing and fitting in a fresh process, and of all of it."""
    begin = time.perf_counter()
    settings = {"cwd": folder}  # an empty one, where Python cannot import the checkout
    done = subprocess.run([python, "-c", SESSION], **settings, capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout), "process": time.perf_counter() - begin}


def one_round(quick):
    """All figures of one session, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        wheels, empty = Path(folder, "wheels"), Path(folder, "empty")
        empty.mkdir()
        seconds, python = {}, sys.executable
        if not quick:
            seconds["install, with downloads"], python = install(Path(folder, "first"), wheels)
            seconds["install, wheels in pip's cache"], _ = install(Path(folder, "second"), wheels)
        for turn in ("first", "second"):
            parts = session(python, empty)
            seconds |= {f"{turn} fit": parts["fit"], f"{turn} fit, whole process": parts["process"]}
        return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, nothing installed: does it run?")
    parser.add_argument("--output", type=Path, help="default: results/first-session-<date>.json")
    options = parser.parse_args()
    report = Report()
    rounds = [one_round(options.quick) for _ in range(1 if options.quick else 3)]
    report.head()
    for name in rounds[0]:
        report.add(name, figure([seconds[name] for seconds in rounds]), "s")
    report.write("first-session", options.output, complete=not options.quick)


if __name__ == "__main__":
    main()
