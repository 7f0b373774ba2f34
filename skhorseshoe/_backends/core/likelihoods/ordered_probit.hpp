// The ordered probit likelihood: P(y = k) = Phi(c_k+1 - eta) - Phi(c_k - eta), k from 0 to K - 1, with cut points c_1 = 0 < c_2
// < ... < c_K-1, and c_0 and c_K infinite. For K = 2 it is the probit likelihood, which is as fast as it can be there.
//
// Its own parameters are the cut points but the first, which the intercept moves. ``likelihood.hpp`` says what a likelihood of
// two classes has; one of more classes has ``score`` and ``log_likelihood`` alone.
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
    // lose digits. Of the series there the next term is below 1e-15.
    static constexpr double BEYOND = 60.0, NARROW = 0.02;
    const double* cuts;  // (n_cuts,) c_2 to c_K-1
    i64 n_cuts;

    HD_MEMBER double cut(i64 k) const { return k ? cuts[k - 1] : 0.0; }

    // width : high - low, of which the difference of both would lose digits.
    HD_MEMBER static IntervalLogDensity interval(double low, double high, double width) {
        const bool flipped = low > 0.0;  // to the lower tail
        const double a = flipped ? -high : low, b = flipped ? -low : high, middle = 0.5 * (low + high);
        const double size = largest(fabs(middle), 1.0);
        if (width * size < NARROW) {
            const double m = middle * middle, w = width * width;
            const double series = 1.0 + w * ((m - 1.0) / 24.0 + w * (m * m - 6.0 * m + 3.0) / 1920.0);
            // phi(end) / (Phi(high) - Phi(low)) is exp(-middle (end - middle) - width^2 / 8) / (width series).
            const double half = 0.5 * middle * width, grown = exp(half), share = exp(-0.125 * w) / (width * series);
            const double slope = 2.0 * share * half * (1.0 + half * half * (1.0 / 6.0));  // share (grown - 1 / grown)
            return {DENSITY_AT_0 * width * series, 0.5 * m, slope, -share * grown, share / grown};
        }
        const CdfParts at_a = cdf_parts(a), at_b = cdf_parts(b);
        const double ratio = at_a.v / at_b.v * exp(at_b.square - at_a.square), factor = at_b.v * (1.0 - ratio);
        const double of_a = DENSITY_AT_0 * exp(at_b.square - 0.5 * a * a) / factor;
        const double of_b = DENSITY_AT_0 * exp(at_b.square - 0.5 * b * b) / factor;
        const double of_low = flipped ? of_b : of_a, of_high = flipped ? of_a : of_b;
        return {factor, at_b.square, of_low - of_high, -of_low, of_high};
    }

    HD_MEMBER IntervalLogDensity at(double eta, i64 k) const {
        if (k == 0) {
            const double high = -eta;
            return interval(least(high, 0.0) - BEYOND, high, BEYOND);
        }
        const double low = cut(k - 1) - eta;
        if (k > n_cuts) return interval(low, largest(low, 0.0) + BEYOND, BEYOND);
        return interval(low, cut(k) - eta, cut(k) - cut(k - 1));
    }

    // Replaces eta by w d log p / d eta, and adds w d log p / d c_k to by_cut (n_cuts,); returns sum w log p.
    template <class R>
    double score(i64 n_rows, R* __restrict eta, const u8* __restrict y, const double* weight,
                 double* __restrict by_cut) const {
        double total = 0.0;
        for (i64 r = 0; r < n_rows; ++r) {
            const i64 k = y[r];
            const double w = weight ? weight[r] : 1.0;
            const IntervalLogDensity row = at(double(eta[r]), k);
            total += w * (log(row.factor) - row.rest);
            eta[r] = R(w * row.slope);
            if (k > 1) by_cut[k - 2] += w * row.by_low;
            if (k > 0 && k <= n_cuts) by_cut[k - 1] += w * row.by_high;
        }
        return total;
    }

    // sum w log p at eta + step change.
    double log_likelihood(i64 n, const double* __restrict eta, const double* __restrict change, const u8* __restrict y,
                          const double* weight, double step) const {
        double total = 0.0;
        for (i64 i = 0; i < n; ++i) {
            const IntervalLogDensity row = at(eta[i] + step * change[i], y[i]);
            total += (weight ? weight[i] : 1.0) * (log(row.factor) - row.rest);
        }
        return total;
    }
};
