// Groups of rows: sums over their rows, their effects, and log-likelihoods of all rows given the linear predictors that
// a pass has kept (``Shift`` of passes.cpp). Groups stand in a fixed order, and so do the rows of each: sums have the
// same bits for any number of threads.
#include "csr_rows.hpp"
#include "export.hpp"
#include "group_effects.hpp"

struct RowGroups {  // filled by Python
    i32 is_double;          // what is kept of rows
    i64 n_chains;
    const i64* order;       // (n,) the rows of the first group, then those of the second, ...
    const i64* starts;      // (n_groups + 1,) where groups begin in it
    const i32* codes;       // (n,) the group of each row
    const u8* y;            // (n,)
    const double* weight;   // (n,), or null
    const double* offset;   // (n,), or null
};

// use(values) with numbers that are kept of rows, as they are.
template <class F> static void with_kept(const RowGroups& groups, const void* values, F use) {
    if (groups.is_double) use(static_cast<const double*>(values));
    else use(static_cast<const float*>(values));
}

static const RowGroups& groups_at(const void* address) { return *static_cast<const RowGroups*>(address); }

// Of the groups first to last - 1 the sums of ``values`` (n, n_chains) over their rows; (n_groups, n_chains), of any number
// of chains.
EXPORT i32 sum_by_group(const void* row_groups, const void* values, i64 n_chains, i64 first, i64 last, double* sums) {
    const RowGroups& groups = groups_at(row_groups);
    with_kept(groups, values, [&](auto* of_rows) {
        for (i64 g = first; g < last; ++g) {
            double* own = sums + g * n_chains;
            for (i64 c = 0; c < n_chains; ++c) own[c] = 0.0;
            for (i64 k = groups.starts[g]; k < groups.starts[g + 1]; ++k)
                for (i64 c = 0; c < n_chains; ++c) own[c] += double(of_rows[groups.order[k] * n_chains + c]);
        }
    });
    return 0;
}

// What a row has beside its linear predictor.
struct OfRow {
    double sign, offset, weight;
    OfRow(const RowGroups& groups, i64 row)
        : sign(groups.y[row] ? 1.0 : -1.0), offset(groups.offset ? groups.offset[row] : 0.0),
          weight(groups.weight ? groups.weight[row] : 1.0) {}
};

// Rows brought together: s_i eta_i but for effects, s_i, and weights if rows have them.
struct Gathered {
    double *eta, *sign, *weight;
};

// The rows of a group, those of each chain by themselves, from place ``at`` on. factor : (n_chains,).
template <class T>
static void gather(const RowGroups& groups, const T* of_rows, const double* factor, i64 n_chains, i64 g, i64 at,
                   const Gathered& to) {
    const i64 start = groups.starts[g], n = groups.starts[g + 1] - start;
    for (i64 i = 0; i < n; ++i) {
        const i64 row = groups.order[start + i];
        const OfRow own(groups, row);
        for (i64 c = 0; c < n_chains; ++c) {
            const i64 place = at + c * n + i;
            to.sign[place] = own.sign;
            if (groups.weight) to.weight[place] = own.weight;
            to.eta[place] = own.sign * (factor[c] * double(of_rows[row * n_chains + c]) + own.offset);
        }
    }
}

// Of rows of the groups first to last - 1 -w d^2 log Phi(s eta) / d eta^2, and of the groups the sums over their rows of
// w d log Phi(s eta) / d eta, averaged over n_chains: eta = factor times the predictor, with effect and offset.
EXPORT i32 curvature_of_rows(const void* row_groups, const void* predictors, const double* factor, const double* effects,
                             i64 n_chains, i64 first, i64 last, double* curvature, double* terms) {
    const RowGroups& groups = groups_at(row_groups);
    with_kept(groups, predictors, [&](auto* of_rows) {
        for (i64 g = first; g < last; ++g) {
            terms[g] = 0.0;
            for (i64 k = groups.starts[g]; k < groups.starts[g + 1]; ++k) {
                const i64 row = groups.order[k];
                const OfRow own(groups, row);
                const double weight = own.weight / double(n_chains);
                double total = 0.0;
                for (i64 c = 0; c < n_chains; ++c) {
                    const double eta = factor[c] * double(of_rows[row * n_chains + c]) + effects[g * n_chains + c];
                    const double t = own.sign * (eta + own.offset);
                    const CdfParts parts = cdf_parts(t);
                    const double ratio = mills_ratio(t, parts.e, parts.v);
                    total += ratio * (t + ratio), terms[g] += weight * own.sign * ratio;
                }
                curvature[row] = weight * total;
            }
        }
    });
    return 0;
}

