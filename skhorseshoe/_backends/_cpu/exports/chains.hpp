// The parts of a leapfrog step, and moves of the scales within it, for one chain, on the host.
#pragma once
#include "lapack.hpp"
#include "marginal_lambda_moves.hpp"
#include "proposal.hpp"
#include "tau_moves.hpp"

struct Lapack : OneThread {
    void copy(double* to, const double* from, i64 n) const {
        for (i64 i = 0; i < n; ++i) to[i] = from[i];
    }
    void add_multiple(double* y, double factor, const double* x, i64 n) const { ::add_multiple(y, factor, x, n); }
    void add_square(double* P, double factor, const double* g, i64 n) const { ::add_square(P, factor, g, n); }
    i32 factorise(const double* H, const double* d, i64 q, double* L) const {
        return ::factorise(H, d, q, Triangle::LOWER, L);
    }
};

static inline Scales scales_of(const State& state, i64 c, i64 p) { return {state.lambda_sq_inv + c * p, state.tau_sq_inv + c}; }

// Starts a trajectory, and computes the Gaussian unless ``same_scales``. work : (2 q,). A minor, or 0.
static inline i32 begin_chain(const Gaussians& all, const Reference& reference, const State& state, Key key, bool same_scales,
                              i64 c, const Trajectory& trajectory, double* work) {
    const i64 q = all.q;
    const Gaussian gaussian = of_chain(all, c);
    if (!same_scales)
        if (const i32 minor = set_gaussian(Lapack(), all, scales_of(state, c, all.p), gaussian, work)) return minor;
    begin(of_chain(reference, c, q), gaussian, state.beta + c * q, state.loglik[c], state.score + c * q, q,
          Stream(key, u32(c), MOMENTUM_PURPOSE), of_chain(trajectory, c, q), work);
    return 0;
}

// Slice steps of the lambda_j in ``slow`` (k,), and the Gaussian that follows. work : (2 q,). A minor, NO_MEMORY or 0.
static inline i32 move_slow_lambda(const Gaussians& all, const i64* slow, i64 k, const Stream& stream,
                                   const Scales& scales, const Gaussian& gaussian, double* work) {
    const i64 q = all.q, d = all.n_contrasts, size = k * d;
    Scratch<double> units(q * size), P(size * size), slow_work(k + size + d * (size + 2 * d + 4));
    if (units.failed() || P.failed() || slow_work.failed()) return NO_MEMORY;
    double *x = slow_work, *m = x + k, *rows = m + size;
    memset(units, 0, sizeof(double) * q * size);
    memset(P, 0, sizeof(double) * size * size);
    for (i64 i = 0; i < size; ++i) {
        const i64 j = slow[i / d] * d + i % d;
        units[j * size + i] = 1.0;
        m[i] = gaussian.mean[j], x[i / d] = scales.lambda_sq_inv[j];
    }
    solve_all(gaussian.L, q, units, size);
    add_products(units, q, size, P, true);
    for (i64 a = 0; a < size; ++a)
        for (i64 e = 0; e < a; ++e) P[e * size + a] = P[a * size + e];
    move_lambda_marginally(Lapack(), P, m, x, k, d, *scales.tau_sq_inv, stream, rows, rows + d * size);
    for (i64 i = 0; i < size; ++i) scales.lambda_sq_inv[slow[i / d] * d + i % d] = x[i / d];
#ifdef PLANT_GAUSSIAN_FORGOTTEN
    double ignored;
    return factorise_mass_matrix(Lapack(), all, gaussian.b, scales.lambda_sq_inv, *scales.tau_sq_inv, gaussian.L, work,
                                 work + q, ignored);
#else
    return set_gaussian(Lapack(), all, scales, gaussian, work);
#endif
}

// Moves of the scales with u held: n moves of tau, an even number, and in their middle those of lambda_j, of the k columns in
// ``slow``.
struct ScaleMoves {  // filled by Python
    double tau_0, tau_step;
    i64 n;
    const i64* slow;
    i64 k;
};

// accepted : the share of the moves of tau that were accepted. spare : (q, q). work : (2 q + p,). A minor, NO_MEMORY or 0.
static inline i32 move_chain(const Gaussians& all, const ScaleMoves& moves, const State& state, Key key, i64 c,
                             double& accepted, double* spare, double* work) {
    const Gaussian gaussian = of_chain(all, c);
    const Scales scales = scales_of(state, c, all.p);
    const TauStreams streams(key, u32(c));
    const Stream of_slow(key, u32(c), LAMBDA_MOVE_PURPOSE);
    accepted = 0.0;
    for (i64 move = 0; move < moves.n; ++move) {
        if (move == moves.n / 2 && moves.k)
            if (const i32 minor = move_slow_lambda(all, moves.slow, moves.k, of_slow, scales, gaussian, work))
                return minor;
        const i32 minor = move_tau(Lapack(), all, moves.tau_0, moves.tau_step, streams, u32(move), scales, gaussian,
                                   spare, work);
        if (minor == MOVED) accepted += 1.0 / moves.n;
        else if (minor) return minor;
    }
    return 0;
}

static inline void kick_chain(double angle, const Gaussians& all, const Reference& reference, const State& at, i64 c,
                              const Trajectory& trajectory, double* work) {
    const i64 q = all.q;
    kick(angle, of_chain(reference, c, q), of_chain(all, c), at.beta + c * q, at.loglik[c], at.score + c * q, q,
         of_chain(trajectory, c, q), work);
}
