// Twin: proposals and first_inside in _backends/lines.py.
// Moves along lines, before and after the pass for all proposals; one thread for each chain, whose steps it goes
// through in order.

// steps (n_chains, n_steps): 0, and points of a slice of this width that shrinks to where 0 is. uniform : (n_chains,
// n_steps + 2), of which the second lays the slice and the fourth is that of the first proposal. each : 1 where width has
// a number for each chain, 0 where it has one for all.
extern "C" __global__ void line_proposals(const double* uniform, const double* width, int each, double* steps, int n_chains,
                                          int n_steps) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n_chains) return;
    const double* u = uniform + c * (n_steps + 2LL);
    double low = -width[c * each] * u[1], high = low + width[c * each];
    steps[(long long)c * n_steps] = 0.0;
    for (int k = 1; k < n_steps; ++k) {
        const double at = steps[(long long)c * n_steps + k] = low + (high - low) * u[2 + k];
        if (at < 0.0) low = at;
        else high = at;
    }
}

// found (n_chains,) = the first of the steps at which the log-density, value (n_chains, n_steps), is not below the level.
extern "C" __global__ void first_inside(const double* value, const double* steps, const double* uniform, double* found,
                                        int n_chains, int n_steps) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n_chains) return;
    const double* v = value + (long long)c * n_steps;
    const double level = v[0] + log(uniform[c]);
    int k = 1;
    while (k < n_steps && !(v[k] >= level)) ++k;
    found[c] = k < n_steps ? steps[(long long)c * n_steps + k] : 0.0;
}
