"""What a report of a bug needs to say."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import sklearn
import threadpoolctl

from ._backends.device import gpu_status
from ._utils.threads import count_threads

_PACKAGES = ("skhorseshoe", "cupy-cuda13x", "cupy-cuda12x")  # in addition to those of scikit-learn


def show_versions() -> None:
    """Print versions, the libraries for linear algebra, the threads, and whether a GPU can be used and why not.

    The GPU is tried out: a kernel is compiled and run, and the libraries are loaded.
    """
    sklearn.show_versions()
    if not any(library["user_api"] == "blas" for library in threadpoolctl.threadpool_info()):
        print("no BLAS whose threads can be set, as where it is Apple's Accelerate")
    print("\nskhorseshoe:")
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            print(f"{name:>13}: {version(name)}")
    print(f"{'cpu':>13}: {count_threads(None)} threads")
    works, why = gpu_status()
    print(f"{'cuda':>13}: {why if works else f'not available. {why}'}")
