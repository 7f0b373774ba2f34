// The moves of ``lines.py`` for rows that are near: one call, which keeps the linear predictor of a chain.
//
// The same random numbers, and so the same draws as there, but for proposals that miss or reach the slice by rounding.
#include "lines.hpp"

#include "export.hpp"

constexpr i64 PATIENCE = 2;  // log-likelihoods more than moves, from which on a chain does without bounds in this sweep

struct NearRows {  // filled by Python
    i32 is_double;
    const void* X;             // (n, p_of_X) float32 or float64
    i64 n;
    i64 p_of_X;
    const u8* y;               // (n,)
    const double* weight;      // (n,), or null
    const double* offset;      // (n,), or null
    const double* number;      // (q,) of X's column for each coefficient
    const double* unit;        // (q,) what it is divided by; 1 of the intercept
    const double* centre;      // (q,) what goes off it
    const double* anchor;      // (q,) of the fixed prior
    const double* diagonal;    // (q,)
    const double* widths;      // (1 + q,) of the slices
    const double* square;      // (p,) x_j'x_j
    const i64* kinds;          // (n_moves,)
    i64 n_moves;
    i64 n_splits;
    i64 p;
    i64 q;
    double tau_0;
};

// use(X) with the rows as numbers of their type.
template <class F> static void with_numbers(const NearRows& rows, F use) {
    if (rows.is_double) use(static_cast<const double*>(rows.X));
    else use(static_cast<const float*>(rows.X));
}

// What a chain needs for its moves, beside its state.
struct Work {
    double *eta, *change, *four, *derivatives, *along, *own, *terms;
    static i64 size(const NearRows& rows) { return 9 * rows.n + 2 * rows.q + rows.p; }
    Work(double* at, const NearRows& rows)
        : eta(at), change(eta + rows.n), four(change + rows.n), derivatives(four + 4 * rows.n),
          along(derivatives + 3 * rows.n), own(along + rows.q), terms(own + rows.q) {}
};

// out = (X, 1) coef, q coefficients of X's own columns.
static void multiply(const NearRows& rows, const double* __restrict coef, double* __restrict out) {
    const i64 p = rows.p_of_X;
    const double intercept = rows.q > p ? coef[p] : 0.0;
    with_numbers(rows, [&](auto* X) {
        for (i64 i = 0; i < rows.n; ++i) {
            const auto* x = X + i * p;
            out[i] = intercept + sum(p, [=](i64 j) { CONTRACT return double(x[j]) * coef[j]; });
        }
    });
}

// out = by (x - centre), x being a column of (X, 1).
static void take_column(const NearRows& rows, i64 column, double by, double centre, double* __restrict out) {
    const i64 p = rows.p_of_X;
    if (column >= p) {
        for (i64 i = 0; i < rows.n; ++i) out[i] = 1.0;
        return;
    }
    with_numbers(rows, [&](auto* X) {
        for (i64 i = 0; i < rows.n; ++i) out[i] = by * (double(X[i * p + column]) - centre);
    });
}

// Coefficients of the sampler's columns as those of X's own.
static void of_own_columns(const NearRows& rows, const double* along, double* own) {
    double shift = 0.0;
    for (i64 k = 0; k < rows.q; ++k) {
        const i64 at = i64(rows.number[k]);
        own[at] = along[k] / rows.unit[k];
        shift += own[at] * rows.centre[k];
    }
    own[rows.q - 1] -= shift;  // 0 without an intercept, where no mean goes off
}

struct OfPrior {
    double pull, slope, curvature;
};

// What the anchor, and the slope and the curvature without it, gain along a line.
static OfPrior of_prior(const NearRows& rows, const double* beta, const double* along) {
    OfPrior of = {0.0, 0.0, 0.0};
    for (i64 j = 0; j < rows.q; ++j) {
        of.pull += rows.anchor[j] * along[j];
        of.slope += rows.diagonal[j] * beta[j] * along[j];
        of.curvature += rows.diagonal[j] * along[j] * along[j];
    }
    return of;
}

// A chain, and the moves that it makes one after the other.
struct MovingChain {
    const NearRows& rows;
    Work work;
    double *beta, *lambda_sq_inv, *tau_sq_inv;
    Line line;
    double anchored = 0.0;  // anchor' beta
    double loglik = NAN;    // of the state, if it is known
    i64 n_evaluations = 0;

    MovingChain(const NearRows& rows, Work work, const double* coef, double* beta, double* lambda_sq_inv,
                double* tau_sq_inv)
        : rows(rows), work(work), beta(beta), lambda_sq_inv(lambda_sq_inv), tau_sq_inv(tau_sq_inv),
          line{rows.n, work.eta, work.change, rows.y, rows.weight} {
        multiply(rows, coef, work.eta);
        if (rows.offset)
            for (i64 i = 0; i < rows.n; ++i) work.eta[i] += rows.offset[i];
        for (i64 j = 0; j < rows.q; ++j) anchored += rows.anchor[j] * beta[j];
    }

    // The move of a coefficient by itself, with its lambda_j if it is shrunk.
    void move_one(i64 move, i64 j, const double* u) {
        const bool is_shrunk = j < rows.p;
        const double by = is_shrunk ? beta[j] : 1.0, d = rows.diagonal[j];
        take_column(rows, i64(rows.number[j]), by / rows.unit[j], rows.centre[j], work.change);
        const OfPrior of = {rows.anchor[j] * by, d * by * beta[j], d * by * by};
        LineDensity density = {0.0, 0.0, is_shrunk ? 1.0 : 0.0, is_shrunk ? 1.0 / lambda_sq_inv[j] : 0.0, nullptr, 0, 0};
        const double step = slice(move, of, density, rows.widths[1 + j], 1, u);
        beta[j] += step * by;
        if (is_shrunk) lambda_sq_inv[j] /= (1.0 + step) * (1.0 + step);
    }

