// exp(-t^2 / 2), without a branch or a call, so that loops vectorise.
#pragma once
#include "base.hpp"

constexpr double LOG2_E = 1.4426950408889634, LN2_HIGH = 0.6931471803691238, LN2_LOW = 1.9082149292705877e-10;
constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, which is then in the low bits

constexpr double TAIL_END = 37.3;  // t beyond which it is taken as constant, 1e-302, so that it is never zero

// exp(x), from -690 to 300, and constant beyond.
HD double exp_moderate(double x) {
    CONTRACT
    const double inside = largest(least(x, 300.0), -690.0), rounded = ROUND + inside * LOG2_E, k = rounded - ROUND;
    const double r = (inside - k * LN2_HIGH) - k * LN2_LOW;
    return exp_polynomial(r) * of_bits((bits_of(rounded) << 52) + (u64(1023) << 52));
}

// For |t| up to TAIL_END, constant beyond: 2^k exp(r), |r| <= log(2) / 2.
HD double exp_half_square(double t) {
    CONTRACT
    const double size = least(fabs(t), TAIL_END), rounded = ROUND - 0.5 * size * size * LOG2_E, k = rounded - ROUND;
    const double r = (-0.5 * size * size - k * LN2_HIGH) - k * LN2_LOW;
    return exp_polynomial(r) * of_bits((bits_of(rounded) << 52) + (u64(1023) << 52));
}
