// The Gaussian of split Hamiltonian Monte Carlo: what reference and prior make of beta, given the scales.
//
// It is N(m, M^-1), M = H + diag(d) = L L', m = M^-1 b, with d = tau^-2 lambda^-2 for the shrunk coefficients and 0 for
// the others. M is the mass matrix.
#pragma once
#include "linear_algebra.hpp"

// lambda^-2 (p,) and tau^-2 of a chain.
struct Scales {
    double *lambda_sq_inv, *tau_sq_inv;
};

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

// The Gaussian of a chain.
struct Gaussian {
    double *L, *mean, *log_norm;
    const double* b;
};

HD Gaussian of_chain(const Gaussians& all, i64 c) {
    return {all.cholesky_factors + c * all.q * all.q, all.mean + c * all.q, all.log_norm + c, all.b + c * all.q};
}

// L, half = L^-1 b and the constant, given the scales. Returns the number of a minor that is not positive, or 0. A Team
// has ``factorise(H, d, q, L)``. d : (q,) scratch.
template <class Team>
HD i32 factorise_mass_matrix(const Team& team, const Gaussians& all, const double* b, const double* lambda_sq_inv,
                             double tau_sq_inv, double* L, double* half, double* d, double& log_norm) {
    for (i64 j = 0; j < all.q; ++j) d[j] = j < all.p ? tau_sq_inv * lambda_sq_inv[j] : 0.0;
    const i32 minor = team.factorise(all.H, d, all.q, L);
    if (minor) return minor;
    solve(L, b, half, all.q);
    LogSum logs;
    logs.total = dot(half, half, all.q);
#ifdef PLANT_NORM_WITHOUT_PRODUCT
    logs.total = 0.0;
#endif
    for (i64 j = 0; j < all.q; ++j) {
        const double diagonal = L[j * all.q + j];
#if defined(PLANT_NORM_WITHOUT_M)
        logs.add(j < all.p ? d[j] : 1.0);
#elif defined(PLANT_NORM_WITHOUT_D)
        logs.add(1.0 / (diagonal * diagonal));
#else
        logs.add((j < all.p ? d[j] : 1.0) / (diagonal * diagonal));
#endif
    }
    log_norm = 0.5 * logs.value();
    return 0;
}

// Computes the Gaussian given the scales. A minor, or 0. work : (2 q,) scratch.
template <class Team>
HD i32 set_gaussian(const Team& team, const Gaussians& all, const Scales& scales, const Gaussian& gaussian, double* work) {
    const i32 minor = factorise_mass_matrix(team, all, gaussian.b, scales.lambda_sq_inv, *scales.tau_sq_inv, gaussian.L,
                                            work, work + all.q, *gaussian.log_norm);
    if (!minor) solve_transposed(gaussian.L, work, gaussian.mean, all.q);
    return minor;
}
