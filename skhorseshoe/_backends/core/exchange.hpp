// Exchanges: one coefficient leaves, and that of another column enters.
//
// Column j leaves with a probability proportional to a / (1 + a), a = precision_j beta_j^2. Column k enters with a value
// from N(m_k, 1 / h_k) and a probability proportional to h_k^(-1/2) exp(h_k m_k^2 / 2) / (m_k^2 + 1 / h_k), about that of
// likelihood and prior. m_k is the score without column j divided by h_k. h_k is the precision of the slab plus the
// information of the data: in the unit of the column, the mean square of that score, since most columns are noise.
// Column j gets the former coefficient of column k.
#pragma once
#include "exponential.hpp"
#include "priors/horseshoe.hpp"

constexpr double LARGEST_GAIN = 600.0;  // bound of the gain in log-likelihood, h_k m_k^2 / 2

HD double share_of_size(double beta, double precision) {
    const double a = precision * beta * beta;
    return a / (1.0 + a);
}

HD double sum_of_sizes(const double* beta, const double* precision, i64 p) {
    return sum(p, [=](i64 j) { return share_of_size(beta[j], precision[j]); });
}

// The logarithm of the probability with which column j leaves; total : of ``sum_of_sizes``.
HD double log_probability_out(double beta, double precision, double total) {
    return log(share_of_size(beta, precision) / total);
}

// The mean square of the score, in the units of the columns. square : (p,) squared spreads, 0 for no part.
HD double information_of_score(const double* score, const double* square, i64 p) {
    const double n = sum(p, [=](i64 j) { return square[j] > 0.0 ? 1.0 : 0.0; });
    return sum(p, [=](i64 j) { return square[j] > 0.0 ? score[j] * score[j] / square[j] : 0.0; }) / n;
}

// Weights (p,), to which the probabilities that columns enter are proportional. excluded : the column that has left.
// Returns the sum of the weights, the largest of which is near 1.
HD double weigh_columns(const double* score, const double* square, const double* diagonal, double information, i64 p,
                        i64 excluded, double* weights) {
    CONTRACT
    double largest_gain = 0.0;
    for (i64 k = 0; k < p; ++k) {
        const double precision = information * square[k] + diagonal[k];
        weights[k] = square[k] > 0.0 ? least(0.5 * score[k] * score[k] / precision, LARGEST_GAIN) : 0.0;  // the gain
    }
    for (i64 k = 0; k < p; ++k) largest_gain = largest(largest_gain, weights[k]);
    for (i64 k = 0; k < p; ++k) {
        CONTRACT
        const double precision = information * square[k] + diagonal[k], gain = weights[k];
        const double likelihood = exp_half_square(sqrt(2.0 * (largest_gain - gain)));
        const double weight = likelihood * sqrt(precision) / (score[k] * score[k] / precision + 1.0);
        weights[k] = square[k] > 0.0 ? weight : 0.0;
    }
    weights[excluded] = 0.0;
    return sum(p, [=](i64 k) { return weights[k]; });
}

// log N of a standardised value, up to a constant.
HD double log_normal_density(double standard, double precision) { return 0.5 * (log(precision) - standard * standard); }

// The logarithm of the fixed prior: an anchor for the intercept, and a Gaussian for each coefficient, with the slab.
HD double log_fixed_prior(const double* beta, const double* anchor, const double* diagonal, i64 q) {
    double level = 0.0, total = 0.0;
    for (i64 j = 0; j < q; ++j) level += anchor[j] * beta[j], total += diagonal[j] * beta[j] * beta[j];
    return -0.5 * (level * level + total);
}
