// A slice step from 0 along a line whose proposals are all known beforehand: the interval, laid about 0 at random, shrinks
// towards 0, and on which side depends on the sign of a proposal alone (``lines.py``).
#pragma once
#include "base.hpp"

// steps (n,): 0 and the proposals. u : uniforms, of which the second lays the interval and the fourth is for the first
// proposal.
HD void propose_steps(const double* u, double width, i64 n, double* steps) {
    double low = -width * u[1], high = low + width;
    steps[0] = 0.0;
    for (i64 k = 1; k < n; ++k) {
        const double at = steps[k] = low + (high - low) * u[2 + k];
        (at < 0.0 ? low : high) = at;
    }
}

// The first of the steps whose log-density, value (n,), is not below the level of the slice; 0 if none is.
HD double first_step_inside(const double* value, const double* steps, double u, i64 n) {
    const double level = value[0] + log(u);
    for (i64 k = 1; k < n; ++k)
        if (value[k] >= level) return steps[k];
    return 0.0;
}
