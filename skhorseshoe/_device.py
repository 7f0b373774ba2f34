"""From the ``device`` parameter to a back end."""

from scipy.sparse import issparse


def resolve(device, X):
    """The back end's module for rows such as X, and the name of the device it computes on.

    Raises
    ------
    RuntimeError
        If a GPU is asked for: there is never a silent fallback to another device.
    """
    if device == "cuda":
        raise RuntimeError(
            "device='cuda' cannot be used: this release of skhorseshoe has no back end for GPUs (CuPy and a driver "
            "would not change that: there is nothing to install). Use device='cpu' or device='auto'."
        )
    if issparse(X):
        from ._ops import sparse

        return sparse, "cpu"
    from ._ops import cpu  # compiles or loads kernels: not before the first fit

    return cpu, "cpu"
