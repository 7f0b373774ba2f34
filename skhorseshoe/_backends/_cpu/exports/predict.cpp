// Linear predictors and probabilities of blocks of rows for all draws.
#include "export.hpp"
#include "four_chains.hpp"
#include "on_likelihood.hpp"

// Rows, draws and columns whose products are summed side by side: as many as fit the registers and the nearest cache.
#ifdef __AVX512VL__
constexpr i64 TILE_ROWS = 8;
#else
constexpr i64 TILE_ROWS = 4;
#endif
constexpr i64 TILE_DRAWS = 8, TILE_COLUMNS = 256, ROW_DRAWS = 16;

HD Four<double> wide_four(const double* from) { return load_four(from); }
HD Four<double> wide_four(const float* from) { return __builtin_convertvector(load_four(from), Four<double>); }

// Four columns of four draws, which lie ``p`` apart, by column.
template <class C> HD void columns_of_four(const C* from, i64 p, Four<double>* to) {
    const Four<double> a = wide_four(from), b = wide_four(from + p), c = wide_four(from + 2 * p), d = wide_four(from + 3 * p);
    const Four<double> ab = __builtin_shufflevector(a, b, 0, 4, 2, 6), ba = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    const Four<double> cd = __builtin_shufflevector(c, d, 0, 4, 2, 6), dc = __builtin_shufflevector(c, d, 1, 5, 3, 7);
    to[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5), to[1] = __builtin_shufflevector(ba, dc, 0, 1, 4, 5);
    to[2] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7), to[3] = __builtin_shufflevector(ba, dc, 2, 3, 6, 7);
}

// to[TILE_DRAWS j + k] = from[p k + j] for four draws and some columns.
template <class C> static void interleave(const C* from, i64 p, i64 columns, double* __restrict to) {
    i64 j = 0;
    for (; j + 4 <= columns; j += 4) {
        Four<double> four[4];
        columns_of_four(from + j, p, four);
        for (int k = 0; k < 4; ++k) store_four(to + (j + k) * TILE_DRAWS, four[k]);
    }
    for (; j < columns; ++j)
        for (int k = 0; k < 4; ++k) to[j * TILE_DRAWS + k] = double(from[p * k + j]);
}

// The products of one row with 4 FOURS draws, which are read once and not put aside.
template <int FOURS, class C> static void multiply_row(const double* x, const C* coef, i64 p, double* out) {
    Four<double> total[FOURS] = {};
    i64 j = 0;
    for (; j + 4 <= p; j += 4)
#pragma unroll
        for (int f = 0; f < FOURS; ++f) {
            Four<double> four[4];
            columns_of_four(coef + 4 * f * p + j, p, four);
#pragma unroll
            for (int k = 0; k < 4; ++k) total[f] = add_times(total[f], four[k], x[j + k]);
        }
    for (; j < p; ++j)
        for (int f = 0; f < FOURS; ++f) {
            const C* at = coef + 4 * f * p + j;
            const Four<double> four = {double(at[0]), double(at[p]), double(at[2 * p]), double(at[3 * p])};
            total[f] = add_times(total[f], four, x[j]);
        }
    for (int f = 0; f < FOURS; ++f) store_four(out + 4 * f, total[f]);
}

// Adds to ``out``, where it is not the first, the products of some rows with a tile of draws, interleaved.
template <int ROWS>
static void multiply_tile(const double* X, const double* draws, i64 p, i64 columns, bool is_first, double* out, i64 stride) {
    Four<double> low[ROWS] = {}, high[ROWS] = {};
    for (int r = 0; r < ROWS && !is_first; ++r)
        low[r] = load_four(out + r * stride), high[r] = load_four(out + r * stride + 4);
    for (i64 j = 0; j < columns; ++j) {
        const Four<double> c = load_four(draws + j * TILE_DRAWS), d = load_four(draws + j * TILE_DRAWS + 4);
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            low[r] = add_times(low[r], c, X[r * p + j]), high[r] = add_times(high[r], d, X[r * p + j]);
    }
    for (int r = 0; r < ROWS; ++r) store_four(out + r * stride, low[r]), store_four(out + r * stride + 4, high[r]);
}

