// Groups of rows as Python hands them over, and the log-likelihoods of all rows with effects.
#pragma once
#include "export.hpp"

struct RowGroups {  // filled by Python
    i32 likelihood;
    i32 is_double;          // the type of stored numbers of rows
    i64 n_chains;
    const i64* order;       // (n,) the rows of the first group, then those of the second, and so on
    const i64* starts;      // (n_groups + 1,) the start of each group in ``order``
    const i32* codes;       // (n,) the group of each row
    const u8* y;            // (n,)
    const double* weight;   // (n,), or null
    const double* offset;   // (n,), or null
};

// Defined in ``row_groups.cpp``.
EXPORT i32 scaled_logliks(const RowGroups* row_groups, const void* predictors, const double* factor, const double* effects,
                          const u8* asked, const i64* bounds, i64 n_blocks, double* logliks);
