"""What a report of a bug needs to say."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import threadpoolctl

from ._backends.device import gpu_status
from ._utils.threads import count_threads

_PACKAGES = ("skhorseshoe", "numpy", "scipy", "scikit-learn", "pandas", "numba", "cupy-cuda13x", "cupy-cuda12x")


def show_versions() -> None:
    """Print versions, the libraries for linear algebra, the threads, and whether a GPU can be used and why not.

    The GPU is tried out: a kernel is compiled and run, and the libraries are loaded.
    """
    print("System")
    print(f"  python: {sys.version.split()[0]} ({sys.executable})")
    print(f"  machine: {platform.platform()}")
    print("Packages")
    for name in _PACKAGES:
        print(f"  {name}: {_version(name)}")
    print("BLAS and OpenMP")
    libraries = threadpoolctl.threadpool_info()
    for library in libraries:
        print(f"  {library['internal_api']} {library['version']}: {library['num_threads']} threads")
    if not any(library["user_api"] == "blas" for library in libraries):
        print("  no BLAS whose threads can be set, as where it is Apple's Accelerate")
    print("Devices")
    print(f"  cpu: {count_threads(None)} threads")
    works, why = gpu_status()
    print(f"  cuda: {why}" if works else f"  cuda: not available. {why}")


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
