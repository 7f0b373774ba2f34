// The symmetric multinomial probit likelihood: y is the largest of K utilities z_k ~ N(eta_k, 1), so
//     P(y = k) = integral of phi(t) prod_l Phi(t + eta_k - eta_l) dt over the other classes l.
// Linear predictors are d = K - 1 contrasts m_a, eta = m C with the rows c_a (-1, ..., -1, a + 1, 0, ..., 0) of C orthonormal.
// For K = 2 it is the probit likelihood.
//
// The integrand is log-concave. The trapezoidal rule takes x, with t = mode + s (e^(bx) - 1) / b: s is the inverse root of
// the curvature of its logarithm at the mode, and b, from the third derivative, makes it nearly even. The relative error is
// below 1e-10 for K up to 10, and below 2e-10 for K = 30. ``likelihood.hpp`` says what a likelihood of two classes has; this
// one has ``score`` and ``log_likelihood`` alone, and probabilities for predictions.
//
// ``BY_LAPLACE`` takes a tenth of the time: the logarithm of the integrand is expanded about the mode, to the fourth order
// in log P and to the third in its derivatives. Errors are some .002 in log P, .02 at most but in far tails, and 1 % of
// the derivatives, so it is for what a test corrects.
#pragma once
#include "likelihood.hpp"
#include "likelihoods/normal_tail.hpp"
#include "likelihoods/truncated_normal.hpp"

