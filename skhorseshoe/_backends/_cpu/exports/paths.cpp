// Split Hamiltonian Monte Carlo for the chains ``first`` to ``last - 1``. Arrays of the chains (n_chains, ...) have all of
// them, and are overwritten. What cannot be factorised is told by the number of a minor.
#include "lapack.hpp"
#include "local_moves.hpp"
#include "trajectory.hpp"

struct Lapack : OneThread {
    i32 factorise(const double* H, const double* d, i64 q, double* L) const {
        return ::factorise(H, d, q, Triangle::LOWER, L);
    }
};

// The arrays of the Gaussians of all chains, and of their paths.
static Gaussian of_chain(double* factors, double* mean, double* log_norm, i64 q, i64 c) {
    return {factors + c * q * q, mean + c * q, log_norm + c};
}

static Path of_chain(double* u, double* v, double* force, double* total, i64 q, i64 c) {
    return {u + c * q, v + c * q, force + c * q, total + c};
}

// Slice steps of the lambda_j in ``slow`` (k,), and the Gaussian with them; a minor, NO_MEMORY or 0. work : (2 q,).
static i32 move_slow(const Posterior& of, const i64* slow, i64 k, const Stream& stream, const Scales& scales,
                     const Gaussian& gaussian, double* work) {
    const i64 q = of.q;
    Scratch<double> units(q * k), P(k * k), own(3 * k);
    if (units.failed() || P.failed() || own.failed()) return NO_MEMORY;
    double *m = own, *x = own + k, *column = own + 2 * k;
    memset(units, 0, sizeof(double) * q * k);
    memset(P, 0, sizeof(double) * k * k);
    for (i64 i = 0; i < k; ++i) {
        units[slow[i] * k + i] = 1.0;
        m[i] = gaussian.mean[slow[i]], x[i] = scales.lambda_sq_inv[slow[i]];
    }
    solve_all(gaussian.L, q, units, k);
    add_products(units, q, k, P, true);
    for (i64 a = 0; a < k; ++a)
        for (i64 e = 0; e < a; ++e) P[e * k + a] = P[a * k + e];
    move_local_scales(P, m, x, k, *scales.tau_sq_inv, stream, column);
    for (i64 i = 0; i < k; ++i) scales.lambda_sq_inv[slow[i]] = x[i];
#ifdef PLANT_GAUSSIAN_FORGOTTEN
    double ignored;
    return factorise(Lapack(), of, scales.lambda_sq_inv, *scales.tau_sq_inv, gaussian.L, work, work + q, ignored);
#else
    return set_gaussian(Lapack(), of, scales, gaussian, work);
#endif
}

// L, m and the normalising constant, which are there already if ``same_scales``; u = L'(beta - m), v ~ N(0, I), the force
// and the energy.
EXPORT i32 begin_path(const double* H, const double* b, i64 p, i64 q, const double* point, const double* slope,
                      const double* information, const double* beta, double* lambda_sq_inv, double* tau_sq_inv,
                      const double* loglik, const double* score, u32 sweep, u32 k0, u32 k1, i32 same_scales,
                      i64 first, i64 last, double* factors, double* mean, double* log_norm, double* u, double* v,
                      double* force, double* total) {
    const Posterior of{H, b, p, q};
    Scratch<double> work(2 * q);
    if (work.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const Gaussian gaussian = of_chain(factors, mean, log_norm, q, c);
        const Scales scales{lambda_sq_inv + c * p, tau_sq_inv + c};
        if (const i32 minor = same_scales ? 0 : set_gaussian(Lapack(), of, scales, gaussian, work)) return minor;
        begin({point, slope, information}, gaussian, beta + c * q, loglik[c], score + c * q, q,
              Stream({sweep, k0, k1}, u32(c), MOMENTUM), of_chain(u, v, force, total, q, c), work);
    }
    return 0;
}

// A half-kick of v and a turn of (u, v) by an angle; n numbers of all chains.
EXPORT i32 turn_path(double angle, double* u, double* v, const double* force, i64 n) {
    turn(angle, u, v, force, n);
    return 0;
}

// beta = m + L^-T u.
EXPORT i32 place_path(double* factors, double* mean, i64 q, i64 first, i64 last, const double* u, double* beta) {
    for (i64 c = first; c < last; ++c) place(of_chain(factors, mean, nullptr, q, c), u + c * q, beta + c * q, q);
    return 0;
}

// The force at beta, a half-kick of v and the energy.
EXPORT i32 kick_path(double angle, const double* point, const double* slope, const double* information, double* factors,
                     const double* beta, const double* loglik, const double* score, i64 q, i64 first, i64 last,
                     double* u, double* v, double* force, double* total) {
    Scratch<double> work(q);
    if (work.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c)
        kick(angle, {point, slope, information}, of_chain(factors, nullptr, nullptr, q, c), beta + c * q, loglik[c],
             score + c * q, q, of_chain(u, v, force, total, q, c), work);
    return 0;
}

// Moves of tau, an even number, with those of the lambda_j in ``slow`` (k,) in the middle; u is held. spare : (q, q)
// scratch. accepted : (n_chains,) the share of the moves of tau that were.
EXPORT i32 move_scales(const double* H, const double* b, i64 p, i64 q, double tau_0, double tau_step, i64 n_moves,
                       const i64* slow, i64 k, u32 sweep, u32 k0, u32 k1, i64 first, i64 last, double* spare,
                       double* factors, double* mean, double* log_norm, double* lambda_sq_inv, double* tau_sq_inv,
                       double* accepted) {
    const Posterior of{H, b, p, q};
    const Key key{sweep, k0, k1};
    Scratch<double> work(2 * q + p);
    if (work.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const Gaussian gaussian = of_chain(factors, mean, log_norm, q, c);
        const Scales scales{lambda_sq_inv + c * p, tau_sq_inv + c};
        const TauStreams streams(key, u32(c));
        accepted[c] = 0.0;
        for (i64 move = 0; move < n_moves; ++move) {
            if (move == n_moves / 2 && k)
                if (const i32 minor = move_slow(of, slow, k, Stream(key, u32(c), LOCAL_SLICE), scales, gaussian, work))
                    return minor;
            const i32 minor =
                move_tau(Lapack(), of, tau_0, tau_step, streams, u32(move), scales, gaussian, spare, work);
            if (minor == MOVED) accepted[c] += 1.0 / n_moves;
            else if (minor) return minor;
        }
    }
    return 0;
}

// Whether a Metropolis test accepts the changes of energy (n_chains,), and the probabilities with which it would.
EXPORT i32 accept_paths(const double* change, i64 n_chains, u32 sweep, u32 k0, u32 k1, u8* accepted, double* chance) {
    for (i64 c = 0; c < n_chains; ++c)
        accepted[c] = accepts(change[c], Stream({sweep, k0, k1}, u32(c), ACCEPT), chance[c]);
    return 0;
}
