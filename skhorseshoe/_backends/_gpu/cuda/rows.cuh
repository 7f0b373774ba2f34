// Questions that are asked of rows now and then, not in every sweep; float64.

// out (count, q) = the rows of X with a column of ones if q > p.
extern "C" __global__ void widen_rows(const ELEMENT* X, double* out, long long count, int p, int q) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count * q) return;
    const long long r = i / q, j = i - r * q;
    out[i] = j < p ? (double)number(X[r * p + j]) : 1.0;
}

// out[r] = the mean over k of phi(eta)^2 / (Phi(eta) Phi(-eta)), eta (count, m).
extern "C" __global__ void information_weights(const double* eta, double* out, long long count, int m) {
    const long long r = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count) return;
    double sum = 0.0, above, below;
    for (int k = 0; k < m; ++k) {
        log_cdf(eta[r * m + k], &above);
        log_cdf(-eta[r * m + k], &below);
        sum += above * below;
    }
    out[r] = sum / m;
}

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
