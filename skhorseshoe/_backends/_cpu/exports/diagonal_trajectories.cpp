// The parts of a leapfrog step with a diagonal mass matrix, for the chains ``first`` to ``last - 1``. Arrays (n_chains, ...)
// have all chains and are overwritten.
#include "diagonal_gaussian.hpp"
#include "proposal.hpp"

// Takes the scales.
EXPORT i32 set_diagonal_gaussians(const DiagonalGaussians* all, const double* lambda_sq_inv, const double* tau_sq_inv,
                                  i64 first, i64 last) {
    for (i64 c = first; c < last; ++c) set_gaussian(*all, c, lambda_sq_inv + c * all->p, tau_sq_inv[c]);
    return 0;
}

// Takes the scales; u of beta, v ~ N(0, I), force and energy.
EXPORT i32 begin_diagonal_trajectory(const DiagonalGaussians* all, const State* state, u32 sweep, const u32* key, i64 first,
                                     i64 last, const Trajectory* trajectory) {
    const i64 q = all->q;
    for (i64 c = first; c < last; ++c) {
        const Stream stream({sweep, key[0], key[1]}, u32(c), MOMENTUM_PURPOSE);
        const Trajectory of_one = of_chain(*trajectory, c, q);
        for (i64 j = 0; j < q; ++j) of_one.v[j] = normal(stream, u32(j));
        set_gaussian(*all, c, state->lambda_sq_inv + c * all->p, state->tau_sq_inv[c]);
        begin(of_chain(*all, c), state->beta + c * q, state->loglik[c], state->score + c * q, of_one);
    }
    return 0;
}

// A half-kick of v, and a rotation of (u, v) by an angle.
EXPORT i32 kick_and_rotate_chains(double angle, i64 q, i64 first, i64 last, const Trajectory* trajectory) {
    const Trajectory at = of_chain(*trajectory, first, q);
    kick_and_rotate(angle, at.u, at.v, at.force, (last - first) * q);
    return 0;
}

EXPORT i32 beta_of_diagonal_trajectory(const DiagonalGaussians* all, i64 first, i64 last, const double* u, double* beta) {
    for (i64 c = first; c < last; ++c) to_beta(of_chain(*all, c), u + c * all->q, beta + c * all->q);
    return 0;
}

// The force at beta, a half-kick of v and the energy.
EXPORT i32 kick_diagonal_trajectory(double angle, const DiagonalGaussians* all, const State* at, i64 first, i64 last,
                                    const Trajectory* trajectory) {
    const i64 q = all->q;
    for (i64 c = first; c < last; ++c)
        kick(angle, of_chain(*all, c), at->beta + c * q, at->loglik[c], at->score + c * q, of_chain(*trajectory, c, q));
    return 0;
}
