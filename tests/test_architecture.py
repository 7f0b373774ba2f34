"""The shape of the code: imports point one way, files and functions stay short."""

import ast
import re
from pathlib import Path

import pytest

import skhorseshoe

ROOT = Path(skhorseshoe.__file__).parent
# A folder imports from itself and from those on higher floors; what has no floor is public, on floor 0.
FLOORS = {"_fit": 1, "_posterior": 2, "_data": 3, "_mcmc": 3, "_backends": 4, "disk": 4, "_model": 5, "_utils": 6}
FLOORS |= {"_version": 7, "datasets": 7, "diagnostics": 7, "_types": 8}


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


ROOMS = {
    "likelihoods": ("log_ndtr", r"\bPhi\b|cdf_parts|mills|upper_tail|truncated_normal"),
    "priors": (r"\bexp1\b|pi\*\*3", r"\blog1p\b|\be1_|\bE1\b"),
}


@pytest.mark.parametrize("room", ROOMS)
def test_only_the_room_of_a_law_knows_it(room):
    files = {path for kind in ("hpp", "cpp", "cuh", "py") for path in ROOT.rglob(f"*.{kind}")}
    others = [path for path in files if path.parent.name not in (room, "_model")]
    assert len(files) > len(others) > 200
    for path in others:
        assert not re.search(ROOMS[room][path.suffix != ".py"], path.read_text()), path


def test_the_tour_of_a_sweep_names_what_is_there():
    """A reader searches for the words of the page in the sources."""
    page = (ROOT.parent / "docs/developer/follow_one_sweep.rst").read_text()
    named = {word for code in re.findall(r"``([\w.]+)(?:\(\w*\))?``", page) for word in code.split(".") if "_" in word}
    files = [path for kind in ("hpp", "cpp", "py") for path in ROOT.rglob(f"*.{kind}")]
    there = set(re.findall(r"\w+", " ".join([path.read_text() + f" {path}" for path in files])))
    assert len(named) > 20
    assert not named - there
