// A path of split Hamiltonian Monte Carlo in one call, for rows of one block, in an array, and few columns: what Python
// takes between the steps would be most of the time. The numbers are, bit for bit, those of the steps one by one.
#include "chains.hpp"

// Of ``passes.cpp``.
EXPORT i32 score_pass(i32 kind, const void* data, const void* indices, const void* indptr, i64 n, i64 p, const u8* y,
                      const double* row_weight, const double* offset, const void* coef, i64 q, i64 width,
                      const i64* bounds, i64 n_blocks, i64 n_chains, double* sums, double* logliks);

struct ScoredRows {  // filled by Python
    i32 is_double;
    const void* X;         // (n, p) float32 or float64
    i64 n;
    i64 p;
    const u8* y;           // (n,)
    const double* weight;  // (n,), or null
    i64 q;                 // coefficients, with the intercept's
    i32 fit_intercept;
    i32 translated;        // whether the sampler's coefficients are those of other columns than X's; see ``Columns``
    const i64* order;      // (q,) the columns of X in the sampler's order
    const i64* place;      // (q,) the way back
    const double* unit;    // (q,)
    const double* centre;  // (q,)
};

constexpr i64 MOST_COLUMNS = 128;

// The sum of n <= 128 numbers, rounded as NumPy rounds it.
static double sum_as_numpy(const double* a, i64 n) {
    double part[8], total = 0.0;
    i64 j = 0;
    if (n >= 8) {
        for (int k = 0; k < 8; ++k) part[k] = a[k];
        for (j = 8; j + 8 <= n; j += 8)
            for (int k = 0; k < 8; ++k) part[k] += a[j + k];
        total = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    for (; j < n; ++j) total += a[j];
    return total;
}

// The sampler's coefficients beta (n_chains, q) as those of X's own columns, by column; (q, width).
template <class R>
static void by_column(const ScoredRows& rows, const double* beta, i64 n_chains, i64 width, R* coef) {
    double own[MOST_COLUMNS], shift[MOST_COLUMNS];
    for (i64 c = 0; c < width; ++c) {
        for (i64 j = 0; j < rows.q; ++j) {
            own[j] = c >= n_chains ? 0.0 : beta[c * rows.q + (rows.translated ? rows.place[j] : j)];
            if (rows.translated) own[j] = own[j] / rows.unit[j] + 0.0, shift[j] = own[j] * rows.centre[j];
        }
        if (rows.translated && rows.fit_intercept) own[rows.q - 1] -= sum_as_numpy(shift, rows.q);
        for (i64 j = 0; j < rows.q; ++j) coef[j * width + c] = R(own[j]);
    }
}

// Log-likelihoods (n_chains,) and their gradients (n_chains, q) at the sampler's coefficients.
static i32 score_at(const ScoredRows& rows, const double* beta, i64 n_chains, double* loglik, double* score) {
    const i64 q = rows.q, width = (n_chains + 3) / 4 * 4, bounds[] = {0, rows.n};
    Scratch<double> coef(q * width), sums(q * width);
    if (coef.failed() || sums.failed()) return NO_MEMORY;
    if (rows.is_double) by_column(rows, beta, n_chains, width, coef.data);
    else by_column(rows, beta, n_chains, width, reinterpret_cast<float*>(coef.data));
    memset(sums, 0, sizeof(double) * q * width);
    memset(loglik, 0, sizeof(double) * n_chains);
    const i32 status = score_pass(rows.is_double, rows.X, nullptr, nullptr, rows.n, rows.p, rows.y, rows.weight, nullptr,
                                  coef, q, width, bounds, 1, n_chains, sums, loglik);
    if (status) return status;
    for (i64 c = 0; c < n_chains; ++c)
        for (i64 k = 0; k < q; ++k) {
            const i64 j = rows.translated ? rows.order[k] : k;
            double own = sums[j * width + c];
            if (rows.translated && rows.fit_intercept) own -= sums[(q - 1) * width + c] * rows.centre[j];
            score[c * q + k] = rows.translated ? own / rows.unit[j] : own;
        }
    return 0;
}

// Log-likelihoods (n_chains,) and their gradients (n_chains, q).
EXPORT i32 near_score(const ScoredRows* rows, const double* beta, i64 n_chains, double* loglik, double* score) {
    return score_at(*rows, beta, n_chains, loglik, score);
}

// Memory for what a path leads to, and for the path itself.
struct OnTheWay {
    Scratch<double> memory;
    State state;
    Path path;
    double *before, *work;
    OnTheWay(i64 n_chains, i64 p, i64 q) : memory(n_chains * (5 * q + p + 4) + 2 * q + p) {
        double* at = memory;
        const auto take = [&](i64 n) { return at += n, at - n; };
        const i64 m = n_chains * q;
        state = {take(m), take(n_chains * p), take(n_chains), take(n_chains), take(m)};
        path = {take(m), take(m), take(m), take(n_chains)};
        before = take(n_chains), work = take(2 * q + p);
    }
};

// The chains that a Metropolis test accepts go to what the path has led to.
static void accept(const State& state, const OnTheWay& end, Key key, i64 n_chains, i64 p, i64 q, double* chance) {
    const auto take = [](double* to, const double* from, i64 c, i64 n) {
        memcpy(to + c * n, from + c * n, sizeof(double) * n);
    };
    for (i64 c = 0; c < n_chains; ++c) {
        if (!accepts(end.path.total[c] - end.before[c], Stream(key, u32(c), ACCEPT), chance[c])) continue;
        take(state.beta, end.state.beta, c, q), take(state.score, end.state.score, c, q);
        take(state.lambda_sq_inv, end.state.lambda_sq_inv, c, p);
        state.tau_sq_inv[c] = end.state.tau_sq_inv[c], state.loglik[c] = end.state.loglik[c];
    }
}

// The state after a path of n_turns and its test, in place; ``_path`` of ``_mcmc/hmc.py``. The scales move where n_moves
// is not 0. chance : (n_chains,) of acceptance; tau_chance : (n_chains,) the share of the moves of tau accepted, or
// null where there are none. A minor, NO_MEMORY or 0.
EXPORT i32 near_path(const Gaussians* all, const Reference* reference, const ScoredRows* rows, double angle, i64 n_turns,
                     double tau_0, double tau_step, i64 n_moves, const i64* slow, i64 k, u32 sweep, u32 k0, u32 k1,
                     i32 same_scales, i64 n_chains, double* spare, double* beta, double* lambda_sq_inv,
                     double* tau_sq_inv, double* loglik, double* score, double* chance, double* tau_chance) {
    const i64 p = all->p, q = all->q;
    const Key key{sweep, k0, k1};
    const State state{beta, lambda_sq_inv, tau_sq_inv, loglik, score};
    const Moves moves{tau_0, tau_step, n_moves, slow, k};
    OnTheWay now(n_chains, p, q);
    if (now.memory.failed()) return NO_MEMORY;
    i32 status = 0;
    for (i64 c = 0; c < n_chains && !status; ++c)
        status = begin_chain(*all, *reference, state, key, same_scales, c, now.path, now.work);
    memcpy(now.before, now.path.total, sizeof(double) * n_chains);
    memcpy(now.state.lambda_sq_inv, lambda_sq_inv, sizeof(double) * n_chains * p);
    memcpy(now.state.tau_sq_inv, tau_sq_inv, sizeof(double) * n_chains);
    for (i64 step = 0; step < n_turns && !status; ++step) {
        turn(angle, now.path.u, now.path.v, now.path.force, n_chains * q);
        if (n_moves && step == n_turns / 2)
            for (i64 c = 0; c < n_chains && !status; ++c)
                status = move_chain(*all, moves, now.state, key, c, tau_chance[c], spare, now.work);
        for (i64 c = 0; c < n_chains; ++c) place(of_chain(*all, c), now.path.u + c * q, now.state.beta + c * q, q);
        if (!status) status = score_at(*rows, now.state.beta, n_chains, now.state.loglik, now.state.score);
        for (i64 c = 0; c < n_chains; ++c) kick_chain(angle, *all, *reference, now.state, c, now.path, now.work);
    }
    if (!status) accept(state, now, key, n_chains, p, q, chance);
    return status;
}
