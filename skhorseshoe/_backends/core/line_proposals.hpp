// A slice step from 0 along a line, with all proposals known in advance: the interval shrinks towards 0, on a side that
// depends on the sign of a proposal alone (``line_moves.py``).
#pragma once
#include "base.hpp"

// steps (n,): 0 and the proposals. u : uniforms; u[1] places the interval, u[2 + k] is for proposal k.
HD void propose_steps(const double* u, double width, i64 n, double* steps) {
    double low = -width * u[1], high = low + width;
    steps[0] = 0.0;
    for (i64 k = 1; k < n; ++k) {
        const double at = steps[k] = low + (high - low) * u[2 + k];
        (at < 0.0 ? low : high) = at;
    }
}

// The first of the steps whose log-density value (n,) is not below the level of the slice; 0 if there is none.
HD double first_step_inside(const double* value, const double* steps, double u, i64 n) {
    const double level = value[0] + log(u);
    for (i64 k = 1; k < n; ++k)
        if (value[k] >= level) return steps[k];
    return 0.0;
}
