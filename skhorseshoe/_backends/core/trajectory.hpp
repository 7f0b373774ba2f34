// The path of a chain in split Hamiltonian Monte Carlo (``_mcmc/hmc.py``): u = L'(beta - m) and v turn on circles, and
// what the quadratic of the reference leaves out, U(beta) = quadratic - log-likelihood, kicks v.
#pragma once
#include "tau_moves.hpp"

// The quadratic that stands for the log-likelihood.
struct Reference {  // filled by Python
    const double* point;        // (q,)
    const double* slope;        // (n_chains, q)
    const double* information;  // (q, q)
};

// Where a chain is on its path, or all chains, one after the other: u, v and the force L^-1 grad U (q,); the energy
// U + (u'u + v'v) / 2.
struct Path {
    double *u, *v, *force, *total;
};

HD Reference of_chain(const Reference& all, i64 c, i64 q) { return {all.point, all.slope + c * q, all.information}; }

HD Path of_chain(const Path& all, i64 c, i64 q) {
    return {all.u + c * q, all.v + c * q, all.force + c * q, all.total + c};
}

// A half-kick of v and a turn of (u, v) by an angle; for any number of coordinates.
HD void turn(double angle, double* __restrict u, double* __restrict v, const double* __restrict force, i64 n) {
    const double cosine = cos(angle), sine = sin(angle);
    for (i64 j = 0; j < n; ++j) {
        const double kicked = v[j] - 0.5 * angle * force[j];
        v[j] = kicked * cosine - u[j] * sine;
        u[j] = u[j] * cosine + kicked * sine;
    }
}

// U, and the force L^-1 grad U, at beta: the quadratic less the log-likelihood. offset : (q,) scratch.
HD double feel(const Reference& reference, const double* L, const double* beta, double loglik, const double* score,
               i64 q, double* force, double* offset) {
    double U = -loglik;
    for (i64 j = 0; j < q; ++j) offset[j] = beta[j] - reference.point[j];
    for (i64 j = 0; j < q; ++j) {
        const double pull = dot(reference.information + j * q, offset, q);
        U += offset[j] * (reference.slope[j] - 0.5 * pull);
        force[j] = reference.slope[j] - pull - score[j];
    }
    solve(L, force, force, q);
    return U;
}

HD double kinetic(const Path& path, i64 q) { return 0.5 * (dot(path.u, path.u, q) + dot(path.v, path.v, q)); }

// The beginning of a path: u of beta, v ~ N(0, I), force and energy. offset : (q,) scratch.
HD void begin(const Reference& reference, const Gaussian& gaussian, const double* beta, double loglik,
              const double* score, i64 q, const Stream& stream, const Path& path, double* offset) {
    for (i64 j = 0; j < q; ++j) {
        path.v[j] = normal(stream, u32(j));
        offset[j] = beta[j] - gaussian.mean[j];
    }
    transposed_product(gaussian.L, offset, path.u, q);
    *path.total = feel(reference, gaussian.L, beta, loglik, score, q, path.force, offset);
    *path.total += kinetic(path, q);
}

// The force at beta, a half-kick of v by it, and the energy.
HD void kick(double angle, const Reference& reference, const Gaussian& gaussian, const double* beta, double loglik,
             const double* score, i64 q, const Path& path, double* offset) {
    *path.total = feel(reference, gaussian.L, beta, loglik, score, q, path.force, offset);
    for (i64 j = 0; j < q; ++j) path.v[j] -= 0.5 * angle * path.force[j];
    *path.total += kinetic(path, q);
}

// beta = m + L^-T u.
HD void place(const Gaussian& gaussian, const double* u, double* beta, i64 q) {
    solve_transposed(gaussian.L, u, beta, q);
    for (i64 j = 0; j < q; ++j) beta[j] += gaussian.mean[j];
}

// Whether a change of energy is accepted by a Metropolis test, and with what probability it would have been.
HD bool accepts(double change, const Stream& stream, double& chance) {
    const double threshold = exponential(stream, 0);
    chance = change == change ? exp(-largest(change, 0.0)) : 0.0;
    return change < threshold;  // which is false where the change is not a number
}
