"""CUDA kernels on the CPU: ``Kernel`` has the call signature of CuPy's kernels and takes NumPy arrays.

Needs a C++ compiler that understands the flags of GCC.
"""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from skhorseshoe._backends._gpu import cuda

COMPILER = os.environ.get("CXX") or shutil.which("g++")
ORDERS = {"forward": 0, "reverse": 1, "random": 2}

_HERE = Path(__file__).parent
# Without the last two, two such libraries in one process share what must not be shared.
_FLAGS = ("-std=c++17", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-fvisibility=hidden", "-fno-gnu-unique")
_KERNEL = re.compile(r'extern "C" __global__ void\s+(?:BOUNDS\s+|__launch_bounds__\([^)]+\)\s+)?(\w+)\(')


class EmulatorError(RuntimeError):
    """What a GPU would answer with an error, a hang or garbage."""


def kernel_names(text):
    return _KERNEL.findall(text)


def source(module, more=""):
    """The text of a module for the emulator."""
    text = cuda.source(module).replace(*((_primitives(folder)) for folder in (Path(cuda.__file__).parent, _HERE)))
    exports = " ".join(f"EXPORT({name})" for name in kernel_names(text + more))
    return f'#include "{_HERE / "emulator.h"}"\n{text}\n{more}\n{exports}\n'


def _primitives(folder):
    return (folder / "primitives.cuh").read_text()


def build(text, flags=("-O1",)):
    """A shared library of this text; kept in the temporary folder under a name that its contents decide."""
    command = [COMPILER, *_FLAGS, *flags]
    digest = hashlib.sha256("\0".join([*command, text, (_HERE / "emulator.h").read_text()]).encode()).hexdigest()
    path = Path(tempfile.gettempdir()) / f"skhorseshoe-emulator-{digest[:20]}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            code, library = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
            code.write_text(text)
            done = subprocess.run([*command, str(code), "-o", str(library)], capture_output=True, text=True)
            if done.returncode:
                raise EmulatorError(done.stderr)
            shutil.copy(library, path.with_suffix(f".{os.getpid()}"))
            path.with_suffix(f".{os.getpid()}").rename(path)
    return path


class Module:
    """A library of kernels; ``order`` is that in which the threads of a block run."""

    def __init__(self, path, order="forward", seed=1):
        self.library = ctypes.CDLL(str(path))
        self.order, self.seed = ORDERS[order], seed
        self.library.emulator_error.restype = ctypes.c_char_p
        sizes = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t
        self.library.emulator_launch.argtypes = [
            ctypes.c_char_p, *sizes, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64
        ]  # fmt: skip


class Kernel:
    num_regs = 64
    shared_size_bytes = 0

    def __init__(self, module, name):
        self.module, self.name = module, name.encode()
        library = module.library
        n = library.emulator_arguments(self.name)
        if n < 0:
            raise EmulatorError(f"there is no kernel {name}")
        self.sizes = [library.emulator_size(self.name, i) for i in range(n)]
        self.max_dynamic_shared_size_bytes = 48 * 1024

    def __call__(self, grid, block, arguments, *, shared_mem=0, stream=None):
        if len(arguments) != len(self.sizes):
            raise EmulatorError(f"{self.name}: {len(arguments)} arguments, the kernel takes {len(self.sizes)}")
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise EmulatorError(f"{self.name}: {shared_mem} bytes of shared memory were not asked for beforehand")
        if min(map(int, grid)) < 1:
            raise EmulatorError(f"{self.name}: a grid of {grid} blocks")
        values = [_as_passed(argument) for argument in arguments]
        for i, (value, size) in enumerate(zip(values, self.sizes, strict=True)):
            if value.nbytes != size:
                raise EmulatorError(f"{self.name}: argument {i} has {value.nbytes} bytes, the kernel wants {size}")
        pointers = (ctypes.c_void_p * len(values))(*[value.ctypes.data for value in values])
        blocks, module = (ctypes.c_uint * 2)(*(*map(int, grid), 1)[:2]), self.module
        if module.library.emulator_launch(self.name, blocks, *block, shared_mem, pointers, module.order, module.seed):
            raise EmulatorError(f"{self.name.decode()}: {module.library.emulator_error().decode()}")


def _as_passed(argument):
    """An argument as CuPy passes it: Python's numbers have 64 bits, arrays are addresses."""
    if isinstance(argument, bool):
        return np.array(argument, np.bool_)
    if isinstance(argument, int):
        return np.array(argument, np.int64)
    if isinstance(argument, float):
        return np.array(argument, np.float64)
    if getattr(argument, "ndim", 0) == 0:
        return np.array(argument)
    if not argument.flags.c_contiguous:
        raise EmulatorError("a kernel is given an array that is not contiguous")
    data = argument.data
    return np.array(data.ptr if hasattr(data, "ptr") else argument.ctypes.data, np.uint64)
