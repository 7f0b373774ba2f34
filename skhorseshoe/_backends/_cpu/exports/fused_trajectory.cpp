// A whole trajectory of split Hamiltonian Monte Carlo in one call, for rows in an array and few columns, where the
// calls of Python would take much of the time. The numbers are, bit for bit, those of ``trajectories.cpp``.
#include "chains.hpp"
#include "fused_score.hpp"

// A trajectory, the change of energy (n_chains,), and scratch.
struct TrajectoryMemory {
    Scratch<double> memory;
    Trajectory trajectory;
    double *change, *work;
    TrajectoryMemory(i64 n_chains, i64 p, i64 q) : memory(n_chains * (3 * q + 2) + 2 * q + p) {
        const i64 m = n_chains * q;
        trajectory = {memory, memory + m, memory + 2 * m, memory + 3 * m};
        change = trajectory.energy + n_chains, work = change + n_chains;
    }
};

// The state after a trajectory of n_steps and its test, in place: ``_trajectory`` of ``_mcmc/hmc.py``. acceptance :
// (n_chains,). tau_acceptance : (n_chains,) the share of the n_moves of tau that were accepted, or null for no moves. A
// minor, NO_MEMORY or 0.
EXPORT i32 fused_trajectory(const Gaussians* all, const Reference* reference, const FusedScoreRows* rows, double angle,
                            i64 n_steps, double tau_0, double tau_step, i64 n_moves, const i64* slow, i64 k, u32 sweep,
                            u32 k0, u32 k1, i32 same_scales, i64 n_chains, double* spare, double* beta,
                            double* lambda_sq_inv, double* tau_sq_inv, double* loglik, double* score, double* acceptance,
                            double* tau_acceptance) {
    const i64 p = all->p, q = all->q;
    const Key key{sweep, k0, k1};
    const State state{beta, lambda_sq_inv, tau_sq_inv, loglik, score};
    const ScaleMoves moves{tau_0, tau_step, n_moves, slow, k};
    TrajectoryMemory memory(n_chains, p, q);
    Proposal proposal(n_chains, p, q);
    if (memory.memory.failed() || proposal.memory.failed()) return NO_MEMORY;
    const Trajectory& trajectory = memory.trajectory;
    double *change = memory.change, *work = memory.work;
    i32 status = 0;
    for (i64 c = 0; c < n_chains && !status; ++c)
        status = begin_chain(*all, *reference, state, key, same_scales, c, trajectory, work);
    for (i64 c = 0; c < n_chains; ++c) change[c] = -trajectory.energy[c];
    memcpy(proposal.state.lambda_sq_inv, lambda_sq_inv, sizeof(double) * n_chains * p);
    memcpy(proposal.state.tau_sq_inv, tau_sq_inv, sizeof(double) * n_chains);
    for (i64 step = 0; step < n_steps && !status; ++step) {
        kick_and_rotate(angle, trajectory.u, trajectory.v, trajectory.force, n_chains * q);
        if (n_moves && step == n_steps / 2)
            for (i64 c = 0; c < n_chains && !status; ++c)
                status = move_chain(*all, moves, proposal.state, key, c, tau_acceptance[c], spare, work);
        for (i64 c = 0; c < n_chains; ++c) to_beta(of_chain(*all, c), trajectory.u + c * q, proposal.state.beta + c * q, q);
        if (!status) status = score_at(*rows, proposal.state.beta, n_chains, proposal.state.loglik, proposal.state.score);
        for (i64 c = 0; c < n_chains; ++c) kick_chain(angle, *all, *reference, proposal.state, c, trajectory, work);
    }
    if (status) return status;
    for (i64 c = 0; c < n_chains; ++c) change[c] += trajectory.energy[c];
    metropolis(change, key, proposal.state, n_chains, p, q, state, acceptance);
    return 0;
}
