// A block of threads as the team of one chain: its sums, and vectors that its threads share.
#include "primitives.cuh"
#include "base.hpp"

// The sum over the lanes of a warp, to all of them.
HD double warp_sum(double value) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

// The sum over the threads of a block, in a fixed order, to all of them. shared : a double for each warp.
HD double block_sum(double value, double* shared) {
    value = warp_sum(value);
    SYNC(SUM_FREE);
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = value;
    SYNC(SUM_READY);
    double total = 0.0;
    for (int w = 0; w < (int)(blockDim.x >> 5); ++w) total += shared[w];
    return total;
}

struct Block {
    double* shared;  // a number for each warp

    template <class F> HD_MEMBER double sum_logs(i64 n, F f) const {
        LogSum logs;
        for (i64 j = threadIdx.x; j < n; j += blockDim.x) logs.add(f(j));
        return block_sum(logs.value(), shared);
    }
    HD_MEMBER void copy(double* to, const double* from, i64 n) const {
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) to[i] = from[i];
        SYNC(COPIED);
    }
    HD_MEMBER void add_multiple(double* y, double factor, const double* x, i64 n) const {
        for (i64 i = threadIdx.x; i < n; i += blockDim.x) y[i] += factor * x[i];
    }
    HD_MEMBER void add_square(double* P, double factor, const double* g, i64 n) const {
        for (i64 a = threadIdx.x >> 5; a < n; a += blockDim.x >> 5) {  // a warp has a row
            const double own = factor * g[a];
            for (i64 b = threadIdx.x & 31; b < n; b += 32) P[a * n + b] += own * g[b];
        }
        SYNC(SQUARE_ADDED);
    }
};
