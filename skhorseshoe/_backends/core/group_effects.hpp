// Effects u of groups of rows, given all else:
//     log p(u | ...) = sum_i w_i log p(y_i, eta_i + x_i u) - (u - m)^2 / (2 s^2)
// over the rows of the group, with eta_i the rest of the linear predictor; x_i is 1 and m is 0 but for slopes. Groups are
// independent and most have few rows, so many effects move together, and loops over the rows of all of them vectorise.
#pragma once
#include "likelihood.hpp"
#include "random.hpp"

constexpr double EFFECT_WIDTH = 4.0;  // width of the slice, in standard deviations by the information of the rows
constexpr u32 EFFECT_PROPOSALS = 100;  // number of proposals after which u stays, which is exact

// A moving effect of one group in one chain; ``first`` and ``n`` are its rows among the ``EffectRows``.
struct Effect {
    i64 first, n, chain;
    double precision, mean;  // s^-2; m
    double current, level, low, high, proposed;
    Stream stream;
    u32 index;
};

// eta_i, y_i, weights and x_i of rows, contiguous for each effect.
struct EffectRows {
    const double* eta;
    const u8* y;
    const double* weight;  // null where each is 1
    const double* slope;
};

// The log-densities of the active effects at their proposed values. law_of(chain) is as ``TwoClasses``. work :
// (N_PLACES + 2) n_rows numbers.
template <class LawOf>
static inline void effect_densities(const EffectRows& rows, const LawOf& law_of, const i64* active, i64 n_active,
                                    const Effect* effects, i64 n_rows, double* __restrict work, double* __restrict out) {
    typedef decltype(law_of(0)) Law;
    double *__restrict rest = work, *__restrict factor = work + n_rows, *__restrict places = work + 2 * n_rows;
    i64 at = 0;
    for (i64 k = 0; k < n_active; ++k) {
        const Effect& effect = effects[active[k]];
        const Law law = law_of(effect.chain);
        const double* eta = rows.eta + effect.first;
        const u8* y = rows.y + effect.first;
        const double* slope = rows.slope + effect.first;
        for (i64 i = 0; i < effect.n; ++i) law.place(eta[i] + slope[i] * effect.proposed, y[i], n_rows, places + at + i);
        at += effect.n;
    }
    Law::log_densities(at, n_rows, places, factor, rest);
    at = 0;
    for (i64 k = 0; k < n_active; ++k) {
        const Effect& effect = effects[active[k]];
        const double away = effect.proposed - effect.mean;
        double total = -0.5 * away * away * effect.precision;
        if (rows.weight) {
            const double* weight = rows.weight + effect.first;
            for (i64 i = 0; i < effect.n; ++i) total += weight[i] * (log(factor[at + i]) - rest[at + i]);
        } else {
            LogSum logs;
            for (i64 i = 0; i < effect.n; ++i) total -= rest[at + i], logs.add(factor[at + i]);
            total += logs.value();
        }
        out[k] = total;
        at += effect.n;
    }
}

// A slice step for each effect (Neal 2003). width : (n_effects,) of the intervals. active : (n_effects,) scratch. work : as
// above. values : (n_effects,) scratch.
template <class LawOf>
static inline void move_effects(const EffectRows& rows, const LawOf& law_of, i64 n_effects, Effect* effects,
                                const double* width, i64 n_rows, i64* active, double* work, double* values) {
    for (i64 k = 0; k < n_effects; ++k) active[k] = k, effects[k].proposed = effects[k].current;
    effect_densities(rows, law_of, active, n_effects, effects, n_rows, work, values);
    for (i64 k = 0; k < n_effects; ++k) {
        Effect& effect = effects[k];
        effect.level = values[k] + log(uniform(effect.stream, effect.index, 0));
        effect.low = effect.current - width[k] * uniform(effect.stream, effect.index, 1);
        effect.high = effect.low + width[k];
    }
    i64 n_active = n_effects;
    for (u32 attempt = 0; n_active && attempt < EFFECT_PROPOSALS; ++attempt) {
        for (i64 k = 0; k < n_active; ++k) {
            Effect& effect = effects[active[k]];
            const double share = uniform(effect.stream, effect.index, 2 + attempt);
            effect.proposed = effect.low + (effect.high - effect.low) * share;
        }
        effect_densities(rows, law_of, active, n_active, effects, n_rows, work, values);
        i64 n_still_active = 0;
        for (i64 k = 0; k < n_active; ++k) {
            Effect& effect = effects[active[k]];
            if (values[k] >= effect.level) effect.current = effect.proposed;
            else {
                (effect.proposed < effect.current ? effect.low : effect.high) = effect.proposed;
                active[n_still_active++] = active[k];
            }
        }
        n_active = n_still_active;
    }
}
