// The score in the sampler's coefficients, within a fused call, with the bits of ``Columns`` and a pass.
#include "fused_score.hpp"

// The sampler's coefficients beta (n_chains, q d) as those of X's own columns, by column; (q, width), with the d contrasts of
// a chain side by side.
template <class R>
static void by_column(const FusedScoreRows& rows, const double* beta, i64 n_chains, i64 width, R* coef) {
    const i64 d = rows.n_contrasts;
    for (i64 c = 0; c < width; ++c) {
        double own = 0.0, shift = 0.0;
        for (i64 j = 0; j < rows.q; ++j) {
            const i64 from = (c / d * rows.q + (rows.translated ? rows.place[j] : j)) * d + c % d;
            own = c < n_chains * d ? beta[from] : 0.0;
            if (rows.translated) own = own / rows.unit[j] + 0.0, shift += own * rows.centre[j];
            coef[j * width + c] = R(own);
        }
        if (rows.translated && rows.fit_intercept) coef[(rows.q - 1) * width + c] = R(own - shift);
    }
}

// The sum of m arrays of ``size`` numbers as a tree, in the first of them: ``add_pairs`` of ``_cpu/dense.py``.
static void add_pairs(double* sums, i64 m, i64 size) {
    for (; m > 1; m = (m + 1) / 2)
        for (i64 i = 0; i < m; i += 2) {
            double *out = sums + i / 2 * size, *left = sums + i * size, *right = left + size;
            for (i64 k = 0; k < size; ++k) out[k] = i + 1 < m ? left[k] + right[k] : left[k];
        }
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

i32 score_at(const FusedScoreRows& rows, const double* beta, i64 n_chains, double* loglik, double* score, bool is_quick) {
    const i64 q = rows.q, d = rows.n_contrasts, width = (n_chains * d + 3) / 4 * 4, m = rows.of_pass.n_blocks;
    Scratch<double> coef(q * width), sums(m * q * width), logliks(m * n_chains);
    if (coef.failed() || sums.failed() || logliks.failed()) return NO_MEMORY;
    if (rows.X.kind == 1) by_column(rows, beta, n_chains, width, coef.data);
    else by_column(rows, beta, n_chains, width, reinterpret_cast<float*>(coef.data));
    memset(sums, 0, sizeof(double) * m * q * width);
    memset(logliks, 0, sizeof(double) * m * n_chains);
    const Coefficients coefficients = {coef, q, width};
    PassRows of_pass = rows.of_pass;
    if (is_quick) of_pass.likelihood = rows.quick;
    const i32 status = score_pass(&rows.X, &of_pass, &coefficients, n_chains, sums, logliks);
    if (status) return status;
    add_pairs(sums, m, q * width), add_pairs(logliks, m, n_chains);
    memcpy(loglik, logliks, sizeof(double) * n_chains);
    for (i64 c = 0; c < n_chains * d; ++c)
        for (i64 k = 0; k < q; ++k) {
            const i64 j = rows.translated ? rows.order[k] : k;
            double value = sums[j * width + c];
            if (rows.translated && rows.fit_intercept) value -= sums[(q - 1) * width + c] * rows.centre[j];
            score[(c / d * q + k) * d + c % d] = rows.translated ? value / rows.unit[j] : value;
        }
    for (i64 c = 0; c < n_chains && rows.level; ++c)
        subtract_effects(rows, c, beta + c * q, loglik[c], score + c * q);
    return 0;
}

EXPORT i32 fused_score(const FusedScoreRows* rows, const double* beta, i64 n_chains, double* loglik, double* score) {
    return score_at(*rows, beta, n_chains, loglik, score);
}
