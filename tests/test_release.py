"""What is written in several files, because hosts demand it, is the same in all of them."""

import re
import tomllib
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path

import pytest

import skhorseshoe

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def minimums(lines):
    """The least version of each package, as a tuple of numbers without zeros at the end."""
    found = (re.match(r"([\w.-]+?)(?:\[[\w,]+\])?\s*[>=]=\s*(\d+(?:\.\d+)*)", line) for line in lines)
    return {one[1]: tuple(map(int, re.sub(r"(\.0)+$", "", one[2]).split("."))) for one in found if one}


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (.*)$"),
        ("conda/recipe.yaml", r'version: "(.*)"$'),
        ("CHANGELOG.md", r"^## ([\d.]+)"),
    ],
)
def test_the_version_is_the_same_everywhere(file, pattern):
    found = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    assert found[1] == skhorseshoe.__version__.partition(".dev")[0]


def test_the_conda_recipe_needs_what_the_package_needs():
    run = (ROOT / "conda/recipe.yaml").read_text().partition("  run:\n")[2].partition("\ntests:")[0]
    recipe = minimums(line.strip("- ") for line in run.splitlines())
    assert recipe == minimums(PROJECT["dependencies"])


def test_the_oldest_versions_tested_are_those_declared():
    declared = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    constraints = minimums((ROOT / "tests/constraints-oldest.txt").read_text().splitlines())
    declared = {name: least for name, least in minimums(declared).items() if name in constraints}
    assert constraints == declared
    assert minimums(PROJECT["dependencies"]).keys() - constraints.keys() == {"psutil"}  # not on Linux


def test_the_readme_has_no_dead_link_on_an_index_page():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    page = (ROOT / "README.md").read_text()
    for one in settings["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(one["pattern"], one["replacement"], page)
    assert len(re.findall(r"\]\(https:", page)) == len(re.findall(r"\]\(", page)) > 0


def test_ci_names_files_that_are_there():
    paths = set(re.findall(r"\b(?:conda|docs|examples|tests|benchmarks)/[\w/.-]+", (ROOT / ".ci/run").read_text()))
    assert {"tests/mcmc", "examples/quickstart.py"} <= paths
    assert [path for path in paths - {"docs/_build/html"} if not (ROOT / path).exists()] == []


def test_what_editors_leave_is_in_no_package():
    excluded = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["exclude"]

    def is_excluded(path):
        return any(fnmatch(part, pattern.replace("\\#", "#")) for part in path.parts for pattern in excluded)

    left = ["{}.orig", "{}~", "{}.rej", "{}.bak", ".{}.swp", ".{}.swo", ".#{}", "#{}#", "._{}", ".ipynb_checkpoints/{}"]
    left += [".DS_Store", ".idea/{}.xml", "__pycache__/{}c"]
    names = [Path(form.format(name)) for form in left for name in ("fit.py", "passes.cpp", "README.md")]
    assert [name for name in names if not is_excluded(name)] == []
    kinds = "py", "typed", "*pp", "cuh"
    ours = [path.relative_to(ROOT) for kind in kinds for path in ROOT.glob(f"skhorseshoe/**/*.{kind}")]
    assert len(ours) > 200
    assert not any(map(is_excluded, ours))
