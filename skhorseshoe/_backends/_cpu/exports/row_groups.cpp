// Groups of rows: sums over their rows, moves of their effects, and log-likelihoods given the linear predictors that a
// pass has stored (``Shift`` of rows.hpp). Groups and the rows of each have a fixed order, so that sums have the same
// bits for any number of threads.
#include "dense_rows.hpp"
#include "group_effects.hpp"
#include "on_likelihood.hpp"
#include "row_groups.hpp"

// Calls use(values) with stored numbers of rows in their type.
template <class F> static void with_stored(const RowGroups& groups, const void* values, F use) {
    if (groups.is_double) use(static_cast<const double*>(values));
    else use(static_cast<const float*>(values));
}

// use(law_of, values) with the law of each chain, as ``TwoClasses``, and with these numbers.
template <class F> static void with_laws(const RowGroups& groups, const GivenPredictors& given, F use) {
    on_law_of_chains(groups.likelihood, [&](auto law) {
        typedef decltype(law) Law;
        const auto law_of = [&](i64 chain) { return Law{given.own + chain * given.n_own, given.n_own}; };
        with_stored(groups, given.values, [&](auto* by_row) { use(law_of, by_row); });
        return 0;
    });
}

// The sums of ``values`` (n, n_chains), times the slopes of rows, over the rows of the groups first to last - 1; (n_groups,
// n_chains), for any number of chains.
EXPORT i32 sum_by_group(const RowGroups* row_groups, const void* values, i64 n_chains, i64 first, i64 last, double* sums) {
    const RowGroups& groups = *row_groups;
    with_stored(groups, values, [&](auto* by_row) {
        for (i64 g = first; g < last; ++g) {
            double* group_sums = sums + g * n_chains;
            for (i64 c = 0; c < n_chains; ++c) group_sums[c] = 0.0;
            for (i64 k = groups.starts[g]; k < groups.starts[g + 1]; ++k) {
                const i64 row = groups.order[k];
                const double slope = groups.slope ? groups.slope[row] : 1.0;
                for (i64 c = 0; c < n_chains; ++c) group_sums[c] += slope * double(by_row[row * n_chains + c]);
            }
        }
    });
    return 0;
}

// What effects (q, n_groups, n_chains) add to the predictors of rows (n, n_chains), without offsets, for any number of chains.
EXPORT i32 effects_in_rows(const RowGroups* row_groups, const double* effects, i64 n_chains, double* predictors) {
    const RowGroups& groups = *row_groups;
    for (i64 row = 0; row < groups.n; ++row) {
        double* __restrict own = predictors + row * n_chains;
        for (i64 k = 0; k < groups.q; ++k) {
            const double* u = effects + (k * groups.n_groups + groups.codes[row]) * n_chains;
            const double slope = groups.slope ? groups.slope[k * groups.n + row] : 1.0;
            for (i64 c = 0; c < n_chains; ++c) own[c] = (k ? own[c] : 0.0) + slope * u[c];
        }
    }
    return 0;
}

// The offset, weight and slope of a row.
struct RowTerms {
    double offset, weight, slope;
    RowTerms(const RowGroups& groups, i64 row)
        : offset(groups.offset ? groups.offset[row] : 0.0), weight(groups.weight ? groups.weight[row] : 1.0),
          slope(groups.slope ? groups.slope[row] : 1.0) {}
};

// Gathered rows: eta_i without effects, weights if rows have them, y_i, and slopes; and (MOST_PLACES + 2) n numbers for their
// log-densities.
struct GatheredRows {
    Scratch<double> numbers;
    Scratch<u8> y;
    double *eta, *weight, *slope, *work;
    explicit GatheredRows(i64 n)
        : numbers((5 + MOST_PLACES) * n), y(n), eta(numbers), weight(eta + n), slope(weight + n), work(slope + n) {}
    bool failed() const { return numbers.failed() || y.failed(); }
};

// Gathers the rows of a group, chain by chain, from index ``at`` on.
template <class T>
static void gather(const RowGroups& groups, const GivenPredictors& given, const T* by_row, i64 g, i64 at,
                   const GatheredRows& to) {
    const i64 start = groups.starts[g], n = groups.starts[g + 1] - start, n_chains = given.n_chains;
    for (i64 i = 0; i < n; ++i) {
        const i64 row = groups.order[start + i];
        const RowTerms terms(groups, row);
        for (i64 c = 0; c < n_chains; ++c) {
            const i64 place = at + c * n + i;
            to.y[place] = groups.y[row];
            to.slope[place] = terms.slope;
            if (groups.weight) to.weight[place] = terms.weight;
            to.eta[place] = given.factor[c] * double(by_row[row * n_chains + c]) + terms.offset;
        }
    }
}

