// The horseshoe: beta_j ~ N(0, lambda_j^2 tau^2), lambda_j ~ C+(0, 1), tau ~ C+(0, tau_0), C+ the half-Cauchy law. Its
// other half is ``_model/horseshoe.py``. Densities are up to a constant.
//
// With b_j = beta_j^2 / (2 tau^2), the marginal law of a coefficient (Carvalho, Polson & Scott 2010) is p(beta_j | tau) =
// (2 pi^3)^(-1/2) tau^-1 e^b E1(b), with E1 the exponential integral, and the density of x = lambda_j^-2 given beta_j and
// tau is proportional to e^(-b x) / (1 + x).
#pragma once
#include "random.hpp"
#include "slice.hpp"

// 1 / p(s), s ~ C+(0, 1). square : s^2.
HD double inverse_half_cauchy(double square) { return 1.0 + square; }

// log p(s).
HD double log_half_cauchy(double square) { return -log1p(square); }

// The derivative of log p(log s) by log s.
HD double pull_of_half_cauchy(double square) { return (1.0 - square) / (1.0 + square); }

// log p(log s) from s^-2. log s and -log s have one law.
HD double log_half_cauchy_of_precision(double precision) {
#if defined(PLANT_NO_PRIOR_OF_TAU)
    return 0.0;
#elif defined(PLANT_PRIOR_OF_TAU_TWICE)
    return log(precision) - 2.0 * log1p(precision);
#elif defined(PLANT_NO_JACOBIAN_OF_TAU)
    return log(precision) - log1p(precision);
#else
    return 0.5 * log(precision) - log1p(precision);
#endif
}

// e^b E1(b) for b > 0, relative error below 1e-13: the power series below 1, above it an expansion in (b - 4) / (b + 2).
HD double scaled_exponential_integral(double b) {
    if (b < 1.0) return exp(b) * (e1_near_polynomial(b) * b - log(b) - EULER);
    return e1_far_polynomial((b - 4.0) / (b + 2.0)) / b;
}

// b of a coefficient.
HD double half_square(double beta, double tau_sq_inv) { return largest(0.5 * beta * beta * tau_sq_inv, LEAST_B); }

// log p(beta_j | tau).
HD double log_horseshoe(double beta, double tau_sq_inv) {
    return log(scaled_exponential_integral(half_square(beta, tau_sq_inv)));
}

// log p(log tau | beta): the prior, the Jacobian, and sum_j log p(beta_j | tau). A Team is one thread of the host, or the
// threads of a block of the card; sum_logs(p, f) returns sum_j log f(j) to all of them.
template <class Team> HD double log_density_of_tau(const Team& team, const double* beta, i64 p, double log_tau, double tau_0) {
    const double half = 0.5 * exp(-2.0 * log_tau), ratio = exp(log_tau) / tau_0;
    const double terms = team.sum_logs(
        p, [=](i64 j) { return scaled_exponential_integral(largest(beta[j] * beta[j] * half, LEAST_B)); });
    return log_tau + log_half_cauchy(ratio * ratio) - p * log_tau + terms;
}

// tau^-2 given beta, lambda integrated out: a slice step in log tau, with the interval stepped out and then shrunk.
template <class Team>
HD double draw_tau_given_beta(const Team& team, const double* beta, i64 p, double tau_sq_inv, double tau_0,
                              const Stream& stream) {
    const auto log_density = [&](double log_tau) { return log_density_of_tau(team, beta, p, log_tau, tau_0); };
    const double current = -0.5 * log(tau_sq_inv), level = log_density(current) - exponential(stream, 0);
    double low = current - TAU_WIDTH * uniform(stream, 1), high = low + TAU_WIDTH;
    while (low > -FARTHEST && log_density(low) > level) low -= TAU_WIDTH;
    while (high < FARTHEST && log_density(high) > level) high += TAU_WIDTH;
    const auto uniform_of = [&](u32 attempt) { return uniform(stream, 2, attempt); };
    return exp(-2.0 * shrink_slice(current, level, low, high, log_density, uniform_of));
}

// x = lambda_j^-2 given beta_j and tau, by rejection for y = 1 + x, whose density is proportional to e^(-b y) / y above 1.
// Proposals are from e^(-b y) if b > 1; else from 1 / y below 1 / b and from b e^(-b y) above.
HD double draw_lambda_given_beta(double beta, double tau_sq_inv, const Stream& stream, u32 j) {
    double x = 0.0;
    const double b = half_square(beta, tau_sq_inv);
    const double log_range = -log(b), below = log_range * exp(-b);
    for (u32 attempt = 0; attempt < 500; ++attempt) {  // each accepts with probability > 0.4
        const double e = exponential(stream, j, 2 * attempt);
        const Words w = stream.words(j, 2 * attempt + 1);
        const double u = unit(w.v[0], w.v[1]), v = unit(w.v[2], w.v[3]);
        if (b > 1.0) {
            x = e / b;
            if (v * (1.0 + x) < 1.0) break;
            continue;
        }
        const double share = below / (below + 0.36787944117144233);
        if (u < share) {
            x = expm1(u / share * log_range);
            if (v < exp(-b * x)) break;
        } else {
            x = (1.0 + e) / b - 1.0;
            if (v * (1.0 + e) < 1.0) break;
        }
    }
    return x;
}

// x_j = lambda_j^-2 (p,) given the coefficients and tau of a chain.
HD void draw_lambdas_of_chain(const double* beta, i64 p, double tau_sq_inv, const Stream& stream, double* x) {
    for (i64 j = 0; j < p; ++j) x[j] = draw_lambda_given_beta(beta[j], tau_sq_inv, stream, u32(j));
}
