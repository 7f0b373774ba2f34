// Passes over the rows of X, tile by tile, each row once.
//
// A tile of rows stays in cache while everything is computed from it: the linear predictors of all chains, what is drawn
// or derived from them, and the sums over rows. Rows, in an array or in CSR form, are passed as by ``rows_of`` of Python.
//
// coef : in X's type. sums : (n_blocks, q, width), added to.
#include "dense_rows.hpp"
#include "export.hpp"
#include "fused_score.hpp"
#include "on_likelihood.hpp"

// Copies the numbers of a tile to an array by row (n, n_chains).
template <class C>
static void store_tile(const C* __restrict values, i64 tile, i64 start, i64 n_rows, i64 n_chains, void* out) {
    C* __restrict to = static_cast<C*>(out) + start * n_chains;
    for (i64 r = 0; r < n_rows; ++r)
        for (i64 c = 0; c < n_chains; ++c) to[r * n_chains + c] = values[c * tile + r];
}

// The known linear predictors of a tile.
template <class C>
static void load_known(const Shift& shift, i64 tile, i64 start, i64 n_rows, i64 width, C* __restrict eta) {
    const C* __restrict from = static_cast<const C*>(shift.known) + start * shift.n_known;
    for (i64 c = 0; c < shift.n_known; ++c)
        for (i64 r = 0; r < n_rows; ++r) eta[c * tile + r] = C(shift.factor[c] * double(from[r * shift.n_known + c]));
    const C* common = shift.common ? static_cast<const C*>(shift.common) + start : nullptr;
    for (i64 c = shift.n_known; c < width; ++c)
        for (i64 r = 0; r < n_rows; ++r) eta[c * tile + r] = common ? common[r] : C(0);
}

// Adds values of groups (n_groups, n_chains) to the numbers of a tile, of the first ``width`` chains.
template <class C>
static void add_by_group(const Shift& shift, const double* values, i64 tile, i64 start, i64 n_rows, i64 width,
                         C* __restrict out) {
    for (i64 r = 0; r < n_rows; ++r) {
        const double* group = values + shift.codes[start + r] * shift.n_chains;
        for (i64 c = 0; c < least(shift.n_chains, width); ++c) out[c * tile + r] += C(group[c]);
    }
}

// Adds offsets to the linear predictors of a tile, d of each chain, ``width`` in all, and effects to those of the first
// n_chains of them.
template <class C>
static void add_shift(const Shift& shift, i64 d, i64 tile, i64 start, i64 n_rows, i64 width, C* __restrict eta) {
    if (shift.offset)
        for (i64 c = 0; c < width; ++c)
            for (i64 r = 0; r < n_rows; ++r) eta[c * tile + r] += C(shift.offset[(start + r) * d + c % d]);
    if (shift.codes) add_by_group(shift, shift.effects, tile, start, n_rows, width, eta);
}

// answer(law, rows) with the law of chains, of no chain, and rows of any kind.
template <class F> static i32 on_law_and_rows(const StoredX& X, const PassRows& pass, F answer) {
    const auto with_rows = [&](auto law) { return on_rows(X, [&](const auto& rows) { return answer(law, rows); }); };
    if (pass.likelihood == MULTINOMIAL_PROBIT) return with_rows(MultinomialProbit());
    if (pass.likelihood == MULTINOMIAL_PROBIT_BY_LAPLACE) return with_rows(MultinomialProbitByLaplace());
    return on_law_of_chains(pass.likelihood, with_rows);
}

static const Shift NO_SHIFT{};
static const Shift& shift_of(const PassRows& pass) { return pass.shift ? *pass.shift : NO_SHIFT; }

