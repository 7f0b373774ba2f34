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

// Eigenvalues (d,) and eigenvectors, the columns of (d, d), of a symmetric matrix of few columns whose rows are ``stride``
// apart, by Jacobi's rotations. work : (d, d) scratch.
HD void diagonalise(const double* matrix, i64 stride, i64 d, double* values, double* vectors, double* work) {
    for (i64 i = 0; i < d; ++i)
        for (i64 j = 0; j < d; ++j) work[i * d + j] = matrix[i * stride + j], vectors[i * d + j] = i == j;
    bool has_turned = true;
    for (i64 round = 0; round < 50 && has_turned; ++round) {
        has_turned = false;
        for (i64 i = 0; i < d; ++i)
            for (i64 j = i + 1; j < d; ++j) {
                const double across = work[i * d + j], a = work[i * d + i], b = work[j * d + j];
                if (!(fabs(across) > 1e-17 * sqrt(fabs(a * b)))) continue;
                has_turned = true;
                const double ratio = (b - a) / (2.0 * across), away = fabs(ratio) + sqrt(1.0 + ratio * ratio);
                const double tangent = (ratio < 0.0 ? -1.0 : 1.0) / away, cosine = 1.0 / sqrt(1.0 + tangent * tangent);
                const auto turn = [=](double& first, double& second) {
                    const double old = first;
                    first = cosine * (old - tangent * second), second = cosine * (tangent * old + second);
                };
                for (i64 k = 0; k < d; ++k) turn(work[k * d + i], work[k * d + j]);
                for (i64 k = 0; k < d; ++k) turn(work[i * d + k], work[j * d + k]);
                for (i64 k = 0; k < d; ++k) turn(vectors[k * d + i], vectors[k * d + j]);
            }
    }
    for (i64 i = 0; i < d; ++i) values[i] = work[i * d + i];
}
