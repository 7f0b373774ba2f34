"""The back ends for the CPU: NumPy arrays, the core in C++, LAPACK from SciPy."""
