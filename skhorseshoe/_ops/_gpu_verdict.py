"""Whether all factorisations have succeeded: noted on the GPU, and looked at when something else comes to the host."""

import threading

import cupy as cp

from . import MAX_CHAINS, not_definite


class _Verdict(threading.local):
    """Of the fit that this thread is making."""

    def __init__(self):
        self.minors = {}

    def place(self, error=not_definite):
        """Where kernels note it: (MAX_CHAINS, 2) int32, for each chain the minor that failed, or 0, and the size.

        error : makes the error of size and minor.
        """
        if error not in self.minors:
            self.minors[error] = cp.zeros((MAX_CHAINS, 2), cp.int32)
        return self.minors[error]

    def raise_if_bad(self):
        """Raise the LinAlgError if one has failed, and forget it."""
        for error, minors in self.minors.items():
            bad = [(size, minor) for minor, size in cp.asnumpy(minors).tolist() if minor]
            if bad:
                self.forget()
                raise error(*bad[0])

    def forget(self):
        self.minors = {}


VERDICT = _Verdict()
