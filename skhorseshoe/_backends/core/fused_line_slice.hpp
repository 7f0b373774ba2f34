// Slice steps along lines within a fused call: the log-likelihood along a line, its bounds, and the densities of the
// moves of ``line_moves.py``.
//
// Most proposals are decided without their log-likelihood. Along a line it is f(s) = sum w log p(t + s d). Three of
// its derivatives at 0 are computed. The fourth lies between two multiples of sum w d^4, since that of log p is
// bounded. So f(s) - f(0) lies between two polynomials of order four. f is concave: beyond the point where the upper
// polynomial falls the fastest, its tangent there is a bound too. If the level of the slice lies between the bounds,
// narrower ones follow from the range of the fourth derivative of each row between t and t + s d. If it still does, f
// is computed. Where classes are separated most rows are certain, and f takes less time than its bounds.
#pragma once
#include "likelihood.hpp"
#include "priors/horseshoe.hpp"

constexpr double BOUND_ROUNDING = 1e-6;  // relative error that is allowed for in the terms of a bound

// The linear predictor of each row, and its change along the line.
struct Line {
    i64 n;
    double *eta, *change;
    const u8* y;
    const double* weight;  // null where each is 1
};

// The coefficients of s, s^2, s^3 in f(s) - f(0), and the least and the largest coefficient of s^4, which is infinite
// without bounds.
struct Bounds {
    double first, second, third, least_fourth, fourth;
};
constexpr Bounds NO_BOUNDS = {0.0, 0.0, 0.0, -INFINITY, INFINITY};

// The first three derivatives of w log p(s eta) by eta, (3, n). Returns whether they are of use: not if they are
// inaccurate, nor if most rows are certain, so that log-likelihoods are as fast. work : 2 n numbers.
template <class L>
static inline bool derive(const Line& line, double* __restrict work, double* __restrict derivatives) {
    const i64 n = line.n;
    double *__restrict t = work, *__restrict slopes = work + n;
    i64 n_far = 0;
    for (i64 i = 0; i < n; ++i) {
        t[i] = line.y[i] ? line.eta[i] : -line.eta[i];
        n_far += !(t[i] > L::LEAST_ACCURATE);
    }
    if (n_far || mostly_certain<L>(n, t, line.weight)) return false;
    SIDE_BY_SIDE
    for (i64 i = 0; i < n; ++i) slopes[i] = L::at(t[i]).slope;
    for (i64 i = 0; i < n; ++i) {
        const double slope = slopes[i], side = line.y[i] ? 1.0 : -1.0;
        derivatives[i] = side * slope;
        derivatives[n + i] = L::second(t[i], slope);
        derivatives[2 * n + i] = side * L::third(t[i], slope);
    }
    if (line.weight)
        for (int k = 0; k < 3; ++k)
            for (i64 i = 0; i < n; ++i) derivatives[k * n + i] *= line.weight[i];
    return true;
}

template <class L> static inline Bounds bounds_along(const Line& line, const double* derivatives) {
    const double *change = line.change, *first = derivatives, *second = first + line.n, *third = second + line.n;
    const double* weight = line.weight;
    const i64 n = line.n;
    const double fourth = weight ? sum(n, [=](i64 i) { const double d = change[i] * change[i]; return weight[i] * d * d; })
                                 : sum(n, [=](i64 i) { const double d = change[i] * change[i]; return d * d; });
    return {sum(n, [=](i64 i) { CONTRACT return first[i] * change[i]; }),
            sum(n, [=](i64 i) { CONTRACT return second[i] * (change[i] * change[i]); }) / 2.0,
            sum(n, [=](i64 i) { CONTRACT return third[i] * (change[i] * change[i] * change[i]); }) / 6.0,
            L::LEAST_FOURTH * fourth / 24.0, L::LARGEST_FOURTH * fourth / 24.0};
}

// Narrower bounds for steps from 0 to this one. weight_of : the weight of a row.
template <class L, class Weight>
static inline Bounds narrower(const Line& line, double step, const Bounds& bounds, Weight weight_of) {
    const double *eta = line.eta, *change = line.change;
    const u8* y = line.y;
    const auto ends = [=](i64 i) {  // the range of t
        const double side = 2.0 * double(y[i]) - 1.0, t = side * eta[i], end = side * (eta[i] + step * change[i]);
        return Range{least(t, end), largest(t, end)};
    };
    const auto fourth = [=](i64 i) {
        const double square = change[i] * change[i];
        return weight_of(i) * square * square;
    };
    const double below = sum(line.n, [=](i64 i) { return L::least_fourth(fourth(i), ends(i)); });
    const double above = sum(line.n, [=](i64 i) { return L::largest_fourth(fourth(i), ends(i)); });
    const double low = L::LEAST_FOURTH * below / 24.0, high = L::LARGEST_FOURTH * above / 24.0;
    return {bounds.first, bounds.second, bounds.third, low, high};
}

template <class L> static inline Bounds narrower(const Line& line, double step, const Bounds& bounds) {
    if (const double* weight = line.weight) return narrower<L>(line, step, bounds, [=](i64 i) { return weight[i]; });
    return narrower<L>(line, step, bounds, [](i64) { return 1.0; });
}

