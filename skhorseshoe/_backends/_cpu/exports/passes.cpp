// Passes over the rows of X, tile by tile, each row once.
//
// A tile of rows stays in cache while everything that is asked of it is computed: the linear predictors of all chains,
// what is drawn or derived from them, and the sums over rows. The rows, in an array or in CSR form, are as ``rows_of``
// of Python describes them.
//
// coef : (q, width), coefficients of all chains in X's type, q = p or p + 1 of each, the last of which is then the
// intercept. The chains are the last axis, so that a number of X meets those of four chains side by side, and are
// padded with zeros to a width that is a multiple of four. sums : for each block an array like ``coef``, added to.
// offset : of each row, added to its linear predictors, or null. y : of each row, 0 or 1. row_weight : w, or null where
// each is 1. bounds : block b is rows bounds[b] to bounds[b + 1] - 1.
#include "csr_rows.hpp"
#include "dense_rows.hpp"
#include "export.hpp"
#include "normal_tail.hpp"
#include "truncate_tile.hpp"

// What all passes are given of the rows beside X.
struct Given {
    const u8* y;
    const double *row_weight, *offset;
    const i64* bounds;
    i64 n_blocks;
};

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
            rows.linear_predictor(static_cast<const C*>(coef.values), coef.q, coef.width, start, n_rows, eta);
            if (given.offset)
                for (i64 c = 0; c < coef.width; ++c)
                    for (i64 r = 0; r < n_rows; ++r) eta[c * rows.tile + r] += C(given.offset[start + r]);
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
        rows.add_weighted_rows(eta.data, coef.q, coef.width, start, n_rows, partial.data, total);
        if ((stop - given.bounds[block]) % rows.most == 0 || stop == given.bounds[block + 1])
            rows.flush(size, partial.data, total);
    });
    return 0;
}

// Draw z_i ~ N(x_i beta, 1) truncated to the side of y_i, and add up z_i x_i. first_row : the number of row 0 among
// those whose random numbers these are. squares : (n_blocks, n_chains), to which z'z is added.
template <class Rows>
static i32 draw_latents(const Rows& rows, const Given& given, const Coefficients& coef, i64 n_chains, i64 first_row,
                        Key key, double* sums, double* squares) {
    typedef typename Rows::number R;
    Waiting<R> waiting;
    return sum_tiles<R>(rows, given, coef, sums, [&](i64 block, i64 start, i64 n_rows, R* z) {
        for (i64 c = 0; c < n_chains; ++c, z += rows.tile) {
            truncate_tile(z, given.y + start, n_rows, first_row + start, u32(c), key, waiting);
            squares[block * n_chains + c] += sum(n_rows, [=](i64 r) { return double(z[r]) * double(z[r]); });
        }
    });
}

EXPORT i32 latent_pass(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p, const u8* y,
                       const double* offset, const void* coef, i64 q, i64 width, const i64* bounds, i64 n_blocks,
                       i64 n_chains, i64 first_row, u32 sweep, u32 k0, u32 k1, double* sums, double* squares) {
    const Given given = {y, nullptr, offset, bounds, n_blocks};
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
                      const double* row_weight, const double* offset, const void* coef, i64 q, i64 width,
                      const i64* bounds, i64 n_blocks, i64 n_chains, double* sums, double* logliks) {
    const Given given = {y, row_weight, offset, bounds, n_blocks};
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
    const Given plain = {given.y, given.row_weight, nullptr, given.bounds, given.n_blocks};  // d has no offset
    for_tiles(rows, plain, both, eta.data, [&](i64 block, i64 start, i64 n_rows) {
        const double* weight = given.row_weight ? given.row_weight + start : nullptr;
        for (i64 c = 0; c < n_chains; ++c) {
            double *own = eta + c * rows.tile, *change = eta + (n_chains + c) * rows.tile;
            for (i64 r = 0; given.offset && r < n_rows; ++r) own[r] += given.offset[start + r];
            for (i64 k = 0; k < n_steps; ++k)
                logliks[(block * n_chains + c) * n_steps + k] +=
                    log_likelihood(n_rows, own, change, given.y + start, weight, steps[c * n_steps + k], work);
        }
    });
    return 0;
}

EXPORT i32 line_pass(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p, const u8* y,
                     const double* row_weight, const double* offset, const double* both, i64 q, i64 width,
                     const double* steps, i64 n_chains, i64 n_steps, const i64* bounds, i64 n_blocks, double* logliks) {
    const Given given = {y, row_weight, offset, bounds, n_blocks};
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
    const Given given = {nullptr, row_weight, nullptr, bounds, n_blocks};
    return on_csr_rows(kind, data, indices, indptr, n, p,
                       [&](const auto& rows) { return add_products(rows, given, {vectors, q, width}, sums); });
}
