// N(mean, 1) given that it is positive: the two-branch rejection sampler of Terenin, Dong & Draper (2019), section 3,
// from the untruncated normal where the mean is above GAUSSIAN_ABOVE, from Robert's (1995) exponential below. A block
// of random words holds two proposals of each kind (a Box-Muller pair counts as one).
//
// The standard variates (exponential, radius, cosine, sine) have the resolution of float32; they are combined with the
// mean in R, the type in which the rows are computed. The variate itself is formed, never mean + (small difference), so
// the relative accuracy holds for every |mean| up to 40 and beyond. Nothing branches, so loops over rows vectorise.
//
// References: Robert (1995), "Simulation of truncated normal variables"; the polynomials for log, sin and cos are those
// of Moshier's Cephes mathematical library.
#pragma once
#include "random.hpp"

constexpr double GAUSSIAN_ABOVE = 0.47;  // least mean for which the proposal is an untruncated normal

HD float root(float x) { return sqrtf(x); }
HD double root(double x) { return sqrt(x); }

// Uniform on (0, 1) from one word; never 0, never 1.
HD float unit_32(u32 word) {
    return least(float(word) * 2.3283064365386963e-10f + 1.1641532182693481e-10f, 0.99999994f);
}

// -log(unit_32(word)), relative error below 1e-7.
HD float minus_log_unit(u32 word) {
    CONTRACT
    const float unit = unit_32(word);
    const u32 bits = bits_of(unit);  // unit = mantissa 2^power, mantissa in [1/2, 1)
    const float mantissa = of_bits((bits & 0x7FFFFFu) | 0x3F000000u), power = float(i32(bits >> 23) - 126);
    const bool low = mantissa < 0.70710678f;
    const float exponent = low ? power - 1.0f : power, x = (low ? mantissa + mantissa : mantissa) - 1.0f;
    float y = 7.0376836292e-2f;
    y = y * x + -1.1514610310e-1f;
    y = y * x + 1.1676998740e-1f;
    y = y * x + -1.2420140846e-1f;
    y = y * x + 1.4249322787e-1f;
    y = y * x + -1.6668057665e-1f;
    y = y * x + 2.0000714765e-1f;
    y = y * x + -2.4999993993e-1f;
    y = y * x + 3.3333331174e-1f;
    const float square = x * x;
    y = y * x * square + exponent * -2.12194440e-4f - 0.5f * square;
    return -(x + y + exponent * 0.693359375f);
}

struct CosSin {
    float cosine, sine;
};

// Cosine and sine of 2 pi (word + 1/2) / 2^32, absolute error below 1e-7.
HD CosSin cos_sin(u32 word) {
    CONTRACT
    const u32 quadrant = (word + 0x20000000u) >> 30;
    const i32 offset = i32(word - (quadrant << 30));
    const float t = (float(offset) + 0.5f) * 1.4629180792671596e-09f;  // in [-pi/4, pi/4]
    const float square = t * t;
    float s = -1.9515295891e-4f * square + 8.3321608736e-3f;
    s = (s * square + -1.6666654611e-1f) * square * t + t;
    float c = 2.443315711809948e-5f * square + -1.388731625493765e-3f;
    c = (c * square + 4.166664568298827e-2f) * square * square - 0.5f * square + 1.0f;
    const bool odd = quadrant & 1u;
    const float along = odd ? s : c, across = odd ? c : s;
    return {quadrant == 1u || quadrant == 2u ? -along : along, quadrant >= 2u ? -across : across};
}

// The variates of a proposal from two words: Exp(1); minus the logarithm of a uniform; and a Box-Muller pair whose radius
// comes from the exponential. Uniform and pair come from one word, since only one of them is used.
struct Standard {
    float exponential, log_u, along, across;
};

HD Standard standard(u32 first, u32 second) {
    const float e = minus_log_unit(first), radius = sqrtf(2.0f * e);
    const CosSin angle = cos_sin(second);
    return {e, minus_log_unit(second), radius * angle.cosine, radius * angle.sine};
}

// 1 / rate of the exponential proposal, which is mean + rate.
template <class R> HD R inverse_rate_of(R mean) { CONTRACT return R(2) / (root(mean * mean + R(4)) - mean); }

// A proposal of the branch for this mean; not positive if it is rejected.
template <class R> HD R propose(R mean, const Standard& variates) {
    CONTRACT
    const R one = mean + R(variates.along), other = mean + R(variates.across), gaussian = one > R(0) ? one : other;
    const R inverse_rate = inverse_rate_of(mean);
    const R z = R(variates.exponential) * inverse_rate, d = z - inverse_rate;
    const R exponential = R(0.5) * d * d < R(variates.log_u) ? z : R(-1);
    return mean > R(GAUSSIAN_ABOVE) ? gaussian : exponential;
}

// A truncated normal, by the first accepted proposal from a block of words on.
template <class R> HD R truncated_normal(R mean, const Stream& stream, u32 row, u32 block = 0) {
    for (u32 end = block + 64; block < end; ++block) {  // P(all rejected) < 1e-50
        const Words w = stream.words(row, block);
        R z = propose(mean, standard(w.v[0], w.v[1]));
        if (z > R(0)) return z;
        z = propose(mean, standard(w.v[2], w.v[3]));
        if (z > R(0)) return z;
    }
    return largest(mean, inverse_rate_of(mean));
}
