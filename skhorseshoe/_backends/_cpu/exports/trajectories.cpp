// Trajectories of split Hamiltonian Monte Carlo of the chains ``first`` to ``last - 1``: the parts of a leapfrog step, and all
// of a sweep in one call, for rows in an array and few columns, where the calls of Python would take much of the time. The
// numbers are the same, bit for bit. Arrays (n_chains, ...) have all chains and are overwritten. A matrix that is not
// positive definite is reported by the number of its minor.
#include "diagonal_mass_matrix.hpp"
#include "fused_score.hpp"
#include "mass_matrix.hpp"
#include "prior_coordinates.hpp"

// What moves the chains: a mass matrix and its reference, a diagonal one, or coordinates of the prior. The others are null.
struct Dynamics {  // filled by Python
    const Gaussians* gaussians;
    const Reference* reference;
    const DiagonalGaussians* diagonal;
    const PriorCoordinates* prior;
};

// answer(chains) with the functions of a chain: ``begin``, ``to_beta``, ``kick`` and ``move_scales``; ``p`` and ``q`` are the
// sizes of a state, and ``size`` the number of coordinates.
template <class F> static i32 on_dynamics(const Dynamics& of, F answer) {
    const auto if_there = [&](const auto& chains) { return chains.work.failed() ? NO_MEMORY : answer(chains); };
    if (of.prior) return if_there(InPriorCoordinates(*of.prior));
    if (of.diagonal) return if_there(DiagonalMassMatrix(*of.diagonal));
    return if_there(MassMatrix(*of.gaussians, *of.reference));
}

// v ~ N(0, I), u, force and energy. same_scales : whether the trajectory before ended with these scales.
EXPORT i32 begin_trajectory(const Dynamics* dynamics, const State* state, u32 sweep, const u32* key, i32 same_scales, i64 first,
                            i64 last, const Trajectory* trajectory) {
    return on_dynamics(*dynamics, [&](const auto& chains) {
        i32 status = 0;
        for (i64 c = first; c < last && !status; ++c)
            status = chains.begin(c, *state, {sweep, key[0], key[1]}, same_scales, *trajectory);
        return status;
    });
}

// A half-kick of v, and a rotation of (u, v) by an angle, of ``size`` coordinates each.
EXPORT i32 kick_and_rotate_chains(double angle, i64 size, i64 first, i64 last, const Trajectory* trajectory) {
    const Trajectory at = of_chain(*trajectory, first, size);
    kick_and_rotate(angle, at.u, at.v, at.force, (last - first) * size);
    return 0;
}

// beta, and tau^-2 where it is a coordinate.
EXPORT i32 trajectory_beta(const Dynamics* dynamics, const double* u, i64 first, i64 last, const State* state) {
    return on_dynamics(*dynamics, [&](const auto& chains) {
        for (i64 c = first; c < last; ++c) chains.to_beta(c, u, *state);
        return 0;
    });
}

// The force at beta, a half-kick of v and the energy.
EXPORT i32 kick_trajectory(const Dynamics* dynamics, double angle, const State* state, i64 first, i64 last,
                           const Trajectory* trajectory) {
    return on_dynamics(*dynamics, [&](const auto& chains) {
        for (i64 c = first; c < last; ++c) chains.kick(c, angle, *state, *trajectory);
        return 0;
    });
}

// See ``ScaleMoves``. accepted : (n_chains,) share of the moves of tau that were accepted. spare : (q, q) scratch for a mass
// matrix.
EXPORT i32 move_scales(const Dynamics* dynamics, const ScaleMoves* moves, const State* state, u32 sweep, const u32* key,
                       i64 first, i64 last, double* spare, double* accepted) {
    return on_dynamics(*dynamics, [&](const auto& chains) {
        i32 status = 0;
        for (i64 c = first; c < last && !status; ++c)
            status = chains.move_scales(c, *moves, *state, {sweep, key[0], key[1]}, accepted[c], spare);
        return status;
    });
}

// The settings of a sweep. apart : whether the scales move in a second trajectory.
struct SweepPlan {  // filled by Python
    double angle;
    i64 n_steps;
    i32 apart;
    ScaleMoves moves;
};