// Computes linear predictors, of the type C of the coefficients, and calls at_tile(block, start, n_rows) for each tile.
template <class C, class Rows, class F>
static void for_tiles(const Rows& rows, const PassRows& pass, const Coefficients& coef, C* eta, F at_tile) {
    const Shift& shift = shift_of(pass);
    for (i64 block = 0; block < pass.n_blocks; ++block)
        for (i64 start = pass.bounds[block]; start < pass.bounds[block + 1]; start += rows.tile) {
            const i64 n_rows = least(rows.tile, pass.bounds[block + 1] - start);
            if (shift.known) load_known(shift, rows.tile, start, n_rows, coef.width, eta);
            else rows.linear_predictor(static_cast<const C*>(coef.values), coef.q, coef.width, start, n_rows, eta);
            if (shift.predictors) store_tile(eta, rows.tile, start, n_rows, shift.n_chains, shift.predictors);
            add_shift(shift, pass.n_predictors, rows.tile, start, n_rows, coef.width, eta);
            at_tile(block, start, n_rows);
        }
}

// As ``for_tiles``; at_tile replaces the linear predictors by weights of the rows, and weighted rows are summed.
template <class C, class Rows, class F>
static i32 sum_tiles(const Rows& rows, const PassRows& pass, const Coefficients& coef, double* sums, F at_tile) {
    const Shift& shift = shift_of(pass);
    const i64 size = coef.q * coef.width, n_partial = rows.partial_size(coef.q, coef.width);
    Scratch<C> eta(coef.width * rows.tile), partial(n_partial);
    if (eta.failed() || partial.failed()) return NO_MEMORY;
    memset(partial.data, 0, sizeof(C) * n_partial);
    for_tiles(rows, pass, coef, eta.data, [&](i64 block, i64 start, i64 n_rows) {
        const i64 stop = start + n_rows;
        double* total = sums + block * size;
        at_tile(block, start, n_rows, eta.data);
        if (shift.terms) store_tile(eta.data, rows.tile, start, n_rows, shift.n_chains, shift.terms);
        rows.add_weighted_rows(eta.data, coef.q, coef.width, start, n_rows, partial.data, total);
        if ((stop - pass.bounds[block]) % rows.flushed == 0 || stop == pass.bounds[block + 1])
            rows.flush(size, partial.data, total);
    });
    return 0;
}

// The size of ``work`` of a law.
static i64 work_size(const PassRows& pass) {
    return pass.likelihood >= MULTINOMIAL_PROBIT ? MultinomialProbit::work_size(pass.n_predictors) : 0;
}

template <class Law> static Law law_of_chain(Law, const PassRows& pass, i64 c, double*) {
    return {pass.own + c * pass.n_own, pass.n_own};
}

template <bool BY_LAPLACE>
static MultinomialProbitBy<BY_LAPLACE> law_of_chain(MultinomialProbitBy<BY_LAPLACE>, const PassRows& pass, i64, double* work) {
    return {pass.n_predictors, work};
}

// Draws the latents z_i given o_i + x_i beta + u_i, and adds (z_i - o_i) x_i, with the offset o_i and the effect u_i of the
// group. Row i has the random numbers of row first_row + i. squares : (n_blocks, n_chains), to which the squares of
// z_i - o_i are added. Only of a likelihood that has latents.
EXPORT i32 latent_pass(const StoredX* X, const PassRows* pass, const Coefficients* coef, i64 n_chains, i64 first_row,
                       u32 sweep, const u32* key, double* sums, double* squares) {
    const Key of_sweep = {sweep, key[0], key[1]};
    const i64 d = pass->n_predictors;
    const double* offset = shift_of(*pass).offset;
    Scratch<double> work(work_size(*pass));
    if (work.failed()) return NO_MEMORY;
    return on_law_and_rows(*X, *pass, [&](auto law, auto rows) {
        typedef typename decltype(rows)::number R;
        if constexpr (decltype(law)::HAS_LATENTS) {
            typename decltype(law)::template Latents<R> latents{d, work.data};
            return sum_tiles<R>(rows, *pass, *coef, sums, [&](i64 block, i64 start, i64 n_rows, R* z) {
                for (i64 c = 0; c < n_chains; ++c) {
                    latents.draw(z, rows.tile, pass->y + start, n_rows, first_row + start, u32(c), of_sweep);
                    for (i64 a = 0; a < d; ++a, z += rows.tile) {
                        for (i64 r = 0; offset && r < n_rows; ++r) z[r] -= R(offset[(start + r) * d + a]);
                        squares[block * n_chains + c] += sum(n_rows, [=](i64 r) { return double(z[r]) * double(z[r]); });
                    }
                }
            });
        }
        return i32(0);
    });
}

