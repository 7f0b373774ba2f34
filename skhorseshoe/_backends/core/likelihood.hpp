// What a likelihood has, and sums over rows of any likelihood, in loops that vectorise.
//
// A likelihood, in a file of its own in ``likelihoods/``, is a struct of static functions. t = s eta is the linear predictor
// of a row with the sign s = 1 or -1 of y = 1 or 0; log p is a concave function of it, and p(t) + p(-t) = 1.
//     LogDensity at(t)                           log p and its derivative
//     double second(t, slope), third(t, slope)   further derivatives, given the first
//     double smaller(eta)                        the smaller of P(y = 1) and P(y = 0)
//     CERTAIN, LEAST_ACCURATE                    the least t at which p is 1 to rounding; and the least t for which
//                                                derivatives are accurate enough for bounds
//     LEAST_FOURTH, LARGEST_FOURTH               bounds of the fourth derivative
//     double least_fourth(factor, range)         factor times a share of these bounds that holds in a range of t; or
//     double largest_fourth(factor, range)       just the factor
//     HAS_LATENTS                                whether there is a latent z given which eta has a Gaussian likelihood of
//                                                variance 1. If so, the device also has the first of these, and the host
//                                                the second, for a tile of rows with d latents each, (d, stride):
//     R latent(eta, is_one, stream, row)
//     Latents<R>{d, work}.draw(z, stride, y, n_rows, first_row, chain, key)
#pragma once
#include "base.hpp"

// log p = log factor - rest, with factor in [1e-19, 1], so that few logarithms are taken; and the first derivative.
struct LogDensity {
    double factor, rest, slope;
    HD_MEMBER double value() const { return log(factor) - rest; }
};

struct Range {
    double least, largest;
};

// The least factor in sums of logarithms, and by which it grows there.
constexpr double LEAST_FACTOR = 1e-18, GROWTH = 1e18, LOG_GROWTH = 41.44653167389282;

// log factor - rest with a larger factor, if it is too small.
HD void keep_in_range(double& factor, double& rest) {
    const bool small = factor < LEAST_FACTOR;
    factor = small ? factor * GROWTH : factor, rest = small ? rest + LOG_GROWTH : rest;
}

#ifndef __CUDACC_RTC__
constexpr i64 LONGEST_TILE = 256;

// Functions of arrays of n numbers. weight : (n,), or null where each is 1.

template <class L>
static inline void log_densities(i64 n, const double* __restrict t, double* __restrict factor, double* __restrict rest) {
    SIDE_BY_SIDE
    for (i64 i = 0; i < n; ++i) {
        const LogDensity row = L::at(t[i]);
        rest[i] = row.rest, factor[i] = row.factor;
    }
}

// Whether half of the t or more are certain; false with weights, which would have to move with them.
template <class L> static inline bool mostly_certain(i64 n, const double* t, const double* weight) {
    if (weight) return false;
    i64 n_certain = 0;
    for (i64 i = 0; i < n; ++i) n_certain += t[i] >= L::CERTAIN;
    return 2 * n_certain >= n;
}

// If most t are certain, as in separated classes, moves the others to the front and returns their number; else n.
template <class L> static inline i64 leave_out_certain(i64 n, double* t, const double* weight) {
    if (!mostly_certain<L>(n, t, weight)) return n;
    i64 left = 0;
    for (i64 i = 0; i < n; ++i) {
        t[left] = t[i];
        left += !(t[i] >= L::CERTAIN);
    }
    return left;
}

