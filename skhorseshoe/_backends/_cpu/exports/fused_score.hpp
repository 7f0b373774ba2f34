// Rows in an array that fused calls read.
#pragma once
#include "rows.hpp"

struct FusedScoreRows {  // filled by Python
    StoredX X;
    PassRows of_pass;
    i32 quick;             // the number of the likelihood that stands for that of ``of_pass`` within trajectories
    i64 q;                 // columns, with the intercept's
    i64 n_contrasts;       // coefficients of each, side by side
    i64 size;              // coefficients of a chain: q n_contrasts, and theta unless X has columns for it
    i32 fit_intercept;
    i32 translated;        // whether the sampler's coefficients differ from those of X's columns; see ``Columns``
    const i64* order;      // (q,) the columns of X in the sampler's order
    const i64* place;      // (q,) the inverse of ``order``
    const double* unit;    // (q,)
    const double* centre;  // (q,)
    // Of effects of groups, what is subtracted from the log-likelihood: level + pull' beta + beta' curvature beta / 2 of each
    // chain, with beta the last n_followed coefficients, which the effects follow. level : null without effects.
    const double *level, *pull, *curvature;  // (n_chains,), (n_chains, n_followed), (n_chains, n_followed, n_followed)
    i64 n_followed;
    // Of parameters of the likelihood's own, sums of exp(theta), theta being the last n_own coefficients: their prior is
    // N(at_mean' beta, 1 / precision) each, in order.
    i64 n_own;
    const double* at_mean;  // (size - n_own,)
    double precision;
};

// Log-likelihoods (n_chains,) and their gradients (n_chains, size) at the sampler's coefficients, or those that
// stand for them where is_quick; 0 or NO_MEMORY.
i32 score_at(const FusedScoreRows& rows, const double* beta, i64 n_chains, double* loglik, double* score,
             bool is_quick = false);

// Defined in ``passes.cpp``, which includes this, so that the compiler compares both.
EXPORT i32 score_pass(const StoredX* X, const PassRows* pass, const Coefficients* coef, i64 n_chains, double* sums,
                      double* logliks);
