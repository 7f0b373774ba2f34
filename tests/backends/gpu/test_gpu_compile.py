"""Every CUDA kernel is compiled for every architecture, with the options that CuPy adds; no driver is needed."""

import re
from functools import partial

import pytest
from cuda_emulator import kernel_names

from skhorseshoe._backends._gpu import cuda

core = pytest.importorskip(
    "cupy._core.core", reason="needs the compiler: pip install -e '.[gpu-test]'", exc_type=ImportError
)
nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")

REGISTERS = 65_536  # of a multiprocessor
ARCHITECTURES = OLDEST, *BETWEEN, NEWEST = "75", "80", "86", "89", "90", "100"
FUNCTION = re.compile(
    r"Compiling entry function '(\w+)'.*?"
    r"(\d+) bytes spill stores, (\d+) bytes spill loads.*?"
    r"Used (\d+) registers",
    re.S,
)
slow = partial(pytest.param, marks=pytest.mark.slow)


def compiled(module, architecture, definitions=()):
    """Of each kernel by name its registers and the bytes that it spills. A RuntimeError has the compiler's words."""
    options = core.assemble_cupy_compiler_options((*cuda.OPTIONS, *definitions))
    options += ("-ftz=true", f"-arch=sm_{architecture}", "--device-as-default-execution-space", "--ptxas-options=-v")
    program = nvrtc.createProgram(cuda.source(module), f"{module}.cu", (), ())
    try:
        nvrtc.compileProgram(program, list(options))
        log = nvrtc.getProgramLog(program)
    except nvrtc.NVRTCError:
        raise RuntimeError(nvrtc.getProgramLog(program)) from None
    finally:
        nvrtc.destroyProgram(program)
    found = FUNCTION.findall(log)
    return {name: {"registers": int(own), "spilled": int(out) + int(back)} for name, out, back, own in found}


def check(module, architecture, definitions=(), blocks=4):
    """So many blocks find room on a multiprocessor, and no kernel keeps values in local memory."""
    try:
        nvrtc.getVersion()
    except RuntimeError as error:
        pytest.skip(f"needs the compiler: pip install -e '.[gpu-test]' ({error})")
    found = compiled(module, architecture, definitions)
    assert set(found) == set(kernel_names(cuda.source(module)))
    assert not [name for name, kernel in found.items() if kernel["spilled"]]
    assert blocks * cuda.THREADS * max(kernel["registers"] for kernel in found.values()) <= REGISTERS


def check_passes(architecture, chains, dtype, staged):
    """The blocks that a multiprocessor can hold are at least those that the layout counts on."""
    blocks = 1 if chains * cuda.TYPES[dtype][3] > 32 else 2
    check("dense_passes", architecture, cuda.definitions(chains, dtype, staged), blocks)


@pytest.mark.parametrize("architecture", [OLDEST, NEWEST, *map(slow, BETWEEN)])
def test_kernels_compile_without_spills(architecture):
    """The passes as four chains ask for them."""
    for module in ("probe", "chains", "answers"):
        check(module, architecture)
    check_passes(architecture, 4, "float32", True)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("chains", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("dtype", cuda.TYPES)
@pytest.mark.parametrize("staged", [True, False])
def test_all_passes_compile_without_spills(staged, dtype, chains, architecture):
    check_passes(architecture, chains, dtype, staged)
