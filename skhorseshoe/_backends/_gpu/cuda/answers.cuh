// The information of rows, and probabilities, from linear predictors; float64.
#include "block.cuh"
#include "likelihood.cuh"

// out[r] = the mean over k of the information, the product of both slopes, eta (count, m).
extern "C" __global__ void information_weights(const double* eta, double* out, i64 count, int m) {
    const i64 r = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count) return;
    double sum = 0.0;
    for (int k = 0; k < m; ++k) sum += Likelihood::at(eta[r * m + k]).slope * Likelihood::at(-eta[r * m + k]).slope;
    out[r] = sum / m;
}

// out[r] = the means over s of P(y = 0) and P(y = 1) at t = eta[r][s]; one block for each row.
extern "C" __global__ void __launch_bounds__(THREADS)
mean_probabilities(const double* eta, double* out, int n_draws) {
    DYNAMIC_SHARED(double, shared);
    double lower = 0.0, upper = 0.0;
    for (int s = threadIdx.x; s < n_draws; s += blockDim.x) {
        const double t = eta[(i64)blockIdx.x * n_draws + s], smaller = Likelihood::smaller(t);
        lower += t > 0.0 ? smaller : 1.0 - smaller;
        upper += t > 0.0 ? 1.0 - smaller : smaller;
    }
    lower = block_sum(lower, shared);
    upper = block_sum(upper, shared);
    if (threadIdx.x == 0) out[2LL * blockIdx.x] = lower / n_draws, out[2LL * blockIdx.x + 1] = upper / n_draws;
}
