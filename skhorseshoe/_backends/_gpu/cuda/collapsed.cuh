// Twin: _cpu/collapsed.py, which has the formulas.
// The sampler with the coefficients integrated out. V = I + X W X', P = V^-1 (n_chains, n, n). Matrices are in C
// order, all but X in float64.

// Column k of the coefficients at row i, centred: order[k] is its number in X, which continues with a column of ones.
__device__ __forceinline__ double entry(const ELEMENT* X, const long long* order, const double* centre, long long i,
                                        long long k, int p) {
    if (k >= p) return 1.0;
    const long long j = order[k];
    return (double)number(X[i * p + j]) - centre[j];
}

// out (n, m) = the columns from ``first`` on times root (m).
extern "C" __global__ void fill_columns(const ELEMENT* X, const long long* order, const double* centre,
                                        const double* root, long long first, double* out, long long size, int m, int p) {
    const long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= size) return;
    const long long i = e / m, k = e - i * m;
    out[e] = entry(X, order, centre, i, first + k, p) * root[k];
}

// out (count, n) = the columns of ``which`` (count) times root (q).
extern "C" __global__ void gather_columns(const ELEMENT* X, const long long* order, const double* centre,
                                          const double* root, const long long* which, double* out, long long size, int n,
                                          int p) {
    const long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= size) return;
    const long long k = which[e / n];
    out[e] = entry(X, order, centre, e % n, k, p) * root[k];
}

// out[c] = (z'Pz, never below its rounding error; the trace of P; 0), given Pz. One block for each chain.
extern "C" __global__ void __launch_bounds__(THREADS)
quadratic_forms(const double* P, const double* z, const double* Pz, double* out, int n) {
    DYNAMIC_SHARED(double, shared);
    const int c = blockIdx.x;
    const double* diagonal = P + (long long)c * n * n;
    double total = 0.0, size = 0.0, trace = 0.0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const double here = diagonal[(long long)i * n + i], value = z[(long long)c * n + i];
        total += value * Pz[(long long)c * n + i];
        size += here * value * value;
        trace += here;
    }
    total = block_sum(total, shared);
    size = block_sum(size, shared);
    trace = block_sum(trace, shared);
    if (threadIdx.x == 0) {
        out[3 * c] = fmax(total, ROUNDING * size);
        out[3 * c + 1] = trace;
        out[3 * c + 2] = 0.0;
    }
}

// P (n, n) after the m columns (m, n) have joined one by one, those whose weights are 0 left out; before : the diagonal of
// P, which is another array. factors, precision (m), products (m, n), rise (1) as in the counterpart; of the columns left
// out factors is 0 and products what it was. One block.
extern "C" __global__ void __launch_bounds__(THREADS)
add_heavy(double* P, const double* before, const double* columns, const double* weights, double* factors, double* precision,
          double* products, double* rise, int n, int m) {
    DYNAMIC_SHARED(double, shared);
    const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
    double total = 0.0;
    for (int k = 0; k < m; ++k) {
        const double weight = weights[k];
        if (!(weight > 0.0)) {
            if (threadIdx.x == 0) factors[k] = 0.0;
            continue;
        }
        const double* x = columns + (long long)k * n;
        double* g = products + (long long)k * n;
        for (int i = threadIdx.x >> 5; i < n; i += warps) {
            double value = 0.0;
            for (int j = lane; j < n; j += 32) value += P[(long long)i * n + j] * x[j];
            value = warp_sum(value);
            if (lane == 0) g[i] = value;
        }
        SYNC(PRODUCT_READY);
        double s = 0.0, size = 0.0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            s += g[i] * x[i];
            size += x[i] * x[i] * before[i];
        }
        s = block_sum(s, shared);
        size = block_sum(size, shared);
        const bool joins = s > IN_THE_SPAN * size;
        const double factor = joins ? weight / (1.0 + weight * s) : 0.0;
        if (threadIdx.x == 0) {
            factors[k] = factor;
            precision[k] = 1.0 / weight + (joins ? s : IN_THE_SPAN * size);
        }
        if (joins) {
            total += log1p(weight * s);
            for (int i = threadIdx.x >> 5; i < n; i += warps) {
                const double scaled = factor * g[i];
                for (int j = lane; j < n; j += 32) P[(long long)i * n + j] -= scaled * g[j];
            }
        }
    }
    SYNC(ALL_JOINED);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        double* entry = P + (long long)i * n + i;
        *entry = fmax(*entry, ROUNDING * before[i]);
    }
    if (threadIdx.x == 0) *rise = total;
}

