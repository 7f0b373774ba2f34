// Exchanges: one coefficient is taken out, and another takes its place.
//
// Out goes column j with a probability in proportion to a / (1 + a), a = precision_j beta_j^2. In comes column k with a
// value from N(m_k, 1 / h_k), with a probability in proportion to h_k^(-1/2) exp(h_k m_k^2 / 2) / (m_k^2 + 1 / h_k):
// about what the likelihood and the prior say of it. m_k is the score without column j by h_k, and h_k the precision of
// the slab and what the data tell: in the unit of the column, the mean square of that score, for most columns are noise.
// Column j gets the coefficient that column k has had.
#pragma once
#include "normal_tail.hpp"
#include "scales.hpp"

constexpr double LARGEST_GAIN = 600.0;  // of the logarithm of a likelihood, h_k m_k^2 / 2, that counts

HD double share_of_size(double beta, double precision) {
    const double a = precision * beta * beta;
    return a / (1.0 + a);
}

HD double sum_of_sizes(const double* beta, const double* precision, i64 p) {
    return sum(p, [=](i64 j) { return share_of_size(beta[j], precision[j]); });
}

// The logarithm of the probability with which column j goes out; total : the sum of all sizes.
HD double log_chance_out(double beta, double precision, double total) {
    return log(share_of_size(beta, precision) / total);
}

// The mean square of the score, in the units of the columns. square : (p,) their spreads, 0 of those that take no part.
HD double information_of_score(const double* score, const double* square, i64 p) {
    const double n = sum(p, [=](i64 j) { return square[j] > 0.0 ? 1.0 : 0.0; });
    return sum(p, [=](i64 j) { return square[j] > 0.0 ? score[j] * score[j] / square[j] : 0.0; }) / n;
}

// How likely columns are to come in: in proportion to weights (p,). excluded : the column that has gone out. Returns the
// sum of the weights, the largest of which is near 1.
HD double weigh_columns(const double* score, const double* square, const double* diagonal, double information, i64 p,
                        i64 excluded, double* weights) {
    CONTRACT
    double most = 0.0;
    for (i64 k = 0; k < p; ++k) {
        const double precision = information * square[k] + diagonal[k];
        weights[k] = square[k] > 0.0 ? least(0.5 * score[k] * score[k] / precision, LARGEST_GAIN) : 0.0;  // the gain
    }
    for (i64 k = 0; k < p; ++k) most = largest(most, weights[k]);
    for (i64 k = 0; k < p; ++k) {
        CONTRACT
        const double precision = information * square[k] + diagonal[k], gain = weights[k];
        const double likelihood = exp_half_square(sqrt(2.0 * (most - gain)));
        const double weight = likelihood * sqrt(precision) / (score[k] * score[k] / precision + 1.0);
        weights[k] = square[k] > 0.0 ? weight : 0.0;
    }
    weights[excluded] = 0.0;
    return sum(p, [=](i64 k) { return weights[k]; });
}

// log N, up to a constant, of a standardised value.
HD double log_normal_density(double standard, double precision) { return 0.5 * (log(precision) - standard * standard); }

// The logarithm of the fixed prior: an anchor for the intercept, and a Gaussian for each coefficient, with the slab.
HD double log_fixed_prior(const double* beta, const double* anchor, const double* diagonal, i64 q) {
    double level = 0.0, total = 0.0;
    for (i64 j = 0; j < q; ++j) level += anchor[j] * beta[j], total += diagonal[j] * beta[j] * beta[j];
    return -0.5 * (level * level + total);
}

// Of a coefficient given tau, lambda integrated out, up to a constant.
HD double log_horseshoe(double beta, double tau_sq_inv) {
    return log(scaled_exponential_integral(largest(0.5 * beta * beta * tau_sq_inv, LEAST_B)));
}
