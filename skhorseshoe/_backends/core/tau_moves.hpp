// Moves of tau with u held, in split Hamiltonian Monte Carlo. They leave |D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log
// tau) p(log lambda) invariant, with M, m and D of ``_mcmc/hmc.py``. ``log_norm`` is the logarithm of the first three.
#pragma once
#include "linear_algebra.hpp"
#include "priors/horseshoe.hpp"

// Held columns keep lambda_j tau while tau^2 grows by a factor, so that x_j = lambda_j^-2 grows, in place. This sums the
// terms that they add to the log-density. A column is held with probability h / (1 + h), h = lambda_j^2 tau^2 H_jj /
// TAU_HALF_HELD. The choice is an unknown that is drawn first; its probability is part of the law of tau. x_j stands once for
// each of the d coefficients of column j, of which H_jj is a mean.
struct Held {
    LogSum logs;
    i64 n = 0;

    // Adds column j, with H_jj, which the uniform u chooses to hold or not.
    HD_MEMBER void add(double information, i64 j, double* x, double tau_sq_inv, double growth, double u, i64 d = 1) {
        const double before = x[j * d];
        const double odds = least(information / (tau_sq_inv * before * TAU_HALF_HELD), LARGEST_ODDS);
        if (u * (1.0 + odds) < odds) {
            for (i64 a = 0; a < d; ++a) x[j * d + a] = before * growth;
#ifndef PLANT_NO_PRIOR_OF_HELD
            ++n, logs.add(inverse_half_cauchy(before) / inverse_half_cauchy(before * growth));
#endif
            return;
        }
#ifndef PLANT_NO_CHOICE_OF_HELD
        logs.add((1.0 + odds) / (1.0 + growth * odds));
#endif
    }
    HD_MEMBER double value(double growth) const { return logs.value() + 0.5 * n * log(growth); }
};

// Holds columns, chosen by the uniforms of this move; returns what that adds to the log-density. H : the diagonal is
// H[i * stride]. x : (p d,).
HD double hold(const double* H, i64 stride, i64 p, double* x, double tau_sq_inv, double growth, u32 move,
               const Stream& stream, i64 d = 1) {
    constexpr i64 AT_ONCE = 64;
    double u[AT_ONCE];
    Held held;
    for (i64 first = 0; first < p; first += AT_ONCE) {
        const i64 n = least(AT_ONCE, p - first);
        uniforms(u, n, stream, move * u32(p) + u32(first));
        for (i64 j = first; j < first + n; ++j) {
            double information = H[j * d * stride];
            for (i64 a = 1; a < d; ++a) information += H[(j * d + a) * stride];
            held.add(information / double(d), j, x, tau_sq_inv, growth, u[j - first], d);
        }
    }
    return held.value(growth);
}

struct TauStreams {
    Stream step, level, held;
    HD_MEMBER TauStreams(Key key, u32 chain)
        : step(key, chain, TAU_MOVE_PURPOSE), level(key, chain, TAU_ACCEPT_PURPOSE), held(key, chain, HOLD_PURPOSE) {}
};

// A proposal, and the level that its ``log_norm`` must exceed, without what ``hold`` adds to the log-density.
struct TauProposal {
    double tau_sq_inv, level;
};

HD TauProposal propose_tau(double current, double log_norm, double tau_0, double tau_step, const TauStreams& streams,
                           u32 move) {
    const double proposed = current * exp(-2.0 * tau_step * normal(streams.step, move)), unit = tau_0 * tau_0;
    double level = log_norm - exponential(streams.level, move);
    level += log_half_cauchy_of_precision(current * unit) - log_half_cauchy_of_precision(proposed * unit);
    return {proposed, level};
}

// lambda^-2 (p,) and tau^-2 of a chain.
struct Scales {
    double *lambda_sq_inv, *tau_sq_inv;
};

// A Metropolis step in log tau of standard deviation tau_step. Returns MOVED, 0 if it is rejected, or what ``norm`` returns
// where it fails: norm(x, tau_sq_inv, log_norm) computes that of proposed scales. H : the diagonal is H[i * stride], of p
// coefficients, n_contrasts of which share a lambda_j. log_norm : of the current scales, in place. x : (p,) scratch. move :
// the index of the step in the streams.
constexpr i32 MOVED = -1;

template <class Norm>
HD i32 move_tau(const double* H, i64 stride, i64 p, i64 n_contrasts, double tau_0, double tau_step,
                const TauStreams& streams, u32 move, const Scales& scales, double& log_norm, double* x, const Norm& norm) {
    const double current = *scales.tau_sq_inv;
    auto [proposed, level] = propose_tau(current, log_norm, tau_0, tau_step, streams, move);
    for (i64 j = 0; j < p; ++j) x[j] = scales.lambda_sq_inv[j];
    level -= hold(H, stride, p / n_contrasts, x, current, current / proposed, move, streams.held, n_contrasts);
    double new_norm;
    if (const i32 failed = norm(x, proposed, new_norm)) return failed;
    if (!(new_norm > level)) return 0;
    log_norm = new_norm, *scales.tau_sq_inv = proposed;
    for (i64 j = 0; j < p; ++j) scales.lambda_sq_inv[j] = x[j];
    return MOVED;
}
