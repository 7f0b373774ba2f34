// Leapfrog steps, which make the trajectory of a chain in split Hamiltonian Monte Carlo (``_mcmc/hmc.py``): position u
// = L'(beta - m) and momentum v rotate, and before and after it the gradient of U(beta) = quadratic of the reference -
// log-likelihood kicks v.
#pragma once
#include "conditional_gaussian.hpp"
#include "random.hpp"

// The quadratic that stands for the log-likelihood.
struct Reference {  // filled by Python
    const double* point;        // (q,)
    const double* score;        // (n_chains, q)
    const double* information;  // (q, q)
};

// A point of the trajectory of one chain, or of all chains, one after the other: position u, momentum v and force
// L^-1 grad U (q,); the energy U + (u'u + v'v) / 2.
struct Trajectory {  // filled by Python
    double *u, *v, *force, *energy;
};

HD Reference of_chain(const Reference& all, i64 c, i64 q) { return {all.point, all.score + c * q, all.information}; }

HD Trajectory of_chain(const Trajectory& all, i64 c, i64 q) {
    return {all.u + c * q, all.v + c * q, all.force + c * q, all.energy + c};
}

// The first two parts of a leapfrog step: a half-kick of v, and a rotation of (u, v) by an angle, of n coordinates.
HD void kick_and_rotate(double angle, double* __restrict u, double* __restrict v, const double* __restrict force, i64 n) {
    const double cosine = cos(angle), sine = sin(angle);
    for (i64 j = 0; j < n; ++j) {
        const double kicked = v[j] - 0.5 * angle * force[j];
        v[j] = kicked * cosine - u[j] * sine;
        u[j] = u[j] * cosine + kicked * sine;
    }
}

// U and the force L^-1 grad U at beta. offset : (q,) scratch.
HD double potential_and_force(const Reference& reference, const double* L, const double* beta, double loglik,
                              const double* score, i64 q, double* force, double* offset) {
    double U = -loglik;
    for (i64 j = 0; j < q; ++j) offset[j] = beta[j] - reference.point[j];
    for (i64 j = 0; j < q; ++j) {
        const double pull = dot(reference.information + j * q, offset, q);
        U += offset[j] * (reference.score[j] - 0.5 * pull);
        force[j] = reference.score[j] - pull - score[j];
    }
    solve(L, force, force, q);
    return U;
}

// The energy of the Gaussian part: of position and momentum.
HD double gaussian_energy(const Trajectory& at, i64 q) { return 0.5 * (dot(at.u, at.u, q) + dot(at.v, at.v, q)); }

// Starts a trajectory: u of beta, v ~ N(0, I), force and energy. offset : (q,) scratch.
HD void begin(const Reference& reference, const Gaussian& gaussian, const double* beta, double loglik,
              const double* score, i64 q, const Stream& stream, const Trajectory& trajectory, double* offset) {
    for (i64 j = 0; j < q; ++j) {
        trajectory.v[j] = normal(stream, u32(j));
        offset[j] = beta[j] - gaussian.mean[j];
    }
    transposed_product(gaussian.L, offset, trajectory.u, q);
    *trajectory.energy = potential_and_force(reference, gaussian.L, beta, loglik, score, q, trajectory.force, offset);
    *trajectory.energy += gaussian_energy(trajectory, q);
}

// The last part of a leapfrog step: the force at beta, a half-kick of v, and the energy.
HD void kick(double angle, const Reference& reference, const Gaussian& gaussian, const double* beta, double loglik,
             const double* score, i64 q, const Trajectory& trajectory, double* offset) {
    *trajectory.energy = potential_and_force(reference, gaussian.L, beta, loglik, score, q, trajectory.force, offset);
    for (i64 j = 0; j < q; ++j) trajectory.v[j] -= 0.5 * angle * trajectory.force[j];
    *trajectory.energy += gaussian_energy(trajectory, q);
}

// beta = m + L^-T u.
HD void to_beta(const Gaussian& gaussian, const double* u, double* beta, i64 q) {
    solve_transposed(gaussian.L, u, beta, q);
    for (i64 j = 0; j < q; ++j) beta[j] += gaussian.mean[j];
}

// Whether a Metropolis test accepts a change of energy, and the probability with which it does.
HD bool accepts(double change, const Stream& stream, double& acceptance) {
    const double threshold = exponential(stream, 0);
    acceptance = change == change ? exp(-largest(change, 0.0)) : 0.0;
    return change < threshold;  // which is false where the change is not a number
}
