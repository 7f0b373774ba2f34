// The sum over the lanes of a warp, to all of them.
__device__ __forceinline__ double warp_sum(double value) {
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

// The sum over the threads of a block, in a fixed order, to all of them. shared : a double for each warp.
__device__ __forceinline__ double block_sum(double value, double* shared) {
    value = warp_sum(value);
    SYNC(SUM_FREE);
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = value;
    SYNC(SUM_READY);
    double total = 0.0;
    for (int w = 0; w < (int)(blockDim.x >> 5); ++w) total += shared[w];
    return total;
}
