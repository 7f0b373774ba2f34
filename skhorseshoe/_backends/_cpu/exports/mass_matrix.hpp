// The mass matrix of split Hamiltonian Monte Carlo: the precision of the Gaussian that reference and prior make of beta, given
// the scales; with it the parts of a leapfrog step, and moves of the scales within a trajectory.
//
// The Gaussian is N(m, M^-1), M = H + diag(d) = L L', m = M^-1 b, with d = tau^-2 lambda^-2 for the shrunk coefficients and 0
// for the others. u = L'(beta - m).
#pragma once
#include "lapack.hpp"
#include "marginal_lambda_moves.hpp"
#include "proposal.hpp"

struct Gaussians {  // filled by Python
    const double* H;           // (q, q)
    const double* b;           // (n_chains, q)
    i64 p;                     // shrunk coefficients
    i64 n_contrasts;           // of them that share a lambda_j, side by side
    i64 q;                     // all coefficients
    double* cholesky_factors;  // (n_chains, q, q) L in the lower triangles
    double* mean;              // (n_chains, q) m
    double* log_norm;          // (n_chains,) the logarithms of |D|^(1/2) |M|^(-1/2) exp(m' M m / 2)
};

// The quadratic that stands for the log-likelihood.
struct Reference {  // filled by Python
    const double* point;        // (q,)
    const double* score;        // (n_chains, q)
    const double* information;  // (q, q)
};

// ``Dynamics`` with a mass matrix; what returns i32 returns the number of a minor that is not positive, NO_MEMORY or 0.
struct MassMatrix {
    const Gaussians& all;
    const Reference& reference;
    const i64 p, q, size;
    Scratch<double> work;
    MassMatrix(const Gaussians& all, const Reference& reference)
        : all(all), reference(reference), p(all.p), q(all.q), size(q), work(2 * q + p) {}

    double* factor(i64 c) const { return all.cholesky_factors + c * q * q; }
    double* mean(i64 c) const { return all.mean + c * q; }

    // L, half = L^-1 b and ``log_norm`` of a chain, given the scales.
    i32 factorise(i64 c, const double* lambda_sq_inv, double tau_sq_inv, double* L, double* half, double& log_norm) const {
        double* d = work + q;
        for (i64 j = 0; j < q; ++j) d[j] = j < p ? tau_sq_inv * lambda_sq_inv[j] : 0.0;
        if (const i32 minor = ::factorise(all.H, d, q, Triangle::LOWER, L)) return minor;
        solve(L, all.b + c * q, half, q);
        LogSum logs;
        logs.total = dot(half, half, q);
#ifdef PLANT_NORM_WITHOUT_PRODUCT
        logs.total = 0.0;
#endif
        for (i64 j = 0; j < q; ++j) {
            const double diagonal = L[j * q + j];
#if defined(PLANT_NORM_WITHOUT_M)
            logs.add(j < p ? d[j] : 1.0);
#elif defined(PLANT_NORM_WITHOUT_D)
            logs.add(1.0 / (diagonal * diagonal));
#else
            logs.add((j < p ? d[j] : 1.0) / (diagonal * diagonal));
#endif
        }
        log_norm = 0.5 * logs.value();
        return 0;
    }

    // Computes the Gaussian given the scales.
    i32 set(i64 c, const Scales& scales) const {
        const i32 minor = factorise(c, scales.lambda_sq_inv, *scales.tau_sq_inv, factor(c), work, all.log_norm[c]);
        if (!minor) solve_transposed(factor(c), work, mean(c), q);
        return minor;
    }

    // Starts a trajectory, and computes the Gaussian unless ``same_scales``.
    i32 begin(i64 c, const State& state, Key key, bool same_scales, const Trajectory& trajectory) const {
        if (!same_scales)
            if (const i32 minor = set(c, scales_of(state, c, p))) return minor;
        const Trajectory to = of_chain(trajectory, c, q);
        const Stream stream(key, u32(c), MOMENTUM_PURPOSE);
        for (i64 j = 0; j < q; ++j) to.v[j] = normal(stream, u32(j)), work[j] = state.beta[c * q + j] - mean(c)[j];
        transposed_product(factor(c), work, to.u, q);
        kick(c, 0.0, state, trajectory);
        return 0;
    }

