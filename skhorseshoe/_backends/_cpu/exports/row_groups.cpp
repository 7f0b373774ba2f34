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

// Move the effects (n_groups, n_chains) of the groups first to last - 1. predictors : (n, n_chains) x beta. precision :
// (n_chains,) s^-2. information : (n_groups,) of ``move_effect``.
EXPORT i32 move_effects(const void* row_groups, const void* predictors, const double* precision,
                        const double* information, u32 sweep, u32 k0, u32 k1, i64 first, i64 last, double* effects) {
    const RowGroups& groups = groups_at(row_groups);
    const i64 n_chains = groups.n_chains;
    i64 most = 0;
    for (i64 g = first; g < last; ++g) most = largest(most, groups.starts[g + 1] - groups.starts[g]);
    Scratch<double> work((5 + n_chains) * most);
    if (work.failed()) return NO_MEMORY;
    double *sign = work + 3 * most, *weight = work + 4 * most, *eta = work + 5 * most;
    with_kept(groups, predictors, [&](auto* of_rows) {
        for (i64 g = first; g < last; ++g) {
            const i64 start = groups.starts[g], n = groups.starts[g + 1] - start;
            for (i64 i = 0; i < n; ++i) {
                const i64 row = groups.order[start + i];
                sign[i] = groups.y[row] ? 1.0 : -1.0;
                if (groups.weight) weight[i] = groups.weight[row];
                for (i64 c = 0; c < n_chains; ++c)
                    eta[c * n + i] =
                        sign[i] * (double(of_rows[row * n_chains + c]) + (groups.offset ? groups.offset[row] : 0.0));
            }
            for (i64 c = 0; c < n_chains; ++c) {
                const GroupRows rows = {n, eta + c * n, sign, groups.weight ? weight : nullptr};
                double& u = effects[g * n_chains + c];
                u = move_effect(rows, u, precision[c], information[g], Stream({sweep, k0, k1}, u32(c), EFFECT, u64(g)),
                                u32(g), work);
            }
        }
    });
    return 0;
}

// The log-likelihoods of all rows where x beta is times ``of_beta`` (n_chains,) and the effects times ``of_effects``, of the
// chains that are ``asked`` for. logliks : (n_blocks, n_chains), added to.
EXPORT i32 scaled_logliks(const void* row_groups, const void* predictors, const double* effects, const double* of_beta,
                          const double* of_effects, const u8* asked, const i64* bounds, i64 n_blocks, double* logliks) {
    const RowGroups& groups = groups_at(row_groups);
    const i64 n_chains = groups.n_chains;
    constexpr i64 TILE = 512;
    Scratch<double> work(4 * TILE);
    if (work.failed()) return NO_MEMORY;
    with_kept(groups, predictors, [&](auto* of_rows) {
        for (i64 block = 0; block < n_blocks; ++block)
            for (i64 start = bounds[block]; start < bounds[block + 1]; start += TILE) {
                const i64 n = least(TILE, bounds[block + 1] - start);
                const double* weight = groups.weight ? groups.weight + start : nullptr;
                for (i64 c = 0; c < n_chains; ++c) {
                    if (!asked[c]) continue;
                    for (i64 i = 0; i < n; ++i) {
                        const i64 row = start + i;
                        const double eta = of_beta[c] * double(of_rows[row * n_chains + c]) +
                                           of_effects[c] * effects[groups.codes[row] * n_chains + c] +
                                           (groups.offset ? groups.offset[row] : 0.0);
                        work[i] = groups.y[row] ? eta : -eta;
                    }
                    logliks[block * n_chains + c] += sum_log_cdf(n, work, weight, work + TILE);
                }
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
