// Effects u of groups while their standard deviation s moves: with (u_g - m_g) / d_g held, m_g and d_g mean and standard
// deviation of u_g given s and beta as ``_mcmc/group_map.py`` approximates them.
#pragma once
#include "exponential.hpp"

constexpr i64 POWERS = 4;  // coefficients of a polynomial in log s

// ``GroupMap``: the laws of effects as polynomials in t = log(s / s_0).
struct EffectLaws {  // filled by Python
    const double *ratio, *log_sd;       // (n_groups, POWERS), of m_g / d_g at beta = r, and of log d_g
    const double *power, *information;  // (n_groups,) the power of s beyond the reach; of the rows about u_g
    double scale, reach;                // s_0; the largest |t| of the polynomials
};

// What the laws need of one s and c.
struct AtScale {
    double within, beyond, precision, precision_of_map, c, log_c;
    AtScale(const EffectLaws& laws, double s, double c)
        : precision(1.0 / (s * s)), precision_of_map(1.0 / (laws.scale * laws.scale)), c(c), log_c(log(c)) {
        const double t = log(s / laws.scale);
        within = largest(least(t, laws.reach), -laws.reach), beyond = t - within;
    }

    // How much m_g changes at s_0 while beta moves from r to c beta: ``Followed`` of Python.
    double followed(double linear, double held, double slope) const { return c * linear - held + log_c * slope; }
};

// m_g, d_g and log d_g of a group.
struct EffectAtScale {
    double mean, sd, log_sd;
};

HD double polynomial(const double* a, double t) { return a[0] + t * (a[1] + t * (a[2] + t * a[3])); }

HD EffectAtScale law_of_effect(const EffectLaws& laws, i64 g, const AtScale& at, double followed) {
    const double *ratio = laws.ratio + POWERS * g, *log_sd = laws.log_sd + POWERS * g, h = laws.information[g];
    EffectAtScale law;
    law.log_sd = polynomial(log_sd, at.within) + (at.beyond < 0.0 ? 1.0 : laws.power[g]) * at.beyond;
    law.sd = exp_moderate(law.log_sd);
    const double share = (h + at.precision_of_map) / (h + at.precision);
    law.mean = polynomial(ratio, at.within) * law.sd + share * followed;
    return law;
}
