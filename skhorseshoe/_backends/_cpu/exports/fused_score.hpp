// Rows in an array whose score fused calls compute; ``FusedLineRows`` has the same rows for line moves.
#pragma once
#include "export.hpp"

struct FusedScoreRows {  // filled by Python
    i32 likelihood;
    i32 is_double;
    const void* X;         // (n, p) float32 or float64
    i64 n;
    i64 p;
    const i64* bounds;     // (n_blocks + 1,)
    i64 n_blocks;
    const u8* y;           // (n,)
    const double* weight;  // (n,), or null
    i64 q;                 // coefficients, with the intercept's
    i32 fit_intercept;
    i32 translated;        // whether the sampler's coefficients differ from those of X's columns; see ``Columns``
    const i64* order;      // (q,) the columns of X in the sampler's order
    const i64* place;      // (q,) the inverse of ``order``
    const double* unit;    // (q,)
    const double* centre;  // (q,)
};

// Log-likelihoods (n_chains,) and their gradients (n_chains, q) at the sampler's coefficients; 0 or NO_MEMORY.
i32 score_at(const FusedScoreRows& rows, const double* beta, i64 n_chains, double* loglik, double* score);

// Defined in ``passes.cpp``, which includes this, so that the compiler compares both.
EXPORT i32 score_pass(i32 likelihood, i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p,
                      const u8* y, const double* row_weight, const void* shift, const void* coef, i64 q, i64 width,
                      const i64* bounds, i64 n_blocks, i64 n_chains, double* sums, double* logliks);
