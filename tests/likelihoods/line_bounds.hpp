// The bounds that line moves take, for tests, beside the logistic likelihood.
#pragma once
#include "fused_line_slice.hpp"
#include "logistic.hpp"

// The bounds at a step, the narrower ones, and the coefficients of s^4 in these: (6,). work : (5 n,). Returns whether
// derivatives are of use.
template <class L> static i32 bounds_at(const Line& line, double step, double* work, double* out) {
    const bool is_of_use = derive<L>(line, work, work + 2 * line.n);
    const Bounds bounds = is_of_use ? bounds_along<L>(line, work + 2 * line.n) : Bounds{0.0, 0.0, 0.0, 0.0, 0.0};
    const Bounds narrow = narrower<L>(line, step, bounds);
    const Range wide = range_at(step, bounds), tight = range_at(step, narrow);
    const double all[] = {wide.least, wide.largest, tight.least, tight.largest, narrow.least_fourth, narrow.fourth};
    memcpy(out, all, sizeof all);
    return is_of_use;
}

#define VISIBLE __attribute__((visibility("default"), used))
extern "C" VISIBLE inline i32 line_bounds(i32 likelihood, double* eta, double* change, const u8* y, const double* weight,
                                          i64 n, double step, double* work, double* out) {
    const Line line = {n, eta, change, y, weight};
    return likelihood ? bounds_at<Logistic>(line, step, work, out) : bounds_at<Probit>(line, step, work, out);
}
