// Trajectories of the chains in the coordinates of the prior: u = (w - centre) / size of each coordinate.
#pragma once
#include "priors/coordinates.hpp"
#include "proposal.hpp"

struct PriorCoordinates {  // filled by Python
    const double* anchor;      // (q,) of the fixed prior
    const double* diagonal;    // (q,)
    const double* centre;      // (q + 1,)
    const double* size;        // (q + 1,)
    const double* distance;    // (p,) d of the columns whose coefficients are shrunk
    double tau_0;
    const double* cubics;      // the table of quantiles, see ``horseshoe_quantile.py``
    const double* starts;
    i64 n_cubics;
    i64 n_starts;
    i64 p;                     // columns whose coefficients are shrunk
    i64 n_contrasts;           // coefficients of each of them
    i64 q;                     // all coefficients
    // Of radii where a column has several coefficients; these and the next are overwritten.
    double* slope;             // (n_chains, p) derivatives of beta_j by w_j
    double* carried;           // (n_chains, p) derivatives of beta_j by log tau
    double* pull;              // (n_chains, p) derivatives of the log-density of w_j by w_j
    double* across;            // (n_chains, p) the radius of beta_j over that of w_j
    double* pull_of_tau;       // (n_chains,) derivative of the log-density of w and log tau by log tau
    double* prior_energy;      // (n_chains,) minus that log-density
};

constexpr double LEAST_RADIUS = 1e-100;  // below which a direction is taken as zero
constexpr i64 TILE = 128;  // columns whose numbers fit into the fastest memory together

// A tile of columns of a chain: coordinates and what is computed from them. Each loop reads few of its arrays.
struct ColumnTile {
    double w[TILE], ratio[TILE], v[TILE], g[TILE], g1[TILE], g2[TILE], growth[TILE];
    double within[TILE], a0[TILE], a1[TILE], a2[TILE], a3[TILE], is_enough[TILE];
    i32 interval[TILE];
};

// g and its derivatives at v: loops that vectorise, around one that looks up the cubics.
static void quantiles_of_tile(ColumnTile& t, i64 m, const Cubics& table) {
    const double last = table.last;
    const double* cubics = table.cubics;
    for (i64 k = 0; k < m; ++k) {
        const Place at = place_in_table(t.v[k], last);
        t.within[k] = at.within, t.interval[k] = at.interval;
    }
    for (i64 k = 0; k < m; ++k) {
        const double* a = cubics + 4 * i64(t.interval[k]);
        t.a0[k] = a[0], t.a1[k] = a[1], t.a2[k] = a[2], t.a3[k] = a[3];
    }
    for (i64 k = 0; k < m; ++k) {
        const Quantile at = of_cubic(t.v[k], t.within[k], t.a0[k], t.a1[k], t.a2[k], t.a3[k]);
        t.g[k] = at.g, t.g1[k] = at.g1, t.g2[k] = at.g2;
    }
}

// v and the derivatives of g for the w of a tile, in two steps where these are enough, as they are for noise.
static void solve_tile(ColumnTile& t, i64 m, const Cubics& table, i64 n_contrasts) {
    for (i64 k = 0; k < m; ++k) t.v[k] = fabs(t.w[k]);
    quantiles_of_tile(t, m, table);
    for (i64 k = 0; k < m; ++k) {
        t.is_enough[k] = t.ratio[k] * t.g[k] <= FAR_OUT ? 1.0 : 0.0;
        t.v[k] = first_step(t.v[k], t.ratio[k], {t.g[k], t.g1[k], t.g2[k]});
    }
    quantiles_of_tile(t, m, table);
    for (i64 k = 0; k < m; ++k) {
        const Quantile at = {t.g[k], t.g1[k], t.g2[k]};
        const double step = solving_step(t.v[k], at, t.ratio[k], fabs(t.w[k]));
        t.is_enough[k] = fabs(step) <= SERIES_STEP * t.v[k] ? t.is_enough[k] : 0.0;
        const Solved s = after_series(t.v[k], step, at);
        t.v[k] = s.v, t.g[k] = s.at.g, t.g1[k] = s.at.g1, t.g2[k] = s.at.g2;
    }
    for (i64 k = 0; k < m; ++k) {
        if (t.is_enough[k] == 1.0) continue;
        const Solved s = solve_from(fabs(t.w[k]), fabs(t.w[k]), t.ratio[k], table, n_contrasts);
        t.v[k] = s.v, t.g[k] = s.at.g, t.g1[k] = s.at.g1, t.g2[k] = s.at.g2;
    }
}

