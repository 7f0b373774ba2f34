"""A whole first session, as a new user has it: install, first fit, second fit in another process.

    python benchmarks/first_session.py           # three rounds; wants two free cores and a connection
    python benchmarks/first_session.py --quick   # one round with the packages that are installed already

Every round makes an environment and an empty cache of compiled code. The first install of a round downloads the wheels,
the second has them from pip's cache, so that the connection can be told from the rest.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from _measure import HERE, figure, run, timed

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
    return timed(lambda: subprocess.run(command, check=True))[0], python


def one_round(quick):
    """All figures of one session, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        wheels, empty = Path(folder, "wheels"), Path(folder, "empty")
        empty.mkdir()  # where Python cannot import the checkout
        seconds, python = {}, sys.executable
        if not quick:
            seconds["install, with downloads"], python = install(Path(folder, "first"), wheels)
            seconds["install, wheels in pip's cache"], _ = install(Path(folder, "second"), wheels)
        how = {"cwd": empty, "capture_output": True, "text": True, "check": True}
        for turn in ("first", "second"):
            whole, done = timed(lambda python=python: subprocess.run([python, "-c", SESSION], **how))
            seconds |= {f"{turn} fit": json.loads(done.stdout)["fit"], f"{turn} fit, whole process": whole}
        return seconds


def sessions(report, options):
    rounds = [one_round(options.quick) for _ in range(1 if options.quick else 3)]
    for name in rounds[0]:
        report.add(name, figure([seconds[name] for seconds in rounds]), "s")


if __name__ == "__main__":
    run(__file__, __doc__, {"sessions": sessions})
