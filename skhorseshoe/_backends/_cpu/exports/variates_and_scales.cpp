// Random numbers of one purpose, and the scales, for all chains.
#include "export.hpp"
#include "line_proposals.hpp"
#include "priors/horseshoe.hpp"

// Fills out (n_chains, m) with draw(stream, j).
template <class F> static i32 fill(double* out, i64 n_chains, i64 m, u32 purpose, Key key, F draw) {
    for (i64 c = 0; c < n_chains; ++c) {
        const Stream stream(key, u32(c), purpose);
        for (i64 j = 0; j < m; ++j) out[c * m + j] = draw(stream, u32(j));
    }
    return 0;
}

EXPORT i32 fill_normal(double* out, i64 n_chains, i64 m, u32 attempt, u32 purpose, u32 sweep, const u32* key) {
    const auto draw = [=](const Stream& stream, u32 j) { return normal(stream, j, attempt); };
    return fill(out, n_chains, m, purpose, {sweep, key[0], key[1]}, draw);
}

EXPORT i32 fill_uniform(double* out, i64 n_chains, i64 m, u32 purpose, u32 sweep, const u32* key) {
    return fill(out, n_chains, m, purpose, {sweep, key[0], key[1]}, [](const Stream& s, u32 j) { return uniform(s, j); });
}

EXPORT i32 fill_exponential(double* out, i64 n_chains, i64 m, u32 purpose, u32 sweep, const u32* key) {
    return fill(out, n_chains, m, purpose, {sweep, key[0], key[1]}, [](const Stream& s, u32 j) { return exponential(s, j); });
}

// Gamma with one shape and a rate for each chain.
EXPORT i32 fill_gamma(double shape, const double* rate, double* out, i64 n_chains, u32 purpose, u32 sweep, const u32* key) {
    for (i64 c = 0; c < n_chains; ++c)
        out[c] = gamma_variate(shape, Stream({sweep, key[0], key[1]}, u32(c), purpose), 0) / rate[c];
    return 0;
}

// Of the chains ``first`` to ``last - 1``. beta : (n_chains, p n_contrasts).
EXPORT i32 draw_taus_given_beta(const double* beta, const double* tau_sq_inv, double tau_0, double* out, i64 p,
                                i64 n_contrasts, u32 sweep, const u32* key, i64 first, i64 last) {
    for (i64 c = first; c < last; ++c) {
        const Stream stream({sweep, key[0], key[1]}, u32(c), TAU_PURPOSE);
        const double* of_chain = beta + c * p * n_contrasts;
        out[c] = draw_tau_given_beta(OneThread(), of_chain, p, tau_sq_inv[c], tau_0, stream, n_contrasts);
    }
    return 0;
}

EXPORT i32 draw_lambdas_given_beta(const double* beta, const double* tau_sq_inv, double* out, i64 p, i64 n_contrasts,
                                   u32 sweep, const u32* key, i64 first, i64 last) {
    for (i64 c = first; c < last; ++c) {
        const Stream stream({sweep, key[0], key[1]}, u32(c), LAMBDA_PURPOSE);
        const i64 start = c * p * n_contrasts;
        draw_lambdas_of_chain(beta + start, p, tau_sq_inv[c], stream, out + start, n_contrasts);
    }
    return 0;
}

// steps, growth : (n_chains, n_steps), r and e^r - 1. uniform : (n_chains, n_steps + 2). width : (n_chains,) if by_chain,
// else (1,).
EXPORT i32 propose_along_lines(const double* uniform, const double* width, i32 by_chain, i64 n_chains, i64 n_steps,
                               double* steps, double* growth) {
    for (i64 c = 0; c < n_chains; ++c)
        propose_steps(uniform + c * (n_steps + 2), width[by_chain ? c : 0], n_steps, steps + c * n_steps);
    for (i64 i = 0; i < n_chains * n_steps; ++i) growth[i] = expm1(steps[i]);  // with the bits of fused line moves
    return 0;
}

// first_inside : (n_chains,) steps, from log-densities value and steps (n_chains, n_steps) and uniforms (n_chains,).
EXPORT i32 find_first_inside(const double* value, const double* steps, const double* uniform, i64 n_chains, i64 n_steps,
                             double* first_inside) {
    for (i64 c = 0; c < n_chains; ++c)
        first_inside[c] = first_step_inside(value + c * n_steps, steps + c * n_steps, uniform[c], n_steps);
    return 0;
}
