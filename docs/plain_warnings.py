"""Warnings on the gallery's pages, as a reader needs them: without the file that raised them."""

import warnings


def show(gallery_conf, name):
    """Called by Sphinx-Gallery before each example, in the process that runs it."""
    warnings.formatwarning = lambda message, category, *_args, **_kwargs: f"{category.__name__}: {message}\n"
