// The Gaussian of split Hamiltonian Monte Carlo given the scales, and moves of tau under it, u held.
//
// It is N(m, M^-1), M = H + diag(d) = L L', m = M^-1 b, with d = tau^-2 lambda^-2 for the shrunk coefficients and 0 for
// the others. The moves leave |D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log tau) p(log lambda) invariant.
#pragma once
#include "linear_algebra.hpp"
#include "random.hpp"

struct Gaussians {  // filled by Python
    const double* H;   // (q, q)
    const double* b;   // (n_chains, q)
    i64 p;             // shrunk coefficients
    i64 q;             // all coefficients
    double* factors;   // (n_chains, q, q) L in the lower triangles
    double* mean;      // (n_chains, q) m
    double* log_norm;  // (n_chains,) the logarithms of |D|^(1/2) |M|^(-1/2) exp(m' M m / 2)
};

struct Gaussian {  // of a chain
    double *L, *mean, *log_norm;
    const double* b;
};

HD Gaussian of_chain(const Gaussians& all, i64 c) {
    return {all.factors + c * all.q * all.q, all.mean + c * all.q, all.log_norm + c, all.b + c * all.q};
}

// lambda^-2 (p,) and tau^-2 of a chain.
struct Scales {
    double *lambda_sq_inv, *tau_sq_inv;
};

HD double log_half_cauchy(double precision) {
#if defined(PLANT_NO_PRIOR_OF_TAU)
    return 0.0;
#elif defined(PLANT_PRIOR_OF_TAU_TWICE)
    return log(precision) - 2.0 * log1p(precision);
#elif defined(PLANT_NO_JACOBIAN_OF_TAU)
    return log(precision) - log1p(precision);
#else
    return 0.5 * log(precision) - log1p(precision);  // log p(log s), s^-2 in units of its scale, up to a constant
#endif
}

// L, half = L^-1 b and the constant, given the scales. The number of a minor that is not positive, or 0. Team: it has
// ``factorise(H, d, q, L)``. d : (q,) scratch.
template <class Team>
HD i32 factorise(const Team& team, const Gaussians& of, const double* b, const double* lambda_sq_inv, double tau_sq_inv,
                 double* L, double* half, double* d, double& log_norm) {
    for (i64 j = 0; j < of.q; ++j) d[j] = j < of.p ? tau_sq_inv * lambda_sq_inv[j] : 0.0;
    const i32 minor = team.factorise(of.H, d, of.q, L);
    if (minor) return minor;
    solve(L, b, half, of.q);
    LogSum logs;
    logs.total = dot(half, half, of.q);
#ifdef PLANT_NORM_WITHOUT_PRODUCT
    logs.total = 0.0;
#endif
    for (i64 j = 0; j < of.q; ++j) {
        const double own = L[j * of.q + j];
#if defined(PLANT_NORM_WITHOUT_M)
        logs.add(j < of.p ? d[j] : 1.0);
#elif defined(PLANT_NORM_WITHOUT_D)
        logs.add(1.0 / (own * own));
#else
        logs.add((j < of.p ? d[j] : 1.0) / (own * own));
#endif
    }
    log_norm = 0.5 * logs.value();
    return 0;
}

// The Gaussian given the scales; a minor, or 0. work : (2 q,) scratch.
template <class Team>
HD i32 set_gaussian(const Team& team, const Gaussians& of, const Scales& scales, const Gaussian& gaussian, double* work) {
    const i32 minor = factorise(team, of, gaussian.b, scales.lambda_sq_inv, *scales.tau_sq_inv, gaussian.L, work,
                                work + of.q, *gaussian.log_norm);
    if (!minor) solve_transposed(gaussian.L, work, gaussian.mean, of.q);
    return minor;
}

// Columns are held while tau^2 grows by a factor: lambda_j tau stays, and x_j = lambda_j^-2 grows, in place. What that
// adds to the log-density. A column is held with probability h / (1 + h), h = lambda_j^2 tau^2 H_jj / HALF_HELD. The
// choice is an unknown of its own: where it is not to hold, its probability is part of the law of tau.
struct Held {
    LogSum logs;
    i64 n = 0;

