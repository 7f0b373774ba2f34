// Slice sampling in an interval that shrinks (Neal 2003, "Slice sampling").
#pragma once
#include "base.hpp"

// The next point in the slice of log-densities of at least a level. The interval about the current point shrinks with each
// proposal outside the slice. uniform_of(attempt) : on (0, 1).
template <class Density, class Uniforms>
HD double shrink_slice(double current, double level, double low, double high, const Density& log_density,
                       const Uniforms& uniform_of) {
    for (u32 attempt = 0; attempt < 200; ++attempt) {
        const double proposed = low + (high - low) * uniform_of(attempt);
        if (log_density(proposed) >= level) return proposed;
        (proposed < current ? low : high) = proposed;
    }
    return current;  // the slice has shrunk to the current point
}
