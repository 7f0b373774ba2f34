// The probit likelihood: P(y = 1) = Phi(eta). ``likelihood.hpp`` says what a likelihood has.
#pragma once
#include "likelihood.hpp"
#include "likelihoods/normal_tail.hpp"
#include "likelihoods/truncated_normal.hpp"
#ifndef __CUDACC_RTC__
#include "likelihoods/truncate_tile.hpp"
#endif

struct Probit {
    HD_MEMBER static LogDensity at(double t) {
        const CdfParts parts = cdf_parts(t);
        return {parts.v, parts.square, mills_ratio(t, parts.e, parts.v)};
    }
    HD_MEMBER static double second(double t, double slope) { return -slope * (t + slope); }
    HD_MEMBER static double third(double t, double slope) {
        CONTRACT
        const double both = t + slope;
        return slope * (both * (both + slope) - 1.0);
    }
    HD_MEMBER static double smaller(double eta) { return upper_tail(eta); }

    static constexpr double CERTAIN = 8.3, LEAST_ACCURATE = -100.0;
    static constexpr double LEAST_FOURTH = -0.19, LARGEST_FOURTH = 0.1152;
    // The fourth derivative changes its sign between these t. Both bounds are largest where t is small, and fall on one
    // side: the least like (1 - (t - 2.3) / 3.4)^3, the largest like 1 / (1 + 0.4 t^2).
    static constexpr double SIGN_CHANGE_LOW = 1.0, SIGN_CHANGE_HIGH = 1.003;
    HD_MEMBER static double least_fourth(double factor, const Range& t) {
        const double share = least(largest(1.0 - (t.least - 2.3) * (1.0 / 3.4), 0.0), 1.0);
        return t.largest > SIGN_CHANGE_LOW ? factor * (share * share * share + 1e-4) : 0.0;
    }
    HD_MEMBER static double largest_fourth(double factor, const Range& t) {
        const double negative = least(t.largest, 0.0);
        return t.least < SIGN_CHANGE_HIGH ? factor / (1.0 + 0.4 * negative * negative) : 0.0;
    }

    // z ~ N(mean, 1) on the side of y.
    static constexpr bool HAS_LATENTS = true;
    template <class R> HD_MEMBER static R latent(R mean, bool is_one, const Stream& stream, u32 row) {
        const R drawn = truncated_normal(is_one ? mean : -mean, stream, row);
        return is_one ? drawn : -drawn;
    }
#ifndef __CUDACC_RTC__
    template <class R> using Latents = TruncatedTile<R>;
#endif
};
