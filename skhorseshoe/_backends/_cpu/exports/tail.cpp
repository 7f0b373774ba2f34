// The tail of the normal distribution, for arrays.
#include "export.hpp"
#include "normal_tail.hpp"

// P(N > |t|).
EXPORT i32 upper_tails(const double* t, double* out, i64 n) {
    SIDE_BY_SIDE
    for (i64 i = 0; i < n; ++i) out[i] = upper_tail(t[i]);
    return 0;
}

// log Phi(t) and phi(t) / Phi(t).
EXPORT i32 log_cdf_and_ratio(const double* t, double* log_phi, double* ratio, i64 n) {
    for (i64 i = 0; i < n; ++i) {
        const CdfParts parts = cdf_parts(t[i]);
        ratio[i] = mills_ratio(t[i], parts.e, parts.v);
        log_phi[i] = log_cdf(parts);
    }
    return 0;
}

// sum w log Phi(t); weight : of each, or null. t is overwritten.
EXPORT i32 sum_log_cdfs(double* t, const double* weight, i64 n, double* out) {
    Scratch<double> work(3 * n);
    if (work.failed()) return NO_MEMORY;
    out[0] = sum_log_cdf(n, t, weight, work);
    return 0;
}
