"""Every CUDA kernel is compiled for every architecture, with the options that CuPy adds; no driver is needed."""

import pytest
from cuda_emulator import kernel_names

from skhorseshoe._backends._gpu import cuda

pytest.importorskip("cupy._core.core", reason="needs the compiler: pip install -e '.[gpu-test]'", exc_type=ImportError)
nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
import kernels  # noqa: E402 - of benchmarks/, imports CuPy

ARCHITECTURES = kernels.ARCHITECTURES
REGISTERS = 65_536  # of a multiprocessor


def compiled(module, architecture, definitions=()):
    """Registers of each kernel; fails where a kernel keeps values in local memory."""
    try:
        nvrtc.getVersion()
    except RuntimeError as error:
        pytest.skip(f"needs the compiler: pip install -e '.[gpu-test]' ({error})")
    found, _ = kernels.compiled(module, architecture, definitions)
    assert set(found) == set(kernel_names(cuda.source(module)))
    assert not [name for name, kernel in found.items() if kernel["spilled"]]
    return {name: kernel["registers"] for name, kernel in found.items()}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_of_size_p_compile_without_spills(architecture):
    for module in ("probe", "scales"):
        assert max(compiled(module, architecture).values()) <= 64
    for element, *_ in cuda.TYPES.values():
        assert max(compiled("rows", architecture, (f"-DELEMENT={element}",)).values()) <= 64


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_of_more_columns_than_rows_compile_without_spills(architecture):
    for element, *_ in cuda.TYPES.values():
        compiled("collapsed", architecture, (f"-DELEMENT={element}",))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_of_sparse_rows_compile_without_spills(architecture):
    for dtype, index in (("float32", "int32"), ("float64", "int64")):
        assert max(compiled("sparse_rows", architecture, cuda.sparse_definitions(None, dtype, index)).values()) <= 64
    sparse_passes(architecture, 4, "float32", "int32")


def sparse_passes(architecture, chains, *types):
    """Two blocks have room on a multiprocessor, at least."""
    registers = max(compiled("sparse", architecture, cuda.sparse_definitions(chains, *types)).values())
    assert 2 * registers * cuda.THREADS <= REGISTERS


@pytest.mark.slow
@pytest.mark.parametrize("types", [("float32", "int64"), ("float64", "int32"), ("float32", "int32", "float64")])
@pytest.mark.parametrize("chains", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_passes_over_sparse_rows_compile_without_spills(architecture, chains, types):
    sparse_passes(architecture, chains, *types)


def passes(architecture, chains, dtype, staged):
    """The blocks that a multiprocessor can hold are at least those that the layout counts on."""
    registers = max(compiled("passes", architecture, cuda.definitions(chains, dtype, staged)).values())
    blocks = 1 if chains * cuda.TYPES[dtype][3] > 32 else 2
    assert registers * cuda.THREADS * blocks <= REGISTERS


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_passes_of_the_default_chains_compile_without_spills(architecture):
    passes(architecture, 4, "float32", True)


@pytest.mark.slow
@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("dtype", cuda.TYPES)
@pytest.mark.parametrize("chains", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_passes_compile_without_spills(architecture, chains, dtype, staged):
    passes(architecture, chains, dtype, staged)
