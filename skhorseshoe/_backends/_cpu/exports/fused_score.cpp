// The score in the sampler's coefficients, within a fused call, with the bits of ``Columns`` and a pass.
#include "fused_score.hpp"

// The sampler's coefficients beta (n_chains, size) as those of X's own columns, by column; (q, width), with the d contrasts of
// a chain side by side.
template <class R>
static void by_column(const FusedScoreRows& rows, const double* beta, i64 n_chains, i64 width, R* coef) {
    const i64 q = rows.q, d = rows.n_contrasts;
    for (i64 c = 0; c < width; c += 4) {
        double own[4] = {}, shift[4] = {};
        const double* of_chain[4];
        for (i64 k = 0; k < 4; ++k) of_chain[k] = c + k < n_chains * d ? beta + (c + k) / d * rows.size + (c + k) % d : nullptr;
        for (i64 j = 0; j < q; ++j) {
            const i64 from = (rows.translated ? rows.place[j] : j) * d;
            for (i64 k = 0; k < 4; ++k) {
                own[k] = of_chain[k] ? of_chain[k][from] : 0.0;
                if (rows.translated) own[k] = own[k] / rows.unit[j] + 0.0, shift[k] += own[k] * rows.centre[j];
                coef[j * width + c + k] = R(own[k]);
            }
        }
        for (i64 k = 0; k < 4 && rows.translated && rows.fit_intercept; ++k)
            coef[(q - 1) * width + c + k] = R(own[k] - shift[k]);
    }
}

static void by_column(const FusedScoreRows& rows, const double* beta, i64 n_chains, i64 width, void* coef) {
    if (rows.X.kind % 2) by_column(rows, beta, n_chains, width, static_cast<double*>(coef));
    else by_column(rows, beta, n_chains, width, static_cast<float*>(coef));
}

// The sum of m arrays of ``size`` numbers as a tree, in the first of them: ``add_pairs`` of ``_cpu/dense.py``.
static void add_pairs(double* sums, i64 m, i64 size) {
    for (; m > 1; m = (m + 1) / 2)
        for (i64 i = 0; i < m; i += 2) {
            double *out = sums + i / 2 * size, *left = sums + i * size, *right = left + size;
            for (i64 k = 0; k < size; ++k) out[k] = i + 1 < m ? left[k] + right[k] : left[k];
        }
}

// The gradient by the sampler's coefficients (n_chains, size), for the columns ``first`` to ``last - 1`` of X, from the sums of
// all blocks (n_blocks, q, width). NO_MEMORY or 0.
static i32 add_up(const FusedScoreRows& rows, const double* sums, i64 n_chains, i64 width, i64 first, i64 last,
                  double* score) {
    const i64 q = rows.q, d = rows.n_contrasts, m = rows.of_pass.n_blocks, tile = 64;
    Scratch<double> held(m * tile * width), of_intercept(m * width);
    if (held.failed() || of_intercept.failed()) return NO_MEMORY;
    const auto total = [&](i64 start, i64 n, double* out) {
        for (i64 i = 0; i < m; ++i) memcpy(out + i * n * width, sums + (i * q + start) * width, sizeof(double) * n * width);
        add_pairs(out, m, n * width);
    };
    total(q - 1, 1, of_intercept);
    const bool is_centred = rows.translated && rows.fit_intercept;
    for (i64 start = first; start < last; start += tile) {
        const i64 stop = least(start + tile, last);
        total(start, stop - start, held);
        for (i64 c = 0; c < n_chains * d; ++c)
            for (i64 j = start; j < stop; ++j) {
                double value = held[(j - start) * width + c];
                if (is_centred) value -= of_intercept[c] * rows.centre[j];
                if (rows.translated) value /= rows.unit[j];
                score[c / d * rows.size + (rows.translated ? rows.place[j] : j) * d + c % d] = value;
            }
    }
    return 0;
}

// Subtracts what effects add to minus the log-density of a chain.
static void subtract_effects(const FusedScoreRows& rows, i64 c, const double* beta, double& loglik, double* score) {
    const i64 k = rows.n_followed, held = rows.q - k;
    const double *pull = rows.pull + c * k, *followed = beta + held;
    loglik -= rows.level[c];
    for (i64 i = 0; i < k; ++i) {
        const double* curvature = rows.curvature + (c * k + i) * k;
        const double slope = pull[i] + sum(k, [=](i64 j) { return curvature[j] * followed[j]; });
        loglik -= 0.5 * (pull[i] + slope) * followed[i];
        score[held + i] -= slope;
    }
}