template <bool BY_LAPLACE> struct MultinomialProbitBy {
    static constexpr bool HAS_LATENTS = !BY_LAPLACE;
    // Rows at a time, padded to a multiple of PAD.
    static constexpr i64 SIDE = 64, PAD = 16;
    // The mode is near enough within so many s, and found after few of these steps.
    static constexpr double NEAR = 0.1;
    static constexpr int MOST_STEPS = 40;
    // b is so much of the third derivative; steps of x for K = 2, shorter for more classes; and the ends of x.
    static constexpr double SKEW = 0.2, STEP = 0.69, LEFT = 6.7, RIGHT = 7.9;
    // Largest eta_y - eta_l, with which a factor is in range.
    static constexpr double FARTHEST = 1e17;
    // In place of a probability that would underflow.
    static constexpr double LEAST_PROBABILITY = 1e-300;
    // Below, the second derivative of log Phi is -1, and the third 0.
    static constexpr double STRAIGHT = -1e3, EVEN = -30.0;

    template <class R> using Latents = MultinomialProbitBy;

    i64 d;         // number of contrasts
    double* work;  // (work_size(d),)

    static i64 work_size(i64 d) { return (4 * d + 1) * SIDE; }

    // By row of a part of a tile: the mode and its s; by which e^(bx) grows from node to node, and the first step of t, to the
    // right and to the left; log p is log factor - rest.
    struct Part {
        double mode[SIDE], s[SIDE], growth[2][SIDE], step[2][SIDE], factor[SIDE], rest[SIDE], total[SIDE];
        double slope[SIDE], curvature[SIDE], third[SIDE], moved[SIDE], weight[SIDE], exponent[SIDE], product[SIDE];
    };

    HD_MEMBER double scale(i64 a) const { return 1.0 / sqrt(double((a + 1) * (a + 2))); }

    // Arrays by the other classes, (d, SIDE) each: place l has class l, or the last one where l is y.
    double* places() const { return work; }
    double* inverses() const { return work + d * SIDE; }  // of ``v`` at the mode
    double* ratios() const { return work + 2 * d * SIDE; }
    double* slopes() const { return work + 3 * d * SIDE; }  // (d + 1, SIDE)

    // eta of n rows in place of slopes, given value(a, r), the contrasts.
    template <class F> void see_predictors(i64 n, F value) const {
        double *eta = slopes(), sum[SIDE] = {};
        for (i64 k = d; k >= 0; --k)
            for (i64 r = 0; r < n; ++r) {
                const double next = k ? value(k - 1, r) * scale(k - 1) : 0.0;
                eta[k * SIDE + r] = double(k) * next - sum[r];
                sum[r] += next;
            }
    }

    // eta_y - eta_l of n rows, given the contrasts.
    template <class F> void see_differences(i64 n, const u8* __restrict y, F value) const {
        double *eta = slopes(), own[SIDE] = {};
        see_predictors(n, value);
        for (i64 k = 0; k <= d; ++k)
            for (i64 r = 0; r < n; ++r) own[r] = y[r] == k ? eta[k * SIDE + r] : own[r];
        for (i64 l = 0; l < d; ++l)
            for (i64 r = 0; r < n; ++r)
                places()[l * SIDE + r] = own[r] - (y[r] == l ? eta[d * SIDE + r] : eta[l * SIDE + r]);
        for (i64 l = 0; l < d; ++l)
            for (i64 r = n; r < padded(n); ++r) places()[l * SIDE + r] = places()[l * SIDE + n - 1];
    }

    double step_of_nodes() const { return STEP * sqrt(sqrt(2.0 / double(d + 1))); }

    static i64 padded(i64 n) { return (n + PAD - 1) / PAD * PAD; }

    // Replaces differences by their sums with the mode, where the integrand has log factor - rest.
    void find_mode(i64 n, Part& part) const {
        for (i64 r = 0; r < n; ++r) part.mode[r] = part.total[r] = 0.0;
        for (i64 l = 0; l < d; ++l)
            for (i64 r = 0; r < n; ++r) {
                double& at = places()[l * SIDE + r];
                at = largest(least(at, FARTHEST), -FARTHEST);
                part.mode[r] = largest(part.mode[r], -0.5 * at);  // no mode is less, as phi(t) / Phi(t) > -t
                part.total[r] -= at / double(d + 1);
            }
        for (i64 r = 0; r < n; ++r) {
            part.moved[r] = largest(part.mode[r], part.total[r]);
            part.mode[r] = 0.0;
        }
        bool any = true;
        for (int i = 0; any; ++i) {
            for (i64 r = 0; r < n; ++r) part.mode[r] += part.moved[r];
            see_integrand(n, part);
            any = false;
            for (i64 r = 0; r < n; ++r) {
                const double move = part.slope[r] / part.curvature[r];
                const bool is_far = move * move * part.curvature[r] > NEAR * NEAR && i < MOST_STEPS;
                part.moved[r] = is_far ? move : 0.0;
                any |= is_far;
            }
        }
    }

    // The logarithm of the integrand and its derivatives, at ``mode``, after places have moved.
    void see_integrand(i64 n, Part& part) const {
        for (i64 r = 0; r < n; ++r) {
            part.slope[r] = -part.mode[r], part.curvature[r] = 1.0, part.third[r] = 0.0;
            part.factor[r] = DENSITY_AT_0, part.rest[r] = 0.5 * part.mode[r] * part.mode[r];
        }
        for (i64 l = 0; l < d; ++l) {
            double* __restrict at = places() + l * SIDE;
            double *__restrict inverse = inverses() + l * SIDE, *__restrict ratio = ratios() + l * SIDE;
            SIDE_BY_SIDE
            for (i64 r = 0; r < n; ++r) {
                const double t = at[r] + part.moved[r];
                const CdfParts parts = cdf_parts(t);
                const double over = 1.0 / parts.v, m = DENSITY_AT_0 * (t < 0.0 ? 1.0 : parts.e) * over;
                const double second = t < STRAIGHT ? 1.0 : m * (m + t);
                at[r] = t, inverse[r] = over, ratio[r] = m;
                part.slope[r] += m, part.curvature[r] += second;
                part.third[r] += t < EVEN ? 0.0 : second * (t + 2.0 * m) - m;
                double factor = part.factor[r] * parts.v, rest = part.rest[r] + parts.square;
                keep_in_range(factor, rest);
                part.factor[r] = factor, part.rest[r] = rest;
            }
        }
    }

    // The nodes on one side of the mode, of which there are so many; with ``HAS_SLOPES`` those of all classes are added to.
    template <bool HAS_SLOPES> void add_nodes(i64 n, int side, i64 n_nodes, Part& part) const {
        double change[SIDE] = {};
        for (i64 r = 0; r < n; ++r) part.weight[r] = 1.0;
        for (i64 node = 0; node < n_nodes; ++node) {
            for (i64 r = 0; r < n; ++r) {
                change[r] += part.weight[r] * part.step[side][r], part.weight[r] *= part.growth[side][r];
                part.exponent[r] = -change[r] * (part.mode[r] + 0.5 * change[r]), part.product[r] = part.weight[r];
            }
            for (i64 l = 0; l < d; ++l) {
                const double *__restrict at = places() + l * SIDE, *__restrict inverse = inverses() + l * SIDE;
                double* __restrict ratio = ratios() + l * SIDE;
                SIDE_BY_SIDE
                for (i64 r = 0; r < n; ++r) {
                    const double t = at[r] + change[r], below = largest(-at[r], 0.0);
                    const CdfParts parts = cdf_parts(t);
                    // The change of min(t, 0), without a difference of large numbers.
                    const double moved = least(change[r] + largest(at[r], 0.0), below);
                    part.exponent[r] -= moved * (0.5 * moved - below);
                    part.product[r] *= parts.v * inverse[r];
                    if (HAS_SLOPES) ratio[r] = mills_ratio(t, parts.e, parts.v);
                }
            }
            SIDE_BY_SIDE
            for (i64 r = 0; r < n; ++r) {
                part.product[r] *= exp_moderate(part.exponent[r]);
                part.total[r] += part.product[r];
            }
            if (HAS_SLOPES) add_slopes(n, part);
        }
    }

    void add_slopes(i64 n, const Part& part) const {
        for (i64 l = 0; l < d; ++l)
            for (i64 r = 0; r < n; ++r) slopes()[l * SIDE + r] += part.product[r] * ratios()[l * SIDE + r];
    }

    // log factor - rest of n rows, and with ``HAS_SLOPES`` the derivatives by eta_y - eta_l times ``total``.
    template <bool HAS_SLOPES> void integrate(i64 n_rows, Part& part) const {
        const i64 n = padded(n_rows);
        find_mode(n, part);
        const double h = step_of_nodes();
        for (i64 r = 0; r < n; ++r) {
            const double s = 1.0 / sqrt(part.curvature[r]), y = SKEW * part.third[r] * s * s * s * h;
            part.growth[0][r] = exp_polynomial(y), part.growth[1][r] = exp_polynomial(-y);
            const double even = 1.0 + y * y * (1.0 / 6.0 + y * y * (1.0 / 120.0)), odd = y * (0.5 + y * y * (1.0 / 24.0));
            part.step[0][r] = h * s * (even + odd), part.step[1][r] = -h * s * (even - odd);
            part.s[r] = s, part.total[r] = part.product[r] = 1.0;
        }
        if (HAS_SLOPES) {
            memset(slopes(), 0, sizeof(double) * d * SIDE);
            add_slopes(n, part);
        }
        add_nodes<HAS_SLOPES>(n, 0, i64(RIGHT / h) + 1, part);
        add_nodes<HAS_SLOPES>(n, 1, i64(LEFT / h) + 1, part);
        for (i64 r = 0; r < n; ++r) {
            part.factor[r] *= part.total[r] * part.s[r] * h;
            keep_in_range(part.factor[r], part.rest[r]);
        }
    }

    // As ``integrate``, by Laplace's approximation. The mode is not quite reached: the slope there is left.
    template <bool HAS_SLOPES> void approximate(i64 n_rows, Part& part) const {
        const i64 n = padded(n_rows);
        find_mode(n, part);
        double *fourth = part.moved, *mean = part.weight;
        memset(fourth, 0, sizeof(double) * n);
        for (i64 r = 0; r < n; ++r) {
            const double variance = 1.0 / part.curvature[r];
            part.s[r] = variance, part.total[r] = 1.0;
            mean[r] = variance * (part.slope[r] + 0.5 * variance * part.third[r]);
        }
        for (i64 l = 0; l < d; ++l) {
            const double *__restrict at = places() + l * SIDE, *__restrict ratio = ratios() + l * SIDE;
            double* __restrict slope = slopes() + l * SIDE;
            SIDE_BY_SIDE
            for (i64 r = 0; r < n; ++r) {
                const double t = at[r], m = ratio[r], rest = m + t;
                const double second = t < STRAIGHT ? -1.0 : -m * rest, third = t < EVEN ? 0.0 : -second * (rest + m) - m;
                fourth[r] += t < EVEN ? 0.0 : -third * (rest + m) - 2.0 * second * (second + 1.0);
                if (HAS_SLOPES) slope[r] = m + mean[r] * second + 0.5 * part.s[r] * third;
            }
        }
        for (i64 r = 0; r < n; ++r) {
            const double v = part.s[r], skew = part.third[r] * v;
            part.rest[r] -= 0.5 * v * (part.slope[r] * part.slope[r] + 0.25 * v * fourth[r]) + (5.0 / 24.0) * v * skew * skew;
            part.factor[r] *= sqrt(v) / DENSITY_AT_0;
            keep_in_range(part.factor[r], part.rest[r]);
        }
    }

    template <bool HAS_SLOPES> void evaluate(i64 n, Part& part) const {
        if (BY_LAPLACE) approximate<HAS_SLOPES>(n, part);
        else integrate<HAS_SLOPES>(n, part);
    }

    // P(y = k) of n rows, relative error as of ``integrate``, and never 0.
    template <class F> void probability_of_class(i64 n, i64 k, F value, double* out) const {
        Part part;
        u8 y[SIDE];
        memset(y, int(k), sizeof y);
        see_differences(n, y, value);
        integrate<false>(n, part);
        for (i64 r = 0; r < n; ++r) {
            const double p = part.factor[r] * exp_moderate(-part.rest[r]);
            out[r] = least(largest(p, LEAST_PROBABILITY), 1.0);
        }
    }

    // P(y = k) of n rows for all classes (d + 1, SIDE), with an absolute error of 1e-11: the integrals of
    // phi(t - eta_k) prod_l Phi(t - eta_l), where t is the largest utility, by nodes that all classes share. They begin so
    // far left of the largest eta.
    template <class F> void probabilities(i64 n_rows, F value, double left, double* __restrict p) const {
        const i64 n = padded(n_rows);
        const double h = step_of_nodes();
        double *eta = slopes(), *ratio = work;  // (d + 1, SIDE), as places and inverses are not needed
        double top[SIDE], total[SIDE], below[SIDE];
        see_predictors(n_rows, value);
        for (i64 k = 0; k <= d; ++k)
            for (i64 r = n_rows; r < n; ++r) eta[k * SIDE + r] = 0.0;
        for (i64 r = 0; r < n; ++r) top[r] = eta[r], total[r] = 0.0;
        for (i64 k = 1; k <= d; ++k)
            for (i64 r = 0; r < n; ++r) top[r] = largest(top[r], eta[k * SIDE + r]);
        memset(p, 0, sizeof(double) * (d + 1) * SIDE);
        for (double t = -left; t < RIGHT; t += h) {
            for (i64 r = 0; r < n; ++r) below[r] = 1.0;
            for (i64 k = 0; k <= d; ++k) {
                const double* __restrict at = eta + k * SIDE;
                double* __restrict to = ratio + k * SIDE;
                SIDE_BY_SIDE
                for (i64 r = 0; r < n; ++r) {
                    const double x = t + (top[r] - at[r]);
                    const CdfParts parts = cdf_parts(x);
                    to[r] = mills_ratio(x, parts.e, parts.v);
                    below[r] *= (x < 0.0 ? parts.e : 1.0) * parts.v;
                }
            }
            for (i64 k = 0; k <= d; ++k)
                for (i64 r = 0; r < n; ++r) p[k * SIDE + r] += below[r] * ratio[k * SIDE + r];
        }
        for (i64 k = 0; k <= d; ++k)
            for (i64 r = 0; r < n; ++r) total[r] += p[k * SIDE + r];
        for (i64 k = 0; k <= d; ++k)
            for (i64 r = 0; r < n; ++r) p[k * SIDE + r] /= total[r];
    }

    // Replaces the contrasts (d, stride) of n_rows rows by w d log p / d m; returns sum w log p.
    template <class R>
    double score(i64 n_rows, i64 stride, R* __restrict eta, const u8* y, const double* weight, double*) const {
        Part part;
        double total = 0.0;
        for (i64 first = 0; first < n_rows; first += SIDE) {
            const i64 n = least(SIDE, n_rows - first);
            R* from = eta + first;
            const double* w = weight ? weight + first : nullptr;
            see_differences(n, y + first, [=](i64 a, i64 r) { return double(from[a * stride + r]); });
            evaluate<true>(n, part);
            put_slopes(n, stride, y + first, w, part.total, from);
            total += sum_logs(n, w, part.rest, part.factor);
        }
        return total;
    }

    // The derivatives by the contrasts from those by the differences.
    template <class R>
    void put_slopes(i64 n, i64 stride, const u8* __restrict y, const double* weight, const double* total,
                    R* __restrict out) const {
        double of_y[SIDE] = {}, of_last[SIDE] = {}, sum[SIDE] = {}, unit[SIDE];
        for (i64 r = 0; r < n; ++r) unit[r] = 1.0 / total[r];
        if (weight)  // a masked load from a null pointer would take longer than all the rest
            for (i64 r = 0; r < n; ++r) unit[r] *= weight[r];
        for (i64 l = 0; l < d; ++l)
            for (i64 r = 0; r < n; ++r) {
                double& slope = slopes()[l * SIDE + r];
                slope *= unit[r], of_y[r] += slope;
                of_last[r] = y[r] == l ? -slope : of_last[r];
            }
        for (i64 k = 0; k <= d; ++k)
            for (i64 r = 0; r < n; ++r) {
                const double slope = y[r] == k ? of_y[r] : k == d ? of_last[r] : -slopes()[k * SIDE + r];
                if (k) out[(k - 1) * stride + r] = R(scale(k - 1) * (double(k) * slope - sum[r]));
                sum[r] += slope;
            }
    }

    // Replaces the contrasts m (d, stride) of n_rows rows by those of utilities given y: w ~ N(m, I) where class y has the
    // largest. Row i has the random numbers of row first_row + i.
    template <class R>
    void draw(R* __restrict m, i64 stride, const u8* y, i64 n_rows, i64 first_row, u32 chain, Key key) const {
        Part part;
        for (i64 first = 0; first < n_rows; first += SIDE) {
            const i64 n = least(SIDE, n_rows - first);
            R* to = m + first;
            see_differences(n, y + first, [=](i64 a, i64 r) { return double(to[a * stride + r]); });
            find_mode(padded(n), part);
            for (i64 r = 0; r < n; ++r) {
                const u64 row = u64(first_row + first + r);
                const Stream stream(key, chain, LATENT_PURPOSE, row);
                const double step = draw_largest(r, part.slope[r], stream, u32(row));
                double sum = 0.0;  // of utilities less the largest one, of classes below k
                for (i64 k = 0; k <= d; ++k) {
                    const i64 l = k < d ? k : y[first + r];
                    const double t = places()[l * SIDE + r] + step;
                    const double z = y[first + r] == k ? 0.0 : -truncated_normal(t, stream, u32(row), u32(k + 1) << 16);
                    if (k) to[(k - 1) * stride + r] = R(scale(k - 1) * (double(k) * z - sum));
                    sum += z;
                }
            }
        }
    }

    // x less the mode of phi(x) prod_l Phi(x + eta_y - eta_l), to which x is proportional. log Phi lies below its tangents, so
    // that proposals with those at ``mode``, about which x is N(slope, 1), are accepted with the ratio of both. They are in
    // places, slope the derivative there.
    double draw_largest(i64 r, double slope, const Stream& stream, u32 row) const {
        for (u32 attempt = 0; attempt < 1u << 12; ++attempt) {  // of d others hardly 1 in sqrt(1 + d) accepts
            double u, above = 0.0;
            const double step = slope + normal(stream, row, attempt, &u);
            for (i64 l = 0; l < d; ++l) {
                const double t = places()[l * SIDE + r], below = largest(-t, 0.0), v = cdf_parts(t).v;
                const double moved = least(step + largest(t, 0.0), below);  // the change of min(t, 0)
                // Far out phi(t) / Phi(t) is -t - 1 / t, whose difference from -t would be lost.
                const double along = t < STRAIGHT ? -step / t : ratios()[l * SIDE + r] * step - below * moved;
                above += along + 0.5 * moved * moved - log(cdf_parts(t + step).v / v);
            }
            if (above < -log(u)) return step;
        }
        return 0.0;
    }

    // sum w log p at eta + step change, (d, stride) each.
    double log_likelihood(i64 n_rows, i64 stride, const double* __restrict eta, const double* __restrict change,
                          const u8* y, const double* weight, double step) const {
        Part part;
        double total = 0.0;
        for (i64 first = 0; first < n_rows; first += SIDE) {
            const i64 n = least(SIDE, n_rows - first);
            see_differences(n, y + first, [=](i64 a, i64 r) {
                const i64 at = a * stride + first + r;
                return eta[at] + step * change[at];
            });
            evaluate<false>(n, part);
            total += sum_logs(n, weight ? weight + first : nullptr, part.rest, part.factor);
        }
        return total;
    }
};

typedef MultinomialProbitBy<false> MultinomialProbit;
typedef MultinomialProbitBy<true> MultinomialProbitByLaplace;
