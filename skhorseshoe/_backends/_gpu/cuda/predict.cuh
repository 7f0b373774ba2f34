// Twin: _cpu/predict.py. Probabilities from linear predictors under all draws; float64.

// out[r] = the means over s of Phi(-t) and Phi(t), t = eta[r][s]; one block for each row.
extern "C" __global__ void __launch_bounds__(THREADS)
mean_phi(const double* eta, double* out, int n_draws) {
    DYNAMIC_SHARED(double, shared);
    double lower = 0.0, upper = 0.0;
    for (int s = threadIdx.x; s < n_draws; s += blockDim.x) {
        const double t = eta[(long long)blockIdx.x * n_draws + s], tail = upper_tail(t);
        lower += t > 0.0 ? tail : 1.0 - tail;
        upper += t > 0.0 ? 1.0 - tail : tail;
    }
    lower = block_sum(lower, shared);
    upper = block_sum(upper, shared);
    if (threadIdx.x == 0) {
        out[2LL * blockIdx.x] = lower / n_draws;
        out[2LL * blockIdx.x + 1] = upper / n_draws;
    }
}
