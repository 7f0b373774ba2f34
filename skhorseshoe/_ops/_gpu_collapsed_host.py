"""``CollapsedRows`` of an X that the GPU has no room for: its columns come from the host, block by block."""

import cupy as cp
import numpy as np

from ._gpu_collapsed import CollapsedRows
from ._gpu_stream import Streamed, brought


def collapsed_rows(X, *others):
    """``CollapsedRows`` of an X on the GPU, or of a ``Streamed``."""
    return (_StreamedRows if isinstance(X, Streamed) else CollapsedRows)(X, *others)


class _StreamedRows(CollapsedRows):
    """X : ``Streamed``. Its columns are on the GPU in the order of the coefficients."""

    def __init__(self, X, y, order, centre, scale, *others):
        self.on_host = order, centre
        super().__init__(X, y, np.arange(len(order)), centre[order], scale[order], *others)

    def _fill(self, first, block):
        some = slice(first, first + block.shape[1])
        numbers = self.on_host[0][some]

        def read(part):
            self._launch_fill(part, self.order[: part.shape[1]], self.centre[some], self.root[first:], 0, block)

        self.X.columns(_neighbours(numbers), read)

    def _columns(self, which):
        """The host waits for the numbers."""
        asked, (order, centre) = cp.asnumpy(which).ravel(), self.on_host
        out = np.ones((len(asked), len(self.X)))
        inside = asked < len(order)
        j = order[asked[inside]]
        out[inside] = (self.X[:, j] - centre[j]).T
        return (brought(out) * self.root[which.reshape(-1)][:, None]).reshape(*which.shape, -1)


def _neighbours(numbers):
    """Numbers of columns, as a slice if they are those of neighbours: these are copied many times as fast."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers
