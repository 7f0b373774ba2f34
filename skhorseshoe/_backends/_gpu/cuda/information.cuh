// Twin: information_weights in _cpu/normal_tail.py. What X' diag(w) X is made of: rows and their weights w; float64.

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
