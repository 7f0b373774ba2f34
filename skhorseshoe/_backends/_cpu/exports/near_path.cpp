// A path of split Hamiltonian Monte Carlo in one call, for rows in an array and few columns: what Python takes between the
// steps would be much of the time. The numbers are, bit for bit, those of the steps one by one.
#include "chains.hpp"
#include "scored_rows.hpp"

// Memory of the path itself.
struct OnTheWay {
    Scratch<double> memory;
    Path path;
    double *change, *work;
    OnTheWay(i64 n_chains, i64 p, i64 q) : memory(n_chains * (3 * q + 2) + 2 * q + p) {
        const i64 m = n_chains * q;
        path = {memory, memory + m, memory + 2 * m, memory + 3 * m};
        change = path.total + n_chains, work = change + n_chains;
    }
};

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
    OnTheWay on_the_way(n_chains, p, q);
    Proposal now(n_chains, p, q);
    if (on_the_way.memory.failed() || now.memory.failed()) return NO_MEMORY;
    const Path& path = on_the_way.path;
    double *change = on_the_way.change, *work = on_the_way.work;
    i32 status = 0;
    for (i64 c = 0; c < n_chains && !status; ++c)
        status = begin_chain(*all, *reference, state, key, same_scales, c, path, work);
    for (i64 c = 0; c < n_chains; ++c) change[c] = -path.total[c];
    memcpy(now.state.lambda_sq_inv, lambda_sq_inv, sizeof(double) * n_chains * p);
    memcpy(now.state.tau_sq_inv, tau_sq_inv, sizeof(double) * n_chains);
    for (i64 step = 0; step < n_turns && !status; ++step) {
        turn(angle, path.u, path.v, path.force, n_chains * q);
        if (n_moves && step == n_turns / 2)
            for (i64 c = 0; c < n_chains && !status; ++c)
                status = move_chain(*all, moves, now.state, key, c, tau_chance[c], spare, work);
        for (i64 c = 0; c < n_chains; ++c) place(of_chain(*all, c), path.u + c * q, now.state.beta + c * q, q);
        if (!status) status = score_at(*rows, now.state.beta, n_chains, now.state.loglik, now.state.score);
        for (i64 c = 0; c < n_chains; ++c) kick_chain(angle, *all, *reference, now.state, c, path, work);
    }
    if (status) return status;
    for (i64 c = 0; c < n_chains; ++c) change[c] += path.total[c];
    test(change, key, now.state, n_chains, p, q, state, chance);
    return 0;
}