    // Column j, by a uniform ``chance``.
    HD_MEMBER void see(const Gaussians& of, i64 j, double* x, double tau_sq_inv, double growth, double chance) {
        double size = least(of.H[j * of.q + j] / (tau_sq_inv * x[j] * HALF_HELD), LARGEST_ODDS);
        if (chance * (1.0 + size) < size) {
            ++n, size = x[j];
            x[j] *= growth;
#ifdef PLANT_NO_PRIOR_OF_HELD
            logs.total -= log_half_cauchy(x[j]) - log_half_cauchy(size);
#endif
        }
#ifdef PLANT_NO_CHOICE_OF_HELD
        else return;
#endif
        logs.add((1.0 + size) / (1.0 + growth * size));
    }
    HD_MEMBER double value(double growth) const { return logs.value() + 0.5 * n * log(growth); }
};

// All columns, by the uniforms of this move.
HD double hold(const Gaussians& of, double* x, double tau_sq_inv, double growth, u32 move, const Stream& stream) {
    constexpr i64 AT_ONCE = 64;
    double chance[AT_ONCE];
    Held held;
    for (i64 first = 0; first < of.p; first += AT_ONCE) {
        const i64 n = least(AT_ONCE, of.p - first);
        uniforms(chance, n, stream, move * u32(of.p) + u32(first));
        for (i64 j = first; j < first + n; ++j) held.see(of, j, x, tau_sq_inv, growth, chance[j - first]);
    }
    return held.value(growth);
}

struct TauStreams {
    Stream step, level, held;
    HD_MEMBER TauStreams(Key key, u32 chain)
        : step(key, chain, SWAP), level(key, chain, SWAP_ACCEPT), held(key, chain, HELD) {}
};

// A proposal, and the level that the new constant must exceed, but for what ``hold`` adds to the log-density.
struct TauProposal {
    double tau_sq_inv, level;
};

HD TauProposal propose_tau(double now, double log_norm, double tau_0, double tau_step, const TauStreams& streams,
                           u32 move) {
    const double proposed = now * exp(-2.0 * tau_step * normal(streams.step, move)), unit = tau_0 * tau_0;
    double level = log_norm - exponential(streams.level, move);
    level += log_half_cauchy(now * unit) - log_half_cauchy(proposed * unit);
    return {proposed, level};
}

// A Metropolis step in log tau of this standard deviation; MOVED, 0 where it is rejected, or a minor. spare : (q, q),
// work : (2 q + p,) scratch. move : of those that the stream of each purpose has.
constexpr i32 MOVED = -1;

template <class Team>
HD i32 move_tau(const Team& team, const Gaussians& of, double tau_0, double tau_step, const TauStreams& streams,
                u32 move, const Scales& scales, const Gaussian& gaussian, double* spare, double* work) {
    double *half = work, *x = work + 2 * of.q, now = *scales.tau_sq_inv, log_norm;
    auto [proposed, level] = propose_tau(now, *gaussian.log_norm, tau_0, tau_step, streams, move);
    for (i64 j = 0; j < of.p; ++j) x[j] = scales.lambda_sq_inv[j];
    level -= hold(of, x, now, now / proposed, move, streams.held);
    const i32 minor = factorise(team, of, gaussian.b, x, proposed, spare, half, work + of.q, log_norm);
    if (minor || !(log_norm > level)) return minor;
    *gaussian.log_norm = log_norm, *scales.tau_sq_inv = proposed;
    for (i64 j = 0; j < of.p; ++j) scales.lambda_sq_inv[j] = x[j];
    for (i64 i = 0; i < of.q; ++i)
        for (i64 j = 0; j <= i; ++j) gaussian.L[i * of.q + j] = spare[i * of.q + j];
    solve_transposed(gaussian.L, half, gaussian.mean, of.q);
    return MOVED;
}
