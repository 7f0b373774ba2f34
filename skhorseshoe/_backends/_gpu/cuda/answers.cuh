// The information of rows, and probabilities, from linear predictors; float64.
#include "block.cuh"
#include "normal_tail.hpp"

HD double mills_ratio(double t) {
    const CdfParts parts = cdf_parts(t);
    return mills_ratio(t, parts.e, parts.v);
}

// out[r] = the mean over k of phi(eta)^2 / (Phi(eta) Phi(-eta)), eta (count, m).
extern "C" __global__ void information_weights(const double* eta, double* out, i64 count, int m) {
    const i64 r = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count) return;
    double sum = 0.0;
    for (int k = 0; k < m; ++k) sum += mills_ratio(eta[r * m + k]) * mills_ratio(-eta[r * m + k]);
    out[r] = sum / m;
}

// out[r] = the means over s of Phi(-t) and Phi(t), t = eta[r][s]; one block for each row.
extern "C" __global__ void __launch_bounds__(THREADS)
mean_phi(const double* eta, double* out, int n_draws) {
    DYNAMIC_SHARED(double, shared);
    double lower = 0.0, upper = 0.0;
    for (int s = threadIdx.x; s < n_draws; s += blockDim.x) {
        const double t = eta[(i64)blockIdx.x * n_draws + s], tail = upper_tail(t);
        lower += t > 0.0 ? tail : 1.0 - tail;
        upper += t > 0.0 ? 1.0 - tail : tail;
    }
    lower = block_sum(lower, shared);
    upper = block_sum(upper, shared);
    if (threadIdx.x == 0) out[2LL * blockIdx.x] = lower / n_draws, out[2LL * blockIdx.x + 1] = upper / n_draws;
}
