// A slice step of each chain along a line of parameters of the law of effects, which the effects of groups follow. Where
// threads share the rows, Python has their log-likelihoods computed between calls that decide on a proposal and go to the
// next; else ``all_steps`` is one call.
#pragma once
#include "row_groups.hpp"

// Steps of all chains: the first is where they are, the others are proposals, known in advance. The log-density of a step
// is the log-likelihood, what the line says of effects, and ``others``.
struct LineSteps {  // filled by Python
    i64 n_chains, n_steps;
    const double *factor, *others;  // (n_steps, n_chains) c of c beta; and other terms of the log-density
    const double* uniform;          // (n_chains,) of the level of the slice
    double *level, *density;        // (n_chains,) of the slice; of the last step, but for the log-likelihood
    double* loglik;                 // (n_chains,) of the step that is taken
    i64* taken;                     // (n_chains,) its number
    u8* open;                       // (n_chains,) whether it is to be found yet
};

// Goes to step k with the effects of open chains, after a decision on step k - 1, whose log-likelihoods are ``logliks``
// (n_chains,). After the last step, chains that are open go back to the first. Returns the number of open chains.
// go_to(step, chain) sets effects and returns what they add to the log-density.
template <class GoTo> static i32 next_step(const LineSteps& steps, i64 k, const double* logliks, GoTo go_to) {
    const bool ends = k == steps.n_steps;
    i32 n_open = 0;
    for (i64 c = 0; c < steps.n_chains; ++c) {
        if (k == 0) steps.open[c] = 1, steps.taken[c] = 0;
        if (!steps.open[c]) continue;
        if (k > 0) {
            const double value = logliks[c] + steps.density[c];
            if (k == 1) steps.level[c] = value + log(steps.uniform[c]), steps.loglik[c] = logliks[c];
            else if (value >= steps.level[c]) {
                steps.open[c] = 0, steps.taken[c] = k - 1, steps.loglik[c] = logliks[c];
                continue;
            }
        }
        const i64 next = ends ? 0 : k;
        steps.density[c] = go_to(next, c) + steps.others[next * steps.n_chains + c];
        n_open += !ends;
    }
    return n_open;
}

// A whole slice step for rows of one block. next(k, logliks) is ``next_step``. logliks : those of the first step, or null.
template <class Next>
static i32 all_steps(const LineSteps& steps, const RowGroups* row_groups, const GivenPredictors* given, const i64* bounds,
                     const double* logliks, const double* effects, Next next) {
    const i64 m = steps.n_chains, n_own = given->n_own;
    Scratch<double> computed(m), factor(m), own(m * n_own);
    if (computed.failed() || factor.failed() || own.failed()) return NO_MEMORY;
    const GivenPredictors at = {given->values, factor, own, n_own, m};
    for (i64 k = 0;; ++k) {
        const i32 n_open = next(k, k == 1 && logliks ? logliks : computed.data);
        if (n_open <= 0) return n_open;
        if (k == 0 && logliks) continue;
        const double* c = steps.factor + k * m;
        for (i64 i = 0; i < m; ++i) factor[i] = c[i] * given->factor[i], computed[i] = 0.0;
#ifdef PLANT_CUTS_STAY
        for (i64 i = 0; i < m * n_own; ++i) own[i] = given->own[i];
#else
        for (i64 i = 0; i < m * n_own; ++i) own[i] = c[i / n_own] * given->own[i];
#endif
        const i32 status = scaled_logliks(row_groups, &at, effects, steps.open, bounds, 1, computed);
        if (status) return status;
    }
}