// The log-likelihoods of the groups first to last - 1 with each of k effects u (last - first, k). predictors : (n,).
EXPORT i32 group_logliks_on_grid(const void* row_groups, const void* predictors, const double* u, i64 k, i64 first,
                                 i64 last, double* logliks) {
    const RowGroups& groups = groups_at(row_groups);
    i64 most = 0;
    for (i64 g = first; g < last; ++g) most = largest(most, groups.starts[g + 1] - groups.starts[g]);
    Scratch<double> numbers(7 * most);
    if (numbers.failed()) return NO_MEMORY;
    const Gathered rows = {numbers, numbers + most, numbers + 2 * most};
    double *t = numbers + 3 * most, *work = t + most;
    const double once = 1.0;
    with_kept(groups, predictors, [&](auto* of_rows) {
        for (i64 g = first; g < last; ++g) {
            const i64 n = groups.starts[g + 1] - groups.starts[g];
            gather(groups, of_rows, &once, 1, g, 0, rows);
            for (i64 j = 0; j < k; ++j) {
                const i64 at = (g - first) * k + j;
                for (i64 i = 0; i < n; ++i) t[i] = rows.eta[i] + rows.sign[i] * u[at];
                logliks[at] = sum_log_cdf(n, t, groups.weight ? rows.weight : nullptr, work);
            }
        }
    });
    return 0;
}

// What moves together: of some groups all chains.
struct Together {
    Scratch<double> numbers;
    Scratch<Effect> effects;
    Scratch<i64> some;
    Gathered rows;
    double *work, *width, *values;
    i64 n_rows;
    Together(i64 n_effects, i64 n_rows)
        : numbers(6 * n_rows + 2 * n_effects), effects(n_effects), some(n_effects),
          rows{numbers, numbers + n_rows, numbers + 2 * n_rows}, work(numbers + 3 * n_rows), width(work + 3 * n_rows),
          values(width + n_effects), n_rows(n_rows) {}
    bool failed() const { return numbers.failed() || effects.failed() || some.failed(); }
};

struct OfEffects {
    const double *factor, *precision;  // (n_chains,) of x beta; (n_chains,) s^-2
    const double* information;         // (n_groups,) what the rows tell of an effect, frozen
    Key key;
};

// Move the effects of the groups first to last - 1 together.
static void move_together(const RowGroups& groups, const void* predictors, const OfEffects& of, i64 first, i64 last,
                          const Together& moving, double* effects) {
    const i64 n_chains = groups.n_chains, n_effects = (last - first) * n_chains;
    for (i64 g = first; g < last; ++g) {
        const i64 at = (groups.starts[g] - groups.starts[first]) * n_chains, n = groups.starts[g + 1] - groups.starts[g];
        with_kept(groups, predictors, [&](auto* of_rows) { gather(groups, of_rows, of.factor, n_chains, g, at, moving.rows); });
        for (i64 c = 0; c < n_chains; ++c) {
            const i64 k = (g - first) * n_chains + c;
            const Stream stream(of.key, u32(c), EFFECT, u64(g));
            moving.effects[k] = {at + c * n, n, of.precision[c], effects[g * n_chains + c], 0, 0, 0, 0, stream, u32(g)};
#ifdef PLANT_WIDTH_OF_STATE
            const double more = fabs(effects[g * n_chains + c]);
#else
            const double more = 0.0;
#endif
            moving.width[k] = EFFECT_WIDTH / sqrt(of.information[g] + of.precision[c] + more);
        }
    }
    const EffectRows rows = {moving.rows.eta, moving.rows.sign, groups.weight ? moving.rows.weight : nullptr};
    move_effects(rows, n_effects, moving.effects, moving.width, moving.n_rows, moving.some, moving.work, moving.values);
    for (i64 k = 0; k < n_effects; ++k) effects[first * n_chains + k] = moving.effects[k].now;
}

