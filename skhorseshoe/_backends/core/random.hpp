// Philox4x32-10, and scalar variates from its words.
//
// The key is the seed (two 32-bit words), the counter is (attempt, sweep, index, stream). A variate depends on nothing
// else: not on threads, blocks or the order of evaluation. Nothing has to be stored.
//
// Reference: Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
#pragma once
#include "base.hpp"

struct Words {
    u32 v[4];
};

// The seed and the number of the sweep.
struct Key {
    u32 sweep, k0, k1;
};

// Four random words from a counter of four words and a key of two.
HD Words philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u64 a = u64(0xD2511F53u) * c0, b = u64(0xCD9E8D57u) * c2;
        const u32 n0 = u32(b >> 32) ^ c1 ^ k0, n2 = u32(a >> 32) ^ c3 ^ k1;
        c1 = u32(b), c3 = u32(a), c0 = n0, c2 = n2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

// The random numbers of one chain and purpose in a sweep. The last word of the counter has the chain (bits 0-7), the purpose
// (8-15), and bits 32-47 of the index (16-31).
struct Stream {
    Key key;
    u32 word;
    HD_MEMBER Stream(Key key, u32 chain, u32 purpose, u64 index = 0)
        : key(key), word(chain | purpose << 8 | u32(index >> 32) << 16) {}
    HD_MEMBER Words words(u32 index, u32 attempt = 0) const {
        return philox(attempt, key.sweep, index, word, key.k0, key.k1);
    }
};

// Uniform on (0, 1) with 52 random bits from two words; never 0, never 1.
HD double unit(u32 high, u32 low) { return ((high >> 6) * 67108864.0 + (low >> 6) + 0.5) * 2.220446049250313e-16; }

HD double uniform(const Stream& stream, u32 index, u32 attempt = 0) {
    const Words w = stream.words(index, attempt);
    return unit(w.v[0], w.v[1]);
}

// Uniforms of n indices from the first on.
HD void uniforms(double* __restrict out, i64 n, const Stream& stream, u32 first) {
    for (i64 i = 0; i < n; ++i) out[i] = uniform(stream, first + u32(i));
}

// Exp(1), in [1e-16, 36.8].
HD double exponential(const Stream& stream, u32 index, u32 attempt = 0) { return -log(uniform(stream, index, attempt)); }

// N(0, 1) by Box & Muller; ``independent``, if not null, gets an independent uniform from the same words.
HD double normal(const Stream& stream, u32 index, u32 attempt = 0, double* independent = nullptr) {
    const Words w = stream.words(index, attempt);
    if (independent) *independent = unit(w.v[2], w.v[3]);
    const double radius = sqrt(-2.0 * log((w.v[0] + 0.5) * 2.3283064365386963e-10));
    return radius * cos(1.4629180792671596e-09 * (w.v[1] + 0.5));
}

// Gamma(shape, rate 1) for shape >= 1 (Marsaglia & Tsang 2000, "A simple method for generating gamma variables").
HD double gamma_variate(double shape, const Stream& stream, u32 index) {
    const double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (u32 attempt = 0; attempt < 64; ++attempt) {  // each accepts with probability > 0.95
        double u;
        const double x = normal(stream, index, attempt, &u), root = 1.0 + c * x, v = root * root * root;
        if (v > 0.0 && log(u) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
    return d;
}
