// The basis of every file of the core: macros for both devices, integers of fixed width, bits of numbers, sums.
#pragma once
#ifdef __CUDACC_RTC__
#define HD __device__ __forceinline__
#define HD_MEMBER __device__ __forceinline__
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
HD u32 bits_of(float x) { return __float_as_uint(x); }
HD u64 bits_of(double x) { return u64(__double_as_longlong(x)); }
HD float of_bits(u32 bits) { return __uint_as_float(bits); }
HD double of_bits(u64 bits) { return __longlong_as_double(i64(bits)); }
#else
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define HD static inline __attribute__((always_inline))
#define HD_MEMBER inline __attribute__((always_inline))
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;
template <class To, class From> HD To same_bits(From x) {
    To out;
    static_assert(sizeof out == sizeof x, "numbers of one size");
    memcpy(&out, &x, sizeof out);
    return out;
}
HD u32 bits_of(float x) { return same_bits<u32>(x); }
HD u64 bits_of(double x) { return same_bits<u64>(x); }
HD float of_bits(u32 bits) { return same_bits<float>(bits); }
HD double of_bits(u64 bits) { return same_bits<double>(bits); }
#endif

// The first line of a function in which a b + c may be rounded once, where the processor can.
#ifdef __clang__
#define CONTRACT _Pragma("clang fp contract(on)")
#else
#define CONTRACT
#endif
// Before a loop over long chains of dependent products: several of them are computed side by side.
#ifdef __clang__
#define SIDE_BY_SIDE _Pragma("clang loop vectorize_width(8) interleave_count(2)")
#else
#define SIDE_BY_SIDE
#endif
#include "constants.hpp"

template <class T> HD T least(T a, T b) { return b < a ? b : a; }
template <class T> HD T largest(T a, T b) { return a < b ? b : a; }

// sum_j f(j), j < n, in eight partial sums, so that it vectorises, with the same bits for every width of the registers.
template <class F> HD double sum(i64 n, F f) {
    double a[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, rest = 0.0;
    const i64 end = n & ~i64(7);
    for (i64 j = 0; j < end; j += 8)
        for (int k = 0; k < 8; ++k) a[k] += f(j + k);
    i64 j = end;
    if (end && j + 4 <= n) {
        for (int k = 0; k < 4; ++k) a[k] += f(j + k);
        j += 4;
    }
    for (; j < n; ++j) rest += f(j);
    if (!end) return rest;
    return (((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))) + rest;
}

// A sum of logarithms that computes few of them: log of a product, as long as that is in range.
struct LogSum {
    double total = 0.0, product = 1.0;
    HD_MEMBER void add(double factor) {
        const double next = product * factor;
        if (1e-150 < next && next < 1e150) product = next;
        else total += log(product), product = factor;
    }
    HD_MEMBER double value() const { return total + log(product); }
};
