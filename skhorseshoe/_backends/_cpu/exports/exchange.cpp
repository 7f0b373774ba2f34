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

// A proposal of all chains: ``out`` leaves and ``in`` enters (n_chains,), with the logarithms of the probability of the one and
// of the density of the other; the coefficients (n_chains, q) with the value of the latter, and without it.
struct Exchange {  // filled by Python
    i64 *out, *in;
    double *log_probability, *log_density;
    double *with, *without;
};

// Column j of each chain, the logarithm of its probability, and the coefficients ``without`` it.
EXPORT i32 propose_leaving(const ExchangePrior* prior, const double* beta, const double* uniform, i64 first, i64 last,
                           const Exchange* to) {
    const ExchangePrior& law = *prior;
    for (i64 c = first; c < last; ++c) {
        const double *chain_beta = beta + c * law.q, total = sum_of_sizes(chain_beta, law.precision, law.p);
        const i64 j = first_above(uniform[c] * total, law.p,
                                  [&](i64 k) { return share_of_size(chain_beta[k], law.precision[k]); });
        to->out[c] = j, to->log_probability[c] = log_probability_out(chain_beta[j], law.precision[j], total);
        memcpy(to->without + c * law.q, chain_beta, sizeof(double) * law.q);
        to->without[c * law.q + j] = 0.0;
    }
    return 0;
}

// Column k, the log-density of the proposal, and the coefficients with and without it. score : (n_chains, q) without
// column j. standard : (n_chains,) normal.
EXPORT i32 propose_entering(const ExchangePrior* prior, const double* beta, const double* score, const double* uniform,
                            const double* standard, i64 first, i64 last, const Exchange* to) {
    const ExchangePrior& law = *prior;
    Scratch<double> weights(law.p);
    if (weights.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const double *chain_beta = beta + c * law.q, *chain_score = score + c * law.q;
        const double information = information_of_score(chain_score, law.square, law.p);
        const i64 j = to->out[c];
        const double total = weigh_columns(chain_score, law.square, law.diagonal, information, law.p, j, weights);
        const i64 k = first_above(uniform[c] * total, law.p, [&](i64 i) { return weights[i]; });
        const double precision = information * law.square[k] + law.diagonal[k];
        to->in[c] = k;
        to->log_density[c] = log(weights[k] / total) + log_normal_density(standard[c], precision);
        double *with = to->with + c * law.q, *without = to->without + c * law.q;
        memcpy(with, chain_beta, sizeof(double) * law.q);
        with[j] = chain_beta[k], with[k] = chain_score[k] / precision + standard[c] / sqrt(precision);
        memcpy(without, with, sizeof(double) * law.q);
        without[k] = 0.0;
    }
    return 0;
}

// Minus the logarithm of the Metropolis ratio of each chain. state : before. loglik : with column k. score : (n_chains, q)
// without it.
EXPORT i32 minus_log_ratio(const ExchangePrior* prior, const State* state, const Exchange* exchange, const double* loglik,
                           const double* score, i64 first, i64 last, double* change) {
    const ExchangePrior& law = *prior;
    Scratch<double> weights(law.p);
    if (weights.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const i64 j = exchange->out[c], k = exchange->in[c];
        const double *old = state->beta + c * law.q, *proposed = exchange->with + c * law.q, *chain_score = score + c * law.q;
        const double old_value = old[j], new_value = proposed[k], tau_sq_inv = state->tau_sq_inv[c];
        const double information = information_of_score(chain_score, law.square, law.p);
        const double total = weigh_columns(chain_score, law.square, law.diagonal, information, law.p, k, weights);
        const double precision = information * law.square[j] + law.diagonal[j];
        double back = log(weights[j] / total);
        back += log_normal_density((old_value - chain_score[j] / precision) * sqrt(precision), precision);
        back += log_probability_out(new_value, law.precision[k], sum_of_sizes(proposed, law.precision, law.p));
        double gain = loglik[c] - state->loglik[c];
        gain += log_fixed_prior(proposed, law.anchor, law.diagonal, law.q) -
                log_fixed_prior(old, law.anchor, law.diagonal, law.q);
        gain += log_horseshoe(new_value, tau_sq_inv) - log_horseshoe(old_value, tau_sq_inv);
        change[c] = exchange->log_probability[c] + exchange->log_density[c] - gain - back;
    }
    return 0;
}

// The state after n_exchanges and their tests, in place: ``_exchange`` of ``_mcmc/hmc_prior_coordinates.py``. uniform :
// (n_chains, 2 n_exchanges). standard : (n_chains, n_exchanges) normal. stride : added to the number of the sweep for
// each exchange. acceptance : (n_chains,) the mean over exchanges.
EXPORT i32 fused_exchanges(const ExchangePrior* prior, const FusedScoreRows* rows, const double* uniform,
                           const double* standard, i64 n_exchanges, u32 sweep, u32 stride, const u32* key,
                           i64 n_chains, const State* state, double* acceptance) {
    const i64 q = rows->size, size = n_chains * q;
    Scratch<double> memory(4 * size + 9 * n_chains);
    Scratch<i64> columns(2 * n_chains);
    if (memory.failed() || columns.failed()) return NO_MEMORY;
    // The coefficients with the column that enters and without it, one after the other, and the scores of both.
    double *with = memory, *scores = with + 2 * size, *logliks = scores + 2 * size, *out_u = logliks + 2 * n_chains;
    double *in_u = out_u + n_chains, *value_z = in_u + n_chains, *change = value_z + n_chains;
    double *own_acceptance = change + n_chains, *logs = own_acceptance + n_chains;
    const Exchange exchange = {columns, columns + n_chains, logs, logs + n_chains, with, with + size};
    i32 status = 0;
    memset(acceptance, 0, sizeof(double) * n_chains);
    for (i64 i = 0; i < n_exchanges; ++i) {
        for (i64 c = 0; c < n_chains; ++c) {
            out_u[c] = uniform[c * 2 * n_exchanges + 2 * i], in_u[c] = uniform[c * 2 * n_exchanges + 2 * i + 1];
            value_z[c] = standard[c * n_exchanges + i];
        }
        propose_leaving(prior, state->beta, out_u, 0, n_chains, &exchange);
        if ((status = score_at(*rows, exchange.without, n_chains, logliks, scores))) return status;
        status = propose_entering(prior, state->beta, scores, in_u, value_z, 0, n_chains, &exchange);
        if (status || (status = score_at(*rows, with, 2 * n_chains, logliks, scores))) return status;
        status = minus_log_ratio(prior, state, &exchange, logliks, scores + size, 0, n_chains, change);
        if (status) return status;
        const Key of_exchange{sweep + u32(1 + i) * stride, key[0], key[1]};
        const State proposed = {with, nullptr, state->tau_sq_inv, logliks, scores};
        metropolis(change, of_exchange, proposed, 0, n_chains, 0, q, *state, own_acceptance);
        for (i64 c = 0; c < n_chains; ++c) acceptance[c] += own_acceptance[c] / double(n_exchanges);
    }
    return 0;
}
