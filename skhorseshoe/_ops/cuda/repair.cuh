// Cholesky factors where the library has failed, on the GPU: the host does not hear of it, so it need not wait for it.

// The lower factor of H + diag(d), its diagonal raised; column j lies in row j of memory. The order of the minor that is
// not positive, or 0; the same to all threads of the block. pivots : two.
__device__ __forceinline__ int factorise(const double* H, const double* d, double raise, double* L, int q,
                                         double* pivots) {
    SYNC(PIVOT_FREE);
    for (int j = 0; j < q; ++j) {
        double* column = L + (long long)j * q;
#pragma unroll 1
        for (int i = j + threadIdx.x; i < q; i += blockDim.x) {
            double value = H[(long long)j * q + i];
            if (i == j) value = (value + d[j]) * raise;
#pragma unroll 4
            for (int k = 0; k < j; ++k) value -= L[(long long)k * q + j] * L[(long long)k * q + i];
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
    }
    return 0;
}

// Chain c is block c; nothing to do where info[c] is 0. The diagonal is raised by the jitters in turn, until one helps; if
// none does, verdict[c] = (the minor that failed, q), which stays there until the host asks.
extern "C" __global__ void __launch_bounds__(256)
repair(const double* H, const double* d, double* factors, int q, const int* info, const double* jitters, int n_jitters,
       int* verdict) {
    DYNAMIC_SHARED(double, pivots);
    const int c = blockIdx.x;
    if (info[c] == 0) return;
    int minor = 0;
    for (int k = 0; k < n_jitters; ++k) {
        minor = factorise(H, d + (long long)c * q, 1.0 + jitters[k], factors + c * (long long)q * q, q, pivots);
        if (minor == 0) return;
    }
    if (threadIdx.x == 0) {
        verdict[2 * c] = minor;
        verdict[2 * c + 1] = q;
    }
}