// sum w (log factor - rest); factor is overwritten. Without weights, logarithms are taken of products of up to 16 numbers.
static inline double sum_logs(i64 n, const double* __restrict weight, const double* __restrict rest,
                              double* __restrict factor) {
    if (weight) return sum(n, [=](i64 i) { return weight[i] * (log(factor[i]) - rest[i]); });
    constexpr i64 LANES = 32, BLOCK = 16 * LANES;
    double total = -sum(n, [=](i64 i) { return rest[i]; });
    for (i64 start = 0; start < n; start += BLOCK) {
        const i64 stop = least(n, start + BLOCK);
        double* __restrict product = factor + start;
        for (i64 first = start + LANES; first < stop; first += LANES) {
            const double* more = factor + first;
            for (i64 i = 0; i < least(LANES, stop - first); ++i) product[i] *= more[i];
        }
        for (i64 i = 0; i < least(LANES, stop - start); ++i) total += log(product[i]);
    }
    return total;
}

// sum w log p(t), with an error far below 1e-15 for each number. t is overwritten. work : 2 n numbers.
template <class L> static inline double sum_log_densities(i64 n, double* t, const double* weight, double* work) {
    double *rest = work, *factor = work + n;
    n = leave_out_certain<L>(n, t, weight);
    log_densities<L>(n, t, factor, rest);
    return sum_logs(n, weight, rest, factor);
}

// sum w log p(s (eta + step change)), s = 1 or -1 as y is 1 or 0. work : 3 n numbers.
template <class L>
static inline double log_likelihood(i64 n, const double* __restrict eta, const double* __restrict change,
                                    const u8* __restrict y, const double* weight, double step,
                                    double* __restrict work) {
    for (i64 i = 0; i < n; ++i) {
        const double value = eta[i] + step * change[i];
        work[i] = y[i] ? value : -value;
    }
    return sum_log_densities<L>(n, work, weight, work + n);
}

// The law of a chain, which other likelihoods than of two classes are themselves, as passes and groups of rows ask it. own :
// the likelihood's own parameters of the chain, (n_own,).
template <class L> struct TwoClasses : L {
    TwoClasses(const double*, i64) {}

    // Replaces eta by w d log p(s eta) / d eta; returns sum w log p(s eta). At most LONGEST_TILE rows.
    template <class R>
    double score(i64 n_rows, i64, R* __restrict eta, const u8* __restrict y, const double* __restrict weight, double*) const {
        double rest[LONGEST_TILE], factor[LONGEST_TILE];
        const auto replace = [&](auto weight_of) {
            SIDE_BY_SIDE
            for (i64 r = 0; r < n_rows; ++r) {
                const double t = y[r] ? double(eta[r]) : -double(eta[r]);
                const LogDensity row = L::at(t);
                const double slope = row.slope * weight_of(r);
                rest[r] = row.rest, factor[r] = row.factor;
                eta[r] = R(y[r] ? slope : -slope);
            }
        };
        if (weight) replace([=](i64 r) { return weight[r]; });
        else replace([](i64) { return 1.0; });
        return sum_logs(n_rows, weight, rest, factor);
    }

    // At most LONGEST_TILE rows.
    double log_likelihood(i64 n, i64, const double* eta, const double* change, const u8* y, const double* weight,
                          double step) const {
        double work[3 * LONGEST_TILE];
        return ::log_likelihood<L>(n, eta, change, y, weight, step, work);
    }

    // Minus the second derivative of log p by eta, and the first.
    double curvature(double eta, u8 y, double& slope) const {
        const double t = y ? eta : -eta, by_t = L::at(t).slope;
        slope = y ? by_t : -by_t;
        return -L::second(t, by_t);
    }

    // A row in ``places``, of which arrays of ``stride`` numbers follow one another: what its log p depends on.
    static constexpr i64 N_PLACES = 1;
    void place(double eta, u8 y, i64, double* places) const { *places = y ? eta : -eta; }

    // log p of placed rows, of any chains, as log factor - rest.
    static void log_densities(i64 n, i64, const double* places, double* factor, double* rest) {
        ::log_densities<L>(n, places, factor, rest);
    }

    // sum w log p of placed rows. places are overwritten. work : 2 n numbers.
    static double sum_log_densities(i64 n, i64, double* places, const double* weight, double* work) {
        return ::sum_log_densities<L>(n, places, weight, work);
    }
};
#endif
