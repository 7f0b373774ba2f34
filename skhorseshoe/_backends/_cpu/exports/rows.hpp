// Rows as Python hands them over.
#pragma once
#include "export.hpp"

// X as by ``rows_of`` of Python. kind : 0 and 1 are arrays of float32 and float64; 2 is CSR form, and 1 more for float64,
// and 2 more for indices of 64 bits.
struct StoredX {  // filled by Python
    i32 kind;
    const void *data, *indices, *indptr;
    i64 n, p;
};

// Terms that are added to linear predictors, and arrays by row that a pass reads or writes.
struct Shift {  // filled by Python
    const double* offset;      // (n,), or (n, d) of d linear predictors a row, or null
    const i32* codes;          // (n,) the group of each row, or null without groups
    const double* effects;     // (n_groups, n_chains)
    const double* slopes;      // (n_groups, n_chains) change of the effects along a direction, or null
    i64 n_chains;
    const void* known;         // (n, n_known) x beta of the first chains up to a factor, of the type of X; or null
    const double* factor;      // (n_known,)
    i64 n_known;
    const void* common;        // (n,) x beta of all other chains; null if there are none
    void* predictors;          // (n, n_chains) x beta, of the type of X, overwritten; or null
    void* terms;               // (n, n_chains) weights of rows in the sums, of the type of X, overwritten; or null
};

// What a pass knows of its rows but X; null for what it does not use.
struct PassRows {  // filled by Python
    i32 likelihood;
    const u8* y;           // (n,) the class, from 0 on
    const double* weight;  // (n,) w, or null if each is 1
    const i64* bounds;     // block b is rows bounds[b] to bounds[b + 1] - 1
    i64 n_blocks;
    const Shift* shift;
    const double* own;     // (n_chains, n_own) parameters of the likelihood
    double* own_sums;      // (n_blocks, n_chains, n_own) derivatives of the log-likelihood by these, added to
    i64 n_own;
    i64 n_predictors;      // linear predictors of a row: coefficients are those of n_chains n_predictors chains
};

// (q, width), coefficients of all chains; q = p, or p + 1 with the intercept last. Chains are the last axis, for ``Four``,
// and are padded with zeros to a width that is a multiple of four.
struct Coefficients {  // filled by Python
    const void* values;
    i64 q, width;
};
