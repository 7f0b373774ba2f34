"""A process that tries cases, one after the other, and prints what it finds: python child.py kind seed first last.

A case ends with a model whose numbers are finite, or with an error that this library or scikit-learn raises on purpose.
"""

import faulthandler
import json
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import data
import folders
import numpy as np
import outcomes

KINDS = {f.__name__: f for f in (data.inputs, data.parameters, data.labels, data.weights, data.sparse)}
KINDS |= {f.__name__: f for f in (folders.manifests, folders.checkpoints, outcomes.outcomes)}
SECONDS = 20  # of a case, after which it hangs


def not_finite(model):
    """Names of the fitted attributes that hold what is no number, where the documentation does not say so."""
    few = model.coef_draws_.shape[1] < 4
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and name != "rhat_" and not (few and name == "ess_"):
            items = value if isinstance(value, dict) else {"": value}
            for key, one in items.items():
                unknown = key == "acceptance"  # of no sweeps
                if key in ("slab_scale", "prior_scale") and np.ndim(one):
                    one = 1 / one  # infinite where a column has none, or the wide prior
                if np.asarray(one).dtype.kind == "f" and not unknown and not np.isfinite(one).all():
                    yield f"{name}{key}"


def problem(kind, seed, k, folder):
    """What is wrong with a case, or None."""
    rng = np.random.default_rng([seed, k, list(KINDS).index(kind)])
    folder.mkdir()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            model = KINDS[kind](rng, folder)
        found = list(not_finite(model)) if hasattr(model, "coef_draws_") else []
        return f"not finite: {found}" if found else None
    except Exception as error:
        if data.on_purpose(error):
            return None
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]} at {last.filename}:{last.lineno}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(kind, seed, first, last):
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as place:
        for k in range(first, last):
            print(json.dumps({"begun": k}), flush=True)
            signal.alarm(SECONDS)
            found = problem(kind, seed, k, Path(place) / str(k))
            signal.alarm(0)
            if found:
                print(json.dumps({"case": k, "found": found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
