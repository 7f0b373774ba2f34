// A slice step of each chain along a line of scales s, which the effects of groups follow. Python computes the
// log-likelihoods, of all rows at once, between calls that decide on a proposal and go to the next.
#include "group_scales.hpp"
#include "row_groups.hpp"

// Steps of all chains: the first is where they are, the others are proposals, known in advance. The log-density of a step
// is the log-likelihood, the sum of log d_g - u_g^2 / (2 s^2) over groups, and ``others``.
struct ScaleLine {  // filled by Python
    EffectLaws laws;
    i64 n_groups, n_chains, n_steps;
    const double *linear, *held, *slope;  // ``Followed``: (n_groups, n_chains) twice, and (n_groups,)
    const double *scale, *factor;         // (n_steps, n_chains) s, and c of c beta
    const double* others;                 // (n_steps, n_chains)
    const double* uniform;                // (n_chains,) of the level of the slice
    double* standard;                     // (n_groups, n_chains) (u_g - m_g) / d_g
    double *level, *density;              // (n_chains,) of the slice; of the last step, but for the log-likelihood
    double* loglik;                       // (n_chains,) of the step that is taken
    i64* taken;                           // (n_chains,) its number
    u8* open;                             // (n_chains,) whether it is to be found yet
};

static AtScale at_step(const ScaleLine& line, i64 k, i64 c) {
    const i64 at = k * line.n_chains + c;
    return {line.laws, line.scale[at], line.factor[at]};
}

static EffectLaw law_at(const ScaleLine& line, i64 g, i64 c, const AtScale& at) {
    const i64 place = g * line.n_chains + c;
    return law_of_effect(line.laws, g, at, at.followed(line.linear[place], line.held[place], line.slope[g]));
}

// The effects of a chain at a step. work : 2 n_groups numbers.
static void go_to_step(const ScaleLine& line, i64 k, i64 c, double* __restrict effects, double* __restrict work) {
    const i64 n = line.n_groups, m = line.n_chains;
    const AtScale at = at_step(line, k, c);
    double *__restrict log_sd = work, *__restrict u = work + n;
    const double* standard = line.standard + c;
    for (i64 g = 0; g < n; ++g) {
        const EffectLaw law = law_at(line, g, c, at);
        log_sd[g] = law.log_sd, u[g] = law.mean + law.sd * standard[g * m];
    }
    for (i64 g = 0; g < n; ++g) effects[g * m + c] = u[g];
#ifdef PLANT_SQUARES_FORGOTTEN
    const double inverse = 0.0;
#else
    const double inverse = 1.0 / line.scale[k * m + c];
#endif
    const auto term = [=](i64 g) { return log_sd[g] - 0.5 * (u[g] * inverse) * (u[g] * inverse); };
    line.density[c] = sum(n, term) + line.others[k * m + c];
}

// Holds the residuals of these effects (n_groups, n_chains).
EXPORT i32 hold_residuals(const ScaleLine* line, const double* effects) {
    const i64 m = line->n_chains;
    for (i64 c = 0; c < m; ++c) {
        const AtScale at = at_step(*line, 0, c);
        for (i64 g = 0; g < line->n_groups; ++g) {
            const EffectLaw law = law_at(*line, g, c, at);
            line->standard[g * m + c] = (effects[g * m + c] - law.mean) / law.sd;
        }
    }
    return 0;
}

// Goes to step k with the effects of open chains, after a decision on step k - 1, whose log-likelihoods are ``logliks``
// (n_chains,). After the last step, chains that are open go back to the first. Returns the number of open chains.
EXPORT i32 next_scales(const ScaleLine* line, i64 k, const double* logliks, double* effects) {
    Scratch<double> work(2 * line->n_groups);
    if (work.failed()) return NO_MEMORY;
    const bool ends = k == line->n_steps;
    i32 n_open = 0;
    for (i64 c = 0; c < line->n_chains; ++c) {
        if (k == 0) line->open[c] = 1, line->taken[c] = 0;
        if (!line->open[c]) continue;
        if (k > 0) {
            const double value = logliks[c] + line->density[c];
            if (k == 1) line->level[c] = value + log(line->uniform[c]), line->loglik[c] = logliks[c];
            else if (value >= line->level[c]) {
                line->open[c] = 0, line->taken[c] = k - 1, line->loglik[c] = logliks[c];
                continue;
            }
        }
        go_to_step(*line, ends ? 0 : k, c, effects, work);
        n_open += !ends;
    }
    return n_open;
}

// A whole step for rows of one block: ``step`` of Python. logliks : those of the first step, or null.
EXPORT i32 step_along_scales(const ScaleLine* line, const RowGroups* row_groups, const GivenPredictors* given,
                             const i64* bounds, const double* logliks, double* effects) {
    const i64 m = line->n_chains, n_own = given->n_own;
    Scratch<double> computed(m), factor(m), own(m * n_own);
    if (computed.failed() || factor.failed() || own.failed()) return NO_MEMORY;
    const GivenPredictors at = {given->values, factor, own, n_own, m};
    for (i64 k = 0;; ++k) {
        const i32 n_open = next_scales(line, k, k == 1 && logliks ? logliks : computed.data, effects);
        if (n_open <= 0) return n_open;
        if (k == 0 && logliks) continue;
        const double* c = line->factor + k * m;
        for (i64 i = 0; i < m; ++i) factor[i] = c[i] * given->factor[i], computed[i] = 0.0;
#ifdef PLANT_CUTS_STAY
        for (i64 i = 0; i < m * n_own; ++i) own[i] = given->own[i];
#else
        for (i64 i = 0; i < m * n_own; ++i) own[i] = c[i / n_own] * given->own[i];
#endif
        const i32 status = scaled_logliks(row_groups, &at, effects, line->open, bounds, 1, computed);
        if (status) return status;
    }
}
