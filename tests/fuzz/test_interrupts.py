"""A second Ctrl-C at any moment of a sweep ends the fit at once, and leaves nothing that is half."""

import signal

import numpy as np
import pytest

CODE = """
import math, os, signal, sys, threading, time, warnings
from pathlib import Path
import numpy as np
from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit import fit as fitting
from skhorseshoe._utils import interrupts

warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
moments = [float(moment) for moment in sys.argv[2:]]
rng = np.random.default_rng(0)
X = rng.standard_normal((60_000, 40))
y = (X[:, 0] + rng.standard_normal(len(X)) > 0).astype(int)
times, ask = [], threading.Event()

def fit(folder):
    params = {"n_iter": 6, "burn_in": 6, "sampler": "pxda", "random_state": 0, "n_jobs": 2}
    model = HorseshoeProbitClassifier(**params, checkpoint=folder, checkpoint_interval=0.0)
    return model, lambda: model.fit(X, y)

def report(t):
    times.append(time.monotonic())
    if t == 9:
        ask.set()

fitting.progress.reporter = lambda *args: report
whole = fit(None)[1]().coef_draws_
sweep = float(np.median(np.diff(times)))
for k, moment in enumerate(moments):
    folder = Path(sys.argv[1]) / str(k)
    ask.clear()
    interrupts._CtrlC.last = -math.inf
    model, go = fit(folder)
    before = set(vars(model))

    def press():
        ask.wait()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(moment * sweep)
        os.kill(os.getpid(), signal.SIGINT)

    keys, ended = threading.Thread(target=press), "returned"
    keys.start()
    try:
        go()
        keys.join()  # of a sweep that was quicker than the second key
        time.sleep(0.01)
    except KeyboardInterrupt:
        ended = "raised" if set(vars(model)) == before else "raised, after it has ended"
    keys.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not list(folder.glob("*.lock")) and not list(folder.glob("*.new"))
    same = np.array_equal(fit(folder)[1]().coef_draws_, whole)
    print(ended, same, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="keys are pressed by signals of POSIX")
def test_a_second_ctrl_c_at_any_moment_loses_nothing(run_python, tmp_path, seed):
    moments = np.random.default_rng(seed).permutation(np.linspace(0.0, 0.8, 20))
    lines = run_python(CODE, tmp_path, *moments).splitlines()
    assert len(lines) == 20
    assert all(line.endswith("True") for line in lines), lines
    assert sum(line.startswith("raised True") for line in lines) >= 10, lines  # the others came after the sweep
