// Moves of a coefficient with its local scale, one column after the other. Only the rows change in which the column is not
// zero, so X is read by columns too. All chains share each read; what a chain computes does not depend on the others.
#include "column_moves.hpp"
#include "dense_rows.hpp"
#include "export.hpp"
#include "on_likelihood.hpp"

struct ColumnMoves {  // filled by Python
    const u8* y;           // (n,)
    const double* weight;  // (n,), or null for none
    const double* offset;  // (n,), or null for none
    i64 q;
    i64 p;                     // shrunk coefficients
    const i64* place;          // (p,) the column of X of each
    const double* unit;        // (p,) by which the column is divided, infinite for a coefficient of 0
    const double* shift;       // (p,) that is subtracted from it first
    const double* lean;        // (p,) change of the intercept, the last of q coefficients, with a unit of the coefficient
    const double* h;           // (p,) as in ``ColumnLaw``
    const double* b;           // (p,)
    const double* fixed;       // (p,)
    const double* pull;        // (p,)
};

// Rows in which a column is not zero, and its numbers there; rows is null where these are all.
template <class D, class I> struct Column {
    const I* rows;
    const D* values;
    i64 n;
};

// Columns of X in CSC form, which are rows of its transpose in CSR form.
template <class D, class I> struct SparseColumns {
    CsrRows<D, I> rows;
    bool failed() const { return false; }
    Column<D, I> operator()(i64 j) {
        const i64 first = rows.indptr[j];
        return {rows.indices + first, rows.data + first, i64(rows.indptr[j + 1]) - first};
    }
};

// Columns of an array, of which several neighbours are copied at a time.
template <class D> struct DenseColumns {
    DenseRows<D> rows;
    Scratch<D> held;
    i64 first = -1;
    static constexpr i64 AT_ONCE = 8;
    explicit DenseColumns(const DenseRows<D>& rows) : rows(rows), held(rows.n * AT_ONCE) {}
    bool failed() const { return held.failed(); }
    Column<D, i32> operator()(i64 j) {
        if (first < 0 || j < first || j >= first + AT_ONCE) {
            first = j / AT_ONCE * AT_ONCE;
            const i64 n_held = least(AT_ONCE, rows.p - first);
            for (i64 i = 0; i < rows.n; ++i)
                for (i64 k = 0; k < n_held; ++k) held[k * rows.n + i] = rows.x[i * rows.p + first + k];
        }
        return {nullptr, held + (j - first) * rows.n, rows.n};
    }
};

// The linear predictors of m chains; (n, m).
struct Predictors {
    double* values;
    i64 m;
};

template <class Rows>
static i32 set_predictors(const Rows& rows, const ColumnMoves& all, const double* coef, i64 width, const Predictors& at) {
    Scratch<double> predictors(width * rows.tile);
    if (predictors.failed()) return NO_MEMORY;
    for (i64 start = 0; start < rows.n; start += rows.tile) {
        const i64 n_rows = least(rows.tile, rows.n - start);
        rows.linear_predictor(coef, all.q, width, start, n_rows, predictors.data);
        for (i64 c = 0; c < at.m; ++c) {
            double* eta = predictors + c * rows.tile;
            if (all.offset)  // a masked load from a null pointer would take longer than all the rest
                for (i64 r = 0; r < n_rows; ++r) eta[r] += all.offset[start + r];
            for (i64 r = 0; r < n_rows; ++r) at.values[(start + r) * at.m + c] = eta[r];
        }
    }
    return 0;
}

// The log-likelihood after beta_j changes, less that before, for chain c; and the linear predictors of the column's rows
// then, to (n,). log p before is computed anew, which takes less time than memory would; beside log p after, and padded,
// since most columns have a few rows.
template <class L, class D, class I>
static double gain_of(const Column<D, I>& column, const ColumnMoves& all, const Predictors& at, i64 c, double change,
                      double shift, double* to) {
    constexpr i64 SIDE = LONGEST_TILE / 2, PAD = 16;
    double t[LONGEST_TILE], factor[LONGEST_TILE], rest[LONGEST_TILE], gain = 0.0;
    LogSum after, before;
    for (i64 start = 0; start < column.n; start += SIDE) {
        const i64 n = least(SIDE, column.n - start), padded = (2 * n + PAD - 1) / PAD * PAD;
        const auto row = [&](i64 k) { return column.rows ? i64(column.rows[start + k]) : start + k; };
        for (i64 k = 0; k < n; ++k) {
            const double eta = at.values[row(k) * at.m + c];
            const bool y = all.y[row(k)];
            to[start + k] = eta + change * (double(column.values[start + k]) - shift);
            t[k] = y ? eta : -eta, t[n + k] = y ? to[start + k] : -to[start + k];
        }
        for (i64 k = 2 * n; k < padded; ++k) t[k] = 0.0;
        log_densities<L>(padded, t, factor, rest);
        for (i64 k = 0; k < n; ++k) {
            if (all.weight) {
                gain += all.weight[row(k)] * (log(factor[n + k] / factor[k]) - rest[n + k] + rest[k]);
                continue;
            }
            after.add(factor[n + k]), before.add(factor[k]);
            gain += rest[k] - rest[n + k];
        }
    }
    return gain + after.value() - before.value();
}