// Tiles of rows and draws; the last draws may be in two of them, with the same bits. n_draws : TILE_DRAWS or more.
template <class C>
static void multiply_tiles(const double* X, const C* coef, i64 n, i64 n_draws, i64 p, double* out) {
    if (n == 1 && n_draws >= ROW_DRAWS) {
        for (i64 s = 0; s < n_draws; s += ROW_DRAWS) {
            const i64 first = least(s, n_draws - ROW_DRAWS);
            multiply_row<ROW_DRAWS / 4>(X, coef + first * p, p, out + first);
        }
        return;
    }
    double tile[TILE_DRAWS * TILE_COLUMNS];
    for (i64 s = 0; s < n_draws; s += TILE_DRAWS)
        for (i64 j = 0; j < p; j += TILE_COLUMNS) {
            const i64 columns = least(TILE_COLUMNS, p - j);
            const i64 first = least(s, n_draws - TILE_DRAWS);
            const C* from = coef + first * p + j;
            interleave(from, p, columns, tile), interleave(from + 4 * p, p, columns, tile + 4);
            i64 i = 0;
            for (; i + TILE_ROWS <= n; i += TILE_ROWS)
                multiply_tile<TILE_ROWS>(X + i * p + j, tile, p, columns, !j, out + i * n_draws + first, n_draws);
            for (; i < n; ++i)
                multiply_tile<1>(X + i * p + j, tile, p, columns, !j, out + i * n_draws + first, n_draws);
        }
}

template <class C> static i32 multiply_rows(const double* X, const C* coef, i64 n, i64 n_draws, i64 p, double* out) {
    if (n_draws >= TILE_DRAWS) {
        multiply_tiles(X, coef, n, n_draws, p, out);
        return 0;
    }
    Scratch<double> wide(TILE_DRAWS * n);
    Scratch<C> repeated(TILE_DRAWS * p);
    if (wide.failed() || repeated.failed()) return NO_MEMORY;
    for (i64 k = 0; k < TILE_DRAWS; ++k) memcpy(repeated + k * p, coef + least(k, n_draws - 1) * p, sizeof(C) * size_t(p));
    multiply_tiles(X, static_cast<const C*>(repeated), n, TILE_DRAWS, p, wide);
    for (i64 i = 0; i < n; ++i) memcpy(out + i * n_draws, wide + i * TILE_DRAWS, sizeof(double) * size_t(n_draws));
    return 0;
}

// out = X coef'; X (n, p), coef (n_draws, p), float32 if is_single, out (n, n_draws). A product is the sum over the columns
// in their order, whatever the other rows and draws are.
EXPORT i32 linear_predictors(const double* X, i32 is_single, const void* coef, i64 n, i64 n_draws, i64 p, double* out) {
    return is_single ? multiply_rows(X, static_cast<const float*>(coef), n, n_draws, p, out)
                     : multiply_rows(X, static_cast<const double*>(coef), n, n_draws, p, out);
}

// Averages of P(y = 0) and P(y = 1) over the draws, eta (n_rows, n_draws), out (n_rows, 2). Both are summed, so that a
// small probability keeps its relative accuracy.
EXPORT i32 average_probabilities(i32 likelihood, const double* eta, i64 n_rows, i64 n_draws, double* out) {
    return on_likelihood(likelihood, [=](auto law) {
        constexpr i64 DRAWS = 256;  // number of draws whose probabilities are computed at a time
        double smaller[DRAWS];
        for (i64 i = 0; i < n_rows; ++i) {
            double lower = 0.0, upper = 0.0;
            for (i64 start = 0; start < n_draws; start += DRAWS) {
                const double* __restrict t = eta + i * n_draws + start;
                const i64 n = least(DRAWS, n_draws - start);
                SIDE_BY_SIDE
                for (i64 s = 0; s < n; ++s) smaller[s] = law.smaller(t[s]);
                lower += sum(n, [&](i64 s) { return t[s] > 0.0 ? smaller[s] : 1.0 - smaller[s]; });
                upper += sum(n, [&](i64 s) { return t[s] > 0.0 ? 1.0 - smaller[s] : smaller[s]; });
            }
            out[2 * i] = lower / double(n_draws);
            out[2 * i + 1] = upper / double(n_draws);
        }
        return 0;
    });
}

