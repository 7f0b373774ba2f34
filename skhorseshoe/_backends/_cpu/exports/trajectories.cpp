// The parts of a leapfrog step of split Hamiltonian Monte Carlo, for the chains ``first`` to ``last - 1``. Arrays
// (n_chains, ...) have all chains and are overwritten. A matrix that is not positive definite is reported by the number
// of its minor.
#include "chains.hpp"

// L, m and the normalising constant, computed unless ``same_scales``; u = L'(beta - m), v ~ N(0, I), force and energy.
EXPORT i32 begin_trajectory(const Gaussians* all, const Reference* reference, const State* state, u32 sweep,
                            const u32* key, i32 same_scales, i64 first, i64 last, const Trajectory* trajectory) {
    Scratch<double> work(2 * all->q);
    if (work.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c)
        if (const i32 minor = begin_chain(*all, *reference, *state, {sweep, key[0], key[1]}, same_scales, c, *trajectory, work))
            return minor;
    return 0;
}

// A half-kick of v, and a rotation of (u, v) by an angle; n numbers of all chains.
EXPORT i32 kick_and_rotate_trajectory(double angle, const Trajectory* trajectory, i64 n) {
    kick_and_rotate(angle, trajectory->u, trajectory->v, trajectory->force, n);
    return 0;
}

// beta = m + L^-T u.
EXPORT i32 trajectory_beta(const Gaussians* all, i64 first, i64 last, const double* u, double* beta) {
    for (i64 c = first; c < last; ++c) to_beta(of_chain(*all, c), u + c * all->q, beta + c * all->q, all->q);
    return 0;
}

// The force at beta, a half-kick of v and the energy.
EXPORT i32 kick_trajectory(double angle, const Gaussians* all, const Reference* reference, const State* state, i64 first,
                           i64 last, const Trajectory* trajectory) {
    Scratch<double> work(all->q);
    if (work.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) kick_chain(angle, *all, *reference, *state, c, *trajectory, work);
    return 0;
}

// See ``ScaleMoves``. accepted : (n_chains,) share of the moves of tau that were accepted. spare : (q, q) scratch.
EXPORT i32 move_scales(const Gaussians* all, const ScaleMoves* moves, const State* state, u32 sweep, const u32* key,
                       i64 first, i64 last, double* spare, double* accepted) {
    Scratch<double> work(2 * all->q + all->p);
    if (work.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c)
        if (const i32 minor = move_chain(*all, *moves, *state, {sweep, key[0], key[1]}, c, accepted[c], spare, work))
            return minor;
    return 0;
}

// As ``move_scales``, of tau alone, where H and so M are diagonal; H, b : of the p shrunk coefficients at least.
EXPORT i32 move_tau_with_diagonal(const double* H, const double* b, i64 p, double tau_0, double tau_step, i64 n_moves,
                                  u32 sweep, const u32* key, i64 first, i64 last, double* lambda_sq_inv,
                                  double* tau_sq_inv, double* accepted) {
    Scratch<double> x(p);
    if (x.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const Scales scales = {lambda_sq_inv + c * p, tau_sq_inv + c};
        const TauStreams streams({sweep, key[0], key[1]}, u32(c));
        double log_norm = diagonal_log_norm(H, b, p, scales.lambda_sq_inv, *scales.tau_sq_inv);
        accepted[c] = 0.0;
        for (i64 move = 0; move < n_moves; ++move)
            if (move_tau_diagonally(H, b, p, tau_0, tau_step, streams, u32(move), scales, log_norm, x))
                accepted[c] += 1.0 / double(n_moves);
    }
    return 0;
}

// Whether a Metropolis test accepts the changes of energy (n_chains,), and the probabilities with which it does.
EXPORT i32 accept_proposals(const double* change, i64 n_chains, u32 sweep, const u32* key, u8* accepted,
                            double* acceptance) {
    for (i64 c = 0; c < n_chains; ++c)
        accepted[c] = accepts(change[c], Stream({sweep, key[0], key[1]}, u32(c), ACCEPT_PURPOSE), acceptance[c]);
    return 0;
}
