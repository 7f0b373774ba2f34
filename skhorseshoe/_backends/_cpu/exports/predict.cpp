// Linear predictors and probabilities of blocks of rows for all draws.
#include "export.hpp"
#include "four_chains.hpp"
#include "on_likelihood.hpp"

HD Four<double> wide_four(const double* from) { return load_four(from); }
HD Four<double> wide_four(const float* from) { return __builtin_convertvector(load_four(from), Four<double>); }

// Four sums over j of x[j] coef[s][j], each in eight partial sums, which share the loads of x.
template <class C>
static void multiply_four(const double* __restrict x, const C* const* coef, i64 p, double* __restrict out) {
    CONTRACT
    Four<double> low[4] = {}, high[4] = {};
    i64 j = 0;
    for (; j + 8 <= p; j += 8)
#pragma unroll
        for (int s = 0; s < 4; ++s) {
            low[s] += load_four(x + j) * wide_four(coef[s] + j);
            high[s] += load_four(x + j + 4) * wide_four(coef[s] + j + 4);
        }
    for (; j + 4 <= p; j += 4)
#pragma unroll
        for (int s = 0; s < 4; ++s) low[s] += load_four(x + j) * wide_four(coef[s] + j);
    for (int s = 0; s < 4; ++s) {
        const Four<double> both = low[s] + high[s];
        double total = (both[0] + both[2]) + (both[1] + both[3]);
        for (i64 k = j; k < p; ++k) total += x[k] * double(coef[s][k]);
        out[s] = total;
    }
}

template <class C> static void multiply_rows(const double* X, const C* coef, i64 n, i64 n_draws, i64 p, double* out) {
    constexpr i64 CACHED = i64(1) << 15;  // coefficients of draws that stay in cache for all rows
    const i64 n_cached = largest(i64(4), CACHED / p / 4 * 4);
    for (i64 first = 0; first < n_draws; first += n_cached) {
        const i64 last = least(n_draws, first + n_cached) - 1;
        for (i64 i = 0; i < n; ++i)
            for (i64 s = first; s <= last; s += 4) {
                const C* draws[4];
                double product[4];
                for (int k = 0; k < 4; ++k) draws[k] = coef + least(s + k, last) * p;
                multiply_four(X + i * p, draws, p, product);
                for (int k = 0; k < 4 && s + k <= last; ++k) out[i * n_draws + s + k] = product[k];
            }
    }
}

// out = X coef' for few rows, four draws at a time; X (n, p), coef (n_draws, p), float32 if is_single, out (n, n_draws).
EXPORT i32 predictors_of_few_rows(const double* X, i32 is_single, const void* coef, i64 n, i64 n_draws, i64 p,
                                  double* out) {
    if (is_single) multiply_rows(X, static_cast<const float*>(coef), n, n_draws, p, out);
    else multiply_rows(X, static_cast<const double*>(coef), n, n_draws, p, out);
    return 0;
}

// Averages of P(y = 0) and P(y = 1) over the draws, eta (n_rows, n_draws), out (n_rows, 2). Both are summed, so that a
// small probability keeps its relative accuracy.
template <class L> static i32 average(const double* eta, i64 n_rows, i64 n_draws, double* out) {
    constexpr i64 DRAWS = 256;  // number of draws whose probabilities are computed at a time
    double smaller[DRAWS];
    for (i64 i = 0; i < n_rows; ++i) {
        double lower = 0.0, upper = 0.0;
        for (i64 start = 0; start < n_draws; start += DRAWS) {
            const double* __restrict t = eta + i * n_draws + start;
            const i64 n = least(DRAWS, n_draws - start);
            SIDE_BY_SIDE
            for (i64 s = 0; s < n; ++s) smaller[s] = L::smaller(t[s]);
            lower += sum(n, [&](i64 s) { return t[s] > 0.0 ? smaller[s] : 1.0 - smaller[s]; });
            upper += sum(n, [&](i64 s) { return t[s] > 0.0 ? 1.0 - smaller[s] : smaller[s]; });
        }
        out[2 * i] = lower / double(n_draws);
        out[2 * i + 1] = upper / double(n_draws);
    }
    return 0;
}

