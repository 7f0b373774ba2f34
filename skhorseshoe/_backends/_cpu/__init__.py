"""The back ends for the CPU: NumPy arrays, kernels compiled by Numba, LAPACK from SciPy."""
