// The second stage of the sums of a pass: out (chains, rows) = the sum over the blocks of sums (blocks, rows, width), in
// order; width is at least the number of chains.
#include "primitives.cuh"
#include "base.hpp"
extern "C" __global__ void __launch_bounds__(THREADS)
add_blocks(const double* sums, double* out, int blocks, int n_rows, int width, int chains) {
    DYNAMIC_SHARED(double, strips);  // (warps, 32)
    const int lane = threadIdx.x & 31, strip = threadIdx.x >> 5, n_strips = blockDim.x >> 5;
    const i64 size = (i64)n_rows * width, i = blockIdx.x * 32LL + lane;
    double total = 0.0;
    if (i < size)
        for (int b = strip; b < blocks; b += n_strips) total += sums[b * size + i];
    strips[threadIdx.x] = total;
    SYNC(STRIPS_READY);
    if (strip != 0 || i >= size) return;
    for (int s = 1; s < n_strips; ++s) total += strips[s * 32 + lane];
    if (i % width < chains) out[i % width * n_rows + i / width] = total;
}
