// Exchanges of shrunk coefficients, of the chains first to last - 1.
#include "exchange.hpp"

#include "proposal.hpp"
#include "fused_score.hpp"

struct ExchangePrior {  // filled by Python
    const double* precision;  // (p,) of a coefficient away from zero
    const double* square;     // (p,) squared spreads of the columns, 0 for those that take no part
    const double* anchor;     // (q,) of the fixed prior
    const double* diagonal;   // (q,)
    i64 p;
    i64 q;
};

// The first index at which the running sum of value(j) exceeds a limit; at most the last one whose value is above 0.
template <class F> static i64 first_above(double limit, i64 n, F value) {
    double below = 0.0;
    i64 at = 0;
    for (i64 j = 0; j < n && below <= limit; ++j) {
        const double weight = value(j);
        below += weight;
        if (weight > 0.0) at = j;
    }
    return at;
}

// Column j of each chain, the logarithm of its probability, and the coefficients without it (n_chains, q).
EXPORT i32 propose_leaving(const void* prior, const double* beta, const double* uniform, i64 first, i64 last, i64* out,
                           double* log_probability, double* without) {
    const ExchangePrior& law = *static_cast<const ExchangePrior*>(prior);
    for (i64 c = first; c < last; ++c) {
        const double *chain_beta = beta + c * law.q, total = sum_of_sizes(chain_beta, law.precision, law.p);
        const i64 j = first_above(uniform[c] * total, law.p,
                                  [&](i64 k) { return share_of_size(chain_beta[k], law.precision[k]); });
        out[c] = j, log_probability[c] = log_probability_out(chain_beta[j], law.precision[j], total);
        memcpy(without + c * law.q, chain_beta, sizeof(double) * law.q);
        without[c * law.q + j] = 0.0;
    }
    return 0;
}

// Column k, coefficients ``with`` its new value and ``without`` it, and the log-density of the proposal.
// score : (n_chains, q) without column j. standard : (n_chains,) normal.
EXPORT i32 propose_entering(const void* prior, const double* beta, const i64* out, const double* score,
                            const double* uniform, const double* standard, i64 first, i64 last, i64* column,
                            double* log_density, double* with, double* without) {
    const ExchangePrior& law = *static_cast<const ExchangePrior*>(prior);
    Scratch<double> weights(law.p);
    if (weights.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const double *chain_beta = beta + c * law.q, *chain_score = score + c * law.q;
        const double information = information_of_score(chain_score, law.square, law.p);
        const double total = weigh_columns(chain_score, law.square, law.diagonal, information, law.p, out[c], weights);
        const i64 k = first_above(uniform[c] * total, law.p, [&](i64 j) { return weights[j]; });
        const double precision = information * law.square[k] + law.diagonal[k];
        column[c] = k;
        log_density[c] = log(weights[k] / total) + log_normal_density(standard[c], precision);
        double *chain_with = with + c * law.q, *chain_without = without + c * law.q;
        memcpy(chain_with, chain_beta, sizeof(double) * law.q);
        chain_with[out[c]] = chain_beta[k], chain_with[k] = chain_score[k] / precision + standard[c] / sqrt(precision);
        memcpy(chain_without, chain_with, sizeof(double) * law.q);
        chain_without[k] = 0.0;
    }
    return 0;
}

