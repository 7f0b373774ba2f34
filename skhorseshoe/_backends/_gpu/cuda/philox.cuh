// Twin: core/random.hpp.
// Philox4x32-10 and the variates of size p that are drawn from it: to the bit in the words, to rounding in what is made of
// them. No header is included anywhere: NVRTC needs none.
typedef unsigned int u32;
typedef unsigned long long u64;

struct Words {
    u32 v[4];
};

// Four random words from the counter (attempt, sweep, index, stream) and the key (k0, k1).
__device__ __forceinline__ Words philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
        const u32 n0 = (u32)(b >> 32) ^ c1 ^ k0, n2 = (u32)(a >> 32) ^ c3 ^ k1;
        c1 = (u32)b;
        c3 = (u32)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const Words words = {{c0, c1, c2, c3}};
    return words;
}

// Last counter word: chain (bits 0-7), purpose (8-15), bits 32-47 of the index (16-31).
__device__ __forceinline__ u32 stream_of(u32 chain, u32 purpose, long long index) {
    return chain | (purpose << 8) | ((u32)(index >> 32) << 16);
}

// Uniform on (0, 1) with 52 random bits; never 0, never 1.
__device__ __forceinline__ double unit(u32 high, u32 low) {
    return ((high >> 6) * 67108864.0 + (low >> 6) + 0.5) * 2.220446049250313e-16;
}

__device__ __forceinline__ double unit_1(u32 attempt, u32 sweep, u32 index, u32 stream, u32 k0, u32 k1) {
    const Words w = philox(attempt, sweep, index, stream, k0, k1);
    return unit(w.v[0], w.v[1]);
}

__device__ __forceinline__ double exponential_1(u32 attempt, u32 sweep, u32 index, u32 stream, u32 k0, u32 k1) {
    return -log(unit_1(attempt, sweep, index, stream, k0, k1));
}

// N(0, 1) by Box & Muller and, independent of it, a uniform on (0, 1).
__device__ __forceinline__ double normal_and_unit(u32 attempt, u32 sweep, u32 index, u32 stream, u32 k0, u32 k1,
                                                  double* uniform) {
    const Words w = philox(attempt, sweep, index, stream, k0, k1);
    const double radius = sqrt(-2.0 * log((w.v[0] + 0.5) * 2.3283064365386963e-10));
    *uniform = unit(w.v[2], w.v[3]);
    return radius * cos(1.4629180792671596e-09 * (w.v[1] + 0.5));
}

// Gamma(shape, rate 1) for shape >= 1; Marsaglia & Tsang (2000).
__device__ __forceinline__ double gamma_1(double shape, u32 sweep, u32 index, u32 stream, u32 k0, u32 k1) {
    const double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (u32 attempt = 0; attempt < 64; ++attempt) {  // each accepts with probability > 0.95
        double u;
        const double x = normal_and_unit(attempt, sweep, index, stream, k0, k1, &u), root = 1.0 + c * x;
        const double v = root * root * root;
        if (v > 0.0 && log(u) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
    return d;
}