// The state after a trajectory and its test, in place: ``along_trajectory`` of ``_mcmc/hmc.py``, and ``_trajectory`` of
// ``_mcmc/hmc_prior_coordinates.py``. acceptance, tau_acceptance : as below.
template <class Chains>
static i32 run_trajectory(const Chains& chains, const FusedScoreRows& rows, const SweepPlan& plan, bool same_scales, Key key,
                          i64 first, i64 last, const State& state, double* acceptance, double* tau_acceptance) {
    const i64 p = chains.p, q = chains.q, size = chains.size, n = last - first;
    Scratch<double> memory(last * (3 * size + 2)), spare(plan.moves.n ? q * q : 0);
    Proposal proposal(last, p, q);
    if (memory.failed() || spare.failed() || proposal.memory.failed()) return NO_MEMORY;
    const Trajectory trajectory = {memory, memory + last * size, memory + 2 * last * size, memory + 3 * last * size};
    const Trajectory own = of_chain(trajectory, first, size);
    const State& at = proposal.state;
    double* change = trajectory.energy + last;
    i32 status = 0;
    for (i64 c = first; c < last && !status; ++c) {
        status = chains.begin(c, state, key, same_scales, trajectory);
        change[c] = -trajectory.energy[c];
        for (i64 j = c * p; j < (c + 1) * p; ++j) at.lambda_sq_inv[j] = state.lambda_sq_inv[j];
        at.tau_sq_inv[c] = state.tau_sq_inv[c];
    }
    for (i64 step = 0; step < plan.n_steps && !status; ++step) {
        kick_and_rotate(plan.angle, own.u, own.v, own.force, n * size);
        if (plan.moves.n && step == plan.n_steps / 2)
            for (i64 c = first; c < last && !status; ++c)
                status = chains.move_scales(c, plan.moves, at, key, tau_acceptance[c], spare);
        if (status) break;
        for (i64 c = first; c < last; ++c) chains.to_beta(c, trajectory.u, at);
        status = score_at(rows, at.beta + first * q, n, at.loglik + first, at.score + first * q, step + 1 < plan.n_steps);
        for (i64 c = first; c < last; ++c) chains.kick(c, plan.angle, at, trajectory);
    }
    if (status) return status;
    for (i64 c = first; c < last; ++c) change[c] += trajectory.energy[c];
    metropolis(change, key, at, first, last, p, q, state, acceptance);
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

// The state after the trajectories of a sweep, in place: ``_trajectories`` of ``_mcmc/hmc.py``; not for a diagonal mass matrix.
// With effects of groups the chains are all chains. with_scales : whether the scales are then drawn given beta. acceptance,
// tau_acceptance : (n_chains,), the latter the share of the moves of tau that were accepted; null for no moves.
EXPORT i32 fused_trajectories(const Dynamics* dynamics, const FusedScoreRows* rows, const SweepPlan* plan, u32 sweep,
                              const u32* key, i32 with_scales, const State* state, double* acceptance,
                              double* tau_acceptance, i64 first, i64 last) {
    const auto run = [&](const SweepPlan& one, u32 t, bool same_scales, double* out) {
        return on_dynamics(*dynamics, [&](const auto& chains) {
            const Key of_sweep = {t, key[0], key[1]};
            return run_trajectory(chains, *rows, one, same_scales, of_sweep, first, last, *state, out, tau_acceptance);
        });
    };
    const ScaleMoves within = plan->apart ? ScaleMoves{} : plan->moves;
    i32 status = run({plan->angle, plan->n_steps, 0, within}, sweep, false, acceptance);
    if (plan->apart && !status) {
        Scratch<double> second(last);
        if (second.failed()) return NO_MEMORY;
        status = run({0.0, 1, 0, plan->moves}, sweep + SECOND_TRAJECTORY, true, second);
        for (i64 c = first; c < last; ++c) acceptance[c] = (acceptance[c] + second[c]) / 2.0;
    }
    for (i64 c = first; c < last && with_scales && !status; ++c)
        draw_scales(*dynamics->gaussians, *state, {sweep, key[0], key[1]}, plan->moves.tau_0, c);
    return status;
}

// w of the shrunk coefficients, the other coefficients, and log tau; out (n_chains, q + 1).
EXPORT i32 prior_coordinates(const PriorCoordinates* coordinates, const double* beta, const double* tau_sq_inv, i64 n_chains,
                             double* out) {
    const PriorCoordinates& at = *coordinates;
    for (i64 c = 0; c < n_chains; ++c) coordinates_of(at, beta + c * at.q, tau_sq_inv[c], out + c * (at.q + 1));
    return 0;
}

// Whether a Metropolis test accepts the changes of energy (n_chains,), and the probabilities with which it does.
EXPORT i32 accept_proposals(const double* change, i64 n_chains, u32 sweep, const u32* key, u8* accepted,
                            double* acceptance) {
    for (i64 c = 0; c < n_chains; ++c)
        accepted[c] = accepts(change[c], Stream({sweep, key[0], key[1]}, u32(c), ACCEPT_PURPOSE), acceptance[c]);
    return 0;
}
