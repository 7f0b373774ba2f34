// A slice step of each chain along a line of parameters of the law of effects, which the effects of groups follow: of scales
// s, with (u_g - m_g) / d_g held (``group_scales.hpp``); or of covariances Sigma = R R' of the q effects of a group, with
// L_g' (b_g - m_g) held, L_g L_g' = H_g + Sigma^-1 and m_g = (L_g L_g')^-1 (l_g - c w_g), as ``_mcmc/group_slopes.py``
// approximates them.
//
// Where threads share the rows, Python has their log-likelihoods computed between calls that decide on a proposal and go to the
// next; else one call makes the whole step.
#include "group_scales.hpp"
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

struct ScaleLine {  // filled by Python
    LineSteps steps;
    EffectLaws laws;
    i64 n_groups;
    const double *linear, *held, *slope;  // ``Followed``: (n_groups, n_chains) twice, and (n_groups,)
    const double* scale;                  // (n_steps, n_chains) s
    double* standard;                     // (n_groups, n_chains) (u_g - m_g) / d_g
};

struct AlongScales {
    const ScaleLine& line;
    const i64 n, m;
    Scratch<double> work;
    explicit AlongScales(const ScaleLine& line) : line(line), n(line.n_groups), m(line.steps.n_chains), work(2 * n) {}
    bool failed() const { return work.failed(); }

    AtScale at_step(i64 k, i64 c) const { return {line.laws, line.scale[k * m + c], line.steps.factor[k * m + c]}; }

    EffectAtScale law(i64 g, i64 c, const AtScale& at) const {
        const i64 place = g * m + c;
        return law_of_effect(line.laws, g, at, at.followed(line.linear[place], line.held[place], line.slope[g]));
    }

    // Sets the effects of a chain at a step, and returns the sum of log d_g - u_g^2 / (2 s^2).
    double go_to(i64 k, i64 c, double* __restrict effects) const {
        const AtScale at = at_step(k, c);
        double *__restrict log_sd = work, *__restrict u = work + n;
        const double* standard = line.standard + c;
        for (i64 g = 0; g < n; ++g) {
            const EffectAtScale own = law(g, c, at);
            log_sd[g] = own.log_sd, u[g] = own.mean + own.sd * standard[g * m];
        }
        for (i64 g = 0; g < n; ++g) effects[g * m + c] = u[g];
#ifdef PLANT_SQUARES_FORGOTTEN
        const double inverse = 0.0;
#else
        const double inverse = 1.0 / line.scale[k * m + c];
#endif
        return sum(n, [=](i64 g) { return log_sd[g] - 0.5 * (u[g] * inverse) * (u[g] * inverse); });
    }

    void hold(i64 c, const double* effects) const {
        const AtScale at = at_step(0, c);
        for (i64 g = 0; g < n; ++g) {
            const EffectAtScale own = law(g, c, at);
            line.standard[g * m + c] = (effects[g * m + c] - own.mean) / own.sd;
        }
    }
};

struct CovarianceLine {  // filled by Python
    LineSteps steps;
    i64 n_groups, q;
    const double *linear, *information;  // (q, n_groups) l_g, and (q, q, n_groups) H_g
    const double* weighed;               // (q, n_groups, n_chains) w_g
    const double* inverse_root;          // (q, q, n_steps, n_chains) R^-1
    double* standard;                    // (q, n_groups, n_chains) L_g' (b_g - m_g)
};

constexpr i64 GROUPS = 256;  // number of groups that are computed together

// The groups from ``first`` on, at a step of a chain: L (q, q, GROUPS), and v (q, GROUPS), L^-1 (l_g - c w_g). memory :
// (q + q^2) GROUPS numbers.
struct CovarianceTile {
    const CovarianceLine& line;
    const i64 q, m, step, chain;
    double *L, *v;
    i64 first = 0, n = 0;
    CovarianceTile(const CovarianceLine& line, i64 step, i64 chain, double* memory)
        : line(line), q(line.q), m(line.steps.n_chains), step(step), chain(chain), L(memory), v(L + q * q * GROUPS) {}

    double inverse_root(i64 j, i64 k) const {
        return line.inverse_root[((j * q + k) * line.steps.n_steps + step) * m + chain];
    }
    i64 place(i64 j, i64 g) const { return (j * line.n_groups + first + g) * m + chain; }  // of effect j of a group
    double* root(i64 j, i64 k) const { return L + (j * q + k) * GROUPS; }

    // x less a times b, or divided by b, for each group.
    void subtract(double* __restrict x, const double* a, const double* b) const {
        for (i64 g = 0; g < n; ++g) x[g] -= a[g] * b[g];
    }
    void divide(double* __restrict x, const double* b) const {
        for (i64 g = 0; g < n; ++g) x[g] /= b[g];
    }

