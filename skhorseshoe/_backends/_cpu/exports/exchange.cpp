// Exchanges of shrunk coefficients, of the chains first to last - 1.
#include "exchange.hpp"

#include "proposal.hpp"
#include "scored_rows.hpp"

struct ExchangePrior {  // filled by Python
    const double* precision;  // (p,) of a coefficient that is away from zero
    const double* square;     // (p,) spreads of the columns, 0 of those that take no part
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
        const double own = value(j);
        below += own;
        if (own > 0.0) at = j;
    }
    return at;
}

// Column j of each chain, the logarithm of its probability, and the coefficients without it (n_chains, q).
EXPORT i32 take_out(const void* prior, const double* beta, const double* uniform, i64 first, i64 last, i64* out,
                    double* log_chance, double* without) {
    const ExchangePrior& of = *static_cast<const ExchangePrior*>(prior);
    for (i64 c = first; c < last; ++c) {
        const double *own = beta + c * of.q, total = sum_of_sizes(own, of.precision, of.p);
        const i64 j = first_above(uniform[c] * total, of.p,
                                  [&](i64 k) { return share_of_size(own[k], of.precision[k]); });
        out[c] = j, log_chance[c] = log_chance_out(own[j], of.precision[j], total);
        memcpy(without + c * of.q, own, sizeof(double) * of.q);
        without[c * of.q + j] = 0.0;
    }
    return 0;
}

// Column k and its value; ``with`` it, ``without`` it, and the logarithm of the density of the proposal.
// score : (n_chains, q) without column j. standard : (n_chains,) normal.
EXPORT i32 put_in(const void* prior, const double* beta, const i64* out, const double* score, const double* uniform,
                  const double* standard, i64 first, i64 last, i64* column, double* log_density, double* with,
                  double* without) {
    const ExchangePrior& of = *static_cast<const ExchangePrior*>(prior);
    Scratch<double> weights(of.p);
    if (weights.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const double *own = beta + c * of.q, *own_score = score + c * of.q;
        const double information = information_of_score(own_score, of.square, of.p);
        const double total = weigh_columns(own_score, of.square, of.diagonal, information, of.p, out[c], weights);
        const i64 k = first_above(uniform[c] * total, of.p, [&](i64 j) { return weights[j]; });
        const double precision = information * of.square[k] + of.diagonal[k];
        column[c] = k;
        log_density[c] = log(weights[k] / total) + log_normal_density(standard[c], precision);
        double *own_with = with + c * of.q, *own_without = without + c * of.q;
        memcpy(own_with, own, sizeof(double) * of.q);
        own_with[out[c]] = own[k], own_with[k] = own_score[k] / precision + standard[c] / sqrt(precision);
        memcpy(own_without, own_with, sizeof(double) * of.q);
        own_without[k] = 0.0;
    }
    return 0;
}

// Minus the logarithm of the Metropolis ratio of each chain. score : (n_chains, q) without column k. log_chance,
// log_density : what the functions above gave.
EXPORT i32 weigh_exchange(const void* prior, const double* beta, const double* loglik, const double* new_beta,
                          const double* new_loglik, const i64* out, const i64* column, const double* score,
                          const double* tau_sq_inv, const double* log_chance, const double* log_density, i64 first,
                          i64 last, double* change) {
    const ExchangePrior& of = *static_cast<const ExchangePrior*>(prior);
    Scratch<double> weights(of.p);
    if (weights.failed()) return NO_MEMORY;
    for (i64 c = first; c < last; ++c) {
        const i64 j = out[c], k = column[c];
        const double *old = beta + c * of.q, *now = new_beta + c * of.q, *own_score = score + c * of.q;
        const double before = old[j], after = now[k];
        const double information = information_of_score(own_score, of.square, of.p);
        const double total = weigh_columns(own_score, of.square, of.diagonal, information, of.p, k, weights);
        const double precision = information * of.square[j] + of.diagonal[j];
        double back = log(weights[j] / total);
        back += log_normal_density((before - own_score[j] / precision) * sqrt(precision), precision);
        back += log_chance_out(after, of.precision[k], sum_of_sizes(now, of.precision, of.p));
        double gain = new_loglik[c] - loglik[c];
        gain += log_fixed_prior(now, of.anchor, of.diagonal, of.q) - log_fixed_prior(old, of.anchor, of.diagonal, of.q);
        gain += log_horseshoe(after, tau_sq_inv[c]) - log_horseshoe(before, tau_sq_inv[c]);
        change[c] = log_chance[c] + log_density[c] - gain - back;
    }
    return 0;
}

// The state after n_exchanges and their tests, in place, without a call of Python between the steps; ``_exchange`` of
// ``_mcmc/hmc_prior.py``. uniform : (n_chains, 2 n_exchanges). standard : (n_chains, n_exchanges) normal. apart : what
// the number of the sweep grows by from test to test. chance : (n_chains,) mean of the probabilities of acceptance.
EXPORT i32 near_exchanges(const void* prior, const ScoredRows* rows, const double* uniform, const double* standard,
                          i64 n_exchanges, u32 sweep, u32 apart, u32 k0, u32 k1, i64 n_chains, double* beta,
                          double* tau_sq_inv, double* loglik, double* score, double* chance) {
    const i64 q = rows->q, size = n_chains * q;
    Scratch<double> memory(5 * size + 9 * n_chains);
    Scratch<i64> columns(2 * n_chains);
    if (memory.failed() || columns.failed()) return NO_MEMORY;
    // The coefficients with the column that comes in and without it, and what the rows say of both.
    double *with = memory, *without = with + size, *scores = without + size, *old_without = scores + 2 * size;
    double *logliks = old_without + size, *of_out = logliks + 2 * n_chains, *of_in = of_out + n_chains;
    double *of_value = of_in + n_chains, *log_chance = of_value + n_chains, *log_density = log_chance + n_chains;
    double *change = log_density + n_chains, *own_chance = change + n_chains;
    i64 *out = columns, *in = out + n_chains;
    const State state{beta, nullptr, tau_sq_inv, loglik, score};
    i32 status = 0;
    memset(chance, 0, sizeof(double) * n_chains);
    for (i64 i = 0; i < n_exchanges; ++i) {
        for (i64 c = 0; c < n_chains; ++c) {
            of_out[c] = uniform[c * 2 * n_exchanges + 2 * i], of_in[c] = uniform[c * 2 * n_exchanges + 2 * i + 1];
            of_value[c] = standard[c * n_exchanges + i];
        }
        take_out(prior, beta, of_out, 0, n_chains, out, log_chance, old_without);
        if ((status = score_at(*rows, old_without, n_chains, logliks, scores))) return status;
        status = put_in(prior, beta, out, scores, of_in, of_value, 0, n_chains, in, log_density, with, without);
        if (status || (status = score_at(*rows, with, 2 * n_chains, logliks, scores))) return status;
        status = weigh_exchange(prior, beta, loglik, with, logliks, out, in, scores + size, tau_sq_inv, log_chance,
                                log_density, 0, n_chains, change);
        if (status) return status;
        const Key key{sweep + u32(1 + i) * apart, k0, k1};
        test(change, key, {with, nullptr, tau_sq_inv, logliks, scores}, n_chains, 0, q, state, own_chance);
        for (i64 c = 0; c < n_chains; ++c) chance[c] += own_chance[c] / double(n_exchanges);
    }
    return 0;
}
