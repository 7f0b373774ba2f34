// Split Hamiltonian Monte Carlo step by step, for the chains ``first`` to ``last - 1``. Arrays of the chains (n_chains,
// ...) have all of them, and are overwritten. What cannot be factorised is told by the number of a minor.
#include "chains.hpp"

// L, m and the normalising constant, which are there already if ``same_scales``; u = L'(beta - m), v ~ N(0, I), the force
// and the energy.
EXPORT i32 begin_path(const Gaussians* all, const Reference* reference, double* beta, double* lambda_sq_inv,
                      double* tau_sq_inv, double* loglik, double* score, u32 sweep, u32 k0, u32 k1, i32 same_scales,
                      i64 first, i64 last, double* u, double* v, double* force, double* total) {
    Scratch<double> work(2 * all->q);
    if (work.failed()) return NO_MEMORY;
    const State state{beta, lambda_sq_inv, tau_sq_inv, loglik, score};
    for (i64 c = first; c < last; ++c)
        if (const i32 minor = begin_chain(*all, *reference, state, {sweep, k0, k1}, same_scales, c,
                                          {u, v, force, total}, work))
            return minor;
    return 0;
}

// A half-kick of v and a turn of (u, v) by an angle; n numbers of all chains.
EXPORT i32 turn_path(double angle, double* u, double* v, const double* force, i64 n) {
    turn(angle, u, v, force, n);
    return 0;
}

// beta = m + L^-T u.
EXPORT i32 place_path(const Gaussians* all, i64 first, i64 last, const double* u, double* beta) {
    for (i64 c = first; c < last; ++c) place(of_chain(*all, c), u + c * all->q, beta + c * all->q, all->q);
    return 0;
}

// The force at beta, a half-kick of v and the energy.
EXPORT i32 kick_path(double angle, const Gaussians* all, const Reference* reference, double* beta, double* loglik,
                     double* score, i64 first, i64 last, double* u, double* v, double* force, double* total) {
    Scratch<double> work(all->q);
    if (work.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c)
        kick_chain(angle, *all, *reference, {beta, nullptr, nullptr, loglik, score}, c, {u, v, force, total}, work);
    return 0;
}

// See ``Moves``. accepted : (n_chains,) the share of the moves of tau that were. spare : (q, q) scratch.
EXPORT i32 move_scales(const Gaussians* all, double tau_0, double tau_step, i64 n_moves, const i64* slow, i64 k,
                       u32 sweep, u32 k0, u32 k1, i64 first, i64 last, double* spare, double* lambda_sq_inv,
                       double* tau_sq_inv, double* accepted) {
    Scratch<double> work(2 * all->q + all->p);
    if (work.failed()) return NO_MEMORY;
    const Moves moves{tau_0, tau_step, n_moves, slow, k};
    const State state{nullptr, lambda_sq_inv, tau_sq_inv, nullptr, nullptr};
    for (i64 c = first; c < last; ++c)
        if (const i32 minor = move_chain(*all, moves, state, {sweep, k0, k1}, c, accepted[c], spare, work))
            return minor;
    return 0;
}

// Whether a Metropolis test accepts the changes of energy (n_chains,), and the probabilities with which it would.
EXPORT i32 accept_paths(const double* change, i64 n_chains, u32 sweep, u32 k0, u32 k1, u8* accepted, double* chance) {
    for (i64 c = 0; c < n_chains; ++c)
        accepted[c] = accepts(change[c], Stream({sweep, k0, k1}, u32(c), ACCEPT), chance[c]);
    return 0;
}