// The bounds of f(s) - f(0) at a step.
HD Range range_at(double step, const Bounds& b) {
    const double size = fabs(step), sign = copysign(1.0, step), first = b.first * sign, third = b.third * sign;
    const double square = size * size, cube = square * size, quartic = square * square;
    const double linear = size * first + square * b.second, cubic = cube * third;
    const double rounding = BOUND_ROUNDING * (size * fabs(first) - square * b.second + fabs(cubic)) + 1e-9;
    const double low = linear + cubic + quartic * b.least_fourth - rounding;
    // The slope of the upper bound is least where second + 3 third s + 6 fourth s^2 = 0.
    if (6.0 * b.fourth * square + 3.0 * third * size + b.second < 0.0 || b.second >= 0.0)
        return {low, linear + cubic + quartic * b.fourth + rounding};
    const double root = 3.0 * fabs(third) + sqrt(9.0 * third * third - 24.0 * b.fourth * b.second);
    const double at = third > 0.0 ? -2.0 * b.second / root : root / (12.0 * b.fourth);
    const double slope = first + at * (2.0 * b.second + at * (3.0 * third + at * 4.0 * b.fourth));
    const double value = at * (first + at * (b.second + at * (third + at * b.fourth)));
    return {low, value + (size - at) * slope + rounding};
}

// The log-density of the number r of a move, without the log-likelihood.
struct LineDensity {
    double slope, curvature;  // derivatives of the energy of the fixed prior by the step
    double jacobian;          // the factor of r; 0 if r is the step itself and not a logarithm
    double ratio;             // lambda_j^2, or (tau / tau_0)^2
    const double* terms;      // (n_terms,) of a split move: see ``hold_columns``
    i64 n_terms, n_held;

    double operator()(double r, double step) const {
        double value = jacobian > 0.0 ? jacobian * r + log_half_cauchy(exp(2.0 * r) * ratio) : 0.0;
        value -= step * (slope + step * curvature / 2.0) + n_held * r;
        if (n_terms == 0) return value;
        const double growth = exp(2.0 * r);
        LogSum logs;
        for (i64 k = 0; k < n_terms; ++k)
            logs.add(terms[k] >= 0.0 ? 1.0 + terms[k] * growth : inverse_half_cauchy(-terms[k] / growth));
        return value - logs.value();
    }
};

// Chooses the columns that a split move holds, by uniforms u (p,), and clears them in ``along``; returns their number.
// With h_j = lambda_j^2 tau^2 x_j'x_j / LINE_HALF_HELD, column j is held with probability h_j / (1 + h_j). terms : (p,)
// overwritten with -lambda_j^2 of held columns and h_j of others.
HD i64 hold_columns(i64 p, const double* u, const double* square, const double* lambda_sq_inv, double tau_sq_inv,
                    double* along, double* terms) {
    i64 n_held = 0;
    for (i64 k = 0; k < p; ++k) {
        const double odds = least(square[k] / (tau_sq_inv * lambda_sq_inv[k] * LINE_HALF_HELD), LARGEST_ODDS);
        const bool is_held = u[k] * (1.0 + odds) < odds;
        terms[k] = is_held ? -1.0 / lambda_sq_inv[k] : odds;
        if (is_held) along[k] = 0.0, ++n_held;
    }
    return n_held;
}

// A slice step from 0 along the line (Neal 2003). Returns the step. loglik : the log-likelihood, before at 0 and
// afterwards at the step, or NaN if it is not known. u : uniforms for the level, the interval, the line, and the
// proposals. n_evaluations counts log-likelihoods. work : 3 n numbers.
template <class L>
static inline double line_slice(const Line& line, const LineDensity& density, const Bounds& bounds, double width,
                                const double* u, double* loglik, i64* n_evaluations, double* work) {
    const auto evaluate = [&](double step) {
        ++*n_evaluations;
        return log_likelihood<L>(line.n, line.eta, line.change, line.y, line.weight, step, work);
    };
    const double level = density(0.0, 0.0) + log(u[0]);  // without the log-likelihood at step 0
    double low = -width * u[1], high = width - width * u[1];
    for (u32 k = 0; k < LINE_PROPOSALS; ++k) {
        const double r = low + (high - low) * u[3 + k], step = density.jacobian > 0.0 ? expm1(r) : r;
        const double value = density(r, step);
        Range gain = range_at(step, bounds);
        if (value + gain.least < level && level <= value + gain.largest && bounds.fourth < INFINITY)
            gain = range_at(step, narrower<L>(line, step, bounds));
        bool is_inside = value + gain.least >= level;
        double at = NAN;
        if (!is_inside && !(value + gain.largest < level)) {
            if (isnan(*loglik)) *loglik = evaluate(0.0);
            at = evaluate(step);
            is_inside = value + at - *loglik >= level;
        }
        if (is_inside) {
            *loglik = at;
            return step;
        }
        (r < 0.0 ? low : high) = r;
    }
    return 0.0;
}
