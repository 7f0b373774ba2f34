"""The processor's prefetch instruction, which Numba has no name for."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


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