// beta and its derivatives at a tile; the sum of v^2, and what the tile adds to the derivative by log tau.
static void derive_tile(ColumnTile& t, i64 m, double tau, double* __restrict beta, double* __restrict slope,
                        double* __restrict carried, double* __restrict pull, double* squares, double* of_tau) {
    CONTRACT
    *squares += sum(m, [&](i64 k) { return t.v[k] * t.v[k]; });
    *of_tau -= sum(m, [&](i64 k) {
        CONTRACT
        const double shrink = 1.0 / (1.0 + t.ratio[k] * t.g1[k]), by_tau = -t.ratio[k] * t.g[k] * shrink;  // of v
        return t.v[k] * by_tau + t.ratio[k] * (t.g1[k] + t.g2[k] * by_tau) * shrink;
    });
    for (i64 k = 0; k < m; ++k) {
        const double side = copysign(1.0, t.w[k]);
        t.growth[k] = 1.0 + t.ratio[k] * t.g1[k];  // of w with v
        const double shrink = 1.0 / t.growth[k];
        beta[k] = side * tau * t.g[k];
        slope[k] = tau * t.g1[k] * shrink;
        carried[k] = side * tau * t.g[k] * shrink;
        pull[k] = -side * shrink * (t.v[k] + t.ratio[k] * t.g2[k] * shrink);
    }
}

// The coordinates w (d,) of column j.
static inline double coordinate(const PriorCoordinates& at, const double* u, i64 j) {
    CONTRACT
    return at.centre[j] + at.size[j] * u[j];
}

static double radius_of_column(const PriorCoordinates& at, const double* u, i64 j) {
    double total = 0.0;
    for (i64 a = 0; a < at.n_contrasts; ++a) {
        const double w = coordinate(at, u, j * at.n_contrasts + a);
        total += w * w;
    }
    return sqrt(total);
}

// After ``derive_tile`` of radii: the vectors beta, and what the directions add. first : the first column.
static void turn_tile(const PriorCoordinates& at, i64 c, const ColumnTile& t, i64 first, i64 m, double tau, const double* u,
                      double* beta, double* stretched, double* of_tau) {
    const i64 d = at.n_contrasts;
    LogSum stretches;
    for (i64 k = 0; k < m; ++k) {
        const i64 column = c * at.p + first + k;
        const double v = largest(t.v[k], LEAST_RADIUS), pace = t.g[k] / v, stretch = 1.0 + t.ratio[k] * pace;  // w / v
        const double shrink = 1.0 / t.growth[k];
        at.across[column] = tau * pace / stretch;
        at.pull[column] -= (d - 1) * (1.0 / stretch - shrink) / v;
        *of_tau -= (d - 1) * t.ratio[k] * pace * shrink;
        stretches.add(stretch);
        for (i64 a = 0; a < d; ++a) {
            const i64 j = (first + k) * d + a;
            beta[j] = at.across[column] * coordinate(at, u, j);
        }
    }
    *stretched += (d - 1) * stretches.value();
}

// beta and tau^-2 of a chain at u, and what the force needs but for the score.
static void to_beta(const PriorCoordinates& at, i64 c, const double* u, double* beta, double* tau_sq_inv) {
    const i64 p = at.p, q = at.q, d = at.n_contrasts;
    const Cubics table = table_of(at.cubics, at.n_cubics);
    const double log_tau = at.centre[q] + at.size[q] * u[q], tau = exp(log_tau);
    *tau_sq_inv = exp(-2.0 * log_tau);
    double squares = 0.0, of_tau = 0.0, stretched = 0.0;
    LogSum growth;
    ColumnTile t;
    for (i64 first = 0; first < p; first += TILE) {
        const i64 m = least(TILE, p - first);
        for (i64 k = 0; k < m; ++k) {
            CONTRACT
            t.w[k] = d == 1 ? at.centre[first + k] + at.size[first + k] * u[first + k] : radius_of_column(at, u, first + k);
            t.ratio[k] = tau / at.distance[first + k];
        }
        solve_tile(t, m, table, d);
        const i64 start = c * p + first;
        double* radial = d == 1 ? beta + first : at.across + start;
        derive_tile(t, m, tau, radial, at.slope + start, at.carried + start, at.pull + start, &squares, &of_tau);
        for (i64 k = 0; k < m; ++k) growth.add(t.growth[k]);
        if (d > 1) turn_tile(at, c, t, first, m, tau, u, beta, &stretched, &of_tau);
    }
    for (i64 j = p * d; j < q; ++j) beta[j] = at.centre[j] + at.size[j] * u[j];
    const double odds = (tau / at.tau_0) * (tau / at.tau_0);
    at.prior_energy[c] = 0.5 * squares + growth.value() + stretched - log_tau - log_half_cauchy(odds);
    at.pull_of_tau[c] = of_tau + pull_of_half_cauchy(odds);
}

