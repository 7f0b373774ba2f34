"""What every CUDA kernel takes on every architecture: registers, shared memory, code. Needs NVRTC, but no GPU."""

import argparse
import re
from pathlib import Path

from _measure import Report
from cupy._core import core
from cupy_backends.cuda.libs import nvrtc

from skhorseshoe._backends._gpu import cuda

ARCHITECTURES = ("75", "80", "86", "89", "90", "100")
_FUNCTION = re.compile(
    r"Compiling entry function '(\w+)'.*?"
    r"(\d+) bytes spill stores, (\d+) bytes spill loads.*?"
    r"Used (\d+) registers([^\n]*)",
    re.S,
)
# Of each module, the definitions with which a fit of four chains can ask for it.
VARIANTS = {
    "probe": ((),),
    "chains": ((),),
    "answers": ((),),
    "dense_passes": tuple(cuda.definitions(4, dtype, staged) for dtype in cuda.TYPES for staged in (True, False)),
}


def compiled(module, architecture, definitions=()):
    """Of each kernel by name its registers, the bytes that it spills, and its static shared memory; and the bytes of
    code of the module. With the options that CuPy adds. A RuntimeError has the compiler's words."""
    options = core.assemble_cupy_compiler_options((*cuda.OPTIONS, *definitions))
    options += ("-ftz=true", f"-arch=sm_{architecture}", "--device-as-default-execution-space", "--ptxas-options=-v")
    program = nvrtc.createProgram(cuda.source(module), f"{module}.cu", (), ())
    try:
        nvrtc.compileProgram(program, list(options))
        log, code = nvrtc.getProgramLog(program), len(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError:
        raise RuntimeError(nvrtc.getProgramLog(program)) from None
    finally:
        nvrtc.destroyProgram(program)
    kernels = {}
    for name, stores, loads, registers, rest in _FUNCTION.findall(log):
        shared = re.search(r"(\d+) bytes smem", rest)
        spilled, fixed = int(stores) + int(loads), int(shared[1]) if shared else 0
        kernels[name] = {"registers": int(registers), "spilled": spilled, "shared": fixed}
    return kernels, code


def measure(report, architectures):
    for module, variants in VARIANTS.items():
        for definitions in variants:
            what = " ".join((module, *definitions))
            found = {
                f"sm_{architecture}": compiled(module, architecture, definitions) for architecture in architectures
            }
            report.figures[what] = {name: {"code": code, "kernels": of} for name, (of, code) in found.items()}
            every = [kernel for kernels, _ in found.values() for kernel in kernels.values()]
            report.add(f"{what}: registers, at most", max(kernel["registers"] for kernel in every))
            report.add(f"{what}: spilled", sum(kernel["spilled"] for kernel in every), "bytes", at_most=0)
            report.add(f"{what}: code, at most", max(code for _, code in found.values()) / 1024, "KiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one architecture: does it run?")
    parser.add_argument("--output", type=Path, help="default: results/kernels-<date>.json, if all is compiled")
    options = parser.parse_args()
    report = Report()
    report.figures["NVRTC"] = nvrtc.getVersion()
    report.head()
    measure(report, ARCHITECTURES[-2:-1] if options.quick else ARCHITECTURES)
    report.write("kernels", options.output, complete=not options.quick)


if __name__ == "__main__":
    main()