// The log-likelihood sum_i w_i log p(y_i, x_i beta) and its gradient. logliks : (n_blocks, n_chains), added to.
EXPORT i32 score_pass(const StoredX* X, const PassRows* pass, const Coefficients* coef, i64 n_chains, double* sums,
                      double* logliks) {
    Scratch<double> work(work_size(*pass));
    if (work.failed()) return NO_MEMORY;
    return on_law_and_rows(*X, *pass, [&](auto law, auto rows) {
        typedef typename decltype(rows)::number R;
        return sum_tiles<R>(rows, *pass, *coef, sums, [&](i64 block, i64 start, i64 n_rows, R* eta) {
            const double* weight = pass->weight ? pass->weight + start : nullptr;
            for (i64 c = 0; c < n_chains; ++c, eta += pass->n_predictors * rows.tile) {
                const i64 at = block * n_chains + c;
                double* own_sums = pass->own_sums ? pass->own_sums + at * pass->n_own : nullptr;
                const auto of_one = law_of_chain(law, *pass, c, work);
                logliks[at] += of_one.score(n_rows, rows.tile, eta, pass->y + start, weight, own_sums);
            }
        });
    });
}

// The log-likelihoods at beta + step d. both : like coef, but float64, for 2 n_chains chains: beta, then the
// direction d of each. Arithmetic is in float64, since rounding would change draws for rows in another place. steps :
// (n_chains, n_steps). logliks : (n_blocks, n_chains, n_steps), added to.
EXPORT i32 line_pass(const StoredX* X, const PassRows* pass, const Coefficients* both, const double* steps, i64 n_chains,
                     i64 n_steps, double* logliks) {
    const Shift& shift = shift_of(*pass);
    const i64 d = pass->n_predictors;
    PassRows unshifted = *pass;
    unshifted.shift = nullptr;
    Scratch<double> work(work_size(*pass));
    if (work.failed()) return NO_MEMORY;
    return on_law_and_rows(*X, *pass, [&](auto law, auto rows) {
        Scratch<double> eta(both->width * rows.tile);
        if (eta.failed()) return NO_MEMORY;
        for_tiles(rows, unshifted, *both, eta.data, [&](i64 block, i64 start, i64 n_rows) {
            const double* weight = pass->weight ? pass->weight + start : nullptr;
            const i64 size = d * rows.tile;  // of the linear predictors of a chain
            add_shift(shift, d, rows.tile, start, n_rows, n_chains * d, eta.data);
            if (shift.slopes) add_by_group(shift, shift.slopes, rows.tile, start, n_rows, n_chains, eta + n_chains * size);
            for (i64 c = 0; c < n_chains; ++c) {
                const double *at_beta = eta + c * size, *change = eta + (n_chains + c) * size;
                const auto of_one = law_of_chain(law, *pass, c, work);
                for (i64 k = 0; k < n_steps; ++k)
                    logliks[(block * n_chains + c) * n_steps + k] += of_one.log_likelihood(
                        n_rows, rows.tile, at_beta, change, pass->y + start, weight, steps[c * n_steps + k]);
            }
        });
        return i32(0);
    });
}

// X' diag(w) X vectors of rows in CSR form, of (X, 1) where q = p + 1. vectors : like coef, but float64.
EXPORT i32 product_pass(const StoredX* X, const PassRows* pass, const Coefficients* vectors, double* sums) {
    return on_csr_rows(*X, [&](const auto& rows) {
        return sum_tiles<double>(rows, *pass, *vectors, sums, [&](i64, i64 start, i64 n_rows, double* eta) {
            for (i64 c = 0; pass->weight && c < vectors->width; ++c)
                for (i64 r = 0; r < n_rows; ++r) eta[c * rows.tile + r] *= pass->weight[start + r];
        });
    });
}
