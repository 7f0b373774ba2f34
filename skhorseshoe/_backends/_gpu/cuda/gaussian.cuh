// What the Gaussian with precision H + diag(d) needs beside the libraries; all float64, matrices (q, q) in C order.
#include "block.cuh"

// out[c] = H + diag(d[c]), its diagonal raised by the share jitter of itself; chain c is blockIdx.y.
extern "C" __global__ void add_diagonal(const double* H, const double* d, double* out, int q, double jitter) {
    const i64 size = (i64)q * q, i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const i64 row = i / q;
    double value = H[i];
    if (i - row * q == row) value = (value + d[blockIdx.y * (i64)q + row]) * (1.0 + jitter);
    out[blockIdx.y * size + i] = value;
}

// to[c] = from[c] for the chains whose flag is set.
extern "C" __global__ void take_where(const bool* flag, const double* from, double* to, i64 size) {
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size && flag[blockIdx.y]) to[blockIdx.y * size + i] = from[blockIdx.y * size + i];
}

// out[c] = L[c]' x[c]; column j of the factor L lies in row j of memory. A warp for each column.
extern "C" __global__ void multiply_transposed(const double* L, const double* x, double* out, int q) {
    const int lane = threadIdx.x & 31;
    const i64 j = (blockIdx.x * (i64)blockDim.x + threadIdx.x) >> 5, at = blockIdx.y * (i64)q;
    if (j >= q) return;
    double sum = 0.0;
    for (int i = (int)j + lane; i < q; i += 32) sum += L[(at + j) * q + i] * x[at + i];
    sum = warp_sum(sum);
    if (lane == 0) out[at + j] = sum;
}

// out[j] = the sum over i >= j of M[j][i]^2: the diagonal of Q^-1 from M = L^-1. A warp for each row.
extern "C" __global__ void row_squares(const double* M, double* out, int q) {
    const int lane = threadIdx.x & 31;
    const i64 j = (blockIdx.x * (i64)blockDim.x + threadIdx.x) >> 5;
    if (j >= q) return;
    double sum = 0.0;
    for (int i = (int)j + lane; i < q; i += 32) sum += M[j * q + i] * M[j * q + i];
    sum = warp_sum(sum);
    if (lane == 0) out[j] = sum;
}