// How far left of the largest eta the nodes that all classes share begin, and P(y = k) below which it is computed by itself,
// since these nodes miss a part of it: for averages, of which few are small, and for probabilities, of which many are.
constexpr double LEFT[] = {12.0, 6.7}, SMALL[] = {1e-30, 1e-6};

// Probabilities of unordered classes under all draws of a row, by the class: p (K, n_draws), contrasts eta (n_draws, d).
struct ClassesOfRow {
    static constexpr i64 SIDE = MultinomialProbit::SIDE;
    const MultinomialProbit& law;
    const double* eta;
    i64 n_draws;
    i32 averaged;
    double *p, *work;  // work : (d + 1, SIDE)

    void compute() const {
        const i64 d = law.d;
        for (i64 first = 0; first < n_draws; first += SIDE) {
            const i64 n = least(SIDE, n_draws - first);
            const double* from = eta + first * d;
            law.probabilities(n, [=](i64 a, i64 r) { return from[r * d + a]; }, LEFT[averaged], work);
            for (i64 k = 0; k <= d; ++k) memcpy(p + k * n_draws + first, work + k * SIDE, sizeof(double) * n);
        }
    }

    double mean(i64 k) const {
        const double* from = p + k * n_draws;
        return sum(n_draws, [=](i64 s) { return from[s]; }) / double(n_draws);
    }

    // Computes those of a class again that are small; averaged, all of them or none.
    void compute_small_again(i64 k) const {
        const i64 d = law.d;
        double* to = p + k * n_draws;
        if (averaged && mean(k) >= SMALL[1]) return;
        i64 draws[SIDE], n = 0;
        for (i64 s = 0; s < n_draws; ++s) {
            if (averaged || to[s] < SMALL[0]) draws[n++] = s;
            if (n == SIDE || (n && s + 1 == n_draws)) {
                law.probability_of_class(n, k, [&](i64 a, i64 r) { return eta[draws[r] * d + a]; }, work);
                for (i64 r = 0; r < n; ++r) to[draws[r]] = work[r];
                n = 0;
            }
        }
    }
};

// Probabilities of unordered classes, eta (n_rows, n_draws, d); out (n_rows, K) averaged over draws, or (n_rows, K, n_draws).
EXPORT i32 class_probabilities(const double* eta, i64 n_rows, i64 n_draws, i64 d, i32 averaged, double* out) {
    const i64 K = d + 1;
    Scratch<double> of_law(MultinomialProbit::work_size(d)), work(K * ClassesOfRow::SIDE), p(averaged ? K * n_draws : 0);
    if (of_law.failed() || work.failed() || p.failed()) return NO_MEMORY;
    const MultinomialProbit law = {d, of_law};
    for (i64 i = 0; i < n_rows; ++i) {
        double* of_row = averaged ? p.data : out + i * K * n_draws;
        const ClassesOfRow row = {law, eta + i * n_draws * d, n_draws, averaged, of_row, work};
        row.compute();
        for (i64 k = 0; k < K; ++k) {
            row.compute_small_again(k);
            if (averaged) out[i * K + k] = row.mean(k);
        }
    }
    return 0;
}

// From He_k(x) f(x) and He_{k-1}(x) f(x), current and last, to He_{k+1}(x) f(x), which overwrites last; f is any function.
EXPORT i32 next_hermite(const double* x, const double* current, double* last, i64 n, double k) {
    CONTRACT
    const double *__restrict at = x, *__restrict from = current;
    double* __restrict to = last;
    for (i64 i = 0; i < n; ++i) to[i] = at[i] * from[i] - k * to[i];
    return 0;
}