// Minus the logarithm of the Metropolis ratio of each chain. score : (n_chains, q) without column k. log_probability,
// log_density : of the functions above.
EXPORT i32 minus_log_ratio(const void* prior, const double* beta, const double* loglik, const double* new_beta,
                           const double* new_loglik, const i64* out, const i64* column, const double* score,
                           const double* tau_sq_inv, const double* log_probability, const double* log_density,
                           i64 first, i64 last, double* change) {
    const ExchangePrior& law = *static_cast<const ExchangePrior*>(prior);
    Scratch<double> weights(law.p);
    if (weights.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const i64 j = out[c], k = column[c];
        const double *old = beta + c * law.q, *proposed = new_beta + c * law.q, *chain_score = score + c * law.q;
        const double old_value = old[j], new_value = proposed[k];
        const double information = information_of_score(chain_score, law.square, law.p);
        const double total = weigh_columns(chain_score, law.square, law.diagonal, information, law.p, k, weights);
        const double precision = information * law.square[j] + law.diagonal[j];
        double back = log(weights[j] / total);
        back += log_normal_density((old_value - chain_score[j] / precision) * sqrt(precision), precision);
        back += log_probability_out(new_value, law.precision[k], sum_of_sizes(proposed, law.precision, law.p));
        double gain = new_loglik[c] - loglik[c];
        gain += log_fixed_prior(proposed, law.anchor, law.diagonal, law.q) -
                log_fixed_prior(old, law.anchor, law.diagonal, law.q);
        gain += log_horseshoe(new_value, tau_sq_inv[c]) - log_horseshoe(old_value, tau_sq_inv[c]);
        change[c] = log_probability[c] + log_density[c] - gain - back;
    }
    return 0;
}

// The state after n_exchanges and their tests, in place: ``_exchange`` of ``_mcmc/hmc_prior_coordinates.py``. uniform :
// (n_chains, 2 n_exchanges). standard : (n_chains, n_exchanges) normal. stride : added to the number of the sweep for
// each exchange. acceptance : (n_chains,) the mean over exchanges.
EXPORT i32 fused_exchanges(const void* prior, const FusedScoreRows* rows, const double* uniform, const double* standard,
                           i64 n_exchanges, u32 sweep, u32 stride, const u32* key, i64 n_chains, double* beta,
                           double* tau_sq_inv, double* loglik, double* score, double* acceptance) {
    const i64 q = rows->q, size = n_chains * q;
    Scratch<double> memory(5 * size + 9 * n_chains);
    Scratch<i64> columns(2 * n_chains);
    if (memory.failed() || columns.failed()) return NO_MEMORY;
    // The coefficients with the column that enters and without it, and the scores of both.
    double *with = memory, *without = with + size, *scores = without + size, *old_without = scores + 2 * size;
    double *logliks = old_without + size, *out_u = logliks + 2 * n_chains, *in_u = out_u + n_chains;
    double *value_z = in_u + n_chains, *log_probability = value_z + n_chains, *log_density = log_probability + n_chains;
    double *change = log_density + n_chains, *own_acceptance = change + n_chains;
    i64 *out = columns, *in = out + n_chains;
    const State state{beta, nullptr, tau_sq_inv, loglik, score};
    i32 status = 0;
    memset(acceptance, 0, sizeof(double) * n_chains);
    for (i64 i = 0; i < n_exchanges; ++i) {
        for (i64 c = 0; c < n_chains; ++c) {
            out_u[c] = uniform[c * 2 * n_exchanges + 2 * i], in_u[c] = uniform[c * 2 * n_exchanges + 2 * i + 1];
            value_z[c] = standard[c * n_exchanges + i];
        }
        propose_leaving(prior, beta, out_u, 0, n_chains, out, log_probability, old_without);
        if ((status = score_at(*rows, old_without, n_chains, logliks, scores))) return status;
        status = propose_entering(prior, beta, out, scores, in_u, value_z, 0, n_chains, in, log_density, with, without);
        if (status || (status = score_at(*rows, with, 2 * n_chains, logliks, scores))) return status;
        status = minus_log_ratio(prior, beta, loglik, with, logliks, out, in, scores + size, tau_sq_inv,
                                 log_probability, log_density, 0, n_chains, change);
        if (status) return status;
        const Key of_exchange{sweep + u32(1 + i) * stride, key[0], key[1]};
        metropolis(change, of_exchange, {with, nullptr, tau_sq_inv, logliks, scores}, n_chains, 0, q, state, own_acceptance);
        for (i64 c = 0; c < n_chains; ++c) acceptance[c] += own_acceptance[c] / double(n_exchanges);
    }
    return 0;
}
