// Kernels for the Gaussian with precision H + diag(d); all float64, matrices (q, q) in C order.
#include "block.cuh"

// out[c] = H + diag(d[c]), with its diagonal raised by the share jitter; chain c is blockIdx.y.
extern "C" __global__ void add_diagonal(const double* H, const double* d, double* out, int q, double jitter) {
    const i64 size = (i64)q * q, i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const i64 row = i / q;
    double value = H[i];
    if (i - row * q == row) value = (value + d[blockIdx.y * (i64)q + row]) * (1.0 + jitter);
    out[blockIdx.y * size + i] = value;
}

// out[c] = L[c]' x[c]; column j of the factor L is row j in memory. A warp for each column.
extern "C" __global__ void multiply_transposed(const double* L, const double* x, double* out, int q) {
    const int lane = threadIdx.x & 31;
    const i64 j = (blockIdx.x * (i64)blockDim.x + threadIdx.x) >> 5, at = blockIdx.y * (i64)q;
    if (j >= q) return;
    double sum = 0.0;
    for (int i = (int)j + lane; i < q; i += 32) sum += L[(at + j) * q + i] * x[at + i];
    sum = warp_sum(sum);
    if (lane == 0) out[at + j] = sum;
}
