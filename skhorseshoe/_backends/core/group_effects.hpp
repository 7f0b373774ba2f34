// The effect u of a group of rows, given all else:
//     log p(u | ...) = sum_i w_i log Phi(s_i (eta_i + u)) - u^2 / (2 s^2)
// over the rows of the group, s_i = 1 or -1 as y_i is 1 or 0, eta_i being the rest of the linear predictor.
#pragma once
#include "normal_tail.hpp"
#include "random.hpp"
#include "slice.hpp"

constexpr double EFFECT_WIDTH = 4.0;  // of the slice, in standard deviations that the information of the rows leaves

// sum w log Phi(t) of a few numbers, with few logarithms. weight : null where each is 1.
static inline double sum_log_cdf_of_few(i64 n, const double* __restrict t, const double* __restrict weight,
                                        double* __restrict squares, double* __restrict v) {
    for (i64 i = 0; i < n; ++i) {
        const CdfParts parts = cdf_parts(t[i]);
        squares[i] = parts.square, v[i] = parts.v;
    }
    double total = 0.0;
    if (weight) {
        for (i64 i = 0; i < n; ++i) total += weight[i] * (log(v[i]) - squares[i]);
        return total;
    }
    LogSum logs;
    for (i64 i = 0; i < n; ++i) total -= squares[i], logs.add(v[i]);
    return total + logs.value();
}

// The rows of a group: s_i eta_i, s_i and the weights.
struct GroupRows {
    i64 n;
    const double *signed_eta, *sign, *weight;  // weight : null where each is 1
};

// The log-density. work : 3 n numbers.
static inline double effect_density(const GroupRows& rows, double u, double precision, double* __restrict work) {
    for (i64 i = 0; i < rows.n; ++i) work[i] = rows.signed_eta[i] + rows.sign[i] * u;
    const double prior = -0.5 * u * u * precision;
    return prior + sum_log_cdf_of_few(rows.n, work, rows.weight, work + rows.n, work + 2 * rows.n);
}

// A slice step of u in an interval that is laid about it at random and shrinks towards it. precision : s^-2.
// information : what the rows tell of u, about; frozen. index : of the group.
static inline double move_effect(const GroupRows& rows, double u, double precision, double information,
                                 const Stream& stream, u32 index, double* work) {
    const double level = effect_density(rows, u, precision, work) + log(uniform(stream, index, 0));
#ifdef PLANT_EFFECT_LEVEL
    const double width = EFFECT_WIDTH / sqrt(information + precision + fabs(u));
#else
    const double width = EFFECT_WIDTH / sqrt(information + precision);
#endif
    const double low = u - width * uniform(stream, index, 1);
    return shrink_slice(
        u, level, low, low + width, [&](double at) { return effect_density(rows, at, precision, work); },
        [&](u32 attempt) { return uniform(stream, index, 2 + attempt); });
}
