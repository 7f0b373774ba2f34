// A slice step of each chain along a line of covariances Sigma = R R' of the q effects of a group, which the effects follow:
// with L_g' (b_g - m_g) held, L_g L_g' = H_g + Sigma^-1 and m_g = (L_g L_g')^-1 (l_g - c w_g), as ``_mcmc/group_slopes.py``
// approximates them.
#include "group_lines.hpp"

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
// ``size_of_tile`` numbers.
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

static i64 size_of_tile(i64 q) { return (q * q + q) * GROUPS; }

// Holds the residuals of these effects (q, n_groups, n_chains).
EXPORT i32 hold_standard_effects(const CovarianceLine* line, const double* effects) {
    Scratch<double> memory(size_of_tile(line->q));
    if (memory.failed()) return NO_MEMORY;
    for (i64 c = 0; c < line->steps.n_chains; ++c) {
        CovarianceTile tile(*line, 0, c, memory);
        for (i64 g = 0; g < line->n_groups; g += GROUPS) tile.compute(g), tile.hold(effects);
    }
    return 0;
}

// ``next_step``.
EXPORT i32 next_covariances(const CovarianceLine* line, i64 k, const double* logliks, double* effects) {
    Scratch<double> memory(size_of_tile(line->q)), work(GROUPS);
    if (memory.failed() || work.failed()) return NO_MEMORY;
    return next_step(line->steps, k, logliks, [&](i64 to, i64 c) {
        CovarianceTile tile(*line, to, c, memory);
        double total = 0.0;
        for (i64 g = 0; g < line->n_groups; g += GROUPS) tile.compute(g), total += tile.go_to(effects, work);
        return total;
    });
}

// ``all_steps``.
EXPORT i32 step_along_covariances(const CovarianceLine* line, const RowGroups* row_groups, const GivenPredictors* given,
                                  const i64* bounds, const double* logliks, double* effects) {
    return all_steps(line->steps, row_groups, given, bounds, logliks, effects,
                     [=](i64 k, const double* known) { return next_covariances(line, k, known, effects); });
}
