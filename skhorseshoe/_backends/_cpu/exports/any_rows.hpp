// Rows in an array or in CSR form.
#pragma once
#include "csr_rows.hpp"
#include "dense_rows.hpp"

// Calls answer(rows) for rows of any kind.
template <class F> static i32 on_rows(const StoredX& X, F answer) {
    if (X.kind == 0) return answer(DenseRows<float>(X.data, X.n, X.p));
    if (X.kind == 1) return answer(DenseRows<double>(X.data, X.n, X.p));
    return on_csr_rows(X, answer);
}