// The parameters of the likelihood's own (n_own,) of a chain.
static void own_parameters(const FusedScoreRows& rows, const double* beta, double* own) {
    const double* theta = beta + rows.size - rows.n_own;
    for (i64 i = 0; i < rows.n_own; ++i) own[i] = (i ? own[i - 1] : 0.0) + exp(theta[i]);
}

// Adds log p(theta) of a chain, and to the gradient what this and the derivatives by_own (n_own,) give.
static void add_own(const FusedScoreRows& rows, const double* own, const double* by_own, const double* beta, double& loglik,
                    double* score) {
    const i64 n_others = rows.size - rows.n_own;
    const double *theta = beta + n_others, centre = sum(n_others, [=](i64 j) { return rows.at_mean[j] * beta[j]; });
    double total = 0.0, pull = 0.0;
    for (i64 i = rows.n_own - 1; i >= 0; --i) {
        const double force = rows.precision * (own[i] - centre);
        loglik += theta[i] - 0.5 * force * (own[i] - centre);
        pull += force, total += by_own[i] - force;
        score[n_others + i] += total * exp(theta[i]) + 1.0;
    }
    for (i64 j = 0; j < n_others; ++j) score[j] += pull * rows.at_mean[j];
}

i32 score_at(const FusedScoreRows& rows, const double* beta, i64 n_chains, double* loglik, double* score, bool is_quick) {
    const i64 q = rows.q, d = rows.n_contrasts, width = (n_chains * d + 3) / 4 * 4, m = rows.of_pass.n_blocks;
    const i64 n_own = rows.n_own, n_theta = rows.size - q * d;
    Scratch<double> coef(q * width), sums(m * q * width), logliks(m * n_chains), own((1 + m) * n_chains * n_own);
    if (coef.failed() || sums.failed() || logliks.failed() || own.failed()) return NO_MEMORY;
    double* by_own = own + n_chains * n_own;
    by_column(rows, beta, n_chains, width, static_cast<void*>(coef.data));
    memset(sums, 0, sizeof(double) * m * q * width);
    memset(logliks, 0, sizeof(double) * m * n_chains);
    const Coefficients coefficients = {coef, q, width};
    PassRows of_pass = rows.of_pass;
    if (is_quick) of_pass.likelihood = rows.quick;
    if (n_own) {
        for (i64 c = 0; c < n_chains; ++c) own_parameters(rows, beta + c * rows.size, own + c * n_own);
        memset(by_own, 0, sizeof(double) * m * n_chains * n_own);
        of_pass.own = own, of_pass.own_sums = by_own, of_pass.n_own = n_own;
    }
    const i32 status = score_pass(&rows.X, &of_pass, &coefficients, n_chains, sums, logliks);
    if (status) return status;
    if (const i32 no_memory = add_up(rows, sums, n_chains, width, 0, q, score)) return no_memory;
    add_pairs(logliks, m, n_chains);
    memcpy(loglik, logliks, sizeof(double) * n_chains);
    add_pairs(by_own, m, n_chains * n_own);
    for (i64 c = 0; c < n_chains; ++c) {
        const double* of_chain = beta + c * rows.size;
        double* gradient = score + c * rows.size;
        for (i64 i = 0; i < n_theta; ++i) gradient[q * d + i] = 0.0;
        if (rows.level) subtract_effects(rows, c, of_chain, loglik[c], gradient);
        if (n_own) add_own(rows, own + c * n_own, by_own + c * n_own, of_chain, loglik[c], gradient);
    }
    return 0;
}

EXPORT i32 fused_score(const FusedScoreRows* rows, const double* beta, i64 n_chains, double* loglik, double* score) {
    return score_at(*rows, beta, n_chains, loglik, score);
}

// The parts of a score before and after its pass. coef : (q, width), of the type of X.
EXPORT i32 coefficients_by_column(const FusedScoreRows* rows, const double* beta, i64 n_chains, i64 width, void* coef) {
    by_column(*rows, beta, n_chains, width, coef);
    return 0;
}

EXPORT i32 add_up_score(const FusedScoreRows* rows, const double* sums, i64 n_chains, i64 width, i64 first, i64 last,
                        double* score) {
    return add_up(*rows, sums, n_chains, width, first, last, score);
}