struct ChainsOfColumns {
    double *beta, *lambda_sq_inv;
    const double* tau_sq_inv;
    double* along;  // (m,) the coefficients along the direction of ``pull``
};

template <class L, class D, class I>
static void move_column(const Column<D, I>& column, const ColumnMoves& all, i64 j, i64 first_chain, Key key,
                        const ChainsOfColumns& chains, const Predictors& at, double* to) {
    const ColumnLaw law = {all.h[j], all.b[j], all.fixed[j], all.pull[j]};
    for (i64 c = 0; c < at.m; ++c) {
        double &beta = chains.beta[c * all.q + j], &x = chains.lambda_sq_inv[c * all.p + j], uniform;
        const Stream stream(key, u32(first_chain + c), COLUMN_PURPOSE);
        const double step = normal(stream, u32(j), 0, &uniform);
        const auto [next, next_x, log_ratio] = propose_column(law, beta, x, chains.tau_sq_inv[c], chains.along[c], step);
        const double change = (next - beta) / all.unit[j];
        const bool matters = column.n > 0 && change != 0.0;
        const double gain = matters ? gain_of<L>(column, all, at, c, change, all.shift[j], to) : 0.0;
#ifdef PLANT_LIKELIHOOD_OF_COLUMN_REVERSED
        if (!(log(uniform) < log_ratio - gain)) continue;
#else
        if (!(log(uniform) < log_ratio + gain)) continue;
#endif
        chains.along[c] += law.pull * (next - beta);
        if (all.lean[j] != 0.0) chains.beta[c * all.q + all.q - 1] += all.lean[j] * (next - beta);
        beta = next, x = next_x;
        for (i64 k = 0; matters && k < column.n; ++k) at.values[(column.rows ? i64(column.rows[k]) : k) * at.m + c] = to[k];
    }
}

template <class D> static DenseColumns<D> columns_of(const DenseRows<D>& rows, const StoredX&) {
    return DenseColumns<D>(rows);
}

template <class D, class I> static SparseColumns<D, I> columns_of(const CsrRows<D, I>&, const StoredX& transposed) {
    return {CsrRows<D, I>(transposed.data, transposed.indices, transposed.indptr, transposed.n, transposed.p)};
}

// Moves the chosen columns (n_chosen,) of the chains ``first`` to ``last - 1``, in this order. by_column : the transpose of a
// sparse X; not used for an array. coef : float64, of X's columns, of these chains. beta, lambda_sq_inv, along (n_chains,) :
// overwritten.
EXPORT i32 move_columns(i32 likelihood, const StoredX* X, const StoredX* by_column, const ColumnMoves* all,
                        const Coefficients* coef, const i64* chosen, i64 n_chosen, i64 first, i64 last, u32 sweep,
                        const u32* key, double* beta, double* lambda_sq_inv, const double* tau_sq_inv, double* along) {
    const Key of_sweep = {sweep, key[0], key[1]};
    const ChainsOfColumns chains = {beta + first * all->q, lambda_sq_inv + first * all->p, tau_sq_inv + first, along + first};
    return on_likelihood(likelihood, [&](auto law) {
        typedef decltype(law) L;
        return on_rows(*X, [&](const auto& rows) {
            const i64 m = last - first;
            auto columns = columns_of(rows, *by_column);
            Scratch<double> predictors(rows.n * m), changed(rows.n);
            if (predictors.failed() || changed.failed() || columns.failed()) return NO_MEMORY;
            const Predictors at = {predictors, m};
            const i32 status = set_predictors(rows, *all, static_cast<const double*>(coef->values), coef->width, at);
            for (i64 k = 0; k < n_chosen && !status; ++k)
                move_column<L>(columns(all->place[chosen[k]]), *all, chosen[k], first, of_sweep, chains, at, changed);
            return status;
        });
    });
}
