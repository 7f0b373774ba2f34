"""Four numbers side by side in one register, and the processor's prefetch instruction.

Lanes are for kernels whose inner loop is too irregular for the compiler. A stored number of a sparse row meets those of
four chains, which lie next to one another in memory. Left to itself, the compiler takes four stored numbers at a time
instead, and gathers from four places what it could have loaded from one. ``Lanes`` is a vector of LLVM's, and these are
the operations on it that the kernels need.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

_N = 4


class Lanes(types.Type):
    """The type, for Numba, of four numbers of a type."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, ir.VectorType(manager[lanes.dtype].get_value_type(), _N))


@intrinsic
def load(typing, array, at):
    """Elements at to at + 3 of a contiguous array of one dimension; at is uint64."""

    def code(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, types.uint64), code


@intrinsic
def store(typing, lanes, array, at):
    """Write the four to elements at to at + 3, as ``load`` reads them."""

    def code(context, builder, signature, arguments):
        value, *place = arguments
        pointer = _pointer(context, builder, signature.args[1], *place)
        builder.store(value, pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(lanes, array, types.uint64), code


@intrinsic
def lanes(typing, a, b, c, d):
    """Four numbers of one type as lanes."""

    def code(context, builder, signature, arguments):
        return _join(context, builder, signature.return_type, arguments)

    return Lanes(a)(a, a, a, a), code


@intrinsic
def lane(typing, lanes, i):
    """One of the four, 0 <= i < 4."""

    def code(context, builder, signature, arguments):
        return builder.extract_element(*arguments)

    return lanes.dtype(lanes, types.int32), code


@intrinsic
def add_times(typing, total, lanes, factor):
    """total + lanes * factor, each rounded once; factor is one number of their type."""

    def code(context, builder, signature, arguments):
        total, lanes, factor = arguments
        product = builder.fmul(lanes, _join(context, builder, signature.return_type, [factor] * _N), ("contract",))
        return builder.fadd(total, product, ("contract",))

    return total(total, lanes, lanes.dtype), code


def _pointer(context, builder, array_type, array, at):
    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), ir.VectorType(data.type.pointee, _N).as_pointer())


def _join(context, builder, lanes, values):
    out = ir.Constant(context.get_value_type(lanes), ir.Undefined)
    for i, value in enumerate(values):
        out = builder.insert_element(out, value, ir.Constant(ir.IntType(32), i))
    return out


@intrinsic
def prefetch(typingctx, X, i, j):
    """Ask for the cache line of X[i, j]; never faults, whatever the index."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], array, args[1:])
        pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch")
        builder.call(function, [pointer, i32(0), i32(3), i32(1)])  # to read, into every cache, data
        return context.get_dummy_value()

    return types.void(X, types.intp, types.intp), codegen
