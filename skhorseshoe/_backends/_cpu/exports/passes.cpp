// Passes over the rows of X, tile by tile, each row once.
//
// A tile of rows stays in cache while everything that is asked of it is computed: the linear predictors of all chains,
// what is drawn or derived from them, and the sums over rows. The rows, in an array or in CSR form, are as ``rows_of``
// of Python describes them.
//
// coef : (q, width), coefficients of all chains in X's type, q = p or p + 1 of each, the last of which is then the
// intercept. The chains are the last axis, so that a number of X meets those of four chains side by side, and are
// padded with zeros to a width that is a multiple of four. sums : for each block an array like ``coef``, added to.
// y : of each row, 0 or 1. row_weight : w, or null where each is 1. bounds : block b is rows bounds[b] to
// bounds[b + 1] - 1. shift : ``Shift``, what is added to the linear predictors of rows, or null.
#include "csr_rows.hpp"
#include "dense_rows.hpp"
#include "export.hpp"
#include "normal_tail.hpp"
#include "scored_rows.hpp"
#include "truncate_tile.hpp"

// What is added to the linear predictors of rows, and what is kept of each row.
struct Shift {  // filled by Python
    const double* offset;      // (n,) of each row, or null
    const i32* codes;          // (n,) its group, or null where there are none
    const double* effects;     // (n_groups, n_chains) of the groups
    const double* slopes;      // (n_groups, n_chains) by which effects change along a direction, or null
    i64 n_chains;
    const void* known;         // (n, n_known) x beta of the first chains but for a factor, of the type of X; or null
    const double* factor;      // (n_known,)
    i64 n_known;
    const void* common;        // (n,) that of all others; null where there are none
    void* predictors;          // (n, n_chains) x beta, of the type of X, to be overwritten; or null
    void* terms;               // (n, n_chains) what the rows are weighted by in sums over them, likewise
};
constexpr Shift NO_SHIFT = {nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr};

// What all passes are given of the rows beside X.
struct Given {
    const u8* y;
    const double* row_weight;
    const i64* bounds;
    i64 n_blocks;
    Shift shift = NO_SHIFT;
};

static Shift shift_of(const void* shift) { return shift ? *static_cast<const Shift*>(shift) : NO_SHIFT; }

// Keep a number of each row and chain of a tile.
template <class C>
static void keep(const C* __restrict values, i64 tile, i64 start, i64 n_rows, i64 n_chains, void* out) {
    C* __restrict to = static_cast<C*>(out) + start * n_chains;
    for (i64 r = 0; r < n_rows; ++r)
        for (i64 c = 0; c < n_chains; ++c) to[r * n_chains + c] = values[c * tile + r];
}

// The linear predictors of a tile that are known.
template <class C>
static void recall(const Shift& shift, i64 tile, i64 start, i64 n_rows, i64 width, C* __restrict eta) {
    const C* __restrict from = static_cast<const C*>(shift.known) + start * shift.n_known;
    for (i64 c = 0; c < shift.n_known; ++c)
        for (i64 r = 0; r < n_rows; ++r) eta[c * tile + r] = C(shift.factor[c] * double(from[r * shift.n_known + c]));
    const C* common = shift.common ? static_cast<const C*>(shift.common) + start : nullptr;
    for (i64 c = shift.n_known; c < width; ++c)
        for (i64 r = 0; r < n_rows; ++r) eta[c * tile + r] = common ? common[r] : C(0);
}

// Add to numbers of the rows of a tile those of their groups, (n_groups, n_chains).
template <class C>
static void add_of_groups(const Shift& shift, const double* of_groups, i64 tile, i64 start, i64 n_rows,
                          C* __restrict out) {
    for (i64 r = 0; r < n_rows; ++r) {
        const double* own = of_groups + shift.codes[start + r] * shift.n_chains;
        for (i64 c = 0; c < shift.n_chains; ++c) out[c * tile + r] += C(own[c]);
    }
}

// Add offsets and effects to the linear predictors of the first chains of a tile; ``width`` are to have offsets.
template <class C>
static void add_shift(const Shift& shift, i64 tile, i64 start, i64 n_rows, i64 width, C* __restrict eta) {
    if (shift.offset)
        for (i64 c = 0; c < width; ++c)
            for (i64 r = 0; r < n_rows; ++r) eta[c * tile + r] += C(shift.offset[start + r]);
    if (shift.codes) add_of_groups(shift, shift.effects, tile, start, n_rows, eta);
}

struct Coefficients {
    const void* values;
    i64 q, width;
};

// answer(rows) for rows of any kind: 0 and 1 are arrays of float32 and float64, the others as in ``csr_rows.hpp``.
template <class F>
static i32 on_rows(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p, F answer) {
    if (kind == 0) return answer(DenseRows<float>(data, n, p));
    if (kind == 1) return answer(DenseRows<double>(data, n, p));
    return on_csr_rows(kind, data, indices, indptr, n, p, answer);
}

