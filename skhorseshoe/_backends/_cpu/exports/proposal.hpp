// The state of the chains, what is asked of trajectories, proposals of trajectories and exchanges, and their Metropolis test.
#pragma once
#include "export.hpp"
#include "leapfrog.hpp"
#include "tau_moves.hpp"

// The state of all chains; null for what a call does not use.
struct State {  // filled by Python
    double *beta, *lambda_sq_inv, *tau_sq_inv, *loglik, *score;
};

static inline Scales scales_of(const State& all, i64 c, i64 p) { return {all.lambda_sq_inv + c * p, all.tau_sq_inv + c}; }

// Moves of the scales with u held: n moves of tau, an even number, and in their middle those of lambda_j, of the k columns in
// ``slow``.
struct ScaleMoves {  // filled by Python
    double tau_0, tau_step;
    i64 n;
    const i64* slow;
    i64 k;
};

// Memory for a state. p : lambda_j of a chain, 0 where they are integrated out.
struct Proposal {
    Scratch<double> memory;
    State state;
    Proposal(i64 n_chains, i64 p, i64 q) : memory(n_chains * (2 * q + p + 2)) {
        double* at = memory;
        const auto take = [&](i64 n) { return at += n * n_chains, at - n * n_chains; };
        state = {take(q), take(p), take(1), take(1), take(q)};
    }
};

// Chains of ``first`` to ``last - 1`` for which a Metropolis test accepts the change of energy take the proposed state. p :
// as above. acceptance : (n_chains,) the probabilities.
static inline void metropolis(const double* change, Key key, const State& proposed, i64 first, i64 last, i64 p, i64 q,
                              const State& state, double* acceptance) {
    const auto copy = [](double* to, const double* from, i64 n) { memcpy(to, from, sizeof(double) * n); };
    for (i64 c = first; c < last; ++c) {
        if (!accepts(change[c], Stream(key, u32(c), ACCEPT_PURPOSE), acceptance[c])) continue;
        copy(state.beta + c * q, proposed.beta + c * q, q), copy(state.score + c * q, proposed.score + c * q, q);
        if (p) copy(state.lambda_sq_inv + c * p, proposed.lambda_sq_inv + c * p, p);
        state.tau_sq_inv[c] = proposed.tau_sq_inv[c], state.loglik[c] = proposed.loglik[c];
    }
}