    // The move of the shrunk coefficients, or of all, with tau. chance : uniforms (p,) of a split move, else null.
    void move_all(i64 move, const double* chance, const double* u) {
        const i64 p = rows.p, q = rows.q;
        const bool with_others = u[2] < 0.5;
        for (i64 k = 0; k < q; ++k) work.along[k] = k < p || with_others ? beta[k] : 0.0;
        LineDensity density = {0.0, 0.0, 1.0 + (with_others ? double(q - p) : 0.0),
                               1.0 / (*tau_sq_inv * (rows.tau_0 * rows.tau_0)), work.terms, chance ? p : 0, 0};
        if (chance)
            density.n_held =
                hold_columns(p, chance, rows.square, lambda_sq_inv, *tau_sq_inv, work.along, work.terms);
        if (density.n_held == 0 && (with_others || p == q)) {
            for (i64 i = 0; i < rows.n; ++i) work.change[i] = work.eta[i] - (rows.offset ? rows.offset[i] : 0.0);
        } else {
            of_own_columns(rows, work.along, work.own);
            multiply(rows, work.own, work.change);
        }
        i64 n_moved = 0;
        for (i64 k = 0; k < q; ++k) n_moved += work.along[k] != 0.0;
        const double step = slice(move, of_prior(rows, beta, work.along), density, rows.widths[0], n_moved, u);
        const double growth = (1.0 + step) * (1.0 + step);
        for (i64 k = 0; k < q; ++k) beta[k] += step * work.along[k];
        *tau_sq_inv /= growth;
        for (i64 k = 0; chance && k < p; ++k)
            if (work.terms[k] < 0.0) lambda_sq_inv[k] *= growth;
    }

    double slice(i64 move, const OfPrior& of, LineDensity density, double width, [[maybe_unused]] i64 n_moved,
                 const double* u) {
        Bounds bounds = NO_BOUNDS;
        if (n_evaluations <= move + PATIENCE && derive(line, work.four, work.derivatives))
            bounds = bounds_along(line, work.derivatives);
        density.slope = of.slope + anchored * of.pull, density.curvature = of.curvature + of.pull * of.pull;
#ifdef PLANT_SLICE
        PLANT_SLICE;  // an error that a test must find
#endif
        const double step = line_slice(line, density, bounds, width, u, &loglik, &n_evaluations, work.four);
#ifndef PLANT_OLD_PREDICTORS
        for (i64 i = 0; i < rows.n; ++i) line.eta[i] += step * line.change[i];
#endif
        anchored += step * of.pull;
        return step;
    }
};

// Of the chains first to last - 1 the state, beta (n_chains, q), lambda^-2 (n_chains, p) and tau^-2 (n_chains,), in
// place. coef : (n_chains, q) of X's own columns. uniform, chances : of ``lines.random_numbers``,
// null without split moves.
EXPORT i32 move_near(const void* near_rows, const double* coef, const double* uniform, const double* chances, i64 first,
                     i64 last, double* beta, double* lambda_sq_inv, double* tau_sq_inv) {
    const NearRows& rows = *static_cast<const NearRows*>(near_rows);
    const i64 p = rows.p, q = rows.q;
    Scratch<double> scratch(Work::size(rows));
    if (scratch.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        MovingChain chain(rows, Work(scratch, rows), coef + c * q, beta + c * q, lambda_sq_inv + c * p, tau_sq_inv + c);
        const double* chance = chances ? chances + c * rows.n_splits * p : nullptr;
        for (i64 move = 0; move < rows.n_moves; ++move) {
            const double* u = uniform + (c * rows.n_moves + move) * (3 + LINE_PROPOSALS);
            if (rows.kinds[move] == LINE_ONE) {
                chain.move_one(move, least(i64(u[2] * double(q)), q - 1), u);
                continue;
            }
            const bool is_split = rows.kinds[move] == LINE_SPLIT;
            chain.move_all(move, is_split ? chance : nullptr, u);
            if (is_split) chance += p;
        }
    }
    return 0;
}

// e^r - 1, to the last bit as above.
EXPORT i32 growth_of(const double* r, i64 n, double* out) {
    for (i64 i = 0; i < n; ++i) out[i] = expm1(r[i]);
    return 0;
}

// The bounds of a line, the least and the largest at a step, and those when they are made narrower: (9,), for tests;
// returns 1 where derivatives are worth it.
EXPORT i32 line_bounds(const double* eta, const double* change, const u8* y, const double* weight, i64 n, double step,
                       double* out) {
    Scratch<double> work(7 * n);
    if (work.failed()) return NO_MEMORY;
    const Line line = {n, const_cast<double*>(eta), const_cast<double*>(change), y, weight};
    const bool is_worth_it = derive(line, work, work + 4 * n);
    const Bounds bounds = is_worth_it ? bounds_along(line, work + 4 * n) : Bounds{0.0, 0.0, 0.0, 0.0, 0.0};
    const Bounds narrow = narrower(line, step, bounds);
    const Range wide = range_at(step, bounds), tight = range_at(step, narrow);
    const double all[] = {wide.least, wide.largest, tight.least, tight.largest, narrow.least_fourth, narrow.fourth};
    memcpy(out, all, sizeof all);
    return is_worth_it;
}