EXPORT i32 average_probabilities(i32 likelihood, const double* eta, i64 n_rows, i64 n_draws, double* out) {
    return on_likelihood(likelihood, [&](auto law) { return average<decltype(law)>(eta, n_rows, n_draws, out); });
}

// How far left of the largest eta the nodes that all classes share begin, and P(y = k) below which it is computed by itself,
// since these nodes miss a part of it: for averages, of which few are small, and for probabilities, of which many are.
constexpr double LEFT[] = {12.0, 6.7}, SMALL[] = {1e-30, 1e-6};

// Probabilities of unordered classes under all draws of a row, by the class: p (K, n_draws), contrasts eta (n_draws, d).
struct ClassesOfRow {
    static constexpr i64 SIDE = MultinomialProbit::SIDE;
    const MultinomialProbit& law;
    const double* eta;
    i64 n_draws;
    i32 averaged;
    double *p, *work;  // work : (d + 1, SIDE)

    void compute() const {
        const i64 d = law.d;
        for (i64 first = 0; first < n_draws; first += SIDE) {
            const i64 n = least(SIDE, n_draws - first);
            const double* from = eta + first * d;
            law.probabilities(n, [=](i64 a, i64 r) { return from[r * d + a]; }, LEFT[averaged], work);
            for (i64 k = 0; k <= d; ++k) memcpy(p + k * n_draws + first, work + k * SIDE, sizeof(double) * n);
        }
    }

    double mean(i64 k) const {
        const double* from = p + k * n_draws;
        return sum(n_draws, [=](i64 s) { return from[s]; }) / double(n_draws);
    }

    // Computes those of a class again that are small; averaged, all of them or none.
    void compute_small_again(i64 k) const {
        const i64 d = law.d;
        double* to = p + k * n_draws;
        if (averaged && mean(k) >= SMALL[1]) return;
        i64 draws[SIDE], n = 0;
        for (i64 s = 0; s < n_draws; ++s) {
            if (averaged || to[s] < SMALL[0]) draws[n++] = s;
            if (n == SIDE || (n && s + 1 == n_draws)) {
                law.probability_of_class(n, k, [&](i64 a, i64 r) { return eta[draws[r] * d + a]; }, work);
                for (i64 r = 0; r < n; ++r) to[draws[r]] = work[r];
                n = 0;
            }
        }
    }
};

// Probabilities of unordered classes, eta (n_rows, n_draws, d); out (n_rows, K) averaged over draws, or (n_rows, K, n_draws).
EXPORT i32 class_probabilities(const double* eta, i64 n_rows, i64 n_draws, i64 d, i32 averaged, double* out) {
    const i64 K = d + 1;
    Scratch<double> of_law(MultinomialProbit::work_size(d)), work(K * ClassesOfRow::SIDE), p(averaged ? K * n_draws : 0);
    if (of_law.failed() || work.failed() || p.failed()) return NO_MEMORY;
    const MultinomialProbit law = {d, of_law};
    for (i64 i = 0; i < n_rows; ++i) {
        double* of_row = averaged ? p.data : out + i * K * n_draws;
        const ClassesOfRow row = {law, eta + i * n_draws * d, n_draws, averaged, of_row, work};
        row.compute();
        for (i64 k = 0; k < K; ++k) {
            row.compute_small_again(k);
            if (averaged) out[i * K + k] = row.mean(k);
        }
    }
    return 0;
}

// From He_k(x) f(x) and He_{k-1}(x) f(x), current and last, to He_{k+1}(x) f(x), which overwrites last; f is any function.
EXPORT i32 next_hermite(const double* x, const double* current, double* last, i64 n, double k) {
    CONTRACT
    const double *__restrict at = x, *__restrict from = current;
    double* __restrict to = last;
    for (i64 i = 0; i < n; ++i) to[i] = at[i] * from[i] - k * to[i];
    return 0;
}
