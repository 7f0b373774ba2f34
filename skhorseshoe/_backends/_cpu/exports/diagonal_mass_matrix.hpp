// A diagonal mass matrix of split Hamiltonian Monte Carlo: the others of ``mass_matrix.hpp`` are dense.
//
// In the coordinates with the intercept at ``centre`` M is diag(H + D) = a^2.
//
// Of a column that the data do not bound, H_jj is multiplied by f_j = 1 / (1 + c (H_jj / d_j)^1/2): where its scale
// is large the coefficient is far out, where the log-likelihood is flat. f depends on the scales alone, which stay in a
// trajectory.
#pragma once
#include "proposal.hpp"

constexpr double LEAST_RATIO = 1e-16, LEAST_D = 1e-300;  // the least d_j / H_jj in f, and the least d_j

// What all chains share, and arrays of all chains.
struct DiagonalGaussians {  // filled by Python
    i64 p, q;                                    // shrunk coefficients, and all
    const double *point, *score, *centre;        // (q,) of the reference; the score less the fixed prior's
    const double *anchor, *fixed;                // (q,) of the fixed prior
    const double* whole;                         // (q,) H_jj without f
    const double* softness;                      // (q,) c of unbounded columns, 0 of others; null for none
    double* soft;                                // overwritten: (n_chains, q) H_jj with f; null without ``softness``
    double *inverse_root, *mean;                 // overwritten: (n_chains, q) 1 / a, and m
};

// ``Dynamics`` with a diagonal mass matrix.
struct DiagonalMassMatrix {
    const DiagonalGaussians& all;
    const i64 p, q, size;
    Scratch<double> work;
    explicit DiagonalMassMatrix(const DiagonalGaussians& all) : all(all), p(all.p), q(all.q), size(q), work(p) {}

    const double* diagonal(i64 c) const { return all.softness ? all.soft + c * q : all.whole; }

    // Takes the scales of a chain.
    void set(i64 c, const Scales& scales) const {
        double *soft = all.softness ? all.soft + c * q : nullptr, *inverse_root = all.inverse_root + c * q;
        const double* own = diagonal(c);
        for (i64 j = 0; j < q; ++j) {
            const double d = j < p ? *scales.tau_sq_inv * scales.lambda_sq_inv[j] : 0.0, H = all.whole[j];
            if (soft) soft[j] = H / (1.0 + all.softness[j] * sqrt(H / (d + LEAST_RATIO * H + LEAST_D)));
            const double precision = d + own[j];
            inverse_root[j] = 1.0 / sqrt(precision);
            all.mean[c * q + j] = (own[j] * all.point[j] + all.score[j]) / precision;  // of H r + g
        }
    }

    // Columns of a tile: the force, and what they add to U. shift : of the intercept to ``centre``, or 0.
    void force_of_tile(i64 c, i64 first, i64 n, const double* beta, const double* score, double along, double shift,
                       double of_intercept, double* __restrict force, double* __restrict U) const {
        const double *point = all.point + first, *reference_score = all.score + first, *centre = all.centre + first;
        const double *anchor = all.anchor + first, *fixed = all.fixed + first, *own = diagonal(c) + first;
        const double* inverse_root = all.inverse_root + c * q + first;
        beta += first, score += first, force += first;
        for (i64 j = 0; j < n; ++j) {
            const double away = beta[j] + shift - point[j], pull = own[j] * away;
            const double push = along * anchor[j] + fixed[j] * beta[j], total = (score[j] - push) - of_intercept * centre[j];
            force[j] = (reference_score[j] - pull - total) * inverse_root[j];
            U[j] = away * (reference_score[j] - 0.5 * pull) + 0.5 * push * beta[j];
        }
    }

    // The sum of beta times numbers of the coefficients.
    double combination(const double* beta, const double* factors) const {
        return sum(q, [=](i64 j) { return beta[j] * factors[j]; });
    }

    // U and the force L^-1 grad U at the coefficients of a state.
    double potential_and_force(i64 c, const State& state, double* force) const {
        constexpr i64 TILE = 256;
        const double *beta = state.beta + c * q, *score = state.score + c * q;
        const i64 last = q - 1;
        const double along = combination(beta, all.anchor), shift = combination(beta, all.centre);
        const double of_intercept = score[last] - (along * all.anchor[last] + all.fixed[last] * beta[last]);
        double U = -state.loglik[c], of_tile[TILE];
        for (i64 first = 0; first < last; first += TILE) {
            const i64 n = least(TILE, last - first);
            force_of_tile(c, first, n, beta, score, along, 0.0, of_intercept, force, of_tile);
            U += sum(n, [&](i64 j) { return of_tile[j]; });
        }
        force_of_tile(c, last, 1, beta, score, along, shift, of_intercept, force, of_tile);
        U += of_tile[0];
        return U;
    }

    i32 begin(i64 c, const State& state, Key key, bool, const Trajectory& trajectory) const {
        const Trajectory to = of_chain(trajectory, c, q);
        const double *beta = state.beta + c * q, *mean = all.mean + c * q, *inverse_root = all.inverse_root + c * q;
        const Stream stream(key, u32(c), MOMENTUM_PURPOSE);
        for (i64 j = 0; j < q; ++j) to.v[j] = normal(stream, u32(j));
        set(c, scales_of(state, c, p));
        for (i64 j = 0; j < q; ++j) to.u[j] = (beta[j] - mean[j]) / inverse_root[j];
        to.u[q - 1] += combination(beta, all.centre) / inverse_root[q - 1];
        *to.energy = potential_and_force(c, state, to.force) + gaussian_energy(to, q);
        return 0;
    }

    // beta = m + u / a.
    void to_beta(i64 c, const double* u, const State& state) const {
        double* beta = state.beta + c * q;
        for (i64 j = 0; j < q; ++j) beta[j] = all.mean[c * q + j] + u[c * q + j] * all.inverse_root[c * q + j];
        beta[q - 1] -= combination(beta, all.centre);
    }

    void kick(i64 c, double angle, const State& state, const Trajectory& trajectory) const {
        const Trajectory to = of_chain(trajectory, c, q);
        const double U = potential_and_force(c, state, to.force), *u = to.u, *force = to.force;
        double* v = to.v;
        *to.energy = U + 0.5 * sum(q, [=](i64 j) {
            v[j] -= 0.5 * angle * force[j];
            return u[j] * u[j] + v[j] * v[j];
        });
    }

    // Of tau alone, without unbounded columns; what ``log_norm`` has of coefficients that are not shrunk stays.
    i32 move_scales(i64 c, const ScaleMoves& moves, const State& state, Key key, double& accepted, double*) const {
        const Scales scales = scales_of(state, c, p);
        const TauStreams streams(key, u32(c));
        const auto norm = [&](const double* lambda_sq_inv, double tau_sq_inv, double& log_norm) {
            LogSum logs;
            for (i64 j = 0; j < p; ++j) {
                const double H = all.whole[j], b = H * all.point[j] + all.score[j], d = tau_sq_inv * lambda_sq_inv[j];
                logs.add(d / (H + d));
                logs.total += b * b / (H + d);
            }
            log_norm = 0.5 * logs.value();
            return 0;
        };
        double log_norm;
        norm(scales.lambda_sq_inv, *scales.tau_sq_inv, log_norm);
        accepted = 0.0;
        for (i64 move = 0; move < moves.n; ++move)
            if (move_tau(all.whole, 1, p, 1, moves.tau_0, moves.tau_step, streams, u32(move), scales, log_norm, work, norm))
                accepted += 1.0 / moves.n;
        set(c, scales);
        return 0;
    }
};