// For the groups first to last - 1, -w d^2 log p(y, eta) / d eta^2 of their rows, and the sums over the rows of a group of
// w d log p(y, eta) / d effect, averaged over chains. eta is factor times the predictor plus offset and slope times effect.
EXPORT i32 curvature_of_rows(const RowGroups* row_groups, const GivenPredictors* given, const double* effects, i64 first,
                             i64 last, double* curvature, double* slopes) {
    const RowGroups& groups = *row_groups;
    const i64 n_chains = given->n_chains;
    with_laws(groups, *given, [&](auto law_of, auto* by_row) {
        for (i64 g = first; g < last; ++g) {
            slopes[g] = 0.0;
            for (i64 k = groups.starts[g]; k < groups.starts[g + 1]; ++k) {
                const i64 row = groups.order[k];
                const RowTerms terms(groups, row);
                const double weight = terms.weight / double(n_chains);
                double total = 0.0, slope;
                for (i64 c = 0; c < n_chains; ++c) {
                    const double own = terms.slope * effects[g * n_chains + c];
                    const double eta = given->factor[c] * double(by_row[row * n_chains + c]) + own;
                    total += law_of(c).curvature(eta + terms.offset, groups.y[row], slope);
                    slopes[g] += weight * slope * terms.slope;
                }
                curvature[row] = weight * total;
            }
        }
    });
    return 0;
}

// The log-likelihoods of the groups first to last - 1 with each of k effects u (last - first, k), in one chain.
EXPORT i32 group_logliks_on_grid(const RowGroups* row_groups, const GivenPredictors* given, const double* u, i64 k,
                                 i64 first, i64 last, double* logliks) {
    const RowGroups& groups = *row_groups;
    i64 n_most = 0;
    for (i64 g = first; g < last; ++g) n_most = largest(n_most, groups.starts[g + 1] - groups.starts[g]);
    const GatheredRows rows(n_most);
    if (rows.failed()) return NO_MEMORY;
    double* places = rows.work + 2 * n_most;
    with_laws(groups, *given, [&](auto law_of, auto* by_row) {
        const auto law = law_of(0);
        for (i64 g = first; g < last; ++g) {
            const i64 n = groups.starts[g + 1] - groups.starts[g];
            gather(groups, *given, by_row, g, 0, rows);
            for (i64 j = 0; j < k; ++j) {
                const i64 at = (g - first) * k + j;
                for (i64 i = 0; i < n; ++i) law.place(rows.eta[i] + rows.slope[i] * u[at], rows.y[i], n, places + i);
                logliks[at] = law.sum_log_densities(n, n, places, groups.weight ? rows.weight : nullptr, rows.work);
            }
        }
    });
    return 0;
}

// Memory for effects that move together: those of some groups in all chains.
struct MovingEffects {
    GatheredRows rows;
    Scratch<Effect> effects;
    Scratch<i64> active;
    Scratch<double> width, values;
    i64 n_rows;
    MovingEffects(i64 n, i64 n_rows) : rows(n_rows), effects(n), active(n), width(n), values(n), n_rows(n_rows) {}
    bool failed() const {
        return rows.failed() || effects.failed() || active.failed() || width.failed() || values.failed();
    }
};

struct EffectLaw {  // filled by Python
    const double* precision;    // (n_chains,) s^-2, or (n_groups, n_chains)
    const double* information;  // (n_groups,) of the rows about an effect, frozen
    const double* mean;         // (n_groups, n_chains) of the prior of effects, with precisions for each; or null
};

// Moves the effects of the groups first to last - 1 together.
static void move_effects_of_groups(const RowGroups& groups, const GivenPredictors& given, const EffectLaw& law, Key key,
                                   i64 first, i64 last, const MovingEffects& moving, double* effects) {
    const i64 n_chains = given.n_chains, n_effects = (last - first) * n_chains;
    for (i64 g = first; g < last; ++g) {
        const i64 at = (groups.starts[g] - groups.starts[first]) * n_chains, n = groups.starts[g + 1] - groups.starts[g];
        with_stored(groups, given.values, [&](auto* by_row) { gather(groups, given, by_row, g, at, moving.rows); });
        for (i64 c = 0; c < n_chains; ++c) {
            const i64 k = (g - first) * n_chains + c, own = g * n_chains + c;
            const double precision = law.precision[law.mean ? own : c], mean = law.mean ? law.mean[own] : 0.0;
            const Stream stream(key, u32(c), EFFECT_PURPOSE, u64(g));
            moving.effects[k] = {at + c * n, n, c, precision, mean, effects[own], 0, 0, 0, 0, stream, u32(g)};
#ifdef PLANT_WIDTH_OF_STATE
            const double more = fabs(effects[own]);
#else
            const double more = 0.0;
#endif
            moving.width[k] = EFFECT_WIDTH / sqrt(law.information[g] + precision + more);
        }
    }
    const double* weight = groups.weight ? moving.rows.weight : nullptr;
    const EffectRows rows = {moving.rows.eta, moving.rows.y, weight, moving.rows.slope};
    with_laws(groups, given, [&](auto law_of, auto*) {
        move_effects(rows, law_of, n_effects, moving.effects, moving.width, moving.n_rows, moving.active, moving.rows.work,
                     moving.values);
    });
    for (i64 k = 0; k < n_effects; ++k) effects[first * n_chains + k] = moving.effects[k].current;
}

