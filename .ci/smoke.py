"""What a user of an installed package relies on; run it outside the checkout: python smoke.py WHEEL_OR_SDIST"""

import pickle
import re
import sys
from importlib.metadata import metadata
from importlib.resources import files
from pathlib import Path

import numpy as np

import skhorseshoe
from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, datasets, disk, inspection
from skhorseshoe._backends._gpu import cuda

about, where = metadata("skhorseshoe"), Path(skhorseshoe.__file__)
assert "site-packages" in where.parts, f"{where} is not the installed package"
assert f"skhorseshoe-{about['Version']}" in sys.argv[1], f"{about['Version']} is not the version of {sys.argv[1]}"
assert skhorseshoe.__version__ == about["Version"]
assert files("skhorseshoe").joinpath("py.typed").is_file()
assert all(map(cuda.source, cuda.MODULES))  # with all that they include
description = about.get_payload() or about["Description"]
assert len(description) > 2000
assert not re.findall(r"\]\((?!https:)[^)]*\)", description), "a link that leads nowhere on an index page"

X, y, _ = datasets.make_sparse_probit(500, 8, random_state=0)
rows, labels = disk.convert(X, Path("rows"), y=y)
model = HorseshoeProbitClassifier(n_iter=400, burn_in=200, random_state=0).fit(rows, labels)
assert np.isfinite(model.predict_proba(X)).all()
assert model.score(X, y) > 0.8
assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
assert len(inspection.summary(model)) == 10
assert HorseshoeSelector(model, prefit=True).fit(X).get_support()[[1, 4]].all()
skhorseshoe.show_versions()
