// Twin: _cpu/variates.py.
// One thread for each variate of size (n_chains, m); C order.

extern "C" __global__ void fill_normal(double* out, long long size, int m, u32 attempt, u32 sweep, u32 purpose, u32 k0, u32 k1) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    double uniform;
    out[i] = normal_and_unit(attempt, sweep, (u32)(i % m), stream_of((u32)(i / m), purpose, 0), k0, k1, &uniform);
}

extern "C" __global__ void fill_uniform(double* out, long long size, int m, u32 sweep,
                                        u32 purpose, u32 k0, u32 k1) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    out[i] = unit_1(0, sweep, (u32)(i % m), stream_of((u32)(i / m), purpose, 0), k0, k1);
}

extern "C" __global__ void fill_exponential(const double* rate, double* out, long long size, int m,
                                            u32 sweep, u32 purpose, u32 k0, u32 k1) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    out[i] = exponential_1(0, sweep, (u32)(i % m), stream_of((u32)(i / m), purpose, 0), k0, k1) / rate[i];
}

extern "C" __global__ void fill_gamma(double shape, const double* rate, double* out, long long size, int m,
                                      u32 sweep, u32 purpose, u32 k0, u32 k1) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    out[i] = gamma_1(shape, sweep, (u32)(i % m), stream_of((u32)(i / m), purpose, 0), k0, k1) / rate[i];
}