// The linear predictors of tiles, of the type C of the coefficients; at_tile(block, start, n_rows, eta) for each.
template <class C, class Rows, class F>
static void for_tiles(const Rows& rows, const Given& given, const Coefficients& coef, C* eta, F at_tile) {
    for (i64 block = 0; block < given.n_blocks; ++block)
        for (i64 start = given.bounds[block]; start < given.bounds[block + 1]; start += rows.tile) {
            const i64 n_rows = least(rows.tile, given.bounds[block + 1] - start);
            const Shift& shift = given.shift;
            if (shift.known) recall(shift, rows.tile, start, n_rows, coef.width, eta);
            else rows.linear_predictor(static_cast<const C*>(coef.values), coef.q, coef.width, start, n_rows, eta);
            if (shift.predictors) keep(eta, rows.tile, start, n_rows, shift.n_chains, shift.predictors);
            add_shift(shift, rows.tile, start, n_rows, coef.width, eta);
            at_tile(block, start, n_rows);
        }
}

// As ``for_tiles``, where at_tile replaces the linear predictors by weights of the rows: adds up weighted rows.
template <class C, class Rows, class F>
static i32 sum_tiles(const Rows& rows, const Given& given, const Coefficients& coef, double* sums, F at_tile) {
    const i64 size = coef.q * coef.width, n_partial = rows.partial_size(coef.q, coef.width);
    Scratch<C> eta(coef.width * rows.tile), partial(n_partial);
    if (eta.failed() || partial.failed()) return NO_MEMORY;
    memset(partial.data, 0, sizeof(C) * n_partial);
    for_tiles(rows, given, coef, eta.data, [&](i64 block, i64 start, i64 n_rows) {
        const i64 stop = start + n_rows;
        double* total = sums + block * size;
        at_tile(block, start, n_rows, eta.data);
        if (given.shift.terms) keep(eta.data, rows.tile, start, n_rows, given.shift.n_chains, given.shift.terms);
        rows.add_weighted_rows(eta.data, coef.q, coef.width, start, n_rows, partial.data, total);
        if ((stop - given.bounds[block]) % rows.most == 0 || stop == given.bounds[block + 1])
            rows.flush(size, partial.data, total);
    });
    return 0;
}

// Draw z_i ~ N(o_i + x_i beta + u_i, 1) truncated to the side of y_i, and add up (z_i - o_i) x_i, o_i being the offset
// and u_i the effect of the group. first_row : the number of row 0 among those whose random numbers these are.
// squares : (n_blocks, n_chains), to which the squares of z_i - o_i are added.
template <class Rows>
static i32 draw_latents(const Rows& rows, const Given& given, const Coefficients& coef, i64 n_chains, i64 first_row,
                        Key key, double* sums, double* squares) {
    typedef typename Rows::number R;
    Waiting<R> waiting;
    return sum_tiles<R>(rows, given, coef, sums, [&](i64 block, i64 start, i64 n_rows, R* z) {
        for (i64 c = 0; c < n_chains; ++c, z += rows.tile) {
            truncate_tile(z, given.y + start, n_rows, first_row + start, u32(c), key, waiting);
            for (i64 r = 0; given.shift.offset && r < n_rows; ++r) z[r] -= R(given.shift.offset[start + r]);
            squares[block * n_chains + c] += sum(n_rows, [=](i64 r) { return double(z[r]) * double(z[r]); });
        }
    });
}

EXPORT i32 latent_pass(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p, const u8* y,
                       const void* shift, const void* coef, i64 q, i64 width, const i64* bounds, i64 n_blocks,
                       i64 n_chains, i64 first_row, u32 sweep, u32 k0, u32 k1, double* sums, double* squares) {
    const Given given = {y, nullptr, bounds, n_blocks, shift_of(shift)};
    return on_rows(kind, data, indices, indptr, n, p, [&](const auto& rows) {
        return draw_latents(rows, given, {coef, q, width}, n_chains, first_row, {sweep, k0, k1}, sums, squares);
    });
}

// Replace eta by w d log Phi(s eta) / d eta, s = 1 or -1 as y is 1 or 0; returns sum w log Phi(s eta).
template <class R>
static double score_tile(i64 n_rows, R* __restrict eta, const u8* __restrict y, const double* __restrict weight) {
    double squares[LONGEST_TILE], v[LONGEST_TILE];
    const auto replace = [&](auto weight_of) {
        SIDE_BY_SIDE
        for (i64 r = 0; r < n_rows; ++r) {
            const double t = y[r] ? double(eta[r]) : -double(eta[r]);
            const CdfParts parts = cdf_parts(t);
            const double ratio = mills_ratio(t, parts.e, parts.v) * weight_of(r);
            squares[r] = parts.square, v[r] = parts.v;
            eta[r] = R(y[r] ? ratio : -ratio);
        }
    };
    if (weight) replace([=](i64 r) { return weight[r]; });
    else replace([](i64) { return 1.0; });
    return sum_logs(n_rows, weight, squares, v);
}

