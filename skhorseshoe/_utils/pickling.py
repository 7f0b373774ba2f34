"""What saved models hold beside their attributes: the version, and paths that can be loaded anywhere."""

import os

from .. import _version
from .warn import warn


def stamp(state):
    """The state with the version that saves it. Paths are strings in it: one of POSIX cannot be loaded on Windows, and
    skops asks for trust in each kind."""
    plain = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in state.items()}
    return {**plain, "_skhorseshoe_version": _version.__version__}


def check(state, parameter):
    """The state without its stamp; a warning if another version saved it, an error if it is not a model's state."""
    if not isinstance(state, dict) or parameter not in state:
        raise ValueError(
            "This is not the saved state of a HorseshoeProbitClassifier: parameters are missing. The file was damaged "
            "or written by something else; fit the model again."
        )
    saved, version = state.pop("_skhorseshoe_version", "unknown"), _version.__version__
    if saved != version:
        warn(
            f"This model was saved by skhorseshoe {saved} and is being loaded by skhorseshoe {version}: what it "
            "predicts may differ. Fit it again, or install the version that saved it."
        )
    return state
