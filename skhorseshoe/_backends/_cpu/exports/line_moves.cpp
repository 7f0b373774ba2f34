// The moves of ``lines.py`` for rows that are near: one call, which keeps the linear predictor of a chain.
//
// The same random numbers, and so the same draws as there, but for proposals that miss or reach the slice by rounding.
#include "lines.hpp"

#include "export.hpp"
#include "four.hpp"

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

constexpr i64 CHAINS = 4;  // that share a reading of X

// What a chain needs for its moves beside its state, and scratch that all chains use in turn.
struct Work {
    double *eta, *change, *along, *own, *terms;
    double *four, *derivatives, *coef;
    static i64 own_size(const NearRows& rows) { return 2 * rows.n + 2 * rows.q + rows.p; }
    static i64 size(const NearRows& rows) { return CHAINS * own_size(rows) + 7 * rows.n + CHAINS * rows.q; }
    Work(double* at, i64 c, const NearRows& rows)
        : eta(at + c * own_size(rows)), change(eta + rows.n), along(change + rows.n), own(along + rows.q),
          terms(own + rows.q), four(at + CHAINS * own_size(rows)), derivatives(four + 4 * rows.n),
          coef(derivatives + 3 * rows.n) {}
};

// out[c] = (X, 1) coef_c for four chains; the parts of the sums are those of ``sum``. coef : (q, 4).
template <class R>
static void multiply(const R* __restrict X, i64 n, i64 p, i64 q, const double* __restrict coef, double* const* out) {
    const i64 end = p & ~i64(7);
    const Four<double> intercept = q > p ? load_four(coef + 4 * p) : Four<double>{};
    for (i64 i = 0; i < n; ++i) {
        const R* x = X + i * p;
        Four<double> a[8] = {}, rest = {};
        i64 j = 0;
        for (; j < end; j += 8)
            for (int k = 0; k < 8; ++k) a[k] += load_four(coef + 4 * (j + k)) * double(x[j + k]);
        if (end && j + 4 <= p) {
            for (int k = 0; k < 4; ++k) a[k] += load_four(coef + 4 * (j + k)) * double(x[j + k]);
            j += 4;
        }
        for (; j < p; ++j) rest += load_four(coef + 4 * j) * double(x[j]);
        const Four<double> all = ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
        const Four<double> total = intercept + (end ? all + rest : rest);
        for (int c = 0; c < CHAINS; ++c) out[c][i] = total[c];
    }
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
    LineDensity all = {};       // of the move of all, and whether it is along the linear predictors themselves
    bool is_along_eta = false;

    // work : with linear predictors, but for the offset.
    MovingChain(const NearRows& rows, Work work, double* beta, double* lambda_sq_inv, double* tau_sq_inv)
        : rows(rows), work(work), beta(beta), lambda_sq_inv(lambda_sq_inv), tau_sq_inv(tau_sq_inv),
          line{rows.n, work.eta, work.change, rows.y, rows.weight} {
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

    // What comes before ``move_all``: ``along``, and ``own``, the same of X's columns. chance : uniforms (p,) of a split
    // move, else null.
    void begin_all(const double* chance, const double* u) {
        const i64 p = rows.p, q = rows.q;
        const bool with_others = u[2] < 0.5;
        for (i64 k = 0; k < q; ++k) work.along[k] = k < p || with_others ? beta[k] : 0.0;
        all = {0.0, 0.0, 1.0 + (with_others ? double(q - p) : 0.0), 1.0 / (*tau_sq_inv * (rows.tau_0 * rows.tau_0)),
               work.terms, chance ? p : 0, 0};
        if (chance)
            all.n_held = hold_columns(p, chance, rows.square, lambda_sq_inv, *tau_sq_inv, work.along, work.terms);
        is_along_eta = all.n_held == 0 && (with_others || p == q);
        of_own_columns(rows, work.along, work.own);
    }

    // The move of the shrunk coefficients, or of all, with tau; ``change`` is there.
    void move_all(i64 move, const double* u) {
        const i64 p = rows.p, q = rows.q;
        for (i64 i = 0; is_along_eta && i < rows.n; ++i)
            work.change[i] = work.eta[i] - (rows.offset ? rows.offset[i] : 0.0);
        i64 n_moved = 0;
        for (i64 k = 0; k < q; ++k) n_moved += work.along[k] != 0.0;
        const double step = slice(move, of_prior(rows, beta, work.along), all, rows.widths[0], n_moved, u);
        const double growth = (1.0 + step) * (1.0 + step);
        for (i64 k = 0; k < q; ++k) beta[k] += step * work.along[k];
        *tau_sq_inv /= growth;
        for (i64 k = 0; k < all.n_terms; ++k)
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

// Coefficients of X's columns (q,) of each of m chains times its rows.
static void multiply(const NearRows& rows, const double* const* coef, i64 m, double* by_column, double* const* out) {
    for (i64 j = 0; j < rows.q; ++j)
        for (i64 c = 0; c < CHAINS; ++c) by_column[CHAINS * j + c] = c < m ? coef[c][j] : 0.0;
    with_numbers(rows, [&](auto* X) { multiply(X, rows.n, rows.p_of_X, rows.q, by_column, out); });
}

// The moves of m <= CHAINS chains, of which ``uniform`` and ``chances`` are the random numbers.
static void move_together(const NearRows& rows, MovingChain* chains, i64 m, const double* uniform, const double* chances,
                          double* const* change) {
    constexpr i64 EACH = 3 + LINE_PROPOSALS;
    const double *own[CHAINS], *u = uniform;
    for (i64 move = 0; move < rows.n_moves; ++move, u += EACH) {
        const auto of_chain = [&](i64 c) { return u + c * rows.n_moves * EACH; };
        if (rows.kinds[move] == LINE_ONE) {
            for (i64 c = 0; c < m; ++c)
                chains[c].move_one(move, least(i64(of_chain(c)[2] * double(rows.q)), rows.q - 1), of_chain(c));
            continue;
        }
        const bool is_split = rows.kinds[move] == LINE_SPLIT;
        bool is_needed = false;
        for (i64 c = 0; c < m; ++c) {
            chains[c].begin_all(is_split ? chances + c * rows.n_splits * rows.p : nullptr, of_chain(c));
            own[c] = chains[c].work.own, is_needed |= !chains[c].is_along_eta;
        }
        if (is_needed) multiply(rows, own, m, chains[0].work.coef, change);
        for (i64 c = 0; c < m; ++c) chains[c].move_all(move, of_chain(c));
        if (is_split) chances += rows.p;
    }
}

// Of the chains first to last - 1 the state, beta (n_chains, q), lambda^-2 (n_chains, p) and tau^-2 (n_chains,), in
// place. coef : (n_chains, q) of X's own columns. uniform, chances : of ``lines.random_numbers``,
// null without split moves.
EXPORT i32 move_near(const void* near_rows, const double* coef, const double* uniform, const double* chances, i64 first,
                     i64 last, double* beta, double* lambda_sq_inv, double* tau_sq_inv) {
    const NearRows& rows = *static_cast<const NearRows*>(near_rows);
    const i64 p = rows.p, q = rows.q;
    Scratch<double> scratch(Work::size(rows));
    if (scratch.failed()) return NO_MEMORY;
    for (i64 next = first; next < last; next += CHAINS) {
        const i64 m = least(CHAINS, last - next);
        const double* own[CHAINS];
        double *eta[CHAINS], *change[CHAINS];
        for (i64 c = 0; c < CHAINS; ++c) {
            const Work work(scratch, c, rows);
            own[c] = coef + (next + least(c, m - 1)) * q, eta[c] = work.eta, change[c] = work.change;
        }
        multiply(rows, own, m, Work(scratch, 0, rows).coef, eta);
        const auto chain = [&](i64 c) {
            const i64 at = next + least(c, m - 1);
            return MovingChain(rows, Work(scratch, c, rows), beta + at * q, lambda_sq_inv + at * p, tau_sq_inv + at);
        };
        MovingChain chains[CHAINS] = {chain(0), chain(1), chain(2), chain(3)};
        move_together(rows, chains, m, uniform + next * rows.n_moves * (3 + LINE_PROPOSALS),
                      chances ? chances + next * rows.n_splits * p : nullptr, change);
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
