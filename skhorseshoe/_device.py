"""From the ``device`` parameter to a back end."""


def resolve(device):
    """The back end's module and the name of the device it computes on.

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
    from ._ops import cpu  # compiles or loads kernels: not before the first fit

    return cpu, "cpu"
