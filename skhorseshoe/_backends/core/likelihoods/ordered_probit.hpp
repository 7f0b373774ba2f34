// The ordered probit likelihood: P(y = k) = Phi(c_k+1 - eta) - Phi(c_k - eta), k from 0 to K - 1, with cut points c_1 = 0 < c_2
// < ... < c_K-1, and c_0 and c_K infinite. For K = 2 it is the probit likelihood, which is as fast as it can be there.
//
// Its own parameters are the cut points but the first, which the intercept moves. ``likelihood.hpp`` says what a likelihood of
// two classes has; one of more classes has ``score`` and ``log_likelihood``, and this one also what groups of rows ask of the
// law of a chain.
#pragma once
#include "likelihood.hpp"
#include "likelihoods/normal_tail.hpp"

// log(Phi(high) - Phi(low)) = log factor - rest, low < high, and its derivatives by eta, low and high.
struct IntervalLogDensity {
    double factor, rest, slope, by_low, by_high;
};

struct OrderedProbit {
    static constexpr bool HAS_LATENTS = false;
    // Beyond an end of the scale the tail is left out; and how narrow an interval is where the difference of two tails would
    // lose digits. Of the series there the next terms are below 1e-14.
    static constexpr double BEYOND = 60.0, NARROW = 0.02;
    const double* cuts;  // (n_cuts,) c_2 to c_K-1
    i64 n_cuts;

    // Nothing branches, so loops over rows vectorise. width : high - low, of which the difference would lose digits.
    HD_MEMBER static IntervalLogDensity interval(double low, double high, double width) {
        const bool flipped = low > 0.0;  // to the lower tail
        const double a = flipped ? -high : low, b = flipped ? -low : high;
        const CdfParts at_a = cdf_parts(a), at_b = cdf_parts(b);
        const double factor = at_b.v - at_a.v * exp(at_b.square - at_a.square);
        const double of_a = DENSITY_AT_0 * exp(at_b.square - 0.5 * a * a) / factor;
        const double of_b = DENSITY_AT_0 * (b < 0.0 ? 1.0 : at_b.e) / factor;
        const double of_low = flipped ? of_b : of_a, of_high = flipped ? of_a : of_b;

        // phi(end) / (Phi(high) - Phi(low)) is exp(-middle (end - middle) - width^2 / 8) / (width series).
        const double middle = 0.5 * (low + high), m = middle * middle, w = width * width;
        const double series = 1.0 + w * ((m - 1.0) / 24.0 + w * (m * m - 6.0 * m + 3.0) / 1920.0);
        const double half = 0.5 * middle * width, square = half * half;
        const double even = 1.0 + square * (0.5 + square / 24.0), odd = half * (1.0 + square * (1.0 / 6.0));
        const double share = (1.0 + w * (-0.125 + w / 128.0)) / (width * series);
        const bool narrow = width * largest(fabs(middle), 1.0) < NARROW;
        return {narrow ? DENSITY_AT_0 * width * series : factor, narrow ? 0.5 * m : at_b.square,
                narrow ? 2.0 * share * odd : of_low - of_high, narrow ? -share * (even + odd) : -of_low,
                narrow ? share * (even - odd) : of_high};
    }

    // The interval of class k at eta.
    HD_MEMBER void ends(double eta, i64 k, double& low, double& high, double& width) const {
        const double below = k > 1 ? cuts[k - 2] : 0.0, above = k > 0 && k <= n_cuts ? cuts[k - 1] : 0.0;
        low = below - eta, high = above - eta, width = above - below;
        if (k == 0) low = least(high, 0.0) - BEYOND, width = BEYOND;
        if (k > n_cuts) high = largest(low, 0.0) + BEYOND, width = BEYOND;
    }

    // Minus the second derivative of log p by eta, and the first.
    HD_MEMBER double curvature(double eta, i64 k, double& slope) const {
        double low, high, width;
        ends(eta, k, low, high, width);
        const IntervalLogDensity row = interval(low, high, width);
        slope = row.slope;  // minus the sum of the derivatives by both ends
        const double gap = width < BEYOND ? width : high - low;
        return least(1.0, largest(0.0, slope * (slope - low) + gap * row.by_high));
    }

    // As in ``TwoClasses``; places are the ends of the class of a row, and their distance.
    static constexpr i64 N_PLACES = 3;
    HD_MEMBER void place(double eta, i64 k, i64 stride, double* places) const {
        ends(eta, k, places[0], places[stride], places[2 * stride]);
    }

    static void log_densities(i64 n, i64 stride, const double* __restrict places, double* __restrict factor,
                              double* __restrict rest) {
        const double *low = places, *high = places + stride, *width = places + 2 * stride;
        SIDE_BY_SIDE
        for (i64 r = 0; r < n; ++r) {
            IntervalLogDensity row = interval(low[r], high[r], width[r]);
            in_range(row.factor, row.rest);
            factor[r] = row.factor, rest[r] = row.rest;
        }
    }

    static double sum_log_densities(i64 n, i64 stride, double* places, const double* weight, double* work) {
        double *rest = work, *factor = work + n;
        log_densities(n, stride, places, factor, rest);
        return sum_logs(n, weight, rest, factor);
    }

    // A factor in range for ``sum_logs``.
    HD_MEMBER static void in_range(double& factor, double& rest) {
        for (int i = 0; i < 5; ++i) keep_in_range(factor, rest);
    }

    // Replaces eta by w d log p / d eta, and adds w d log p / d c_k to by_cut (n_cuts,); returns sum w log p. At most
    // LONGEST_TILE rows.
    template <class R>
    double score(i64 n_rows, i64, R* __restrict eta, const u8* __restrict y, const double* weight,
                 double* __restrict by_cut) const {
        double low[LONGEST_TILE], high[LONGEST_TILE], width[LONGEST_TILE], factor[LONGEST_TILE], rest[LONGEST_TILE];
        double by_low[LONGEST_TILE], by_high[LONGEST_TILE];
        for (i64 r = 0; r < n_rows; ++r) ends(double(eta[r]), y[r], low[r], high[r], width[r]);
        SIDE_BY_SIDE
        for (i64 r = 0; r < n_rows; ++r) {
            IntervalLogDensity row = interval(low[r], high[r], width[r]);
            in_range(row.factor, row.rest);
            factor[r] = row.factor, rest[r] = row.rest;
            by_low[r] = row.by_low, by_high[r] = row.by_high, eta[r] = R(row.slope);
        }
        for (i64 r = 0; r < n_rows; ++r) {
            const i64 k = y[r];
            const double w = weight ? weight[r] : 1.0;
            if (weight) eta[r] *= R(w);
            if (k > 1) by_cut[k - 2] += w * by_low[r];
            if (k > 0 && k <= n_cuts) by_cut[k - 1] += w * by_high[r];
        }
        return sum_logs(n_rows, weight, rest, factor);
    }

    // sum w log p at eta + step change. At most LONGEST_TILE rows.
    double log_likelihood(i64 n, i64, const double* __restrict eta, const double* __restrict change, const u8* __restrict y,
                          const double* weight, double step) const {
        double places[N_PLACES * LONGEST_TILE], work[2 * LONGEST_TILE];
        for (i64 i = 0; i < n; ++i) place(eta[i] + step * change[i], y[i], LONGEST_TILE, places + i);
        return sum_log_densities(n, LONGEST_TILE, places, weight, work);
    }
};
