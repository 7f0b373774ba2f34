// What is drawn or derived from the linear predictor of a row, in a pass over dense or sparse rows, and its totals over a
// block. Compiled for CHAINS (1, 2, 4, 8 or 16) and REAL, in which rows are computed.
#define THREADS 256
#define WARPS (THREADS / 32)
#define LATENT_PURPOSE 0u

struct Latent {
    u32 sweep, k0, k1;
    long long first_row;  // the number of row 0 among those whose random numbers these are
    double total;  // of z^2 over the rows that this thread has seen, all for one chain
    __device__ __forceinline__ REAL operator()(REAL eta, bool one, const double*, long long row, u32 chain) {
        row += first_row;
        const REAL z = truncated_normal<REAL>(one ? eta : -eta, sweep, (u32)row, stream_of(chain, LATENT_PURPOSE, row),
                                              k0, k1);
        total += (double)z * (double)z;
        return one ? z : -z;
    }
};

struct Score {
    double total;  // of the log-likelihood
    __device__ __forceinline__ REAL operator()(REAL eta, bool one, const double* weight, long long row, u32) {
        double ratio;
        const double log_phi = log_cdf((double)(one ? eta : -eta), &ratio), w = weight ? weight[row] : 1.0;
        total += w * log_phi;
        return REAL(one ? w * ratio : -w * ratio);
    }
};

// out[chain] = the sum over the block of the threads' totals; thread t has that of chain t % CHAINS.
__device__ __forceinline__ void add_totals(double total, double* out) {
    DYNAMIC_SHARED(unsigned char, memory);
    double* shared = (double*)memory;  // (WARPS, CHAINS), no longer than the dots that were there and have been read
#pragma unroll
    for (int offset = 16; offset >= CHAINS; offset >>= 1) total += __shfl_xor_sync(0xffffffffu, total, offset);
    if ((threadIdx.x & 31) < CHAINS) shared[(threadIdx.x >> 5) * CHAINS + (threadIdx.x & 31)] = total;
    SYNC(TOTALS_READY);
    if (threadIdx.x < CHAINS) {
        total = 0.0;
        for (int w = 0; w < WARPS; ++w) total += shared[w * CHAINS + threadIdx.x];
        out[threadIdx.x] = total;
    }
}
