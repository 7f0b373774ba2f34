"""Sphinx configuration. Nothing is downloaded during a build.

sphinx-build -W -b html docs docs/_build/html
"""

import sys
from pathlib import Path

import skhorseshoe

sys.path.insert(0, str(Path(__file__).parent))
from evidence import draw_all

project = "skhorseshoe"
author = "The skhorseshoe developers"
copyright = author
version = release = skhorseshoe.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_gallery.gen_gallery"]
extensions += ["sphinx_copybutton"]  # copies code without its prompts and without what it prints
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. ", True
extensions += ["matplotlib.sphinxext.plot_directive"]  # the picture of the front page is made by the code beside it
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
autodoc_typehints = "none"  # the docstrings say more than the annotations do
default_role = "py:obj"
highlight_language = "none"  # of literal blocks; doctests are highlighted all the same
toc_object_entries_show_parents = "hide"

numpydoc_show_class_members = False
numpydoc_validation_exclude = {r"\.(Convergence|CredibleSets)\.\w+$"}  # the fields of a named tuple
numpydoc_validation_checks = {
    *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),  # layout of the docstring
    *("SS01", "SS02", "SS03", "SS04"),  # the first line
    *("PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10"),  # parameters
    *("RT01", "YD01"),  # what is returned
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "ignore_pattern": r"quickstart\.py",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skhorseshoe",),
    "show_memory": False,
    "parallel": 2,
    "reset_modules": ("matplotlib", "plain_warnings.show"),
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
}

plot_formats = [("png", 150)]
plot_html_show_formats = plot_html_show_source_link = False
plot_include_source = True

html_theme = "furo"
html_title = f"skhorseshoe {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_sphinx = False


def setup(app):
    app.connect("builder-inited", draw_all)