// Coefficients of the columns that have joined, the last first; rest (n), from which each column is taken, in place. One
// block, each thread of which has its entries of rest for itself.
extern "C" __global__ void __launch_bounds__(THREADS)
draw_heavy(const double* columns, const double* weights, const double* precision, const double* products,
           const double* noise, double* rest, double* coef, int n, int m) {
    DYNAMIC_SHARED(double, shared);
    for (int k = m - 1; k >= 0; --k) {
        if (!(weights[k] > 0.0)) {
            if (threadIdx.x == 0) coef[k] = 0.0;
            continue;
        }
        const long long at = (long long)k * n;
        double sum = 0.0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) sum += products[at + i] * rest[i];
        const double drawn = block_sum(sum, shared) / precision[k] + noise[k] / sqrt(precision[k]);
        for (int i = threadIdx.x; i < n; i += blockDim.x) rest[i] -= drawn * columns[at + i];
        if (threadIdx.x == 0) coef[k] = drawn;
    }
}

// z (n_chains, n) with another length: z'Pz, which is forms[3 c], has the law Gamma(n/2, 1/2). A block for each chain.
extern "C" __global__ void scale_latent(double* z, const double* forms, int n, u32 index, const u32* since, u32 sweep, u32 k0,
                                        u32 k1) {
    sweep += *since;
    const int c = blockIdx.x;
    const double drawn = gamma_1(0.5 * n, sweep, index, stream_of(c, LENGTH, 0), k0, k1);
    const double factor = sqrt(2.0 * drawn / forms[3 * c]);
    for (int i = threadIdx.x; i < n; i += blockDim.x) z[(long long)c * n + i] *= factor;
}

// z_i ~ N(mean_i, 1) on the side of y_i, with the random numbers of a scan; z and mean (n_chains, n). One thread for each.
extern "C" __global__ void draw_latent(const double* mean, const unsigned char* y, double* z, long long size, int n, int scan,
                                       const u32* since, u32 sweep, u32 k0, u32 k1) {
    sweep += *since;
    const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (at >= size) return;
    const int i = at % n;
    const double side = y[i] ? 1.0 : -1.0;
    const u32 stream = stream_of((u32)(at / n), LATENT, 0);
    z[at] = side * truncated_normal<double>(side * mean[at], sweep, i, stream, k0, k1, SCAN_BLOCKS * scan);
}

