// Twin: core/scales.hpp, which has the formulas and the reasons.
// The scales given the coefficients.

// e^b E1(b) for b > 0.
__device__ __forceinline__ double scaled_exponential_integral(double b) {
    if (b < 1.0) return exp(b) * (e1_near_polynomial(b) * b - log(b) - EULER);
    return e1_far_polynomial((b - 4.0) / (b + 2.0)) / b;
}

// x = lambda_j^-2 given beta_j and tau, b = beta_j^2 / (2 tau^2), by rejection on 1 + x.
__device__ __forceinline__ double local_precision(double b, u32 sweep, u32 j, u32 stream, u32 k0, u32 k1) {
    const double log_range = -log(b), below = log_range * exp(-b);
    double x = 0.0;
    for (u32 attempt = 0; attempt < 500; ++attempt) {  // each accepts with probability > 0.4
        const double e = exponential_1(2 * attempt, sweep, j, stream, k0, k1);
        const Words w = philox(2 * attempt + 1, sweep, j, stream, k0, k1);
        const double u = unit(w.v[0], w.v[1]), v = unit(w.v[2], w.v[3]);
        if (b > 1.0) {
            x = e / b;
            if (v * (1.0 + x) < 1.0) break;
        } else {
            const double share = below / (below + 0.36787944117144233);
            if (u < share) {
                x = expm1(u / share * log_range);
                if (v < exp(-b * x)) break;
            } else {
                x = (1.0 + e) / b - 1.0;
                if (v * (1.0 + e) < 1.0) break;
            }
        }
    }
    return x;
}

// beta and out (n_chains, p).
extern "C" __global__ void local_scales(const double* beta, const double* tau_sq_inv, double* out, long long size, int p,
                                        u32 sweep, u32 k0, u32 k1) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const int c = (int)(i / p), j = (int)(i - (long long)c * p);
    const double b = fmax(0.5 * beta[i] * beta[i] * tau_sq_inv[c], LEAST_B);
    out[i] = local_precision(b, sweep, j, stream_of(c, LOCAL, 0), k0, k1);
}

// log p(log tau | beta) up to a constant, to all threads of the block.
__device__ __forceinline__ double log_density(const double* beta, int p, double log_tau, double tau_0, double* shared) {
    // An end there must be: coefficients that are all exactly zero have no law of tau.
    if (fabs(log_tau) > FARTHEST) return -1e300;
    const double half_tau_sq_inv = 0.5 * exp(-2.0 * log_tau), ratio = exp(log_tau) / tau_0;
    double sum = 0.0;
    for (int j = threadIdx.x; j < p; j += blockDim.x)
        sum += log(scaled_exponential_integral(fmax(beta[j] * beta[j] * half_tau_sq_inv, LEAST_B)));
    return log_tau - log1p(ratio * ratio) - p * log_tau + block_sum(sum, shared);
}

// tau^-2 given beta (n_chains, p), every lambda_j integrated out: a slice step in log tau. One block for each chain; all
// its threads take the same decisions, for they see the same sums.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
global_scale(const double* beta, const double* tau_sq_inv, double tau_0, double* out, int p, u32 sweep, u32 k0,
             u32 k1) {
    DYNAMIC_SHARED(double, shared);
    const int c = blockIdx.x;
    const u32 stream = stream_of(c, GLOBAL, 0);
    beta += (long long)c * p;
    const double now = -0.5 * log(tau_sq_inv[c]);
    const double level =
        log_density(beta, p, now, tau_0, shared) - exponential_1(0, sweep, 0, stream, k0, k1);
    double low = now - TAU_WIDTH * unit_1(0, sweep, 1, stream, k0, k1), high = low + TAU_WIDTH;
    while (log_density(beta, p, low, tau_0, shared) > level) low -= TAU_WIDTH;
    while (log_density(beta, p, high, tau_0, shared) > level) high += TAU_WIDTH;
    double proposed = now;
    for (u32 attempt = 0; attempt < 200; ++attempt) {
        proposed = low + (high - low) * unit_1(attempt, sweep, 2, stream, k0, k1);
        if (log_density(beta, p, proposed, tau_0, shared) >= level) break;
        if (proposed < now) low = proposed;
        else high = proposed;
        if (attempt == 199) proposed = now;  // the slice has shrunk to the current point
    }
    if (threadIdx.x == 0) out[c] = exp(-2.0 * proposed);
}
