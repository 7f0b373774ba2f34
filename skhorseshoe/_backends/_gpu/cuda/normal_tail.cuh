// Twin: core/normal_tail.hpp, with the same formulas.
// The normal distribution in the log scale and its tails, float64; the exponential and the logarithm are those of CUDA's own
// library.

// exp(t^2 / 2) P(N > |t|), |t| up to 1e150.
__device__ __forceinline__ double scaled_tail(double size) {
    const double x = size * 0.7071067811865476;
    return 0.5 * erfcx_polynomial((x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x);
}

// P(N > |t|), held at TAIL_END so that it is never zero.
__device__ __forceinline__ double upper_tail(double t) {
    const double size = fmin(fabs(t), TAIL_END);
    return exp(-0.5 * size * size) * scaled_tail(size);
}

// log Phi(t) and phi(t) / Phi(t).
__device__ __forceinline__ double log_cdf(double t, double* ratio) {
    const double size = fmin(fabs(t), FAR), g = scaled_tail(size);
    if (t < 0.0) {
        *ratio = DENSITY_AT_0 / g;
        return log(g) - 0.5 * size * size;
    }
    const double held = fmin(size, TAIL_END), e = exp(-0.5 * held * held);
    *ratio = DENSITY_AT_0 * e / (1.0 - e * g);
    return log1p(-e * g);
}
