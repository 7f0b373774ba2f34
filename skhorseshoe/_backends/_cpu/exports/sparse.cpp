// Functions of rows in CSR form alone, and of columns in CSC form. Rows are passed as by ``rows_of`` of Python.
#include "csr_rows.hpp"
#include "export.hpp"
#include "random.hpp"

// X' diag(w)^(1/2) e, e ~ N(0, I), over blocks of rows; the arguments are as in ``passes.cpp``.
EXPORT i32 noise_pass(const StoredX* X, const PassRows* pass, i64 n_chains, u32 attempt, u32 sweep, u32 purpose,
                      const u32* key, i64 q, i64 width, double* sums) {
    const Key of_sweep = {sweep, key[0], key[1]};
    return on_csr_rows(*X, [&](const auto& rows) {
        Scratch<double> e(width * rows.tile);
        if (e.failed()) return NO_MEMORY;
        memset(e.data, 0, sizeof(double) * width * rows.tile);
        for (i64 block = 0; block < pass->n_blocks; ++block)
            for (i64 start = pass->bounds[block]; start < pass->bounds[block + 1]; start += rows.tile) {
                const i64 n_rows = least(rows.tile, pass->bounds[block + 1] - start);
                for (i64 c = 0; c < n_chains; ++c)
                    for (i64 r = 0; r < n_rows; ++r) {
                        const u64 row = u64(start + r);
                        const double noise = normal(Stream(of_sweep, u32(c), purpose, row), u32(row), attempt);
                        e[c * rows.tile + r] = pass->weight ? noise * sqrt(pass->weight[row]) : noise;
                    }
                rows.add_weighted_rows(e.data, q, width, start, n_rows, e.data, sums + block * q * width);
            }
        return i32(0);
    });
}

// Lower triangle of X' diag(row_weight) X over rows start to stop - 1, and the weighted sums of the columns. Indices
// ascend within a row. row_weight : of these rows, or null. shift : (p,), taken from each stored number. total : (at
// least p, total_width), column_sums : (p,) and size : (1,), which gets the sum of the weights, are added to.
EXPORT i32 gram_pass(const StoredX* X, const double* row_weight, const double* shift, i64 start, i64 stop, double* total,
                     i64 total_width, double* column_sums, double* size) {
    return on_csr_rows(*X, [&](const auto& rows) {
        for (i64 i = start; i < stop; ++i) {
            const double w = row_weight ? row_weight[i - start] : 1.0;
            *size += w;
            for (i64 k = rows.indptr[i]; k < i64(rows.indptr[i + 1]); ++k) {
                const i64 j = rows.indices[k];
                const double wx = w * (rows.data[k] - shift[j]);
                column_sums[j] += wx;
                for (i64 other = rows.indptr[i]; other <= k; ++other) {
                    const i64 at = rows.indices[other];
                    total[j * total_width + at] += wx * (rows.data[other] - shift[at]);
                }
            }
        }
        return 0;
    });
}

// Weighted mean and sum of squares about it of every column, (p,) each, overwritten, as are the weight of its stored
// numbers and the sum of the weights, size : (1,). A column is summed about the first number stored in it, so that one
// whose numbers are all alike has no variance, not even by rounding. Means in a first pass, squares in a second one.
EXPORT i32 column_moments(const StoredX* X, const double* row_weight, double* mean, double* square, double* stored,
                          double* size) {
    return on_csr_rows(*X, [&](const auto& rows) {
        const auto weight = [=](i64 i) { return row_weight ? row_weight[i] : 1.0; };
        double* shift = square;  // until the second pass
        *size = 0.0;
        for (i64 j = 0; j < rows.p; ++j) mean[j] = stored[j] = shift[j] = 0.0;
        for (i64 i = 0; i < rows.n; ++i) {
            const double w = weight(i);
            *size += w;
            rows.each_number(i, [=](i64 j, double x) {
                if (stored[j] == 0.0) shift[j] = x;
                stored[j] += w;
                mean[j] += w * (x - shift[j]);
            });
        }
        for (i64 j = 0; j < rows.p; ++j) {
            mean[j] = mean[j] / *size + shift[j] * (stored[j] / *size);
            square[j] = (*size - stored[j]) * mean[j] * mean[j];
        }
        for (i64 i = 0; i < rows.n; ++i)
            rows.each_number(i, [=](i64 j, double x) { square[j] += weight(i) * ((x - mean[j]) * (x - mean[j])); });
        return 0;
    });
}

// x_j' P x_j of p columns x_j in CSC form, whose n and p are those of its transpose in CSR form. P : (p, p) symmetric.
EXPORT i32 quadratic_forms(const StoredX* X, const double* P, double* out) {
    return on_csr_rows(*X, [&](const auto& columns) {
        for (i64 j = 0; j < columns.n; ++j) {
            const i64 first = columns.indptr[j];
            double total = 0.0;
            for (i64 k = first; k < i64(columns.indptr[j + 1]); ++k) {
                const double* row = P + columns.indices[k] * columns.p;
                total += columns.data[k] * sum(columns.indptr[j + 1] - first, [&](i64 other) {
                    return columns.data[first + other] * row[columns.indices[first + other]];
                });
            }
            out[j] = total;
        }
        return 0;
    });
}
