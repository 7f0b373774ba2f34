"""Whether a GPU can be used, which is tested by compiling and running a kernel and reading its result."""

import warnings

_EXTRAS = "pip install 'cupy-cuda13x[ctk]' (or cupy-cuda12x, for a driver below 580)."

_FORKED = " A process forked from one that has used the GPU cannot use it: start it by 'spawn' or joblib's 'loky'."


def probe(index):
    """(True, name of the card) or (False, reason and cure in full sentences); never raises, never prints.

    A driver alone is not enough: without the CUDA libraries CuPy imports and finds the card, and fails at the first
    kernel or factorisation.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import cupy as cp
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
                return False, f"CuPy is not installed: {_EXTRAS}"
            return False, f"CuPy cannot be imported ({_short(error)}): {_EXTRAS}"
        try:
            count = cp.cuda.runtime.getDeviceCount()
        except Exception as error:
            forked = "InitializationError" in str(error)
            return False, f"CuPy {cp.__version__} finds no NVIDIA driver or card ({_short(error)}).{forked * _FORKED}"
        if index >= count:
            return False, f"There is no GPU number {index}: this machine has {count}, numbered from 0."
        try:
            return True, _run_something(cp, index)
        except Exception as error:
            problem = f"CuPy {cp.__version__} finds a card but not the CUDA libraries that it needs"
            return False, f"{problem} ({_short(error)}): {_EXTRAS}"


def _run_something(cp, index):
    from cupy_backends.cuda.libs import cublas, cusolver

    from .cuda import OPTIONS, source

    with cp.cuda.Device(index):
        out = cp.zeros(1, dtype=cp.int32)
        cp.RawModule(code=source("probe"), options=OPTIONS).get_function("answer")((1,), (1,), (out,))
        if int(cp.asnumpy(out)[0]) != 42:
            raise RuntimeError("a kernel gave a wrong answer")
        # Loading a library is what fails where it is not installed.
        cublas.getVersion(cp.cuda.device.get_cublas_handle())
        cusolver.dpotrf_bufferSize(cp.cuda.device.get_cusolver_handle(), cublas.CUBLAS_FILL_MODE_LOWER, 1, 0, 1)
        return cp.cuda.runtime.getDeviceProperties(index)["name"].decode()


def _short(error):
    lines = f"{type(error).__name__}: {error}".strip().splitlines()
    return lines[0][:200]