// z_i given the other z, one row after the other, n_scans times; z and Pz (n_chains, n) in place. One block for each
// chain: all its threads draw the same z_i, and share the update of Pz. An entry of z or Pz is read and written by one
// thread alone; that of the next row it hands to the others in one of two slots, so that one barrier a row is enough.
extern "C" __global__ void __launch_bounds__(THREADS)
scan_latent(double* z, double* Pz, const double* P, const unsigned char* y, int n, int n_scans, int first,
            const u32* since, u32 sweep, u32 k0, u32 k1) {
    sweep += *since;
    DYNAMIC_SHARED(double, slots);
    const int c = blockIdx.x;
    const u32 stream = stream_of(c, LATENT, 0);
    z += (long long)c * n;
    Pz += (long long)c * n;
    P += (long long)c * n * n;
    if (threadIdx.x == 0) {
        slots[0] = z[0];
        slots[1] = Pz[0];
    }
    SYNC(ROW_HANDED);
    int turn = 0;
    for (int scan = first; scan < first + n_scans; ++scan) {
        for (int i = 0; i < n; ++i) {
            const double* row = P + (long long)i * n;
            const double now = slots[turn], side = y[i] ? 1.0 : -1.0, sd = 1.0 / sqrt(row[i]);
            const double mean = side * (now / sd - slots[turn + 1] * sd);
            const double drawn = side * sd * truncated_normal<double>(mean, sweep, i, stream, k0, k1, SCAN_BLOCKS * scan);
            const int next = i + 1 < n ? i + 1 : 0;
            turn = 2 - turn;
            for (int j = threadIdx.x; j < n; j += blockDim.x) {
                const double updated = Pz[j] + row[j] * (drawn - now);
                Pz[j] = updated;
                if (j == i) z[j] = drawn;
                if (j == next) {
                    slots[turn] = z[j];
                    slots[turn + 1] = updated;
                }
            }
            SYNC(ROW_DRAWN);
        }
    }
}

// Of log lambda_j, up to a constant; bound : lambda^2 tau^2 / c^2.
__device__ __forceinline__ double log_scale_density(double log_lambda, double w, double bound, double s, double r,
                                                    double q, int n) {
    const double informed = 1.0 + w * s, explained = fmin(w * r * r / (informed * q), 1.0 - ROUNDING);
    const double size = fabs(log_lambda), prior = -size - log1p(exp(-2.0 * size));
    return prior - 0.5 * log(informed) - 0.5 * log1p(bound) - 0.5 * n * log1p(-explained);
}

// A slice step in log lambda_j; the next lambda_j^-2 and w_j, the same ones if there is no other.
__device__ __forceinline__ void slice_scale(double* lambda_sq_inv, double* w, double s, double r, double q,
                                            double largest, double tau_sq_inv, double slab_precision, int n, u32 j,
                                            u32 n_th, u32 sweep, u32 stream, u32 k0, u32 k1) {
    const double now = -0.5 * log(*lambda_sq_inv), d = fmax(tau_sq_inv * *lambda_sq_inv, LEAST_PRECISION);
    const double level = log_scale_density(now, *w, slab_precision / d, s, r, q, n) -
                         exponential_1(SCAN_ATTEMPTS * n_th, sweep, j, stream, k0, k1);
    double low = now, high = now;
    for (u32 attempt = SCAN_ATTEMPTS * n_th + 1; attempt < SCAN_ATTEMPTS * n_th + 400; ++attempt) {
        const Words words = philox(attempt, sweep, j, stream, k0, k1);
        if (high == low) {
            low = now - LOCAL_WIDTH * unit(words.v[0], words.v[1]);
            high = low + LOCAL_WIDTH;
        }
        const double proposed = low + (high - low) * unit(words.v[2], words.v[3]), precision = exp(-2.0 * proposed);
        const double rate = fmax(tau_sq_inv * precision, LEAST_PRECISION), weight = 1.0 / (rate + slab_precision);
        if (weight <= largest && log_scale_density(proposed, weight, slab_precision / rate, s, r, q, n) >= level) {
            *lambda_sq_inv = precision;
            *w = weight;
            return;
        }
        if (proposed < now) low = proposed;
        else high = proposed;
    }
}

