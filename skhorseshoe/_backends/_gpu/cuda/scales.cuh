// The scales given the coefficients; the counterpart of scales.py, which has the formulas and the reasons.
#define LEAST_B 1e-290
#define LOCAL_PURPOSE 2u
#define GLOBAL_PURPOSE 4u

// e^b E1(b) for b > 0.
__device__ __forceinline__ double scaled_exponential_integral(double b) {
    if (b < 1.0) {
        double y = -8.677337204770125e-18;
        y = y * b + 1.6537983849091297e-16;
        y = y * b - 2.9871733327421158e-15;
        y = y * b + 5.0981091545465446e-14;
        y = y * b - 8.193389712664089e-13;
        y = y * b + 1.2353110643708935e-11;
        y = y * b - 1.7397297489890083e-10;
        y = y * b + 2.27746439867652e-09;
        y = y * b - 2.755731922398589e-08;
        y = y * b + 3.0619243582206544e-07;
        y = y * b - 3.1001984126984127e-06;
        y = y * b + 2.834467120181406e-05;
        y = y * b - 0.0002314814814814815;
        y = y * b + 0.0016666666666666668;
        y = y * b - 0.010416666666666666;
        y = y * b + 0.05555555555555555;
        y = y * b - 0.25;
        y = y * b + 1.0;
        return exp(b) * (y * b - log(b) - 0.5772156649015329);
    }
    const double u = (b - 4.0) / (b + 2.0);
    double y = 1.0473598476601479e-08;
    y = y * u + 4.989906789127274e-08;
    y = y * u - 4.9849271023022794e-08;
    y = y * u - 8.298884504413557e-08;
    y = y * u + 2.357845506908514e-08;
    y = y * u + 3.6743326389511316e-07;
    y = y * u - 3.3879138835855337e-07;
    y = y * u + 7.594392140287119e-07;
    y = y * u - 1.4843791276152463e-06;
    y = y * u + 4.838800514027977e-06;
    y = y * u - 8.736382938717849e-06;
    y = y * u + 2.6510454413261257e-05;
    y = y * u - 5.2190644965630525e-05;
    y = y * u + 0.00016177252736568137;
    y = y * u - 0.0003379862490006253;
    y = y * u + 0.001128955491913729;
    y = y * u - 0.00250785254295449;
    y = y * u + 0.010133650750139046;
    y = y * u - 0.024300313655040845;
    y = y * u + 0.1903694970313361;
    y = y * u + 0.8253825996042264;
    return y / b;
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
                                        const u32* since, u32 sweep, u32 k0, u32 k1) {
    sweep += *since;
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    const int c = (int)(i / p), j = (int)(i - (long long)c * p);
    const double b = fmax(0.5 * beta[i] * beta[i] * tau_sq_inv[c], LEAST_B);
    out[i] = local_precision(b, sweep, j, stream_of(c, LOCAL_PURPOSE, 0), k0, k1);
}

// log p(log tau | beta) up to a constant, to all threads of the block.
__device__ __forceinline__ double log_density(const double* beta, int p, double log_tau, double tau_0, double* shared) {
    // An end there must be: coefficients that are all exactly zero have no law of tau.
    if (fabs(log_tau) > 300.0) return -1e300;
    const double half_tau_sq_inv = 0.5 * exp(-2.0 * log_tau), ratio = exp(log_tau) / tau_0;
    double sum = 0.0;
    for (int j = threadIdx.x; j < p; j += blockDim.x)
        sum += log(scaled_exponential_integral(fmax(beta[j] * beta[j] * half_tau_sq_inv, LEAST_B)));
    return log_tau - log1p(ratio * ratio) - p * log_tau + block_sum(sum, shared);
}

__device__ __forceinline__ double slice_unit(u32 attempt, u32 index, u32 sweep, u32 stream, u32 k0, u32 k1) {
    const Words w = philox(attempt, sweep, index, stream, k0, k1);
    return unit(w.v[0], w.v[1]);
}

// tau^-2 given beta (n_chains, p), every lambda_j integrated out: a slice step in log tau. One block for each chain; all
// its threads take the same decisions, for they see the same sums.
extern "C" __global__ void __launch_bounds__(256)
global_scale(const double* beta, const double* tau_sq_inv, double tau_0, double* out, int p, const u32* since, u32 sweep, u32 k0,
             u32 k1) {
    sweep += *since;
    DYNAMIC_SHARED(double, shared);
    const int c = blockIdx.x;
    const u32 stream = stream_of(c, GLOBAL_PURPOSE, 0);
    beta += (long long)c * p;
    const double now = -0.5 * log(tau_sq_inv[c]);
    const double level =
        log_density(beta, p, now, tau_0, shared) - exponential_1(0, sweep, 0, stream, k0, k1);
    double low = now - slice_unit(0, 1, sweep, stream, k0, k1), high = low + 1.0;
    while (log_density(beta, p, low, tau_0, shared) > level) low -= 1.0;
    while (log_density(beta, p, high, tau_0, shared) > level) high += 1.0;
    double proposed = now;
    for (u32 attempt = 0; attempt < 200; ++attempt) {
        proposed = low + (high - low) * slice_unit(attempt, 2, sweep, stream, k0, k1);
        if (log_density(beta, p, proposed, tau_0, shared) >= level) break;
        if (proposed < now) low = proposed;
        else high = proposed;
        if (attempt == 199) proposed = now;  // the slice has shrunk to the current point
    }
    if (threadIdx.x == 0) out[c] = exp(-2.0 * proposed);
}
