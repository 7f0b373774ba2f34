// The operations of passes on rows in CSR form. Random numbers are those of the same rows in an array. Sums over rows are
// float64 from the start, since a row adds to few of them.
#pragma once
#include "four_chains.hpp"
#include "rows.hpp"

template <class D, class I> struct CsrRows {
    typedef D number;
    const D* data;
    const I *indices, *indptr;
    i64 n, p;
    static constexpr i64 tile = 256, flushed = 256;

    CsrRows(const void* data, const void* indices, const void* indptr, i64 n, i64 p)
        : data(static_cast<const D*>(data)), indices(static_cast<const I*>(indices)),
          indptr(static_cast<const I*>(indptr)), n(n), p(p) {}

    // As in ``DenseRows``.
    template <class C> void linear_predictor(const C* coef, i64 q, i64 width, i64 start, i64 rows, C* out) const {
        for (i64 c = 0; c < width; c += 4)
            for (i64 r = 0; r < rows; ++r) {
                Four<C> total = q > p ? load_four(coef + p * width + c) : Four<C>{};
                for (i64 k = indptr[start + r]; k < i64(indptr[start + r + 1]); ++k)
                    total = add_times(total, load_four(coef + i64(indices[k]) * width + c), C(data[k]));
                for (int i = 0; i < 4; ++i) out[(c + i) * tile + r] = total[i];
            }
    }

    template <class W>
    void add_weighted_rows(const W* weights, i64 q, i64 width, i64 start, i64 rows, W*, double* total) const {
        for (i64 c = 0; c < width; c += 4)
            for (i64 r = 0; r < rows; ++r) {
                const W* w = weights + c * tile + r;
                const Four<double> factors = {double(w[0]), double(w[tile]), double(w[2 * tile]), double(w[3 * tile])};
                for (i64 k = indptr[start + r]; k < i64(indptr[start + r + 1]); ++k) {
                    double* at = total + i64(indices[k]) * width + c;
                    store_four(at, add_times(load_four(at), factors, double(data[k])));
                }
                if (q > p) store_four(total + p * width + c, load_four(total + p * width + c) + factors);
            }
    }

    i64 partial_size(i64, i64) const { return 0; }
    template <class W> void flush(i64, W*, double*) const {}

    // use(column, number) for the stored numbers of row i.
    template <class F> void each_number(i64 i, F use) const {
        for (i64 k = indptr[i]; k < i64(indptr[i + 1]); ++k) use(i64(indices[k]), data[k]);
    }
};

// answer(rows) for rows in CSR form.
template <class F> static i32 on_csr_rows(const StoredX& X, F answer) {
    if (X.kind == 2) return answer(CsrRows<float, i32>(X.data, X.indices, X.indptr, X.n, X.p));
    if (X.kind == 3) return answer(CsrRows<double, i32>(X.data, X.indices, X.indptr, X.n, X.p));
    if (X.kind == 4) return answer(CsrRows<float, i64>(X.data, X.indices, X.indptr, X.n, X.p));
    return answer(CsrRows<double, i64>(X.data, X.indices, X.indptr, X.n, X.p));
}
