"""Whether all factorisations have succeeded: noted on the GPU, and looked at when something else comes to the host."""

import threading

import cupy as cp

from . import MAX_CHAINS, not_definite


class _Verdict(threading.local):
    """Of the fit that this thread is making."""

    minors = None  # (MAX_CHAINS, 2) int32 on the GPU: for each chain the minor that failed, or 0, and the columns

    def place(self):
        """Where kernels note it."""
        if self.minors is None:
            self.minors = cp.zeros((MAX_CHAINS, 2), cp.int32)
        return self.minors

    def raise_if_bad(self):
        """Raise the LinAlgError if one has failed, and forget it."""
        if self.minors is None:
            return
        bad = [(q, minor) for minor, q in cp.asnumpy(self.minors).tolist() if minor]
        if bad:
            self.forget()
            raise not_definite(*bad[0])

    def forget(self):
        self.minors = None


VERDICT = _Verdict()