// The end of the groups from ``first`` on that move together: as many as have few rows, and at least one.
static i64 end_of_some(const RowGroups& groups, i64 first, i64 last) {
    constexpr i64 FEW = 512;
    i64 end = first + 1;
    while (end < last && groups.starts[end + 1] - groups.starts[first] <= FEW) ++end;
    return end;
}

// Move the effects (n_groups, n_chains) of the groups first to last - 1. predictors : (n, n_chains)
// x beta but for the factor (n_chains,).
EXPORT i32 move_group_effects(const void* row_groups, const void* predictors, const double* factor,
                              const double* precision, const double* information, u32 sweep, u32 k0, u32 k1,
                              i64 first, i64 last, double* effects) {
    const RowGroups& groups = groups_at(row_groups);
    i64 most_groups = 0, most_rows = 0;
    for (i64 g = first, end; g < last; g = end) {
        end = end_of_some(groups, g, last);
        most_groups = largest(most_groups, end - g);
        most_rows = largest(most_rows, groups.starts[end] - groups.starts[g]);
    }
    const Together moving(most_groups * groups.n_chains, most_rows * groups.n_chains);
    if (moving.failed()) return NO_MEMORY;
    for (i64 g = first, end; g < last; g = end) {
        end = end_of_some(groups, g, last);
        move_together(groups, predictors, {factor, precision, information, {sweep, k0, k1}}, g, end, moving, effects);
    }
    return 0;
}

// The log-likelihoods of all rows where x beta is times ``factor`` (n_chains,), of the chains that are ``asked`` for.
// effects : (n_groups, n_chains). logliks : (n_blocks, n_chains), added to.
EXPORT i32 scaled_logliks(const void* row_groups, const void* predictors, const double* factor, const double* effects,
                          const u8* asked, const i64* bounds, i64 n_blocks, double* logliks) {
    const RowGroups& groups = groups_at(row_groups);
    const i64 n_chains = groups.n_chains;
    constexpr i64 TILE = 256;
    Scratch<double> eta(n_chains * TILE), work(3 * TILE);
    if (eta.failed() || work.failed()) return NO_MEMORY;
    with_kept(groups, predictors, [&](auto* of_rows) {
        for (i64 block = 0; block < n_blocks; ++block)
            for (i64 start = bounds[block]; start < bounds[block + 1]; start += TILE) {
                const i64 n = least(TILE, bounds[block + 1] - start);
                for (i64 i = 0; i < n; ++i) {
                    const i64 row = start + i;
                    const auto* own = of_rows + row * n_chains;
                    const double* u = effects + groups.codes[row] * n_chains;
                    const OfRow of(groups, row);
                    for (i64 c = 0; c < n_chains; ++c)
                        eta[c * TILE + i] = of.sign * (factor[c] * double(own[c]) + u[c] + of.offset);
                }
                const double* weight = groups.weight ? groups.weight + start : nullptr;
                for (i64 c = 0; c < n_chains; ++c)
                    if (asked[c]) logliks[block * n_chains + c] += sum_log_cdf(n, eta + c * TILE, weight, work);
            }
    });
    return 0;
}

// Add weight_i (x_i, 1) of n rows to those of their groups; sums : (n_groups, p + 1).
template <class R>
static i32 add_dense_rows(const R* X, i64 n, i64 p, const i32* codes, const double* weight, double* sums) {
    for (i64 i = 0; i < n; ++i) {
        double* __restrict own = sums + codes[i] * (p + 1);
        const R* __restrict x = X + i * p;
        for (i64 j = 0; j < p; ++j) own[j] += weight[i] * double(x[j]);
        own[p] += weight[i];
    }
    return 0;
}

EXPORT i32 add_rows_by_group(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p,
                             const i32* codes, const double* weight, double* sums) {
    if (kind == 0) return add_dense_rows(static_cast<const float*>(data), n, p, codes, weight, sums);
    if (kind == 1) return add_dense_rows(static_cast<const double*>(data), n, p, codes, weight, sums);
    return on_csr_rows(kind, data, indices, indptr, n, p, [&](const auto& rows) {
        for (i64 i = 0; i < n; ++i) {
            double* own = sums + codes[i] * (p + 1);
            for (i64 k = rows.indptr[i]; k < i64(rows.indptr[i + 1]); ++k)
                own[rows.indices[k]] += weight[i] * double(rows.data[k]);
            own[p] += weight[i];
        }
        return 0;
    });
}
