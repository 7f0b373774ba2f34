// Moves of single lambda_j, with all coefficients integrated out.
//
// Without the prior of column j, of precision d_j = tau^-2 lambda_j^-2, the law of beta_j is N(c, v), v = P_jj / (1 - d_j
// P_jj), c = m_j / (1 - d_j P_jj), with P = M^-1. So the density of lambda_j given the other scales is proportional to
//
//     N(c; 0, v + lambda_j^2 tau^2) / (1 + lambda_j^2)
//
// and for another d_j, P and m follow by the formula of Sherman & Morrison.
#pragma once
#include "linear_algebra.hpp"
#include "priors/horseshoe.hpp"

// Log-density of log lambda_j, up to a constant; it falls at both ends at least like exp(-|log lambda_j|).
struct MarginalLambdaLaw {
    double v, c, tau_sq_inv;
    HD_MEMBER double operator()(double log_lambda) const {
        const double lambda_sq = exp(2.0 * log_lambda), variance = v + lambda_sq / tau_sq_inv;
        if (v > (1.0 - LEAST_FREE) * variance) return -INFINITY;
        const double prior = inverse_half_cauchy(lambda_sq);
        return log_lambda - 0.5 * (log(prior * prior * variance) + c * c / variance);
    }
};

// The next log lambda_j, by a slice step. step : its index among the steps with this stream.
HD double draw_log_lambda_marginally(double current, const MarginalLambdaLaw& law, const Stream& stream, u32 step) {
    const double level = law(current) - exponential(stream, step);
    if (level == -INFINITY) return current;
    const double low = current - LAMBDA_WIDTH * uniform(stream, step, 1);
    const auto uniform_of = [&](u32 attempt) { return uniform(stream, step, 2 + attempt); };
    return shrink_slice(current, level, low, low + LAMBDA_WIDTH, law, uniform_of);
}

// Moves of k columns, from the first to the last and back to the first, which is reversible. x (k,) = lambda_j^-2 in place.
// P (k, k), m (k,) : of these columns; overwritten. column : (k,) scratch. The threads of a team decide alike; its
// ``copy``, ``add_multiple`` and ``add_square`` end with a barrier.
template <class Team>
HD void move_lambda_marginally(const Team& team, double* P, double* m, double* x, i64 k, double tau_sq_inv,
                               const Stream& stream, double* column) {
    for (i64 step = 0; step < 2 * k; ++step) {
        const i64 j = step < k ? step : 2 * k - 1 - step;
        const double current = x[j], mean = m[j], variance = P[j * k + j], d = tau_sq_inv * current, free = 1.0 - d * variance;
        if (!(free > LEAST_FREE)) continue;
        team.copy(column, P + j * k, k);
        MarginalLambdaLaw law{variance / free, mean / free, tau_sq_inv};
#if defined(PLANT_LARGER_MEAN)
        law.c *= 3.0;
#elif defined(PLANT_SMALLER_TAU)
        law.tau_sq_inv *= 100.0;
#endif
        const double next = exp(-2.0 * draw_log_lambda_marginally(-0.5 * log(current), law, stream, u32(step)));
        const double change = tau_sq_inv * next - d, factor = -change / (1.0 + change * variance);
        team.copy(x + j, &next, 1);
        team.add_multiple(m, factor * mean, column, k);
        team.add_square(P, factor, column, k);
    }
}
