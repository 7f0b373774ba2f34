// Vectors and small matrices, by one thread. Matrices (q, q) are row-major; of L the lower triangle is read. Sums have the
// same bits for every width of the registers.
#pragma once
#include "base.hpp"

// a'b of n numbers.
HD double dot(const double* a, const double* b, i64 n) {
    return sum(n, [=](i64 j) { CONTRACT return a[j] * b[j]; });
}

// y += factor x.
HD void add_multiple(double* __restrict y, double factor, const double* __restrict x, i64 n) {
    CONTRACT
    for (i64 j = 0; j < n; ++j) y[j] += factor * x[j];
}

// x = L^-1 b; x may be b.
HD void solve(const double* L, const double* b, double* x, i64 q) {
    for (i64 i = 0; i < q; ++i) x[i] = (b[i] - dot(L + i * q, x, i)) / L[i * q + i];
}

// x = L^-T b; x may be b.
HD void solve_transposed(const double* L, const double* b, double* x, i64 q) {
    for (i64 i = 0; i < q; ++i) x[i] = b[i];
    for (i64 i = q - 1; i >= 0; --i) {
        x[i] /= L[i * q + i];
        add_multiple(x, -x[i], L + i * q, i);
    }
}

// out = L'x.
HD void transposed_product(const double* L, const double* x, double* out, i64 q) {
    for (i64 i = 0; i < q; ++i) {
        out[i] = 0.0;
        add_multiple(out, x[i], L + i * q, i + 1);
    }
}

// P += factor g g'.
HD void add_square(double* P, double factor, const double* g, i64 q) {
    for (i64 i = 0; i < q; ++i) add_multiple(P + i * q, factor * g[i], g, q);
}
