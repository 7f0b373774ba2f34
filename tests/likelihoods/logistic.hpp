// The logistic likelihood: P(y = 1) = 1 / (1 + exp(-eta)).
#pragma once
#include "likelihood.hpp"

struct Logistic {
    HD_MEMBER static LogDensity at(double t) {
        const double e = exp(-fabs(t)), larger = 1.0 / (1.0 + e);
        return {larger, t < 0.0 ? -t : 0.0, t < 0.0 ? larger : e * larger};
    }
    HD_MEMBER static double second(double, double slope) { return -slope * (1.0 - slope); }
    HD_MEMBER static double third(double, double slope) { return slope * (1.0 - slope) * (1.0 - 2.0 * slope); }
    HD_MEMBER static double smaller(double eta) {
        const double e = exp(-fabs(eta));
        return e / (1.0 + e);
    }

    static constexpr double CERTAIN = 37.0, LEAST_ACCURATE = -30.0;
    // q (6 q - 1) with q = p (1 - p) in [0, 1/4]
    static constexpr double LEAST_FOURTH = -1.0 / 24.0, LARGEST_FOURTH = 0.125;
    HD_MEMBER static double least_fourth(double factor, const Range&) { return factor; }
    HD_MEMBER static double largest_fourth(double factor, const Range&) { return factor; }

    static constexpr bool HAS_LATENTS = false;
};
