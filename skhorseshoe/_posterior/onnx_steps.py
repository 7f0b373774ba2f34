"""The steps before a classifier as a graph of ONNX."""

import numpy as np

from .onnx_converters import converters


def convert(skl2onnx, steps, X, opset):
    """X : rows that tell the types of the inputs, or None of float64."""
    nodes, shapes = converters(skl2onnx)
    from skl2onnx.algebra.type_helper import guess_initial_types
    from skl2onnx.common.data_types import DoubleTensorType

    inputs = [("X", DoubleTensorType([None, steps.n_features_in_]))]
    made = skl2onnx.convert_sklearn(
        steps,
        initial_types=inputs if X is None else guess_initial_types(_plain(X)),
        target_opset=opset,
        custom_conversion_functions=nodes,
        custom_shape_calculators=shapes,
    )
    for entry in made.opset_import:
        if entry.domain == "":  # where the operations are older
            entry.version = opset
    return made


def _plain(X):
    """Columns of a pandas frame that hold numbers or booleans and <NA> as float64 with nan, which ONNX has."""
    if not hasattr(X, "astype") or not hasattr(X, "dtypes"):
        return X
    plain = {name: getattr(kind, "numpy_dtype", None) for name, kind in X.dtypes.items()}
    return X.astype({name: np.float64 for name, kind in plain.items() if kind is not None and kind.kind in "biuf"})
