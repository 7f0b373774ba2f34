// In place of skhorseshoe/_backends/_gpu/cuda/primitives.cuh.
#define DYNAMIC_SHARED(T, name) T* name = reinterpret_cast<T*>(emulator::block->shared)

#ifndef REMOVED
#define REMOVED NONE
#endif
#define TEXT(word) #word
#define TEXT_OF(macro) TEXT(macro)
#define IS_THERE(which) (std::strcmp(which, TEXT_OF(REMOVED)) != 0)

#define SYNC(which)                                                  \
    do {                                                             \
        if (IS_THERE(#which)) emulator::barrier_of_block(__LINE__);  \
    } while (0)

struct Half {
    unsigned short bits;
};

inline float number(float x) { return x; }
inline double number(double x) { return x; }
inline float number(Half x) {
    const int exponent = x.bits >> 10 & 31, mantissa = x.bits & 1023;
    const float size = exponent == 0    ? ldexpf((float)mantissa, -24)
                       : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                        : ldexpf((float)(mantissa + 1024), exponent - 25);
    return x.bits & 0x8000 ? -size : size;
}

using emulator::copy_16;
using emulator::wait_for_copies;
