// LAPACK and BLAS of SciPy, in place, without the GIL. By Fortran's conventions all arguments are pointers, sizes have 32
// bits, and matrices are column-major, so that "upper" there is the lower triangle here.
#pragma once
#include "export.hpp"

// Their addresses, which Python sets when it loads the library: its only global state.
struct Routines {
    void (*potrf)(const char* triangle, const i32* q, double* A, const i32* stride, i32* minor);
    void (*syrk)(const char* triangle, const char* transposed, const i32* q, const i32* inner, const double* factor,
                 const double* A, const i32* stride, const double* share, double* C, const i32* C_stride);
    void (*trsm)(const char* side, const char* triangle, const char* transposed, const char* unit, const i32* k,
                 const i32* q, const double* factor, const double* L, const i32* stride, double* B, const i32* B_stride);
};
inline Routines routines;

enum class Triangle : char { LOWER = 'U', UPPER = 'L' };  // of a row-major matrix

// The Cholesky factor of A (q, q), in place in one triangle. Returns the number of a minor that is not positive, or 0.
static inline i32 cholesky(double* A, i64 size, Triangle triangle) {
    const char letter = char(triangle);
    const i32 q = i32(size);
    i32 minor = 0;
    routines.potrf(&letter, &q, A, &q, &minor);
    return minor == 0 && !(A[size * size - 1] > 0.0) ? q : minor;  // OpenBLAS ignores NaN, which ends in the last
}

// The Cholesky factor of H + diag(d). If rounding has made the matrix indefinite, the diagonal is raised by as little as
// helps. Returns the number of a minor if nothing helps, or 0.
static inline i32 factorise(const double* H, const double* d, i64 q, Triangle triangle, double* factor) {
    i32 minor = 0;
    for (const double jitter : JITTERS) {
        for (i64 i = 0; i < q; ++i) {
            const i64 first = triangle == Triangle::LOWER ? 0 : i, last = triangle == Triangle::LOWER ? i + 1 : q;
            memcpy(factor + i * q + first, H + i * q + first, sizeof(double) * (last - first));
            factor[i * q + i] = (factor[i * q + i] + d[i]) * (1.0 + jitter);
        }
        if (!(minor = cholesky(factor, q, triangle))) break;
    }
    return minor;
}

// The lower triangle of total += A'A if of_columns, else A A'; A (m, n).
static inline void add_products(const double* A, i64 m, i64 n, double* total, bool of_columns) {
    const char triangle = char(Triangle::LOWER), letter = of_columns ? 'N' : 'T';
    const i32 order = i32(of_columns ? n : m), inner = i32(of_columns ? m : n), stride = i32(n);
    const double one = 1.0;
    routines.syrk(&triangle, &letter, &order, &inner, &one, A, &stride, &one, total, &order);
}

// B = L^-1 B in place; B (q, k).
static inline void solve_all(const double* L, i64 size, double* B, i64 n) {
    const char side = 'R', triangle = char(Triangle::LOWER), plain = 'N';  // B' (L')^-1
    const i32 q = i32(size), k = i32(n);
    const double one = 1.0;
    routines.trsm(&side, &triangle, &plain, &plain, &k, &q, &one, L, &q, B, &k);
}
