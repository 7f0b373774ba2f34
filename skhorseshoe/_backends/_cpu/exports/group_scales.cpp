// A slice step of each chain along a line of scales s, which the effects of groups follow.
#include "group_lines.hpp"
#include "group_scales.hpp"

struct ScaleLine {  // filled by Python
    LineSteps steps;
    EffectLaws laws;
    i64 n_groups;
    const double *linear, *held, *slope;  // ``Followed``: (n_groups, n_chains) twice, and (n_groups,)
    const double* scale;                  // (n_steps, n_chains) s
    double* standard;                     // (n_groups, n_chains) (u_g - m_g) / d_g
};

static AtScale at_step(const ScaleLine& line, i64 k, i64 c) {
    const i64 at = k * line.steps.n_chains + c;
    return {line.laws, line.scale[at], line.steps.factor[at]};
}

static EffectAtScale law_at(const ScaleLine& line, i64 g, i64 c, const AtScale& at) {
    const i64 place = g * line.steps.n_chains + c;
    return law_of_effect(line.laws, g, at, at.followed(line.linear[place], line.held[place], line.slope[g]));
}

// Sets the effects of a chain at a step, and returns the sum of log d_g - u_g^2 / (2 s^2). work : 2 n_groups numbers.
static double go_to_scale(const ScaleLine& line, i64 k, i64 c, double* __restrict effects, double* __restrict work) {
    const i64 n = line.n_groups, m = line.steps.n_chains;
    const AtScale at = at_step(line, k, c);
    double *__restrict log_sd = work, *__restrict u = work + n;
    const double* standard = line.standard + c;
    for (i64 g = 0; g < n; ++g) {
        const EffectAtScale law = law_at(line, g, c, at);
        log_sd[g] = law.log_sd, u[g] = law.mean + law.sd * standard[g * m];
    }
    for (i64 g = 0; g < n; ++g) effects[g * m + c] = u[g];
#ifdef PLANT_SQUARES_FORGOTTEN
    const double inverse = 0.0;
#else
    const double inverse = 1.0 / line.scale[k * m + c];
#endif
    return sum(n, [=](i64 g) { return log_sd[g] - 0.5 * (u[g] * inverse) * (u[g] * inverse); });
}

// Holds the residuals of these effects (n_groups, n_chains).
EXPORT i32 hold_residuals(const ScaleLine* line, const double* effects) {
    const i64 m = line->steps.n_chains;
    for (i64 c = 0; c < m; ++c) {
        const AtScale at = at_step(*line, 0, c);
        for (i64 g = 0; g < line->n_groups; ++g) {
            const EffectAtScale law = law_at(*line, g, c, at);
            line->standard[g * m + c] = (effects[g * m + c] - law.mean) / law.sd;
        }
    }
    return 0;
}

// ``next_step``.
EXPORT i32 next_scales(const ScaleLine* line, i64 k, const double* logliks, double* effects) {
    Scratch<double> work(2 * line->n_groups);
    if (work.failed()) return NO_MEMORY;
    return next_step(line->steps, k, logliks, [&](i64 to, i64 c) { return go_to_scale(*line, to, c, effects, work); });
}

// ``all_steps``.
EXPORT i32 step_along_scales(const ScaleLine* line, const RowGroups* row_groups, const GivenPredictors* given,
                             const i64* bounds, const double* logliks, double* effects) {
    return all_steps(line->steps, row_groups, given, bounds, logliks, effects,
                     [=](i64 k, const double* known) { return next_scales(line, k, known, effects); });
}
