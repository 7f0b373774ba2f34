// The coordinates of the prior, in which a coefficient of the horseshoe is nearly a standard normal variable.
//
// A coefficient that is shrunk is tau g(v), with g the quantiles of ``horseshoe_quantile.py`` and v a standard normal
// variable. Its coordinate is w = v + tau g(v) / d. Near zero that is v. Far from zero the coefficient moves by d, some
// standard deviations of the likelihood, while w moves by 1. The log-density of w is
// -v^2 / 2 - log(1 + tau g'(v) / d). The other coordinates are the coefficients that are not shrunk, and log tau.
//
// Of k coefficients that share a lambda all this holds for radii: they are a vector of length tau g(v), whose coordinates
// are one of length w and of the same direction, v is the length of a standard normal vector, and the log-density of the
// coordinates is -v^2 / 2 - log(1 + tau g'(v) / d) - (k - 1) log(w / v).
#pragma once
#include "base.hpp"

constexpr i32 FIRST_COARSE = i32(EDGE * (FINE - COARSE));  // added to v COARSE, the number of its interval
constexpr double LAST_FINE = EDGE * FINE;
constexpr double SMOOTH = 0.1;        // v below which g'', which has a pole at zero, is made to go to zero
constexpr double FAR_OUT = 0.5;       // tau g(v) / d above which v is found by logarithms
constexpr double SERIES_STEP = 1e-4;  // largest relative step of the final series
constexpr double ROUGH = 1e-3, CLOSE = 1e-5;  // steps of Newton's method at which a few digits, or ten, are correct
constexpr int MOST_NEWTON_STEPS = 30;                // largest number of steps of Newton's method

// g, g' and g'' at v. g'' is smoothed; as a part of a force it need not be exact.
struct Quantile {
    double g, g1, g2;
};

// The table of cubics, four numbers an interval, and the last interval as it is counted from zero in coarse ones.
struct Cubics {
    const double* cubics;
    double last;
};

HD Cubics table_of(const double* cubics, i64 n) { return {cubics, double(n - 1 - FIRST_COARSE)}; }

// The interval of the table that contains v >= 0, and the place within it, from 0 to 1.
struct Place {
    double within;
    i32 interval;
};

// Of a diverged trajectory NaN is in the last interval, and what is below zero in the first.
HD Place place_in_table(double v, double last_coarse) {
    const bool is_fine = v < EDGE;
    const double at = v * (is_fine ? FINE : COARSE), last = is_fine ? LAST_FINE : last_coarse;
    const i32 i = i32(at < last ? largest(at, 0.0) : last);
    return {at - i, i + (is_fine ? 0 : FIRST_COARSE)};
}

// From the four coefficients of the cubic.
HD Quantile of_cubic(double v, double r, double a0, double a1, double a2, double a3) {
    CONTRACT
    const double scale = v < EDGE ? FINE : COARSE, smooth = v < SMOOTH ? v * (1.0 / SMOOTH) : 1.0;
    return {a0 + r * (a1 + r * (a2 + r * a3)), (a1 + r * (2.0 * a2 + r * 3.0 * a3)) * scale,
            (2.0 * a2 + 6.0 * a3 * r) * scale * scale * smooth};
}

HD Quantile quantile(double v, const Cubics& table) {
    const Place at = place_in_table(v, table.last);
    const double* a = table.cubics + 4 * at.interval;
    return of_cubic(v, at.within, a[0], a[1], a[2], a[3]);
}

// v >= 0 with v + ratio g(v) = w, and g, g', g'' there.
struct Solved {
    double v;
    Quantile at;
};

HD double solving_step(double v, const Quantile& at, double ratio, double w) {
    CONTRACT
    return (v + ratio * at.g - w) / (1.0 + ratio * at.g1);
}

// A step of Halley's method.
HD double halley(double step, const Quantile& at, double ratio) {
    CONTRACT
    return step * (1.0 + 0.5 * step * ratio * at.g2 / (1.0 + ratio * at.g1));
}

// The last step, which is small: g and its derivatives follow by a series.
HD Solved after_series(double v, double step, const Quantile& at) {
    CONTRACT
    return {v - step, {at.g - step * (at.g1 - 0.5 * step * at.g2), at.g1 - step * at.g2, at.g2}};
}

// The solution where the second term is large, roughly: Newton's method for the logarithms. k coefficients share a lambda.
HD double solve_far_out(double w, double ratio, const Cubics& table, i64 k_shared) {
    double v = least(w, sqrt(2.0 * log(1.0 + 2.0 * w / ratio)) + sqrt(double(k_shared - 1)));
    for (int k = 0; k < MOST_NEWTON_STEPS; ++k) {
        v = least(v, 0.9999 * w);
        const Quantile at = quantile(v, table);
        const double step = log(ratio * at.g / (w - v)) / (at.g1 / at.g + 1.0 / (w - v));
        v = largest(v - step, 1e-3 * v);
        if (fabs(step) < ROUGH) break;
    }
    return least(v, 0.9999 * w);
}

// The solution from any start.
HD Solved solve_from(double v, double w, double ratio, const Cubics& table, i64 k_shared) {
    Quantile at = quantile(v, table);
    if (ratio * at.g > FAR_OUT) v = solve_far_out(w, ratio, table, k_shared), at = quantile(v, table);
    double step = solving_step(v, at, ratio, w);
    for (int k = 0; k < MOST_NEWTON_STEPS && fabs(step) > SERIES_STEP * v; ++k) {
        v -= halley(step, at, ratio);
        at = quantile(v, table);
        step = solving_step(v, at, ratio, w);
    }
    return after_series(v, step, at);
}

// The first of two steps that are enough in most cases: from w, where g is ``start``, without a branch.
HD double first_step(double w, double ratio, const Quantile& start) {
    CONTRACT
    const double v = w - halley(solving_step(w, start, ratio, w), start, ratio);
    return v > 0.0 ? v : 0.0;
}

// w of a coefficient: v = g^-1(|beta| / tau), by a table of starts and Newton's method. Before the first start g is about
// a power, as it is of the k coefficients that share a lambda.
HD double prior_coordinate(double beta, double tau_inverse, double distance, const Cubics& table, const double* starts,
                           i64 n_starts, i64 k_shared) {
    const double x = fabs(beta) * tau_inverse, first = table.cubics[1];
    double v;
    if (x <= first) {  // the end of the first interval
        v = x / (first * FINE);
    } else {
        const double at = (log(x) - LEAST_LOG) * STARTS;
        const i64 last = n_starts - 2, i = at < double(last) ? i64(largest(at, 0.0)) : last;
        v = starts[i] + (at - i) * (starts[i + 1] - starts[i]);
        if (at < 0.0) v = starts[0] * exp(at / (STARTS * k_shared));
        for (int k = 0; k < MOST_NEWTON_STEPS; ++k) {
            const Quantile q = quantile(v, table);
            const double step = fabs(x - q.g) > 0.01 * x ? log(x / q.g) * q.g / q.g1 : (x - q.g) / q.g1;
            v += step;
            if (fabs(step) < CLOSE * v) break;
        }
    }
    const double w = v + fabs(beta) / distance;
    return beta > 0.0 ? w : -w;
}
