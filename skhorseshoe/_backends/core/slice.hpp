// Slice sampling in an interval that shrinks (Neal 2003, "Slice sampling").
#pragma once
#include "base.hpp"

// The next point of a slice, the points whose log-density is at least a level, from one that lies in it: in an interval
// around it, whose ends come closer with each proposal outside the slice. uniform_of(attempt) : on (0, 1).
template <class Density, class Uniforms>
HD double shrink_slice(double now, double level, double low, double high, const Density& log_density,
                       const Uniforms& uniform_of) {
    for (u32 attempt = 0; attempt < 200; ++attempt) {
        const double proposed = low + (high - low) * uniform_of(attempt);
        if (log_density(proposed) >= level) return proposed;
        (proposed < now ? low : high) = proposed;
    }
    return now;  // the slice has shrunk to the current point
}
