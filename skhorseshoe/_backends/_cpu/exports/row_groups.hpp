// Groups of rows as Python hands them over, and the log-likelihoods of all rows with effects.
#pragma once
#include "export.hpp"

struct RowGroups {  // filled by Python
    i32 likelihood;
    i32 is_double;          // the type of stored numbers of rows
    const i64* order;       // (n,) the rows of the first group, then those of the second, and so on
    const i64* starts;      // (n_groups + 1,) the start of each group in ``order``
    const i32* codes;       // (n,) the group of each row
    const u8* y;            // (n,)
    const double* weight;   // (n,), or null
    const double* offset;   // (n,), or null
    const double* slope;    // (q, n) by which the effects of its group are multiplied in a row; null where each is 1
    i64 n, n_groups, q;     // rows, groups, and effects of each; of several, exports whose effects have no q take the first
};

// The linear predictors of rows in each chain, but for offsets and effects, and the likelihood's own parameters there.
struct GivenPredictors {  // filled by Python
    const void* values;    // (n, n_chains), in the type of stored numbers
    const double* factor;  // (n_chains,), of these
    const double* own;     // (n_chains, n_own)
    i64 n_own, n_chains;
};

// Defined in ``row_groups.cpp``.
EXPORT i32 scaled_logliks(const RowGroups* row_groups, const GivenPredictors* given, const double* effects, const u8* asked,
                          const i64* bounds, i64 n_blocks, double* logliks);
