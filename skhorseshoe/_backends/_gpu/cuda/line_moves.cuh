// Moves along lines, before and after the pass for all proposals; a thread for each chain. Arrays are as those of
// _cpu/exports/laws.cpp.
#include "line_slice.hpp"

extern "C" __global__ void line_proposals(const double* uniform, const double* width, int each, double* steps, int n_chains,
                                          int n_steps) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < n_chains) propose_steps(uniform + c * (n_steps + 2LL), width[c * each], n_steps, steps + c * (i64)n_steps);
}

extern "C" __global__ void first_inside(const double* value, const double* steps, const double* uniform, double* found,
                                        int n_chains, int n_steps) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    const i64 at = c * (i64)n_steps;
    if (c < n_chains) found[c] = first_step_inside(value + at, steps + at, uniform[c], n_steps);
}
