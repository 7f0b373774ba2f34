// The trajectories of a sweep of split Hamiltonian Monte Carlo in one call, for rows in an array and few columns, where
// the calls of Python would take much of the time. The numbers are, bit for bit, those of ``trajectories.cpp``.
#include "chains.hpp"
#include "fused_score.hpp"
#include "priors/horseshoe.hpp"

// A trajectory, the change of energy (n_chains,), and scratch: (q, q) and (2 q + p,).
struct TrajectoryMemory {
    Scratch<double> memory;
    Trajectory trajectory;
    double *change, *spare, *work;
    TrajectoryMemory(i64 n_chains, i64 p, i64 q) : memory(n_chains * (3 * q + 2) + q * q + 2 * q + p) {
        const i64 m = n_chains * q;
        trajectory = {memory, memory + m, memory + 2 * m, memory + 3 * m};
        change = trajectory.energy + n_chains, spare = change + n_chains, work = spare + q * q;
    }
};

// The settings of a sweep. apart : whether the scales move in a second trajectory.
struct SweepPlan {  // filled by Python
    double angle;
    i64 n_steps;
    i32 apart;
    ScaleMoves moves;
};

// The settings of a trajectory. tau_acceptance : (n_chains,) the share of the moves of tau that were accepted.
struct TrajectoryPlan {
    double angle;
    i64 n_steps;
    ScaleMoves moves;
    bool same_scales;
    double* tau_acceptance;
};

// The chains of a call: ``first`` to ``last - 1``. Arrays have those before them too.
struct Chains {
    i64 first, last;
    template <class F> void each(const F& use) const {
        for (i64 c = first; c < last; ++c) use(c);
    }
};

// The state after a trajectory and its test, in place: ``_trajectory`` of ``_mcmc/hmc.py``. acceptance : (n_chains,). A
// minor, NO_MEMORY or 0.
static i32 run_trajectory(const Gaussians& all, const Reference& reference, const FusedScoreRows& rows,
                          const TrajectoryPlan& plan, Key key, const Chains& chains, const State& state,
                          double* acceptance) {
    const i64 p = all.p, q = all.q, first = chains.first, n = chains.last - first;
    TrajectoryMemory memory(chains.last, p, q);
    Proposal proposal(chains.last, p, q);
    if (memory.memory.failed() || proposal.memory.failed()) return NO_MEMORY;
    const Trajectory& trajectory = memory.trajectory;
    const State& at = proposal.state;
    double *change = memory.change, *work = memory.work;
    i32 status = 0;
    const auto unless_failed = [&](const auto& make) {
        chains.each([&](i64 c) { status = status ? status : make(c); });
    };
    unless_failed([&](i64 c) { return begin_chain(all, reference, state, key, plan.same_scales, c, trajectory, work); });
    chains.each([&](i64 c) { change[c] = -trajectory.energy[c]; });
    memcpy(at.lambda_sq_inv + first * p, state.lambda_sq_inv + first * p, sizeof(double) * n * p);
    memcpy(at.tau_sq_inv + first, state.tau_sq_inv + first, sizeof(double) * n);
    for (i64 step = 0; step < plan.n_steps && !status; ++step) {
        const Trajectory own = of_chain(trajectory, first, q);
        kick_and_rotate(plan.angle, own.u, own.v, own.force, n * q);
        if (plan.moves.n && step == plan.n_steps / 2)
            unless_failed([&](i64 c) {
                return move_chain(all, plan.moves, at, key, c, plan.tau_acceptance[c], memory.spare, work);
            });
        chains.each([&](i64 c) { to_beta(of_chain(all, c), trajectory.u + c * q, at.beta + c * q, q); });
        const bool is_quick = step + 1 < plan.n_steps;
        if (!status) status = score_at(rows, at.beta + first * q, n, at.loglik + first, at.score + first * q, is_quick);
        chains.each([&](i64 c) { kick_chain(plan.angle, all, reference, at, c, trajectory, work); });
    }
    if (status) return status;
    chains.each([&](i64 c) { change[c] += trajectory.energy[c]; });
    metropolis(change, key, at, first, chains.last, p, q, state, acceptance);
    return 0;
}

// tau and lambda of a chain given its coefficients.
static void draw_scales(const Gaussians& all, const State& state, Key key, double tau_0, i64 c) {
    const double* beta = state.beta + c * all.q;
    const Scales scales = scales_of(state, c, all.p);
    const i64 d = all.n_contrasts, p = all.p / d;
    double& tau_sq_inv = *scales.tau_sq_inv;
    tau_sq_inv = draw_tau_given_beta(OneThread(), beta, p, tau_sq_inv, tau_0, Stream(key, u32(c), TAU_PURPOSE), d);
    draw_lambdas_of_chain(beta, p, tau_sq_inv, Stream(key, u32(c), LAMBDA_PURPOSE), scales.lambda_sq_inv, d);
}

// The state of the chains ``first`` to ``last - 1`` after the trajectories of a sweep, in place: ``_trajectories`` of
// ``_mcmc/hmc.py``. With effects of groups these are all chains. with_scales : whether the scales are then drawn given
// beta. tau_acceptance : null for no moves of tau. acceptance : (n_chains,). A minor, NO_MEMORY or 0.
EXPORT i32 fused_trajectories(const Gaussians* all, const Reference* reference, const FusedScoreRows* rows,
                              const SweepPlan* plan, u32 sweep, const u32* key, i32 with_scales, const State* state,
                              double* acceptance, double* tau_acceptance, i64 first, i64 last) {
    const bool apart = plan->apart;
    const Chains chains = {first, last};
    const auto run = [&](const TrajectoryPlan& one, u32 t, double* out) {
        return run_trajectory(*all, *reference, *rows, one, {t, key[0], key[1]}, chains, *state, out);
    };
    const ScaleMoves moves_within = apart ? ScaleMoves{} : plan->moves;
    i32 status = run({plan->angle, plan->n_steps, moves_within, false, tau_acceptance}, sweep, acceptance);
    if (apart && !status) {
        Scratch<double> second(last);
        if (second.failed()) return NO_MEMORY;
        status = run({0.0, 1, plan->moves, true, tau_acceptance}, sweep + SECOND_TRAJECTORY, second);
        chains.each([&](i64 c) { acceptance[c] = (acceptance[c] + second[c]) / 2.0; });
    }
    if (with_scales && !status)
        chains.each([&](i64 c) { draw_scales(*all, *state, {sweep, key[0], key[1]}, plan->moves.tau_0, c); });
    return status;
}