    void compute(i64 from) {
        first = from, n = least(GROUPS, line.n_groups - from);
        const double c = line.steps.factor[step * m + chain];
        for (i64 j = 0; j < q; ++j) {
            for (i64 k = 0; k <= j; ++k) {
                double* out = root(j, k);
                double precision = 0.0;
                for (i64 i = j; i < q; ++i) precision += inverse_root(i, j) * inverse_root(i, k);
                const double* H = line.information + (j * q + k) * line.n_groups + first;
                for (i64 g = 0; g < n; ++g) out[g] = H[g] + precision;
                for (i64 i = 0; i < k; ++i) subtract(out, root(j, i), root(k, i));
                if (k < j) divide(out, root(k, k));
                else for (i64 g = 0; g < n; ++g) out[g] = sqrt(out[g]);
            }
            double* own = v + j * GROUPS;
            for (i64 g = 0; g < n; ++g) own[g] = line.linear[j * line.n_groups + first + g] - c * line.weighed[place(j, g)];
            for (i64 k = 0; k < j; ++k) subtract(own, root(j, k), v + k * GROUPS);
            divide(own, root(j, j));
        }
    }

    // v becomes L'^-1 (v + standard), the effects; they add to the log-density minus half the sum of b' Sigma^-1 b and minus
    // the sum of log |L|. work : GROUPS numbers.
    double go_to(double* effects, double* work) {
        double total = 0.0;
        for (i64 j = q - 1; j >= 0; --j) {
            double* own = v + j * GROUPS;
            for (i64 g = 0; g < n; ++g) own[g] += line.standard[place(j, g)];
            for (i64 k = j + 1; k < q; ++k) subtract(own, root(k, j), v + k * GROUPS);
            divide(own, root(j, j));
            for (i64 g = 0; g < n; ++g) effects[place(j, g)] = own[g];
        }
        for (i64 j = 0; j < q; ++j) {
            for (i64 g = 0; g < n; ++g) work[g] = 0.0;
            for (i64 k = 0; k <= j; ++k) {
                const double *b = v + k * GROUPS, entry = inverse_root(j, k);
                for (i64 g = 0; g < n; ++g) work[g] += entry * b[g];
            }
            const double* diagonal = root(j, j);
            LogSum logs;
            for (i64 g = 0; g < n; ++g) logs.add(diagonal[g]);
            total -= 0.5 * sum(n, [=](i64 g) { return work[g] * work[g]; }) + logs.value();
        }
        return total;
    }

    // ``standard`` of these effects.
    void hold(const double* effects) const {
        for (i64 j = 0; j < q; ++j)
            for (i64 g = 0; g < n; ++g) {
                double total = -v[j * GROUPS + g];
                for (i64 k = j; k < q; ++k) total += root(k, j)[g] * effects[place(k, g)];
                line.standard[place(j, g)] = total;
            }
    }
};

struct AlongCovariances {
    const CovarianceLine& line;
    Scratch<double> memory, work;
    explicit AlongCovariances(const CovarianceLine& line)
        : line(line), memory((line.q + line.q * line.q) * GROUPS), work(GROUPS) {}
    bool failed() const { return memory.failed() || work.failed(); }

    double go_to(i64 k, i64 c, double* effects) const {
        CovarianceTile tile(line, k, c, memory);
        double total = 0.0;
        for (i64 g = 0; g < line.n_groups; g += GROUPS) tile.compute(g), total += tile.go_to(effects, work);
        return total;
    }

    void hold(i64 c, const double* effects) const {
        CovarianceTile tile(line, 0, c, memory);
        for (i64 g = 0; g < line.n_groups; g += GROUPS) tile.compute(g), tile.hold(effects);
    }
};

// A line of one kind; the other is null.
struct EffectLine {  // filled by Python
    const ScaleLine* scale;
    const CovarianceLine* covariance;
};

template <class F> static i32 on_line(const EffectLine& line, F answer) {
    const auto if_there = [&](const auto& along) { return along.failed() ? NO_MEMORY : answer(along); };
    return line.scale ? if_there(AlongScales(*line.scale)) : if_there(AlongCovariances(*line.covariance));
}

// Holds the residuals of these effects, (n_groups, n_chains) or (q, n_groups, n_chains).
EXPORT i32 hold_residuals(const EffectLine* line, const double* effects) {
    return on_line(*line, [=](const auto& along) {
        for (i64 c = 0; c < along.line.steps.n_chains; ++c) along.hold(c, effects);
        return 0;
    });
}

// ``next_step``.
EXPORT i32 next_step_along_line(const EffectLine* line, i64 k, const double* logliks, double* effects) {
    return on_line(*line, [=](const auto& along) {
        return next_step(along.line.steps, k, logliks, [&](i64 to, i64 c) { return along.go_to(to, c, effects); });
    });
}

// A whole slice step for rows of one block. logliks : those of the first step, or null.
EXPORT i32 all_steps_along_line(const EffectLine* line, const RowGroups* row_groups, const GivenPredictors* given,
                                const i64* bounds, const double* logliks, double* effects) {
    const LineSteps& steps = line->scale ? line->scale->steps : line->covariance->steps;
    const i64 m = steps.n_chains, n_own = given->n_own;
    Scratch<double> computed(m), factor(m), own(m * n_own);
    if (computed.failed() || factor.failed() || own.failed()) return NO_MEMORY;
    const GivenPredictors at = {given->values, factor, own, n_own, m};
    for (i64 k = 0;; ++k) {
        const i32 n_open = next_step_along_line(line, k, k == 1 && logliks ? logliks : computed.data, effects);
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
