// The Gaussian of split Hamiltonian Monte Carlo with a diagonal mass matrix, and the parts of a leapfrog step with it, of one
// chain: the others of ``conditional_gaussian.hpp`` and ``leapfrog.hpp`` have a matrix.
//
// In the coordinates with the intercept at ``centre`` M is diag(H + D) = a^2.
//
// Of a column that the data do not bound, H_jj is multiplied by f_j = 1 / (1 + c (H_jj / d_j)^1/2): where its scale
// is large the coefficient is far out, where the log-likelihood is flat. f depends on the scales alone, which stay in a
// trajectory.
#pragma once
#include "leapfrog.hpp"

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

// The same of one chain.
struct DiagonalGaussian {
    const DiagonalGaussians& all;
    const double* diagonal;
    double *inverse_root, *mean;
};

HD DiagonalGaussian of_chain(const DiagonalGaussians& all, i64 c) {
    const i64 at = c * all.q;
    return {all, all.softness ? all.soft + at : all.whole, all.inverse_root + at, all.mean + at};
}

// Takes the scales of chain c.
HD void set_gaussian(const DiagonalGaussians& all, i64 c, const double* lambda_sq_inv, double tau_sq_inv) {
    const DiagonalGaussian at = of_chain(all, c);
    double* soft = all.softness ? all.soft + c * all.q : nullptr;
    for (i64 j = 0; j < all.q; ++j) {
        const double d = j < all.p ? tau_sq_inv * lambda_sq_inv[j] : 0.0, H = all.whole[j];
        if (soft) soft[j] = H / (1.0 + all.softness[j] * sqrt(H / (d + LEAST_RATIO * H + LEAST_D)));
        const double precision = d + at.diagonal[j];
        at.inverse_root[j] = 1.0 / sqrt(precision);
        at.mean[j] = (at.diagonal[j] * all.point[j] + all.score[j]) / precision;  // of H r + g
    }
}

// Columns of a tile: the force, and what they add to U. shift : of the intercept to ``centre``, or 0.
HD void force_of_tile(const DiagonalGaussian& at, i64 first, i64 n, const double* beta, const double* score, double along,
                      double shift, double of_intercept, double* __restrict force, double* __restrict U) {
    const DiagonalGaussians& all = at.all;
    const double *point = all.point + first, *reference_score = all.score + first, *centre = all.centre + first;
    const double *anchor = all.anchor + first, *fixed = all.fixed + first, *diagonal = at.diagonal + first;
    const double* inverse_root = at.inverse_root + first;
    for (i64 j = 0; j < n; ++j) {
        const double away = beta[j] + shift - point[j], pull = diagonal[j] * away;
        const double push = along * anchor[j] + fixed[j] * beta[j], total = (score[j] - push) - of_intercept * centre[j];
        force[j] = (reference_score[j] - pull - total) * inverse_root[j];
        U[j] = away * (reference_score[j] - 0.5 * pull) + 0.5 * push * beta[j];
    }
}

// U and the force L^-1 grad U at beta.
HD double potential_and_force(const DiagonalGaussian& at, const double* beta, double loglik, const double* score,
                              double* force) {
    constexpr i64 TILE = 256;
    const DiagonalGaussians& all = at.all;
    const i64 last = all.q - 1;
    const double along = sum(all.q, [=, anchor = all.anchor](i64 j) { return beta[j] * anchor[j]; });
    const double shift = sum(all.q, [=, centre = all.centre](i64 j) { return beta[j] * centre[j]; });
    const double of_intercept = score[last] - (along * all.anchor[last] + all.fixed[last] * beta[last]);
    double U = -loglik, of_tile[TILE];
    for (i64 first = 0; first < last; first += TILE) {
        const i64 n = least(TILE, last - first);
        force_of_tile(at, first, n, beta + first, score + first, along, 0.0, of_intercept, force + first, of_tile);
        U += sum(n, [&](i64 j) { return of_tile[j]; });
    }
    force_of_tile(at, last, 1, beta + last, score + last, along, shift, of_intercept, force + last, of_tile);
    U += of_tile[0];
    return U;
}

// Starts a trajectory: u of beta, with v that is there, force and energy.
HD void begin(const DiagonalGaussian& at, const double* beta, double loglik, const double* score,
              const Trajectory& trajectory) {
    const i64 q = at.all.q;
    const double shift = sum(q, [=, centre = at.all.centre](i64 j) { return beta[j] * centre[j]; });
    for (i64 j = 0; j < q; ++j) trajectory.u[j] = (beta[j] - at.mean[j]) / at.inverse_root[j];
    trajectory.u[q - 1] += shift / at.inverse_root[q - 1];
    *trajectory.energy = potential_and_force(at, beta, loglik, score, trajectory.force) + gaussian_energy(trajectory, q);
}

// The last part of a leapfrog step.
HD void kick(double angle, const DiagonalGaussian& at, const double* beta, double loglik, const double* score,
             const Trajectory& trajectory) {
    const double U = potential_and_force(at, beta, loglik, score, trajectory.force), *u = trajectory.u;
    const double* force = trajectory.force;
    double* v = trajectory.v;
    *trajectory.energy = U + 0.5 * sum(at.all.q, [=](i64 j) {
        v[j] -= 0.5 * angle * force[j];
        return u[j] * u[j] + v[j] * v[j];
    });
}

// beta = m + u / a.
HD void to_beta(const DiagonalGaussian& at, const double* u, double* beta) {
    const i64 q = at.all.q;
    for (i64 j = 0; j < q; ++j) beta[j] = at.mean[j] + u[j] * at.inverse_root[j];
    beta[q - 1] -= sum(q, [=, centre = at.all.centre](i64 j) { return beta[j] * centre[j]; });
}
