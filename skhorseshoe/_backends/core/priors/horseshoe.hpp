// The horseshoe: beta_j ~ N(0, lambda_j^2 tau^2), lambda_j ~ C+(0, 1), tau ~ C+(0, tau_0), C+ the half-Cauchy law. Its
// other half is ``_model/horseshoe.py``. Densities are up to a constant.
//
// With b_j = beta_j^2 / (2 tau^2), the marginal law of a coefficient (Carvalho, Polson & Scott 2010) is p(beta_j | tau) =
// (2 pi^3)^(-1/2) tau^-1 e^b E1(b), with E1 the exponential integral, and the density of x = lambda_j^-2 given beta_j and
// tau is proportional to e^(-b x) / (1 + x).
//
// With several classes a column has d coefficients that share its lambda_j, gamma_j ~ N(0, lambda_j^2 tau^2 I). With b_j =
// |gamma_j|^2 / (2 tau^2) and m = (d + 1) / 2, p(gamma_j | tau) is proportional to |gamma_j|^(1 - d) tau^-1 e^b E_m(b), E_m
// the exponential integral of order m, and the density of x given gamma_j and tau to x^(m - 1) e^(-b x) / (1 + x).
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

// e^b E_m(b) for b >= 0, m = (d + 1) / 2, d > 1, relative error below 1e-13: upwards in the order from E_1 or E_(1/2) below
// 2, where that is stable, above it the continued fraction (Abramowitz & Stegun 5.1.22) by the method of Lentz.
HD double scaled_exponential_integral_of_order(double b, i64 d) {
    if (b < 2.0) {
        const double at = largest(b, LEAST_B), root = sqrt(at);
        double order = d % 2 ? 1.0 : 0.5;
        double value = d % 2 ? scaled_exponential_integral(at)
                             : ROOT_OF_PI / root * erfcx_polynomial((root - 3.75) / (root + 3.75)) / (1.0 + 2.0 * root);
        for (i64 k = d; k > 1; k -= 2, order += 1.0) value = (1.0 - at * value) / order;
        return value;
    }
    const double order = 0.5 * double(d + 1);
    double a = b + order, above = 1e300, below = 1.0 / a, value = below;
    for (int k = 1; k < 100; ++k) {
        const double numerator = -k * (order - 1.0 + k);
        a += 2.0;
        below = 1.0 / (a + numerator * below);
        above = a + numerator / above;
        value *= above * below;
        if (fabs(above * below - 1.0) < 1e-15) break;
    }
    return value;
}

// |gamma_j|^2 of d coefficients.
HD double square_of(const double* gamma, i64 d) {
    double total = gamma[0] * gamma[0];
    for (i64 a = 1; a < d; ++a) total += gamma[a] * gamma[a];
    return total;
}

// b of a coefficient.
HD double half_square(double beta, double tau_sq_inv) { return largest(0.5 * beta * beta * tau_sq_inv, LEAST_B); }

// log p(beta_j | tau).
HD double log_horseshoe(double beta, double tau_sq_inv) {
    return log(scaled_exponential_integral(half_square(beta, tau_sq_inv)));
}

// log p(log tau | beta): the prior, the Jacobian, and sum_j log p(gamma_j | tau), p columns of d coefficients. A Team is one
// thread of the host, or the threads of a block of the card; sum_logs(p, f) returns sum_j log f(j) to all of them.
template <class Team>
HD double log_density_of_tau(const Team& team, const double* beta, i64 p, i64 d, double log_tau, double tau_0) {
    const double half = 0.5 * exp(-2.0 * log_tau), ratio = exp(log_tau) / tau_0;
    const auto factor = [=](i64 j) { return scaled_exponential_integral(largest(beta[j] * beta[j] * half, LEAST_B)); };
    const auto of_several = [=](i64 j) { return scaled_exponential_integral_of_order(square_of(beta + j * d, d) * half, d); };
    const double terms = d == 1 ? team.sum_logs(p, factor) : team.sum_logs(p, of_several);
    return log_tau + log_half_cauchy(ratio * ratio) - p * log_tau + terms;
}

// tau^-2 given beta, lambda integrated out: a slice step, with the interval stepped out and then shrunk.
template <class Team>
HD double draw_tau_given_beta(const Team& team, const double* beta, i64 p, double tau_sq_inv, double tau_0,
                              const Stream& stream, i64 d = 1) {
    const auto log_density = [&](double log_tau) { return log_density_of_tau(team, beta, p, d, log_tau, tau_0); };
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

// x = lambda_j^-2 given b of d > 1 coefficients, by rejection. Proposals are from x^(m - 1) e^(-b x) if b > m - 1, else from
// x^(m - 2) e^(-b x): gamma variates as in ``gamma_variate``, whose test and ours are one.
HD double draw_shared_lambda(double b, i64 d, const Stream& stream, u32 j) {
    const double less = 0.5 * double(d - 1), shape = (b > less ? less + 1.0 : less) - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * shape);
    double x = 0.0;
    for (u32 attempt = 0; attempt < 500; ++attempt) {  // each accepts with probability > 0.2
        double u;
        const double n = normal(stream, j, attempt, &u), root = 1.0 + c * n, v = root * root * root;
        if (!(v > 0.0)) continue;
        x = shape * v / b;
        const double accepted = (b > less ? 1.0 : x) / (1.0 + x);
        if (log(u / accepted) < 0.5 * n * n + shape - shape * v + shape * log(v)) break;
    }
    return x;
}

// lambda_j^-2 given the coefficients and tau of a chain, p columns of d coefficients; x (p d,) has each d times.
HD void draw_lambdas_of_chain(const double* beta, i64 p, double tau_sq_inv, const Stream& stream, double* x, i64 d = 1) {
    for (i64 j = 0; j < p; ++j) {
        if (d == 1) {
            x[j] = draw_lambda_given_beta(beta[j], tau_sq_inv, stream, u32(j));
            continue;
        }
        const double b = largest(0.5 * square_of(beta + j * d, d) * tau_sq_inv, LEAST_B);
        const double drawn = draw_shared_lambda(b, d, stream, u32(j));
        for (i64 a = 0; a < d; ++a) x[j * d + a] = drawn;
    }
}