// lambda_j of b columns x_j, one after the other, beta and the length of z integrated out. One block for each chain; all
// its threads take the same decisions. With G the rows x_j'P, it is given what the laws are made of, A = G X (b, b),
// C = G G' (b, b), r = G z and |x_j|^2, takes those of the later columns along, and leaves P to the caller: the new P is
// P - T' diag(factors) T for T = U G, U (b, b) being unit lower triangular.
//
// lambda_sq_inv (n_chains, n_shrunk), w (n_chains, q), which, r, factors (n_chains, b), A, C, U (n_chains, b, b),
// square (q), forms (n_chains, 3) as of quadratic_forms, the last the change of log|V|; in place but for A, C and r.
// Shared memory: 3 b^2 + 3 b numbers.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
scan_local_scales(double* lambda_sq_inv, double* w, const long long* which, const double* A, const double* C,
                  const double* r, const double* square, double* forms, double* U, double* factors,
                  const double* tau_sq_inv, double slab_precision, int n, int b, int n_shrunk, int q, u32 n_th,
                  const u32* since, u32 sweep, u32 k0, u32 k1) {
    sweep += *since;
    DYNAMIC_SHARED(double, shared);
    double *a = shared, *g = a + b * b, *u = g + b * b, *rz = u + b * b, *scale = rz + b, *weight = scale + b;
    const int c = blockIdx.x;
    const u32 stream = stream_of(c, LOCAL_SLICE, 0);
    const long long at = (long long)c * b;
    for (int e = threadIdx.x; e < b * b; e += blockDim.x) {
        a[e] = A[at * b + e];
        g[e] = C[at * b + e];
        u[e] = e / b == e % b ? 1.0 : 0.0;
    }
    for (int k = threadIdx.x; k < b; k += blockDim.x) {
        rz[k] = r[at + k];
        scale[k] = lambda_sq_inv[(long long)c * n_shrunk + which[at + k]];
        weight[k] = w[(long long)c * q + which[at + k]];
    }
    double total = forms[3 * c], trace = forms[3 * c + 1], rise = forms[3 * c + 2];
    SYNC(SCALES_READ);
    for (int k = 0; k < b; ++k) {
        const long long j = which[at + k];
        const double s = fmax(a[k * b + k], 0.0), rk = rz[k], g_square = fmax(g[k * b + k], 0.0), before = weight[k];
        const double left = 1.0 - before * s;
        double factor = 0.0;
        if (left * (1.0 + MOST_INFORMED) >= 1.0) {
            const double without = s / left, r_without = rk / left;
            double largest = LARGEST_TERM / fmax(square[j] * (trace + before * g_square / left), LEAST_PRECISION);
            largest = fmin(largest, MOST_INFORMED / fmax(without, LEAST_PRECISION));
            if (before <= largest) {
                double precision = scale[k], after = before;
                slice_scale(&precision, &after, without, r_without, total + before * rk * r_without, largest,
                            tau_sq_inv[c], slab_precision, n, (u32)j, n_th, sweep, stream, k0, k1);
                const double change = after - before;
                factor = change / (1.0 + change * s);
                total = fmax(total - factor * rk * rk, ROUNDING * total);
                trace -= factor * g_square;
                rise += log1p(change * s);
                if (threadIdx.x == 0) {
                    lambda_sq_inv[(long long)c * n_shrunk + j] = precision;
                    w[(long long)c * q + j] = after;
                }
            }
        }
        if (threadIdx.x == 0) factors[at + k] = factor;
        // What belongs to column k is only read from now on, and what belongs to later columns only written.
        for (int e = threadIdx.x; e < b * b; e += blockDim.x) {
            const int l = e / b, m = e % b;
            if (l > k) {
                const double mine = factor * a[k * b + l];
                if (m > k) {
                    const double other = a[k * b + m];
                    g[e] += mine * (factor * other * g_square - g[k * b + m]) - factor * other * g[k * b + l];
                    a[e] -= mine * other;
                }
                if (m <= k) u[e] -= mine * u[k * b + m];
            }
        }
        for (int m = k + 1 + threadIdx.x; m < b; m += blockDim.x) rz[m] -= factor * a[k * b + m] * rk;
        SYNC(COLUMN_DONE);
    }
    for (int e = threadIdx.x; e < b * b; e += blockDim.x) U[at * b + e] = u[e];
    if (threadIdx.x == 0) {
        forms[3 * c] = total;
        forms[3 * c + 1] = trace;
        forms[3 * c + 2] = rise;
    }
}
