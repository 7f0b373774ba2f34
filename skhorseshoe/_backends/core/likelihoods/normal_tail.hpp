// The tails of the normal distribution.
//
// P(N > t) = exp(-t^2/2) erfcx(t / sqrt 2) / 2, and (1 + 2x) erfcx(x) is a smooth function of (x - 3.75) / (x + 3.75)
// on the whole half-line (Shepherd & Laframboise 1981, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in
// 0 <= x < inf"). Its polynomial is in ``constants.py``.
#pragma once
#include "exponential.hpp"

constexpr double DENSITY_AT_0 = 0.3989422804014327;  // phi(0)
constexpr double FAR = 1e150;                        // a large number whose square is finite

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

// phi(t) / Phi(t), relative error below 1e-12 down to t = -37.3, and finite beyond.
HD double mills_ratio(double t, double e, double v) { return DENSITY_AT_0 * (t < 0.0 ? 1.0 : e) / v; }
