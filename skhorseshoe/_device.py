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
            "device='cuda' cannot be used: this release of skhorseshoe computes on the CPU only, its back end for "
            "NVIDIA GPUs is not part of it yet, so there is nothing to install that would help. Use device='cpu', or "
            "device='auto', which takes a GPU as soon as one can be used."
        )
    from ._ops import cpu  # compiles or loads kernels: not before the first fit

    return cpu, "cpu"
