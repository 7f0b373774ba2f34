"""Steps that skl2onnx converts wrongly, or not in float64: functions for it, which give a shape and add nodes."""

from functools import partial

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)


def converters(skl2onnx):
    """Functions for the nodes, and for the shapes, by the type of a step."""
    nodes = {SimpleImputer: _fill_in, OneHotEncoder: _encode, OrdinalEncoder: _encode}
    nodes |= dict.fromkeys([StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler], _scale)
    return (
        {step: partial(function, skl2onnx) for step, function in nodes.items()},
        {step: partial(_describe, skl2onnx) for step in nodes},
    )


def _describe(skl2onnx, operator):
    """The type is what skl2onnx has foreseen, which the steps behind go by, but whole numbers do not become float32."""
    has_float32 = any(_is_of(entry, "Float") for entry in operator.inputs)
    if not isinstance(operator.raw_operator, (SimpleImputer, OneHotEncoder)) and not has_float32:
        operator.outputs[0].type = skl2onnx.common.data_types.DoubleTensorType()
    operator.outputs[0].type.shape = [None, len(operator.raw_operator.get_feature_names_out())]


def _fill_in(skl2onnx, scope, operator, container):
    """skl2onnx leaves out the indicators, and fills in by a node that ONNX Runtime has in float32 alone."""
    imputer = operator.raw_operator
    if _is_of(operator.inputs[0], "String"):
        if imputer.add_indicator:
            raise NotImplementedError(
                "add_indicator=True is for numbers; OneHotEncoder makes a level of missing strings."
            )
        return skl2onnx.common._registration.get_converter("SklearnSimpleImputer")(scope, operator, container)
    add = _Adding(scope, container)
    given = add.columns_of(operator)
    code = imputer.missing_values
    is_number = isinstance(code, (int, float, np.number)) and code == code
    missing = add("Equal", given, float(code)) if is_number else add("IsNaN", given)
    kind = getattr(imputer, "_fill_dtype", np.float64)  # whole numbers are filled in with such; of newer scikit-learn
    values = imputer.statistics_.astype(kind).astype(np.float64)
    kept = np.flatnonzero(imputer.keep_empty_features | ~np.isnan(imputer.statistics_.astype(np.float64)))
    filled = add("Gather", add("Where", missing, values, given), kept, axis=1)
    marked = imputer.indicator_.features_.astype(np.int64) if imputer.add_indicator else np.empty(0, np.int64)
    marks = add("Cast", add("Gather", missing, marked, axis=1), to=add.double)
    add.finish(operator, filled, marks)


def _scale(skl2onnx, scope, operator, container):
    """skl2onnx joins columns that are inputs of their own in float32, and cannot join whole numbers and others."""
    scaler, add = operator.raw_operator, _Adding(scope, container)
    values = add.columns_of(operator)
    if isinstance(scaler, MinMaxScaler):
        values = add("Add", add("Mul", values, scaler.scale_), scaler.min_)
        ends = scaler.feature_range
    else:
        centre = getattr(scaler, "mean_" if isinstance(scaler, StandardScaler) else "center_", None)
        values = values if centre is None or not getattr(scaler, "with_mean", True) else add("Sub", values, centre)
        values = values if scaler.scale_ is None else add("Div", values, scaler.scale_)
        ends = -1, 1
    if getattr(scaler, "clip", False):
        values = add("Min", add("Max", values, float(ends[0])), float(ends[1]))
    add.finish(operator, values)