// The end of the groups from ``first`` on that move together: at least one, and more as long as they have few rows.
static i64 end_of_moving(const RowGroups& groups, i64 first, i64 last) {
    constexpr i64 FEW = 512;  // largest number of rows of several groups
    i64 end = first + 1;
    while (end < last && groups.starts[end + 1] - groups.starts[first] <= FEW) ++end;
    return end;
}

// Moves the effects (n_groups, n_chains) of the groups first to last - 1.
EXPORT i32 move_group_effects(const RowGroups* row_groups, const GivenPredictors* given, const EffectLaw* law, u32 sweep,
                              const u32* key, i64 first, i64 last, double* effects) {
    const RowGroups& groups = *row_groups;
    const i64 n_chains = given->n_chains;
    i64 most_groups = 0, most_rows = 0;
    for (i64 g = first, end; g < last; g = end) {
        end = end_of_moving(groups, g, last);
        most_groups = largest(most_groups, end - g);
        most_rows = largest(most_rows, groups.starts[end] - groups.starts[g]);
    }
    const MovingEffects moving(most_groups * n_chains, most_rows * n_chains);
    if (moving.failed()) return NO_MEMORY;
    for (i64 g = first, end; g < last; g = end) {
        end = end_of_moving(groups, g, last);
        move_effects_of_groups(groups, *given, *law, {sweep, key[0], key[1]}, g, end, moving, effects);
    }
    return 0;
}

// eta (n,) of rows from ``start`` on in a chain: factor times the predictor, what effects add, and the offset.
template <class T>
static void add_up_predictors(const RowGroups& groups, const T* by_row, const double* effects, double factor, i64 n_chains,
                              i64 chain, i64 start, i64 n, double* __restrict eta) {
    const T* predictors = by_row + start * n_chains + chain;
    const i32* codes = groups.codes + start;
    for (i64 i = 0; i < n; ++i) eta[i] = factor * double(predictors[i * n_chains]);
    for (i64 k = 0; k < groups.q; ++k) {
        const double* u = effects + k * groups.n_groups * n_chains + chain;
        const double* slope = groups.slope ? groups.slope + k * groups.n + start : nullptr;
        if (slope) for (i64 i = 0; i < n; ++i) eta[i] += slope[i] * u[codes[i] * n_chains];
        else for (i64 i = 0; i < n; ++i) eta[i] += u[codes[i] * n_chains];
    }
    if (groups.offset) for (i64 i = 0; i < n; ++i) eta[i] += groups.offset[start + i];
}

// The log-likelihoods of the chains ``asked``. effects : (q, n_groups, n_chains). logliks : (n_blocks, n_chains), added to.
EXPORT i32 scaled_logliks(const RowGroups* row_groups, const GivenPredictors* given, const double* effects, const u8* asked,
                          const i64* bounds, i64 n_blocks, double* logliks) {
    const RowGroups& groups = *row_groups;
    const i64 n_chains = given->n_chains;
    constexpr i64 TILE = 256;
    double eta[TILE], places[MOST_PLACES * TILE], work[2 * TILE];
    with_laws(groups, *given, [&](auto law_of, auto* by_row) {
        for (i64 block = 0; block < n_blocks; ++block)
            for (i64 start = bounds[block]; start < bounds[block + 1]; start += TILE) {
                const i64 n = least(TILE, bounds[block + 1] - start);
                const double* weight = groups.weight ? groups.weight + start : nullptr;
                for (i64 c = 0; c < n_chains; ++c) {
                    if (!asked[c]) continue;
                    add_up_predictors(groups, by_row, effects, given->factor[c], n_chains, c, start, n, eta);
                    const auto law = law_of(c);
                    for (i64 i = 0; i < n; ++i) law.place(eta[i], groups.y[start + i], TILE, places + i);
                    logliks[block * n_chains + c] += law.sum_log_densities(n, TILE, places, weight, work);
                }
            }
    });
    return 0;
}

// Adds weight_i (x_i, 1) of rows to the sums (n_groups, p + 1) of their groups.
EXPORT i32 add_rows_by_group(const StoredX* X, const i32* codes, const double* weight, double* sums) {
    return on_rows(*X, [&](const auto& rows) {
        for (i64 i = 0; i < rows.n; ++i) {
            double* group_sums = sums + codes[i] * (rows.p + 1);
            const double w = weight[i];
            rows.each_number(i, [=](i64 j, double x) { group_sums[j] += w * x; });
            group_sums[rows.p] += w;
        }
        return 0;
    });
}
