// The moves of ``line_moves.py`` in one call, which keeps the linear predictors of the chains.
//
// Random numbers, and so draws, are those of ``line_moves.py``, but for proposals that rounding puts inside or outside
// the slice.
#include "fused_line_slice.hpp"

#include "four_chains.hpp"
#include "fused_score.hpp"
#include "on_likelihood.hpp"
#include "proposal.hpp"

constexpr i64 PATIENCE = 2;  // log-likelihoods beyond one a move after which a chain computes no bounds in this sweep

// Rows, prior and moves.
struct FusedLineRows {  // filled by Python
    const FusedScoreRows* source;
    const double* number;      // (q,) the column of X of each coefficient
    const double* unit;        // (q,) by which the column is divided; 1 for the intercept
    const double* centre;      // (q,) which is subtracted from the column
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
template <class F> static void with_numbers(const FusedLineRows& rows, F use) {
    if (rows.source->X.kind == 1) use(static_cast<const double*>(rows.source->X.data));
    else use(static_cast<const float*>(rows.source->X.data));
}

constexpr i64 CHAINS = 4;  // number of chains that share a reading of X
constexpr i64 N_UNIFORMS = 3 + LINE_PROPOSALS;  // of a move

// Scratch of each of CHAINS chains, and scratch that they use one after the other.
struct Work {
    double *eta, *change, *along, *coef_of_X, *terms;
    double *three, *derivatives, *coef;
    static i64 chain_size(const FusedLineRows& rows) { return 2 * rows.source->X.n + 2 * rows.q + rows.p; }
    static i64 size(const FusedLineRows& rows) {
        return CHAINS * chain_size(rows) + 6 * rows.source->X.n + CHAINS * rows.q;
    }
    Work(double* at, i64 c, const FusedLineRows& rows)
        : eta(at + c * chain_size(rows)), change(eta + rows.source->X.n), along(change + rows.source->X.n),
          coef_of_X(along + rows.q), terms(coef_of_X + rows.q), three(at + CHAINS * chain_size(rows)),
          derivatives(three + 3 * rows.source->X.n), coef(derivatives + 3 * rows.source->X.n) {}
};

// out[c] = (X, 1) coef_c for four chains; the parts of the sums are those of ``sum``. coef : (q, 4).
template <class R>
static void multiply(const R* __restrict X, i64 n, i64 p, i64 q, const double* __restrict coef, double* const* out) {
    const i64 end = p & ~i64(7);
    const Four<double> intercept = q > p ? load_four(coef + 4 * p) : Four<double>{};
    for (i64 i = 0; i < n; ++i) {
        const R* x = X + i * p;
        Four<double> a[8] = {}, remainder = {};
        i64 j = 0;
        for (; j < end; j += 8)
            for (int k = 0; k < 8; ++k) a[k] += load_four(coef + 4 * (j + k)) * double(x[j + k]);
        if (end && j + 4 <= p) {
            for (int k = 0; k < 4; ++k) a[k] += load_four(coef + 4 * (j + k)) * double(x[j + k]);
            j += 4;
        }
        for (; j < p; ++j) remainder += load_four(coef + 4 * j) * double(x[j]);
        const Four<double> all = ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
        const Four<double> total = intercept + (end ? all + remainder : remainder);
        for (int c = 0; c < CHAINS; ++c) out[c][i] = total[c];
    }
}

// out = factor (x - centre), with x a column of (X, 1).
static void take_column(const FusedLineRows& rows, i64 column, double factor, double centre, double* __restrict out) {
    const i64 p = rows.source->X.p;
    if (column >= p) {
        for (i64 i = 0; i < rows.source->X.n; ++i) out[i] = 1.0;
        return;
    }
    with_numbers(rows, [&](auto* X) {
        for (i64 i = 0; i < rows.source->X.n; ++i) out[i] = factor * (double(X[i * p + column]) - centre);
    });
}

// Coefficients of the sampler's columns as those of X's own columns.
static void to_coef_of_X(const FusedLineRows& rows, const double* along, double* coef_of_X) {
    double shift = 0.0;
    for (i64 k = 0; k < rows.q; ++k) {
        const i64 at = i64(rows.number[k]);
        coef_of_X[at] = along[k] / rows.unit[k];
        shift += coef_of_X[at] * rows.centre[k];
    }
    coef_of_X[rows.q - 1] -= shift;  // 0 without an intercept, since centres are then 0
}

// Derivatives along a line: of the anchored combination, and the first and second of the energy of the diagonal part and
// of effects that follow.
struct PriorAlong {
    double pull, slope, curvature;
};

// Adds those of effects, where coefficient j moves by ``change``, and ``along`` is the line or null for that coefficient alone.
static void add_effects(const FusedLineRows& rows, i64 chain, const double* beta, i64 j, double change, const double* along,
                        PriorAlong& prior) {
    const i64 k = rows.source->n_followed, held = rows.q - k, i = j - held;
    if (i < 0 || change == 0.0) return;
    const double* row = rows.source->curvature + (chain * k + i) * k;
    prior.slope += change * (rows.source->pull[chain * k + i] + sum(k, [=](i64 l) { return row[l] * beta[held + l]; }));
    prior.curvature += change * (along ? sum(k, [=](i64 l) { return row[l] * along[held + l]; }) : change * row[i]);
}

static PriorAlong prior_along(const FusedLineRows& rows, i64 chain, const double* beta, const double* along) {
    PriorAlong prior = {0.0, 0.0, 0.0};
    for (i64 j = 0; j < rows.q; ++j) {
        prior.pull += rows.anchor[j] * along[j];
        prior.slope += rows.diagonal[j] * beta[j] * along[j];
        prior.curvature += rows.diagonal[j] * along[j] * along[j];
        add_effects(rows, chain, beta, j, along[j], along, prior);
    }
    return prior;
}

// A chain and its moves.
template <class L> struct MovingChain {
    const FusedLineRows& rows;
    i64 chain;
    Work work;
    double *beta, *lambda_sq_inv, *tau_sq_inv;
    Line line;
    double anchored = 0.0;  // anchor' beta
    double loglik = NAN;    // of the state, or NaN if it is not known
    i64 n_evaluations = 0;
    LineDensity all = {};       // of a global or split move, and whether it is along the linear predictors themselves
    bool is_along_eta = false;

    // work : with the linear predictors, without ``shift``.
    MovingChain(const FusedLineRows& rows, i64 chain, Work work, const State& state)
        : rows(rows), chain(chain), work(work), beta(state.beta + chain * rows.q),
          lambda_sq_inv(state.lambda_sq_inv + chain * rows.p), tau_sq_inv(state.tau_sq_inv + chain),
          line{rows.source->X.n, work.eta, work.change, rows.source->of_pass.y, rows.source->of_pass.weight} {
        for (i64 i = 0; rows.source->of_pass.shift && i < rows.source->X.n; ++i) work.eta[i] += shift(i);
        for (i64 j = 0; j < rows.q; ++j) anchored += rows.anchor[j] * beta[j];
    }

    // The offset of a row and what its groups add.
    double shift(i64 i) const {
        const Shift& by = *rows.source->of_pass.shift;
        const double offset = by.offset ? by.offset[i] : 0.0;
        return by.codes ? offset + by.effects[by.codes[i] * by.n_chains + chain] : offset;
    }

    // The local or fixed move of coefficient j.
    void move_one(i64 move, i64 j, const double* u) {
#ifdef PLANT_COLUMN_OF_STATE
        for (i64 k = j = 0; k < rows.p; ++k) j = beta[k] * beta[k] > beta[j] * beta[j] ? k : j;
#endif
        const bool is_shrunk = j < rows.p;
        const double factor = is_shrunk ? beta[j] : 1.0, d = rows.diagonal[j];
        take_column(rows, i64(rows.number[j]), factor / rows.unit[j], rows.centre[j], work.change);
        PriorAlong prior = {rows.anchor[j] * factor, d * factor * beta[j], d * factor * factor};
        add_effects(rows, chain, beta, j, factor, nullptr, prior);
        LineDensity density = {0.0, 0.0, is_shrunk ? 1.0 : 0.0, is_shrunk ? 1.0 / lambda_sq_inv[j] : 0.0, nullptr, 0, 0};
        const double step = slice(move, prior, density, rows.widths[1 + j], 1, u);
        beta[j] += step * factor;
        if (is_shrunk) lambda_sq_inv[j] /= (1.0 + step) * (1.0 + step);
    }

    // Prepares ``move_all``: ``along``, and ``coef_of_X``, the same for X's columns. hold_u : uniforms (p,) of a split
    // move, else null.
    void begin_all(const double* hold_u, const double* u) {
        const i64 p = rows.p, q = rows.q;
        const bool with_others = u[2] < 0.5;
        for (i64 k = 0; k < q; ++k) work.along[k] = k < p || with_others ? beta[k] : 0.0;
        all = {0.0, 0.0, 1.0 + (with_others ? double(q - p) : 0.0), 1.0 / (*tau_sq_inv * (rows.tau_0 * rows.tau_0)),
               work.terms, hold_u ? p : 0, 0};
        if (hold_u)
            all.n_held = hold_columns(p, hold_u, rows.square, lambda_sq_inv, *tau_sq_inv, work.along, work.terms);
        is_along_eta = all.n_held == 0 && (with_others || p == q);
        to_coef_of_X(rows, work.along, work.coef_of_X);
    }

    // The global move, or a split one; ``change`` has been computed.
    void move_all(i64 move, const double* u) {
        const i64 q = rows.q;
        if (is_along_eta) {
            memcpy(work.change, work.eta, sizeof(double) * rows.source->X.n);
            for (i64 i = 0; rows.source->of_pass.shift && i < rows.source->X.n; ++i) work.change[i] -= shift(i);
        }
        i64 n_moved = 0;
        for (i64 k = 0; k < q; ++k) n_moved += work.along[k] != 0.0;
        const double step = slice(move, prior_along(rows, chain, beta, work.along), all, rows.widths[0], n_moved, u);
        const double growth = (1.0 + step) * (1.0 + step);
        for (i64 k = 0; k < q; ++k) beta[k] += step * work.along[k];
        *tau_sq_inv /= growth;
        for (i64 k = 0; k < all.n_terms; ++k)
            if (work.terms[k] < 0.0) lambda_sq_inv[k] *= growth;
    }

    double slice(i64 move, const PriorAlong& prior, LineDensity density, double width, [[maybe_unused]] i64 n_moved,
                 const double* u) {
        Bounds bounds = NO_BOUNDS;
        if (n_evaluations <= move + PATIENCE && derive<L>(line, work.three, work.derivatives))
            bounds = bounds_along<L>(line, work.derivatives);
        density.slope = prior.slope + anchored * prior.pull, density.curvature = prior.curvature + prior.pull * prior.pull;
#ifdef PLANT_SLICE
        PLANT_SLICE;  // an error that a test must find
#endif
        const double step = line_slice<L>(line, density, bounds, width, u, &loglik, &n_evaluations, work.three);
#ifndef PLANT_OLD_PREDICTORS
        for (i64 i = 0; i < rows.source->X.n; ++i) line.eta[i] += step * line.change[i];
#endif
        anchored += step * prior.pull;
        return step;
    }
};

// The rows of X times coefficients (q,) of its columns, of each of m chains.
static void multiply(const FusedLineRows& rows, const double* const* coef, i64 m, double* by_column,
                     double* const* out) {
    for (i64 j = 0; j < rows.q; ++j)
        for (i64 c = 0; c < CHAINS; ++c) by_column[CHAINS * j + c] = c < m ? coef[c][j] : 0.0;
    with_numbers(rows, [&](auto* X) { multiply(X, rows.source->X.n, rows.source->X.p, rows.q, by_column, out); });
}

// The moves of m <= CHAINS chains, with random numbers ``uniform`` and ``hold_uniforms``.
template <class L>
static void move_chains(const FusedLineRows& rows, MovingChain<L>* chains, i64 m, const double* uniform,
                        const double* hold_uniforms, double* const* change) {
    const double *coef_of_X[CHAINS], *u = uniform;
    for (i64 move = 0; move < rows.n_moves; ++move, u += N_UNIFORMS) {
        const auto uniforms_of = [&](i64 c) { return u + c * rows.n_moves * N_UNIFORMS; };
        if (rows.kinds[move] == LINE_ONE) {
            for (i64 c = 0; c < m; ++c)
                chains[c].move_one(move, least(i64(uniforms_of(c)[2] * double(rows.q)), rows.q - 1), uniforms_of(c));
            continue;
        }
        const bool is_split = rows.kinds[move] == LINE_SPLIT;
        bool is_needed = false;
        for (i64 c = 0; c < m; ++c) {
            chains[c].begin_all(is_split ? hold_uniforms + c * rows.n_splits * rows.p : nullptr, uniforms_of(c));
            coef_of_X[c] = chains[c].work.coef_of_X, is_needed |= !chains[c].is_along_eta;
        }
        if (is_needed) multiply(rows, coef_of_X, m, chains[0].work.coef, change);
        for (i64 c = 0; c < m; ++c) chains[c].move_all(move, uniforms_of(c));
        if (is_split) hold_uniforms += rows.p;
    }
}

// Moves the chains first to last - 1, in place.
// coef : (n_chains, q) of X's own columns. uniform, hold_uniforms : of ``line_moves.random_numbers``, the latter null
// without splits.
EXPORT i32 fused_line_moves(const FusedLineRows* line_rows, const double* coef, const double* uniform,
                            const double* hold_uniforms, i64 first, i64 last, const State* state) {
    const FusedLineRows& rows = *line_rows;
    const i64 p = rows.p, q = rows.q;
    Scratch<double> scratch(Work::size(rows));
    if (scratch.failed()) return NO_MEMORY;
    return on_likelihood(rows.source->of_pass.likelihood, [&](auto law) {
        typedef MovingChain<decltype(law)> Chain;
        for (i64 next = first; next < last; next += CHAINS) {
            const i64 m = least(CHAINS, last - next);
            const double* coefs[CHAINS];
            double *eta[CHAINS], *change[CHAINS];
            for (i64 c = 0; c < CHAINS; ++c) {
                const Work work(scratch, c, rows);
                coefs[c] = coef + (next + least(c, m - 1)) * q, eta[c] = work.eta, change[c] = work.change;
            }
            multiply(rows, coefs, m, Work(scratch, 0, rows).coef, eta);
            const auto chain = [&](i64 c) { return Chain(rows, next + least(c, m - 1), Work(scratch, c, rows), *state); };
            Chain chains[CHAINS] = {chain(0), chain(1), chain(2), chain(3)};
            move_chains(rows, chains, m, uniform + next * rows.n_moves * N_UNIFORMS,
                        hold_uniforms ? hold_uniforms + next * rows.n_splits * p : nullptr, change);
        }
        return 0;
    });
}
