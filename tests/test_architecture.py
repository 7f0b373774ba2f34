"""The shape of the code: imports point one way, files and functions stay short, arguments have names."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import skhorseshoe
from skhorseshoe._backends import contract

ROOT = Path(skhorseshoe.__file__).parent
# A folder imports from itself and from those on higher floors; what has no floor is public, on floor 0.
FLOORS = {"_fit": 1, "_posterior": 2, "_data": 3, "_mcmc": 3, "_backends": 4, "disk": 4, "_utils": 5}
FLOORS |= {"_version": 6, "datasets": 6, "diagnostics": 6, "_types": 7}


@pytest.mark.parametrize("file", [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.rglob("*.py"))])
def test_imports_point_one_way_and_nothing_is_long(file):
    text, here = (ROOT / file).read_text(), file.removesuffix(".py").split("/")
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and (body := node.body[ast.get_docstring(node) is not None :]):
            assert node.end_lineno - body[0].lineno < 50, node.name
        if isinstance(node, ast.ImportFrom) and node.level:
            above = [*here[: len(here) - node.level], *filter(None, [node.module])]
            for path in (".".join([*above, alias.name]) for alias in node.names):
                one, other = (name if name in FLOORS else "public" for name in (here[0], path.partition(".")[0]))
                assert one == other or FLOORS.get(one, 0) < FLOORS.get(other, 0), path
                assert not {"_cpu", "_gpu"} <= {*here, *path.split(".")}, path


def test_few_calls_hand_on_what_has_no_name():
    """With * or **; beyond wrappers and records, arguments are named where they are passed."""
    nodes = [node for file in ROOT.rglob("*.py") for node in ast.walk(ast.parse(file.read_text()))]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    unnamed = [
        call
        for call in calls
        if any(isinstance(argument, ast.Starred) for argument in call.args) or None in [k.arg for k in call.keywords]
    ]
    assert len(unnamed) < 0.01 * len(calls)


def test_a_name_of_a_function_has_one_meaning():
    """Only back ends, and ``device``, which hands on to them, and samplers have functions of the same names."""
    trees = [ast.parse(file.read_text()) for file in ROOT.rglob("*.py") if file.parent != ROOT]
    names = [{node.name for node in tree.body if isinstance(node, ast.FunctionDef)} for tree in trees]
    shared = {name for name, count in Counter(name for each in names for name in each).items() if count > 1}
    of_back_ends = set(dir(contract.SparseBackEnd)) | {"checked", "give_back", "put_on_device_of"}
    assert shared - of_back_ends == {"sweep", "_trajectory"}
