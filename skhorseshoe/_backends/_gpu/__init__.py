"""The back ends for NVIDIA GPUs: CuPy arrays, CUDA kernels. Nothing here is imported without a GPU."""