def _encode(skl2onnx, scope, operator, container):
    """skl2onnx knows no level in place of those that are rare or new, and no booleans.

    A level that the encoder refuses makes the row nan."""
    encoder, add = operator.raw_operator, _Adding(scope, container)
    columns = [(entry, place) for entry in operator.inputs for place in range(entry.type.shape[1])]
    made_of = _codes_of_levels if isinstance(encoder, OrdinalEncoder) else _columns_of_levels
    blocks = []
    for j, ((entry, place), levels) in enumerate(zip(columns, encoder.categories_, strict=True)):
        values = add("Gather", entry.full_name, np.array([place]), axis=1)
        if _is_of(entry, "String"):
            number = {"values_int64s": np.arange(len(levels)), "default_int64": -1}
            keys = [str(level) for level in levels]
            values = add("LabelEncoder", values, keys_strings=keys, **number, domain="ai.onnx.ml", version=2)
            levels = np.arange(len(levels))
        whole = levels.dtype.kind in "biu" and not _is_of(entry, "Float", "Double")  # float64 would merge large ones
        levels = levels.astype(np.int64 if whole else np.float64)
        values = add("Cast", values, to=add.whole if whole else add.double)
        same = add("Equal", values, levels)
        if np.isnan(levels).any():
            same = add("Or", same, add("And", add("IsNaN", values), np.isnan(levels)))
        is_level, (known, new) = add("Cast", same, to=add.double), made_of(encoder, j)
        is_known = add("Cast", add("ReduceSum", is_level, np.array([1])), to=add.boolean)
        blocks.append(add("Where", is_known, add("MatMul", is_level, known), new))
    add.finish(operator, *blocks)


def _are_rare(encoder, j):
    """Which levels of a column have one place together, the last."""
    levels, rare = encoder.categories_[j], None
    if encoder.min_frequency is not None or encoder.max_categories is not None:
        rare = encoder.infrequent_categories_[j]
    rare = set() if rare is None else set(map(str, rare))
    return np.array([str(level) in rare for level in levels])


def _codes_of_levels(encoder, j):
    """The code of each level of a column, a row for each, and of a new one."""
    is_rare, is_missing = _are_rare(encoder, j), [level is None or level != level for level in encoder.categories_[j]]
    is_own = ~is_rare & ~np.array(is_missing)
    codes = np.where(is_rare, is_own.sum(), np.cumsum(is_own) - 1.0)
    codes[is_missing] = encoder.encoded_missing_value
    return codes[:, None], np.array([np.nan if encoder.unknown_value is None else encoder.unknown_value], np.float64)


def _columns_of_levels(encoder, j):
    """What the encoder makes of each level of a column, a row for each, and of a new one."""
    is_rare = _are_rare(encoder, j)
    rare = is_rare.any()
    known = np.eye((~is_rare).sum() + rare)[np.where(is_rare, -1, np.cumsum(~is_rare) - 1)]
    if encoder.drop_idx_ is not None and encoder.drop_idx_[j] is not None:
        known = known[:, known[encoder.drop_idx_[j]] == 0]
    if encoder.handle_unknown == "error":
        return known, np.full(known.shape[1], np.nan)
    takes_rare = rare and encoder.handle_unknown != "ignore"
    return known, known[is_rare.argmax()] if takes_rare else np.zeros(known.shape[1])


def _is_of(entry, *kinds):
    return type(entry.type).__name__ in {f"{kind}TensorType" for kind in kinds}


class _Adding:
    """Calling it adds a node to those of skl2onnx, on names of values or constants; returns the name of its result."""

    def __init__(self, scope, container):
        import onnx

        self.scope, self.container, self.onnx = scope, container, onnx
        kinds = onnx.TensorProto
        self.double, self.whole, self.boolean = kinds.DOUBLE, kinds.INT64, kinds.BOOL

    def __call__(self, operation, *inputs, result=None, domain="", version=13, **attributes):
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        result = result or self.scope.get_unique_variable_name("step")
        self.container.add_node(operation, names, result, op_domain=domain, op_version=version, **attributes)
        return result

    def columns_of(self, operator):
        """The columns of the inputs side by side, in float64."""
        return self("Concat", *(self("Cast", entry.full_name, to=self.double) for entry in operator.inputs), axis=1)

    def finish(self, operator, *blocks):
        """The blocks of columns, side by side, are what the step gives."""
        output = operator.outputs[0]
        kind = self.double if _is_of(output, "Double") else self.onnx.TensorProto.FLOAT
        self("Cast", self("Concat", *blocks, axis=1), to=kind, result=output.full_name)

    def _constant(self, values):
        name, values = self.scope.get_unique_variable_name("constant"), np.asarray(values)
        self.container.add_initializer(name, None, values.shape, self.onnx.numpy_helper.from_array(values))
        return name
