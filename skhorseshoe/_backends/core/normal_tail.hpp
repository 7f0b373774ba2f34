// The tails of the normal distribution, and its logarithm: of one number, and on the host of arrays, in loops that
// vectorise.
//
// P(N > t) = exp(-t^2/2) erfcx(t / sqrt 2) / 2, and (1 + 2x) erfcx(x) is a smooth function of (x - 3.75) / (x + 3.75)
// on the whole half-line (Shepherd & Laframboise 1981, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in
// 0 <= x < inf"). Its polynomial is in ``constants.py``.
#pragma once
#include "base.hpp"

constexpr double LOG2_E = 1.4426950408889634, LN2_HIGH = 0.6931471803691238, LN2_LOW = 1.9082149292705877e-10;
constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, which is then in the low bits

// exp(-t^2 / 2) for |t| up to TAIL_END, constant beyond: 2^k exp(r), |r| <= log(2) / 2.
HD double exp_half_square(double t) {
    CONTRACT
    const double size = least(fabs(t), TAIL_END), rounded = ROUND - 0.5 * size * size * LOG2_E, k = rounded - ROUND;
    const double r = (-0.5 * size * size - k * LN2_HIGH) - k * LN2_LOW;
    return exp_polynomial(r) * of_bits((bits_of(rounded) << 52) + (u64(1023) << 52));
}

// exp(t^2 / 2) P(N > size), 0 <= size <= FAR; with a single division, since they are slow.
HD double scaled_tail(double size) {
    CONTRACT
    const double x = size * 0.7071067811865476;
    const double inverse = 1.0 / ((x + 3.75) * (1.0 + 2.0 * x));
    return 0.5 * erfcx_polynomial((x - 3.75) * (1.0 + 2.0 * x) * inverse) * (x + 3.75) * inverse;
}

// P(N > |t|), relative error below 1e-13 for |t| up to TAIL_END, and constant beyond, so that it is never zero.
HD double upper_tail(double t) { return exp_half_square(t) * scaled_tail(least(fabs(t), TAIL_END)); }

// log Phi(t) is log v - square, and e = exp(-t^2/2). With g = erfcx(|t| / sqrt 2) / 2, Phi(t) is e g for t < 0 and
// 1 - e g for t >= 0: v is g or 1 - e g, in (0, 1], and t^2/2 is separate, so that nothing underflows. Relative errors are
// below 1e-13.
struct CdfParts {
    double square, e, v;
};

HD CdfParts cdf_parts(double t) {
    CONTRACT
    const double e = exp_half_square(t), g = scaled_tail(least(fabs(t), FAR));
    const double below = largest(least(t, 0.0), -FAR);
    return {0.5 * below * below, e, t < 0.0 ? g : 1.0 - e * g};
}

HD double log_cdf(const CdfParts& parts) { return log(parts.v) - parts.square; }

// phi(t) / Phi(t), relative error below 1e-12 down to t = -37.3, and finite beyond.
HD double mills_ratio(double t, double e, double v) { return DENSITY_AT_0 * (t < 0.0 ? 1.0 : e) / v; }

#ifndef __CUDACC_RTC__
// Functions of arrays of n numbers. weight : (n,), or null where each is 1.

static inline void cdf_parts(i64 n, const double* __restrict t, double* __restrict squares, double* __restrict e,
                             double* __restrict v) {
    SIDE_BY_SIDE
    for (i64 i = 0; i < n; ++i) {
        const CdfParts parts = cdf_parts(t[i]);
        squares[i] = parts.square, e[i] = parts.e, v[i] = parts.v;
    }
}

// Whether half of the t or more are at least CERTAIN, where Phi is 1 to rounding; false with weights, which would have to
// move with them.
static inline bool mostly_certain(i64 n, const double* t, const double* weight) {
    if (weight) return false;
    i64 n_certain = 0;
    for (i64 i = 0; i < n; ++i) n_certain += t[i] >= CERTAIN;
    return 2 * n_certain >= n;
}

// If most t are certain, as in separated classes, moves the others to the front and returns their number; else n.
static inline i64 leave_out_certain(i64 n, double* t, const double* weight) {
    if (!mostly_certain(n, t, weight)) return n;
    i64 left = 0;
    for (i64 i = 0; i < n; ++i) {
        t[left] = t[i];
        left += !(t[i] >= CERTAIN);
    }
    return left;
}

// sum w (log v - squares); v is overwritten. Without weights, logarithms are taken of products of up to 16 numbers,
// none of which is below 1e-19 for t above -1e18.
static inline double sum_logs(i64 n, const double* __restrict weight, const double* __restrict squares,
                              double* __restrict v) {
    if (weight) return sum(n, [=](i64 i) { return weight[i] * (log(v[i]) - squares[i]); });
    constexpr i64 LANES = 32, BLOCK = 16 * LANES;
    double total = -sum(n, [=](i64 i) { return squares[i]; });
    for (i64 start = 0; start < n; start += BLOCK) {
        const i64 stop = least(n, start + BLOCK);
        double* __restrict product = v + start;
        for (i64 first = start + LANES; first < stop; first += LANES) {
            const double* factor = v + first;
            for (i64 i = 0; i < least(LANES, stop - first); ++i) product[i] *= factor[i];
        }
        for (i64 i = 0; i < least(LANES, stop - start); ++i) total += log(product[i]);
    }
    return total;
}

// sum w log Phi(t), with an error far below 1e-15 for each number. t is overwritten. work : 3 n numbers.
static inline double sum_log_cdf(i64 n, double* t, const double* weight, double* work) {
    double *squares = work, *e = work + n, *v = work + 2 * n;
    n = leave_out_certain(n, t, weight);
    cdf_parts(n, t, squares, e, v);
    return sum_logs(n, weight, squares, v);
}

// sum w log Phi(s (eta + step change)), s = 1 or -1 as y is 1 or 0. work : 4 n numbers.
static inline double log_likelihood(i64 n, const double* __restrict eta, const double* __restrict change,
                                    const u8* __restrict y, const double* weight, double step,
                                    double* __restrict work) {
    for (i64 i = 0; i < n; ++i) {
        const double value = eta[i] + step * change[i];
        work[i] = y[i] ? value : -value;
    }
    return sum_log_cdf(n, work, weight, work + n);
}
#endif
