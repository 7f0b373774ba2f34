// What trajectories of split Hamiltonian Monte Carlo share (``_mcmc/hmc.py``), with any mass matrix and in any coordinates.
#pragma once
#include "linear_algebra.hpp"
#include "random.hpp"

// A point of the trajectory of one chain, or of all chains, one after the other: position u, momentum v and force
// L^-1 grad U (q,); the energy U + (u'u + v'v) / 2.
struct Trajectory {  // filled by Python
    double *u, *v, *force, *energy;
};

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

// The energy of the Gaussian part: of position and momentum.
HD double gaussian_energy(const Trajectory& at, i64 q) { return 0.5 * (dot(at.u, at.u, q) + dot(at.v, at.v, q)); }

// Whether a Metropolis test accepts a change of energy, and the probability with which it does.
HD bool accepts(double change, const Stream& stream, double& acceptance) {
    const double threshold = exponential(stream, 0);
    acceptance = change == change ? exp(-largest(change, 0.0)) : 0.0;
    return change < threshold;  // which is false where the change is not a number
}
