// Line moves before and after the pass for all proposals, a thread for each chain; arrays as in variates_and_scales.cpp.
#include "line_proposals.hpp"

extern "C" __global__ void line_proposals(const double* uniform, const double* width, int by_chain, double* steps, int n_chains,
                                          int n_steps) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < n_chains) propose_steps(uniform + c * (n_steps + 2LL), width[c * by_chain], n_steps, steps + c * (i64)n_steps);
}

extern "C" __global__ void first_inside(const double* value, const double* steps, const double* uniform, double* inside,
                                        int n_chains, int n_steps) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    const i64 at = c * (i64)n_steps;
    if (c < n_chains) inside[c] = first_step_inside(value + at, steps + at, uniform[c], n_steps);
}
