// The operations of passes on rows in an array, and the choice between these and rows in CSR form.
//
// Arithmetic is done in X's own type; sums are added in float64 after at most FLUSH_ROWS rows, so that their error does
// not grow with the number of rows.
#pragma once
#include "csr_rows.hpp"

constexpr i64 SHORT_ROW = 2048;   // largest size in bytes of rows that are prefetched
constexpr int ROWS_PER_LOAD = 8;  // rows that share each load of numbers of four chains

template <class R> struct DenseRows {
    typedef R number;
    const R* x;
    i64 n, p, tile, flushed;  // number of rows, of columns, of rows of a tile, and of rows whose sum is flushed together
    i64 ahead;                // distance of ``prefetch``, in rows

    // A tile is as many rows as half a second-level cache holds, in fours.
    DenseRows(const void* data, i64 n, i64 p) : x(static_cast<const R*>(data)), n(n), p(p) {
        tile = least(i64(256), largest(i64(4), i64(TILE_BYTES) / largest(i64(1), p * i64(sizeof(R))) / 4 * 4));
        flushed = FLUSH_ROWS / tile * tile;
        ahead = p * i64(sizeof(R)) <= SHORT_ROW ? tile : n;
    }

    // Prefetch half of the rows of the next tile, if rows are short: the hardware does not follow several short rows at
    // once. One loop over a tile prefetches the first half of each few rows, the other the second half.
    void prefetch(i64 first, i64 last) const {
        if (last > n) return;
        for (i64 i = first; i < last; ++i)
            for (i64 j = 0; j < p; j += 64 / i64(sizeof(R))) __builtin_prefetch(x + i * p + j);
    }

    // out[c][r] = (x_(start + r), 1) . coefficients of c, for a tile of rows; numbers after the last row are undefined.
    template <class C> void linear_predictor(const C* coef, i64 q, i64 width, i64 start, i64 rows, C* out) const {
        for (i64 c = 0; c < width; c += 4) {
            i64 r = 0;
            for (; r + 4 < rows; r += ROWS_PER_LOAD) predict<ROWS_PER_LOAD>(coef + c, q, width, start, r, rows, out + c * tile);
            for (; r < rows; r += 4) predict<4>(coef + c, q, width, start, r, rows, out + c * tile);
        }
    }

    // Add sum_r weights[c][r] (x_(start + r), 1) for each c to ``partial``. Weights after the last row are overwritten.
    void add_weighted_rows(R* weights, i64 q, i64 width, i64 start, i64 rows, R* partial, double*) const {
        for (i64 c = 0; c < width; ++c)
            for (i64 r = rows; r < (rows + 3) / 4 * 4; ++r) weights[c * tile + r] = R(0);
        for (i64 c = 0; c < width; c += 4) {
            const R* chains = weights + c * tile;
            i64 r = 0;
            for (; r + 4 < rows; r += ROWS_PER_LOAD) add<ROWS_PER_LOAD>(chains, q, width, start, r, rows, partial + c);
            for (; r < rows; r += 4) add<4>(chains, q, width, start, r, rows, partial + c);
        }
    }

    // The size of ``partial``.
    i64 partial_size(i64 q, i64 width) const { return q * width; }

    // total += partial (in float64); partial = 0.
    void flush(i64 size, R* __restrict partial, double* __restrict total) const {
        for (i64 k = 0; k < size; ++k) total[k] += double(partial[k]), partial[k] = R(0);
    }

    // use(column, number) for the numbers of row i.
    template <class F> void each_number(i64 i, F use) const {
        for (i64 j = 0; j < p; ++j) use(j, x[i * p + j]);
    }

  private:
    // Pointers to N rows. If fewer are left, the last one is repeated.
    template <int N> void find(i64 first, i64 last, const R** row) const {
        for (int i = 0; i < N; ++i) row[i] = x + least(first + i, last) * p;
    }

    template <int N, class C>
    void predict(const C* __restrict coef, i64 q, i64 width, i64 start, i64 r, i64 rows, C* __restrict out) const {
        const R* row[N];
        find<N>(start + r, start + rows - 1, row);
        prefetch(start + r + ahead, start + r + ahead + N / 2);
        Four<C> total[N];
        for (int i = 0; i < N; ++i) total[i] = q > p ? load_four(coef + p * width) : Four<C>{};
        for (i64 j = 0; j < p; ++j) {
            const Four<C> b = load_four(coef + j * width);
#pragma unroll
            for (int i = 0; i < N; ++i) total[i] = add_times(total[i], b, C(row[i][j]));
        }
        for (int k = 0; k < 4; ++k)
            for (int i = 0; i < N; ++i) out[k * tile + r + i] = total[i][k];
    }

    template <int N>
    void add(const R* __restrict weights, i64 q, i64 width, i64 start, i64 r, i64 rows, R* __restrict partial) const {
        const R* row[N];
        find<N>(start + r, start + rows - 1, row);
        prefetch(start + r + ahead + N / 2, start + r + ahead + N);
        Four<R> w[N];
        for (int i = 0; i < N; ++i)
            for (int k = 0; k < 4; ++k) w[i][k] = weights[k * tile + r + i];
        for (i64 j = 0; j < p; ++j) {
            Four<R> total = load_four(partial + j * width);
#pragma unroll
            for (int i = 0; i < N; ++i) total = add_times(total, w[i], row[i][j]);
            store_four(partial + j * width, total);
        }
        if (q == p) return;
        Four<R> total = load_four(partial + p * width);
        for (int i = 0; i < N; ++i) total += w[i];
        store_four(partial + p * width, total);
    }
};

// answer(rows) for rows in an array or in CSR form.
template <class F> static i32 on_rows(const StoredX& X, F answer) {
    if (X.kind == 0) return answer(DenseRows<float>(X.data, X.n, X.p));
    if (X.kind == 1) return answer(DenseRows<double>(X.data, X.n, X.p));
    return on_csr_rows(X, answer);
}
