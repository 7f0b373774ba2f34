// The laws of the core for all chains: a thread for each variate, or a block for each chain.
#include "block.cuh"
#include "leapfrog.hpp"
#include "marginal_lambda_moves.hpp"
#include "tau_moves.hpp"

// Fills out (n_chains, m) with draw(stream, index, i).
template <class F>
HD void fill(double* out, i64 size, int m, Key key, u32 purpose, F draw) {
    const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (i < size) out[i] = draw(Stream(key, u32(i / m), purpose), u32(i % m), i);
}

extern "C" __global__ void fill_normal(double* out, i64 size, int m, u32 attempt, u32 sweep, u32 purpose, u32 k0, u32 k1) {
    fill(out, size, m, {sweep, k0, k1}, purpose, [=](const Stream& s, u32 j, i64) { return normal(s, j, attempt); });
}

extern "C" __global__ void fill_uniform(double* out, i64 size, int m, u32 sweep, u32 purpose, u32 k0, u32 k1) {
    fill(out, size, m, {sweep, k0, k1}, purpose, [](const Stream& s, u32 j, i64) { return uniform(s, j); });
}

extern "C" __global__ void fill_exponential(const double* rate, double* out, i64 size, int m, u32 sweep, u32 purpose,
                                            u32 k0, u32 k1) {
    fill(out, size, m, {sweep, k0, k1}, purpose, [=](const Stream& s, u32 j, i64 i) { return exponential(s, j) / rate[i]; });
}

extern "C" __global__ void fill_gamma(double shape, const double* rate, double* out, i64 size, int m, u32 sweep,
                                      u32 purpose, u32 k0, u32 k1) {
    fill(out, size, m, {sweep, k0, k1}, purpose,
         [=](const Stream& s, u32 j, i64 i) { return gamma_variate(shape, s, j) / rate[i]; });
}

// beta and out (n_chains, p).
extern "C" __global__ void draw_lambdas_given_beta(const double* beta, const double* tau_sq_inv, double* out, i64 size,
                                                   int p, u32 sweep, u32 k0, u32 k1) {
    fill(out, size, p, {sweep, k0, k1}, LAMBDA_PURPOSE,
         [=](const Stream& s, u32 j, i64 i) { return draw_lambda_given_beta(beta[i], tau_sq_inv[i / p], s, j); });
}

// beta (n_chains, p). Shared memory: a number for each warp.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
draw_taus_given_beta(const double* beta, const double* tau_sq_inv, double tau_0, double* out, int p, u32 sweep, u32 k0,
                     u32 k1) {
    DYNAMIC_SHARED(double, shared);
    const int c = blockIdx.x;
    const Stream stream({sweep, k0, k1}, c, TAU_PURPOSE);
    const double drawn = draw_tau_given_beta(Block{shared}, beta + c * (i64)p, p, tau_sq_inv[c], tau_0, stream);
    if (threadIdx.x == 0) out[c] = drawn;
}

// P (n_chains, k, k), m and x (n_chains, k). Shared memory: k numbers.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
move_slow_lambda(double* P, double* m, double* x, const double* tau_sq_inv, int k, u32 sweep, u32 k0, u32 k1) {
    DYNAMIC_SHARED(double, row);
    const i64 c = blockIdx.x;
    const Stream stream({sweep, k0, k1}, u32(c), LAMBDA_MOVE_PURPOSE);
    double work[6];
    move_lambda_marginally(Block{nullptr}, P + c * k * k, m + c * k, x + c * k, k, 1, tau_sq_inv[c], stream, row, work);
}

// Proposals of tau^-2, the level that ``log_norm`` of each must exceed, its x (n_chains, p) = lambda^-2, and its diagonal d
// (n_chains, q). tau_step : (1,). Shared memory: a number for each warp.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
propose_scales(const double* H, int p, int q, const double* log_norm, double tau_0, const double* tau_step,
               const double* lambda_sq_inv, const double* tau_sq_inv, double* proposed, double* level, double* x, double* d,
               u32 move, u32 sweep, u32 k0, u32 k1) {
    DYNAMIC_SHARED(double, shared);
    const i64 c = blockIdx.x;
    const TauStreams streams({sweep, k0, k1}, u32(c));
    const double current = tau_sq_inv[c];
    const TauProposal proposal = propose_tau(current, log_norm[c], tau_0, *tau_step, streams, move);
    Held held;
    const double growth = current / proposal.tau_sq_inv;
    x += c * p, d += c * q;
    for (i64 j = threadIdx.x; j < q; j += blockDim.x) {
        d[j] = 0.0;
        if (j >= p) continue;
        x[j] = lambda_sq_inv[c * p + j];
        held.add(H[i64(j) * (q + 1)], j, x, current, growth, uniform(streams.held, move * u32(p) + u32(j)));
        d[j] = proposal.tau_sq_inv * x[j];
    }
    const double rise = block_sum(held.value(growth), shared);
    if (threadIdx.x == 0) proposed[c] = proposal.tau_sq_inv, level[c] = proposal.level - rise;
}

// Whether a Metropolis test accepts the changes of energy, and the probabilities with which it does.
extern "C" __global__ void accept_proposals(const double* change, int n_chains, u32 sweep, u32 k0, u32 k1, bool* accepted,
                                            double* acceptance) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < n_chains) accepted[c] = accepts(change[c], Stream({sweep, k0, k1}, c, ACCEPT_PURPOSE), acceptance[c]);
}
