"""The shape of the code: imports point one way, only back ends import a compiler, files and functions stay short."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import skhorseshoe

ROOT = Path(skhorseshoe.__file__).parents[1]
FILES = sorted((ROOT / "skhorseshoe").rglob("*.py"))
NAMES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
# A file imports from its own part and from parts of a higher number. All other files are public, and have the number 0.
PARTS = {
    **{"_fit": 1, "_posterior": 2, "_data": 3, "_mcmc": 3, "_backends._cpu": 4, "_backends._gpu": 4, "_backends": 5},
    **{"disk": 5, "_utils": 6, "_version": 7, "datasets": 7, "diagnostics": 7},
}


def imports(path):
    """Full names of all that a file imports, wherever in it."""
    here = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: len(here) - node.level + 1]] if node.level else []
            yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)


def ours(path):
    """The modules of this package that a file imports."""
    names = (name for name in imports(path) if name.startswith("skhorseshoe."))
    return {name if name in NAMES else name.rpartition(".")[0] for name in names}


def part(module):
    inner = module.removeprefix("skhorseshoe.") + "."
    return max((name for name in PARTS if inner.startswith(f"{name}.")), key=len, default="")


def test_imports_point_one_way():
    arrows = [(one, other) for one, path in NAMES.items() for other in ours(path) if part(one) != part(other)]
    assert not [(one, other) for one, other in arrows if PARTS.get(part(one), 0) >= PARTS.get(part(other), 0)]


def test_imports_go_round_nowhere():
    TopologicalSorter({name: ours(path) for name, path in NAMES.items()}).prepare()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_back_ends_import_a_compiler(path):
    roots = {name.partition(".")[0] for name in imports(path)}
    assert not {"cupy", "cupy_backends", "cupyx"} & roots or path.parent.name == "_gpu"
    assert not {"numba", "llvmlite"} & roots or path.parent.name == "_cpu"


@pytest.mark.parametrize("name", ["gibbs", "hmc", "collapsed"])
def test_the_laws_import_no_array_library(name):
    assert {name.partition(".")[0] for name in imports(NAMES[f"skhorseshoe._mcmc.{name}"])} <= {"typing", "skhorseshoe"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
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