// The gradient by the coordinates of the shrunk coefficients, from that by the coefficients, in place; returns the
// derivative by log tau.
static double pull_back(const PriorCoordinates& at, i64 c, const double* u, double* __restrict gradient) {
    CONTRACT
    const i64 p = at.p, d = at.n_contrasts;
    const double *slope = at.slope + c * p, *carried = at.carried + c * p, *pull = at.pull + c * p;
    const double* across = at.across + c * p;
    double of_tau = 0.0;
    if (d == 1) {
        of_tau = sum(p, [=](i64 j) { CONTRACT return carried[j] * gradient[j]; });
        for (i64 j = 0; j < p; ++j) gradient[j] = pull[j] + slope[j] * gradient[j];
        return of_tau;
    }
    for (i64 j = 0; j < p; ++j) {
        const double inverse = 1.0 / largest(radius_of_column(at, u, j), LEAST_RADIUS);
        double along = 0.0;  // the radius
        for (i64 i = j * d; i < (j + 1) * d; ++i) along += coordinate(at, u, i) * inverse * gradient[i];
        const double outwards = pull[j] + (slope[j] - across[j]) * along;
        for (i64 i = j * d; i < (j + 1) * d; ++i)
            gradient[i] = outwards * inverse * coordinate(at, u, i) + across[j] * gradient[i];
        of_tau += carried[j] * along;
    }
    return of_tau;
}

// w of the shrunk coefficients, the other coefficients, and log tau; out (q + 1,).
static void coordinates_of(const PriorCoordinates& at, const double* beta, double tau_sq_inv, double* out) {
    const double tau_inverse = sqrt(tau_sq_inv);
    const Cubics table = table_of(at.cubics, at.n_cubics);
    const i64 d = at.n_contrasts;
    for (i64 j = 0; j < at.p; ++j) {
        const double* own = beta + j * d;
        const double radius = d == 1 ? *own : sqrt(square_of(own, d));
        const double w = prior_coordinate(radius, tau_inverse, at.distance[j], table, at.starts, at.n_starts, d);
        for (i64 a = 0; a < d; ++a) out[j * d + a] = d == 1 ? w : w * (own[a] / largest(radius, LEAST_RADIUS));
    }
    for (i64 j = at.p * d; j < at.q; ++j) out[j] = beta[j];
    out[at.q] = -0.5 * log(tau_sq_inv);
}

// ``Dynamics`` in these coordinates, with all lambda_j integrated out.
struct InPriorCoordinates {
    const PriorCoordinates& at;
    const i64 p = 0, q, size;
    Scratch<double> work;
    explicit InPriorCoordinates(const PriorCoordinates& at) : at(at), q(at.q), size(q + 1), work(q) {}

    i32 begin(i64 c, const State& state, Key key, bool, const Trajectory& trajectory) const {
        const Trajectory to = of_chain(trajectory, c, size);
        double ignored;
        coordinates_of(at, state.beta + c * q, state.tau_sq_inv[c], to.u);
        for (i64 j = 0; j <= q; ++j) to.u[j] = (to.u[j] - at.centre[j]) / at.size[j];
        const Stream stream(key, u32(c), MOMENTUM_PURPOSE);
        for (i64 j = 0; j <= q; ++j) to.v[j] = normal(stream, u32(j));
        ::to_beta(at, c, to.u, work, &ignored);  // for what the force needs
        kick(c, 0.0, state, trajectory);
        return 0;
    }

    void to_beta(i64 c, const double* u, const State& state) const {
        ::to_beta(at, c, u + c * size, state.beta + c * q, state.tau_sq_inv + c);
    }

    void kick(i64 c, double angle, const State& state, const Trajectory& trajectory) const {
        CONTRACT
        const Trajectory to = of_chain(trajectory, c, size);
        const double *anchor = at.anchor, *diagonal = at.diagonal, *sizes = at.size, *u = to.u;
        const double *beta = state.beta + c * q, *score = state.score + c * q;
        double *__restrict v = to.v, *__restrict force = to.force;
        const double level = sum(q, [=](i64 j) { CONTRACT return anchor[j] * beta[j]; });
        const double squares = sum(q, [=](i64 j) { CONTRACT return diagonal[j] * beta[j] * beta[j]; });
        for (i64 j = 0; j < q; ++j)  // the gradient of log-likelihood and log fixed prior
            force[j] = score[j] - level * anchor[j] - diagonal[j] * beta[j];
        const double of_tau = at.pull_of_tau[c] + pull_back(at, c, u, force);
        for (i64 j = 0; j < q; ++j) force[j] = -sizes[j] * force[j] - u[j];
        force[q] = -sizes[q] * of_tau - u[q];
        for (i64 j = 0; j <= q; ++j) v[j] -= 0.5 * angle * force[j];
        const double kinetic = sum(q + 1, [=](i64 j) { CONTRACT return v[j] * v[j]; });
        *to.energy = 0.5 * (kinetic + level * level + squares) - state.loglik[c] + at.prior_energy[c];
    }

    i32 move_scales(i64, const ScaleMoves&, const State&, Key, double&, double*) const { return 0; }  // tau is a coordinate
};