    // beta = m + L^-T u.
    void to_beta(i64 c, const double* u, const State& state) const {
        double* beta = state.beta + c * q;
        solve_transposed(factor(c), u + c * q, beta, q);
        for (i64 j = 0; j < q; ++j) beta[j] += mean(c)[j];
    }

    // The last part of a leapfrog step: the force at the coefficients of a state, a half-kick of v, and the energy, with U =
    // quadratic of the reference - log-likelihood.
    void kick(i64 c, double angle, const State& state, const Trajectory& trajectory) const {
        const Trajectory to = of_chain(trajectory, c, q);
        const double *beta = state.beta + c * q, *score = state.score + c * q, *reference_score = reference.score + c * q;
        double *offset = work, U = -state.loglik[c];
        for (i64 j = 0; j < q; ++j) offset[j] = beta[j] - reference.point[j];
        for (i64 j = 0; j < q; ++j) {
            const double pull = dot(reference.information + j * q, offset, q);
            U += offset[j] * (reference_score[j] - 0.5 * pull);
            to.force[j] = reference_score[j] - pull - score[j];
        }
        solve(factor(c), to.force, to.force, q);
        for (i64 j = 0; j < q; ++j) to.v[j] -= 0.5 * angle * to.force[j];
        *to.energy = U + gaussian_energy(to, q);
    }

    // Slice steps of the lambda_j in ``slow`` (k,), and the Gaussian that follows.
    i32 move_slow_lambda(i64 c, const i64* slow, i64 k, const Stream& stream, const Scales& scales) const {
        const i64 d = all.n_contrasts, n = k * d;
        Scratch<double> units(q * n), P(n * n), slow_work(k + n + d * (n + 2 * d + 4));
        if (units.failed() || P.failed() || slow_work.failed()) return NO_MEMORY;
        double *x = slow_work, *m = x + k, *rows = m + n;
        memset(units, 0, sizeof(double) * q * n);
        memset(P, 0, sizeof(double) * n * n);
        for (i64 i = 0; i < n; ++i) {
            const i64 j = slow[i / d] * d + i % d;
            units[j * n + i] = 1.0;
            m[i] = mean(c)[j], x[i / d] = scales.lambda_sq_inv[j];
        }
        solve_all(factor(c), q, units, n);
        add_products(units, q, n, P, true);
        for (i64 a = 0; a < n; ++a)
            for (i64 e = 0; e < a; ++e) P[e * n + a] = P[a * n + e];
        move_lambda_marginally(OneThread(), P, m, x, k, d, *scales.tau_sq_inv, stream, rows, rows + d * n);
        for (i64 i = 0; i < n; ++i) scales.lambda_sq_inv[slow[i / d] * d + i % d] = x[i / d];
#ifdef PLANT_GAUSSIAN_FORGOTTEN
        double ignored;
        return factorise(c, scales.lambda_sq_inv, *scales.tau_sq_inv, factor(c), work, ignored);
#else
        return set(c, scales);
#endif
    }

    // See ``ScaleMoves``. spare : (q, q).
    i32 move_scales(i64 c, const ScaleMoves& moves, const State& state, Key key, double& accepted, double* spare) const {
        const Scales scales = scales_of(state, c, p);
        const TauStreams streams(key, u32(c));
        const Stream of_slow(key, u32(c), LAMBDA_MOVE_PURPOSE);
        double *half = work, *x = work + 2 * q, *L = factor(c);
        const auto norm = [&](const double* lambda_sq_inv, double tau_sq_inv, double& log_norm) {
            return factorise(c, lambda_sq_inv, tau_sq_inv, spare, half, log_norm);
        };
        accepted = 0.0;
        for (i64 move = 0; move < moves.n; ++move) {
            if (move == moves.n / 2 && moves.k)
                if (const i32 minor = move_slow_lambda(c, moves.slow, moves.k, of_slow, scales)) return minor;
            const i32 moved = move_tau(all.H, q + 1, p, all.n_contrasts, moves.tau_0, moves.tau_step, streams, u32(move),
                                       scales, all.log_norm[c], x, norm);
            if (moved != MOVED) {
                if (moved) return moved;
                continue;
            }
            accepted += 1.0 / moves.n;
            for (i64 i = 0; i < q; ++i) memcpy(L + i * q, spare + i * q, sizeof(double) * (i + 1));
            solve_transposed(L, half, mean(c), q);
        }
        return 0;
    }
};
