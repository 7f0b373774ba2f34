"""The shape of the code: imports point one way, the sampler knows no device, files and functions stay short."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import skhorseshoe

PACKAGE = Path(skhorseshoe.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
PIECES = {
    "_draws",
    "_files",
    "_prior",
    "_saved",
    "_segments",
    "_columns",
    "_interrupt",
    "_running",
    "_shared",
    "_sparsity",
    "_start",
    "_device",
    "datasets",
    "diagnostics",
}
# What a piece may know beside itself: the state of the sampler, and the names shared by all back ends.
ALLOWED = {
    "_design": {"_columns", "_far_out", "_ops", "_segments", "_sides", "_threads"},
    "_segments": {"_far_out", "_ops", "_sides"},
    "_far_out": {"_device", "_ops"},
    "_sides": {"_device", "_ops"},
    "_draws": {"_running", "diagnostics"},
    "_prior": {"_sparsity"},
    "_memory": {"_iterative", "_ops", "_segments"},
    "_start": {"_gibbs"},
    "_gibbs": {"_ops"},
    "_blas": {"_shared"},
    "_threads": {"_blas"},
    "_progress": {"_shared", "_warn"},
    "_versions": {"_device", "_threads"},
    "_report": set(),
    "_warn": set(),
    "_warnings": {"_report", "_warn", "diagnostics"},
    "_dss": {"_divergence"},
    "_divergence": set(),
    "disk/__init__": {"_bar", "_files", "_folder", "_parts", "_progress", "_sources", "_store"},
    "disk/_bar": set(),
    "_lock": {"_files", "_warn"},
    "disk/_parts": set(),
    "disk/_sources": set(),
    "disk/_folder": {"_files"},
    "disk/_store": {"_files", "_folder", "_lock"},
    "_arviz": {"_predictive", "_report", "__version__"},
    "_dask": {"_dask_rows", "_dask_worker", "_input", "_segments", "_weights"},
    "_dask_rows": {"_dask_worker", "_design", "_segments"},
    "_dask_worker": {"_device", "_segments", "_threads"},
    "_lazy": {"_dask", "_input"},
    "_posterior": {"_arviz", "_compat", "_device", "_input", "_lazy", "_predictive", "_summary"},
    "_predictive": {"_device", "_memory", "_threads"},
    "_summary": {"_report", "diagnostics", "groups"},
    "groups": {"_compat", "_input", "_memory", "_report"},
    "_saved": {"__version__", "_warn"},
    "_input": {"_compat", "_device", "_memory", "_ops", "_report"},
    "_hmc": set(),
    "plotting/_common": {"_compat", "_posterior", "_report", "selection"},
    "plotting/_coefficients": {"_common", "_report"},
    "plotting/_chains": {"_common", "_report", "diagnostics"},
    "plotting/_selection": {"_common", "selection"},
    "plotting/_probabilities": {"_common", "_input", "_report"},
    "_chains": {"_collapsed", "_gibbs", "_iterative", "_ops", "_stage"},
    "_collapsed": {"_ops"},
    "_iterative": {"_ops"},
    "_adapt": {"_chains", "_gibbs", "_hmc", "_ops", "_stage"},
    "_stage": set(),
    "_weights": {"_compat", "_device", "_input", "_memory"},
    "_callbacks": {"_compat", "_draws", "diagnostics"},
    "_checkpoint": {"_draws", "_files", "_lock", "_snapshot", "_warn"},
    "_classifier": {"_compat", "_fitting", "_lazy", "_ops", "_posterior", "_prior", "_saved"},
    "_run": {"_adapt", "_chains", "_draws", "_interrupt", "_prior", "_start"},
    "_restored": {"_stage"},
    "_snapshot": {"_draws"},
    "selection": {
        "_classifier",
        "_compat",
        "_device",
        "_divergence",
        "_dss",
        "_input",
        "_iterative",
        "_memory",
        "_predictive",
        "_report",
        "_threads",
        "_weights",
    },
}


def imports(path):
    """Names of the modules that a file imports, those of this package as written after the dots."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            ours = node.level > 0
            if ours and not node.module:
                yield from ((alias.name, True) for alias in node.names)
            else:
                yield node.module.split(".")[0], ours


@pytest.mark.parametrize("piece", sorted(PIECES | set(ALLOWED)))
def test_pieces_do_not_import_one_another(piece):
    ours = {name for name, ours in imports(PACKAGE / f"{piece}.py") if ours}
    assert ours == ALLOWED.get(piece, set())


def test_every_file_says_what_it_may_know():
    """But back ends, and those whose part it is to bring the pieces together."""
    files = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in FILES if "_ops" not in path.parts}
    assert files - PIECES - set(ALLOWED) == {"__init__", "_compat", "_fitting", "plotting/__init__"}


def test_the_sampler_imports_no_array_library():
    assert {name for name, _ in imports(PACKAGE / "_gibbs.py")} == {"typing", "_ops"}
    assert {name for name, _ in imports(PACKAGE / "_hmc.py")} == {"typing"}
    assert {name for name, _ in imports(PACKAGE / "_collapsed.py")} == {"typing", "_ops"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_back_ends_import_a_compiler(path):
    names = {name for name, _ in imports(path)}
    of_the_gpu = path.parent.name == "_ops" and path.name.startswith(("gpu", "_gpu"))
    assert of_the_gpu or not {"cupy", "cupy_backends", "cupyx"} & names
    assert "numba" not in names or path.parent.name == "_ops"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_and_functions_stay_short(path):
    source = path.read_text()
    assert source.count("\n") <= 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            assert not body or body[-1].end_lineno - body[0].lineno < 60, f"{path.name}: {node.name}"


def test_import_is_light():
    code = "import sys, sklearn; before = set(sys.modules); import skhorseshoe; print(*(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numba", "matplotlib", "arviz", "cupy", "dask"} & set(loaded)
