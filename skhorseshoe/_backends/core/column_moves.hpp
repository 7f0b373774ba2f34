// Moves of a coefficient together with its local scale, in split Hamiltonian Monte Carlo with a diagonal mass matrix.
//
// Along column j the reference and the fixed prior make of beta_j a Gaussian with precision h and h times its mean b. With
// the prior of the scales, d = tau^-2 lambda_j^-2, it is N(b / m, 1 / m), m = h + d, and u = m^(1/2) (beta_j - b / m) is
// held while log lambda_j makes a step of N(0, COLUMN_STEP^2). A Metropolis test makes that exact for any h and b.
#pragma once
#include "priors/horseshoe.hpp"
#include "random.hpp"

struct ColumnLaw {
    double h, b;
    double fixed, pull;  // the fixed prior's precision: fixed, and pull^2 along a direction that other coefficients share
};

struct ColumnProposal {
    double beta, x;    // x = lambda_j^-2
    double log_ratio;  // of the densities, with the Jacobian, without the likelihood
};

// along : the coefficients along the shared direction. step : N(0, 1).
HD ColumnProposal propose_column(const ColumnLaw& law, double beta, double x, double tau_sq_inv, double along, double step) {
    const double next_x = x * exp(-2.0 * COLUMN_STEP * step), d = tau_sq_inv * x, next_d = tau_sq_inv * next_x;
    const double root = sqrt(law.h + d), next_root = sqrt(law.h + next_d);
    const double u = root * beta - law.b / root, next = (u + law.b / next_root) / next_root, change = next - beta;
    double log_ratio = 0.5 * ((law.fixed + d) * beta * beta - (law.fixed + next_d) * next * next);
    log_ratio -= law.pull * change * (along + 0.5 * law.pull * change);
#ifdef PLANT_NO_JACOBIAN_OF_COLUMN
    log_ratio -= 2.0 * COLUMN_STEP * step - log(inverse_half_cauchy(x) / inverse_half_cauchy(next_x));
#else
    // p(log lambda) is that of the precision, for x and for 1 / x alike.
    log_ratio += log(inverse_half_cauchy(x) / inverse_half_cauchy(next_x) * root / next_root) - 2.0 * COLUMN_STEP * step;
#endif
    return {next, next_x, log_ratio};
}
