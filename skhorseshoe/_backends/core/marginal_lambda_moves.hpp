// Moves of single lambda_j, with all coefficients integrated out.
//
// Column j has d coefficients, of precision d_j = tau^-2 lambda_j^-2 each. With P = M^-1 their block of P has eigenvalues w_i,
// and their mean m in the eigenvectors is g. Without the prior of the column, coordinate i of its coefficients has the law
// N(c_i, v_i), v_i = w_i / (1 - d_j w_i), c_i = g_i / (1 - d_j w_i). So the density of lambda_j given the other scales is
// proportional to
//
//     prod_i N(c_i; 0, v_i + lambda_j^2 tau^2) / (1 + lambda_j^2)
//
// and for another d_j, P and m follow by the formula of Sherman & Morrison.
#pragma once
#include "linear_algebra.hpp"
#include "priors/horseshoe.hpp"

// Log-density of log lambda_j, up to a constant; it falls at both ends at least like exp(-|log lambda_j|). v, c : (d,).
struct MarginalLambdaLaw {
    const double *v, *c;
    i64 d;
    double tau_sq_inv;
    HD_MEMBER double operator()(double log_lambda) const {
        const double lambda_sq = exp(2.0 * log_lambda), prior = inverse_half_cauchy(lambda_sq);
        double twice = 0.0, factor = prior * prior;
        for (i64 i = 0; i < d; ++i, factor = 1.0) {
            const double variance = v[i] + lambda_sq / tau_sq_inv;
            if (v[i] > (1.0 - LEAST_FREE) * variance) return -INFINITY;
            twice += log(factor * variance) + c[i] * c[i] / variance;
        }
        return log_lambda - 0.5 * twice;
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
// P (k d, k d), m (k d,) : of the coefficients of these columns; overwritten. rows : (d, k d) scratch, of the team. work :
// (2 d + 4, d) scratch, of each thread. The threads of a team decide alike; its ``copy``, ``add_multiple`` and ``add_square``
// end with a barrier.
template <class Team>
HD void move_lambda_marginally(const Team& team, double* P, double* m, double* x, i64 k, i64 d, double tau_sq_inv,
                               const Stream& stream, double* rows, double* work) {
    const i64 size = k * d;
    double *vectors = work, *w = work + 2 * d * d, *g = w + d, *v = g + d, *c = v + d;
    for (i64 step = 0; step < 2 * k; ++step) {
        const i64 j = step < k ? step : 2 * k - 1 - step;
        const double current = x[j], precision = tau_sq_inv * current;
        diagonalise(P + j * d * (size + 1), size, d, w, vectors, work + d * d);
        bool is_free = true;
        for (i64 i = 0; i < d; ++i) {
            const double free = 1.0 - precision * w[i];
            g[i] = 0.0;
            for (i64 a = 0; a < d; ++a) g[i] += vectors[a * d + i] * m[j * d + a];
            v[i] = w[i] / free, c[i] = g[i] / free, is_free = is_free && free > LEAST_FREE;
        }
        if (!is_free) continue;
        for (i64 i = 0; i < d; ++i) {  // row i of the block, turned to the eigenvectors
            double* row = rows + i * size;
            team.copy(row, P + j * d * size, size);
            for (i64 a = 0; a < d && d > 1; ++a)
                team.add_multiple(row, vectors[a * d + i] - (a == 0), P + (j * d + a) * size, size);
        }
        MarginalLambdaLaw law{v, c, d, tau_sq_inv};
#if defined(PLANT_LARGER_MEAN)
        for (i64 i = 0; i < d; ++i) c[i] *= 3.0;
#elif defined(PLANT_SMALLER_TAU)
        law.tau_sq_inv *= 100.0;
#endif
        const double next = exp(-2.0 * draw_log_lambda_marginally(-0.5 * log(current), law, stream, u32(step)));
        const double change = tau_sq_inv * next - precision;
        team.copy(x + j, &next, 1);
        for (i64 i = 0; i < d; ++i) {
            const double factor = -change / (1.0 + change * w[i]);
            team.add_multiple(m, factor * g[i], rows + i * size, size);
            team.add_square(P, factor, rows + i * size, size);
        }
    }
}