// The probit log-likelihood sum_i w_i log Phi(s_i x_i beta) and its gradient. logliks : (n_blocks, n_chains), added to.
template <class Rows>
static i32 add_scores(const Rows& rows, const Given& given, const Coefficients& coef, i64 n_chains, double* sums,
                      double* logliks) {
    typedef typename Rows::number R;
    return sum_tiles<R>(rows, given, coef, sums, [&](i64 block, i64 start, i64 n_rows, R* eta) {
        const double* weight = given.row_weight ? given.row_weight + start : nullptr;
        for (i64 c = 0; c < n_chains; ++c, eta += rows.tile)
            logliks[block * n_chains + c] += score_tile(n_rows, eta, given.y + start, weight);
    });
}

EXPORT i32 score_pass(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p, const u8* y,
                      const double* row_weight, const void* shift, const void* coef, i64 q, i64 width,
                      const i64* bounds, i64 n_blocks, i64 n_chains, double* sums, double* logliks) {
    const Given given = {y, row_weight, bounds, n_blocks, shift_of(shift)};
    return on_rows(kind, data, indices, indptr, n, p, [&](const auto& rows) {
        return add_scores(rows, given, {coef, q, width}, n_chains, sums, logliks);
    });
}

// The log-likelihoods at beta + step d. both : like coef, but float64, for 2 n_chains chains: beta and then the
// direction d of each. All is computed in float64: what rounding decides would be other draws for rows that lie
// elsewhere. steps : (n_chains, n_steps). logliks : (n_blocks, n_chains, n_steps), to which is added.
template <class Rows>
static i32 add_lines(const Rows& rows, const Given& given, const Coefficients& both, const double* steps, i64 n_chains,
                     i64 n_steps, double* logliks) {
    Scratch<double> eta(both.width * rows.tile), work(4 * rows.tile);
    if (eta.failed() || work.failed()) return NO_MEMORY;
    const Given plain = {given.y, given.row_weight, given.bounds, given.n_blocks};
    for_tiles(rows, plain, both, eta.data, [&](i64 block, i64 start, i64 n_rows) {
        const double* weight = given.row_weight ? given.row_weight + start : nullptr;
        const Shift& shift = given.shift;
        add_shift(shift, rows.tile, start, n_rows, n_chains, eta.data);
        if (shift.slopes) add_of_groups(shift, shift.slopes, rows.tile, start, n_rows, eta + n_chains * rows.tile);
        for (i64 c = 0; c < n_chains; ++c) {
            double *own = eta + c * rows.tile, *change = eta + (n_chains + c) * rows.tile;
            for (i64 k = 0; k < n_steps; ++k)
                logliks[(block * n_chains + c) * n_steps + k] +=
                    log_likelihood(n_rows, own, change, given.y + start, weight, steps[c * n_steps + k], work);
        }
    });
    return 0;
}

EXPORT i32 line_pass(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p, const u8* y,
                     const double* row_weight, const void* shift, const double* both, i64 q, i64 width,
                     const double* steps, i64 n_chains, i64 n_steps, const i64* bounds, i64 n_blocks, double* logliks) {
    const Given given = {y, row_weight, bounds, n_blocks, shift_of(shift)};
    return on_rows(kind, data, indices, indptr, n, p, [&](const auto& rows) {
        return add_lines(rows, given, {both, q, width}, steps, n_chains, n_steps, logliks);
    });
}

// X' diag(row_weight) X vectors of rows in CSR form, of (X, 1) where q = p + 1. vectors : like coef, but float64.
template <class Rows>
static i32 add_products(const Rows& rows, const Given& given, const Coefficients& vectors, double* sums) {
    return sum_tiles<double>(rows, given, vectors, sums, [&](i64, i64 start, i64 n_rows, double* eta) {
        for (i64 c = 0; given.row_weight && c < vectors.width; ++c)
            for (i64 r = 0; r < n_rows; ++r) eta[c * rows.tile + r] *= given.row_weight[start + r];
    });
}

EXPORT i32 product_pass(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p,
                        const double* row_weight, const double* vectors, i64 q, i64 width, const i64* bounds,
                        i64 n_blocks, double* sums) {
    const Given given = {nullptr, row_weight, bounds, n_blocks};
    return on_csr_rows(kind, data, indices, indptr, n, p,
                       [&](const auto& rows) { return add_products(rows, given, {vectors, q, width}, sums); });
}
