"""Every public name says what it takes and returns; CI compares that with the code by mypy (``[tool.mypy]``)."""

import importlib
import inspect
from pathlib import Path

import pytest

import skhorseshoe

MODULES = ["", *(f".{name}" for name in skhorseshoe.__all__ if name.islower() and name != "show_versions")]


def routines(module):
    """Name and function of the public functions, constructors and methods that a module of ours offers."""
    for name in module.__all__:
        one = getattr(module, name)
        if inspect.isfunction(one):
            yield name, one
        elif inspect.isclass(one):
            for attribute, method in inspect.getmembers(one, inspect.isroutine):
                ours = str(getattr(method, "__module__", None)).startswith("skhorseshoe.")
                if ours and (attribute == "__init__" or not attribute.startswith("_")):
                    yield f"{name}.{attribute}", method


@pytest.mark.parametrize("name", MODULES)
def test_public_signatures_are_annotated(name):
    found = dict(routines(importlib.import_module(f"skhorseshoe{name}")))
    assert found
    for function, routine in found.items():
        signature = inspect.signature(routine)
        untyped = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name != "self"]
        assert not untyped, function
        assert signature.return_annotation is not signature.empty, function


def test_the_package_says_that_it_has_types():
    assert (Path(skhorseshoe.__file__).parent / "py.typed").is_file()
