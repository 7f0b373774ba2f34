// Twin: core/truncated_normal.hpp.
// N(mean, 1) given that it is positive: the two-branch rejection sampler of Terenin, Dong & Draper (2019), section 3,
// with the same proposals in the same order. Standard variates have the resolution of float32 and are combined with the
// mean in R, the type in which the rows are computed. ``first``: the block of random words to begin with.

// Uniform on (0, 1) from one word.
__device__ __forceinline__ float unit_32(u32 word) {
    return fminf((float)word * 2.3283064365386963e-10f + 1.1641532182693481e-10f, 0.99999994f);
}

// Cosine and sine of 2 pi (word + 1/2) / 2^32. The quadrant is taken off while the angle is an exact integer.
__device__ __forceinline__ void cos_sin_turn(u32 word, float* cosine, float* sine) {
    const u32 quadrant = (word + 0x20000000u) >> 30;
    const float offset = ((float)(int)(word - (quadrant << 30)) + 0.5f) * 4.656612873077393e-10f;
    float s, c;
    sincospif(offset, &s, &c);
    const float along = (quadrant & 1u) ? s : c, across = (quadrant & 1u) ? c : s;
    *cosine = (quadrant == 1u || quadrant == 2u) ? -along : along;
    *sine = quadrant >= 2u ? -across : across;
}

template <class R>
__device__ __forceinline__ R truncated_normal(R mean, u32 sweep, u32 row, u32 stream, u32 k0, u32 k1, u32 first = 0) {
    const bool gaussian = mean > R(GAUSSIAN_ABOVE);
    const R inverse_rate = R(2) / (sqrt(mean * mean + R(4)) - mean);  // = mean + rate
    for (u32 block = first; block < first + 64; ++block) {             // P(all rejected) < 1e-50
        const Words w = philox(block, sweep, row, stream, k0, k1);
#pragma unroll
        for (int half = 0; half < 4; half += 2) {
            const float e = -logf(unit_32(w.v[half]));
            if (gaussian) {
                const float radius = sqrtf(2.0f * e);
                float cosine, sine;
                cos_sin_turn(w.v[half + 1], &cosine, &sine);
                const R first = mean + R(radius * cosine), second = mean + R(radius * sine);
                if (first > R(0)) return first;
                if (second > R(0)) return second;
            } else {
                const R z = R(e) * inverse_rate, d = z - inverse_rate;
                if (R(0.5) * d * d < R(-logf(unit_32(w.v[half + 1])))) return z;
            }
        }
    }
    return mean > inverse_rate ? mean : inverse_rate;
}
