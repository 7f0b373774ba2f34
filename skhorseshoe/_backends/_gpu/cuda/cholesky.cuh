// Cholesky factors by one block for each chain: if the library has failed, so that the host need not wait for its verdict,
// and if the factor fits into shared memory.
#include "primitives.cuh"
#include "base.hpp"

// The lower factor of H + diag(d) with a raised diagonal; column j is row j in memory, or follows column j - 1 without a gap
// (packed). Returns the order of the minor that is not positive, or 0, to all threads of the block. pivots : (2,) scratch.
HD int factorise(const double* H, const double* d, double raise, double* L, int q, bool packed, double* pivots) {
    SYNC(PIVOT_FREE);
    double* column = L;
    for (int j = 0; j < q; ++j) {
#pragma unroll 1
        for (int i = j + threadIdx.x; i < q; i += blockDim.x) {
            double value = H[(i64)j * q + i];
            if (i == j) value = (value + d[j]) * raise;
            const double* earlier = L;
#pragma unroll 4
            for (int k = 0; k < j; ++k) {
                value -= earlier[j] * earlier[i];
                earlier += packed ? q - 1 - k : q;
            }
            column[i] = value;
            if (i == j) pivots[j & 1] = value;
        }
        SYNC(PIVOT_READY);
        const double pivot = pivots[j & 1];
        if (!(pivot > 0.0)) return j + 1;
        const double root = sqrt(pivot);
#pragma unroll 1
        for (int i = j + threadIdx.x; i < q; i += blockDim.x) column[i] = i == j ? root : column[i] / root;
        SYNC(COLUMN_READY);
        column += packed ? q - 1 - j : q;
    }
    return 0;
}

// As ``factorise``, with the first of the jitters from number k on that helps; if none does, verdict = (the minor that
// failed, q), which the host reads later.
HD void factorise_raised(const double* H, const double* d, int k, double* L, int q, bool packed, double* pivots,
                         int* verdict) {
    constexpr int N_JITTERS = sizeof JITTERS / sizeof JITTERS[0];
    int minor = 1;
    for (; k < N_JITTERS && minor != 0; ++k) minor = factorise(H, d, 1.0 + JITTERS[k], L, q, packed, pivots);
    if (minor != 0 && threadIdx.x == 0) {
        verdict[0] = minor;
        verdict[1] = q;
    }
}

// Chain c is block c, and ends if info[c] is 0 and the last pivot is positive: the library ignores NaN, which always reaches
// the last pivot. The first of the jitters is 0.
extern "C" __global__ void __launch_bounds__(THREADS)
repair(const double* H, const double* d, double* factors, int q, const int* info, int* verdict) {
    DYNAMIC_SHARED(double, pivots);
    const int c = blockIdx.x;
    double* L = factors + c * (i64)q * q;
    if (info[c] == 0 && L[(i64)q * q - 1] > 0.0) return;  // a barrier follows before L changes
    factorise_raised(H, d + (i64)c * q, 1, L, q, false, pivots, verdict + 2 * c);
}

// factors[c] = the factor of H + diag(d[c]), as by the library and ``repair``. Shared memory: q (q + 1) / 2 + 2 numbers.
extern "C" __global__ void __launch_bounds__(THREADS)
factorise_few(const double* H, const double* d, double* factors, int q, int* verdict) {
    DYNAMIC_SHARED(double, shared);
    double *pivots = shared, *L = shared + 2;
    const int c = blockIdx.x, lane = threadIdx.x & 31;
    factorise_raised(H, d + (i64)c * q, 0, L, q, true, pivots, verdict + 2 * c);
    double* out = factors + c * (i64)q * q;
    for (int j = threadIdx.x >> 5; j < q; j += blockDim.x >> 5) {
        const double* column = L + j * q - j * (j + 1) / 2;
        for (int i = j + lane; i < q; i += 32) out[j * q + i] = column[i];
    }
}

// out = L[c]^-1 x or L[c]^-T x for row blockIdx.x of chain c = blockIdx.y; q <= blockDim.x, and thread i has element i.
// Shared memory: two numbers. A thread reads L before the barrier.
extern "C" __global__ void __launch_bounds__(THREADS)
solve_few(const double* factors, const double* x, double* out, int q, int transposed) {
    DYNAMIC_SHARED(double, solved);
    const int i = threadIdx.x;
    const double* L = factors + blockIdx.y * (i64)q * q;
    const i64 at = (blockIdx.y * (i64)gridDim.x + blockIdx.x) * q;
    double value = i < q ? x[at + i] : 0.0;
#pragma unroll 2
    for (int k = 0; k < q; ++k) {
        const int j = transposed ? q - 1 - k : k;
        const bool waits = transposed ? i < j : i > j && i < q;
        const double factor = waits ? L[transposed ? i * q + j : j * q + i] : 0.0;
        if (i == j) solved[k & 1] = value /= L[j * q + j];
        SYNC(ELEMENT_READY);
        if (waits) value -= factor * solved[k & 1];
    }
    if (i < q) out[at + i] = value;
}
