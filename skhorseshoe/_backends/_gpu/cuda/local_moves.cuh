// Twin: move_scales in _cpu/path_kernels.py, which has the formulas.
// Moves of some lambda_j with all coefficients integrated out.

// Of log lambda_j, up to a constant.
__device__ __forceinline__ double log_local(double log_lambda, double v, double c, double tau_sq_inv) {
    const double lambda_sq = exp(2.0 * log_lambda), variance = v + lambda_sq / tau_sq_inv;
    if (v > (1.0 - LEAST_FREE) * variance) return -1e300;
    const double odds = 1.0 + lambda_sq;
    return log_lambda - 0.5 * (log(odds * odds * variance) + c * c / variance);
}

// The next log lambda: slice sampling in an interval around the current one, which shrinks (Neal 2003).
__device__ __forceinline__ double local_slice(double now, double v, double c, double tau_sq_inv, u32 step, u32 sweep,
                                              u32 stream, u32 k0, u32 k1) {
    const double here = log_local(now, v, c, tau_sq_inv);
    if (!(here > -1e300)) return now;
    const double level = here - exponential_1(0, sweep, step, stream, k0, k1);
    double low = now - LOCAL_WIDTH * unit_1(1, sweep, step, stream, k0, k1), high = low + LOCAL_WIDTH;
    for (u32 attempt = 2; attempt < 200; ++attempt) {
        const double proposed = low + (high - low) * unit_1(attempt, sweep, step, stream, k0, k1);
        if (log_local(proposed, v, c, tau_sq_inv) >= level) return proposed;
        if (proposed < now) low = proposed;
        else high = proposed;
    }
    return now;  // the slice has shrunk to the current point
}

// P (n_chains, k, k), m and x (n_chains, k), all overwritten; x = lambda^-2. One block for each chain: all its threads
// take the same decisions, and share the update of P. Shared memory: k numbers.
extern "C" __global__ void __launch_bounds__(THREADS)
move_local_scales(double* P, double* m, double* x, const double* tau_sq_inv, int k, u32 sweep, u32 k0,
                  u32 k1) {
    DYNAMIC_SHARED(double, column);
    const int chain = blockIdx.x;
    const u32 stream = stream_of(chain, LOCAL_SLICE, 0);
    const double precision = tau_sq_inv[chain];
    P += (long long)chain * k * k;
    m += (long long)chain * k;
    x += (long long)chain * k;
    for (int step = 0; step < 2 * k; ++step) {
        const int j = step < k ? step : 2 * k - 1 - step;
        const double now = x[j], mean = m[j], own = P[j * k + j], d = precision * now, rest = 1.0 - d * own;
        for (int a = threadIdx.x; a < k; a += blockDim.x) column[a] = P[a * k + j];
        SYNC(MOVE_READ);  // everything, before anything is written
        double next = now;
        if (rest > LEAST_FREE)
            next = exp(-2.0 * local_slice(-0.5 * log(now), own / rest, mean / rest, precision, step, sweep, stream, k0, k1));
        const double change = precision * next - d, factor = change / (1.0 + change * own);
        if (next != now) {
            for (int a = threadIdx.x >> 5; a < k; a += blockDim.x >> 5) {  // a warp has a row
                const double own_factor = factor * column[a];
                for (int b = threadIdx.x & 31; b < k; b += 32) P[a * k + b] -= own_factor * column[b];
            }
            for (int a = threadIdx.x; a < k; a += blockDim.x) m[a] -= factor * mean * column[a];
            if (threadIdx.x == 0) x[j] = next;
        }
        SYNC(MOVE_WRITTEN);
    }
}
