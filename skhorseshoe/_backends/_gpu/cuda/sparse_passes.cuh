// Twin: _cpu/exports/sparse.cpp and csr_rows.hpp, with the loops of passes.cpp.
// The passes over sparse rows: linear predictors of all chains and what is drawn or derived from them, row by row; then
// the sums over rows, column by column, from a copy of the stored numbers by columns. So X is read twice, and between the
// two a value for each row and chain is in global memory.
//
// Compiled for CHAINS (1, 2, 4, 8 or 16), ELEMENT (float or double, of the stored numbers), REAL (in which rows are
// computed) and INDEX (int or long long, of the places of the stored numbers).
//
// Sums over a row are held in REAL, sums over rows in float64. A column is cut into pieces of a fixed length. No atomics:
// every sum has one owner and a fixed order, and who adds what depends on X and the number of chains alone.

// A value for each chain, side by side: one load where they have up to 16 bytes.
struct alignas(sizeof(REAL) * CHAINS < 16 ? sizeof(REAL) * CHAINS : 16) Values {
    REAL v[CHAINS];
};

struct Rows {
    const ELEMENT* data;
    const INDEX *indices, *starts;  // the columns of the stored numbers; the first number of each row, and the end
    const unsigned char* y;         // (n,) 0 or 1, or null
    const double* weight;           // (n,) that multiplies what is summed of a row, or null
    const Values* coef;             // (q,), or null for zeros
    long long n;
    int p, q, chains, chain0;  // chain0 : the number of the first chain
    int lanes;                 // threads that share a row: 1, 2, ..., 32
};

struct Product {
    double total;
    __device__ __forceinline__ REAL operator()(REAL eta, bool, const double* weight, long long row, u32) {
        return weight ? eta * REAL(weight[row]) : eta;
    }
};

struct Noise {
    u32 attempt, sweep, purpose, k0, k1;
    long long first_row;  // the number of row 0 among those whose random numbers these are
    double total;
    __device__ __forceinline__ REAL operator()(REAL, bool, const double* weight, long long row, u32 chain) {
        double unused;
        const double scale = weight ? sqrt(weight[row]) : 1.0;
        row += first_row;
        const double e = normal_and_unit(attempt, sweep, (u32)row, stream_of(chain, purpose, row), k0, k1, &unused);
        return REAL(e * scale);
    }
};

// Sums over the lanes of a group, to all of them.
template <class T>
__device__ __forceinline__ void add_lanes(T* sum, int lanes) {
    for (int offset = lanes >> 1; offset > 0; offset >>= 1)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], offset);
}

// dots[r] = x_(start + r) . coef for count rows.
__device__ __forceinline__ void multiply(const Rows& x, long long start, int count, Values* dots) {
    const int lane = threadIdx.x % x.lanes, group = threadIdx.x / x.lanes, groups = THREADS / x.lanes;
    for (int base = 0; base < count; base += groups) {  // all threads of a warp go round together
        const int r = base + group;
        Values dot;
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) dot.v[c] = REAL(0);
        if (r < count && x.coef) {
            const INDEX end = x.starts[start + r + 1];
            for (INDEX k = x.starts[start + r] + lane; k < end; k += x.lanes) {
                const REAL value = REAL(x.data[k]);
                const Values b = x.coef[x.indices[k]];
#pragma unroll
                for (int c = 0; c < CHAINS; ++c) dot.v[c] += value * b.v[c];
            }
        }
        add_lanes(dot.v, x.lanes);
        if (r < count && lane == 0) dots[r] = dot;
    }
}

// One block's share of the rows, a tile after the other. use(eta, start, count) : what is done with a tile; eta(r, c) is
// the linear predictor of row start + r for chain c.
template <class Use>
__device__ __forceinline__ void each_tile(const Rows& rows, Use use) {
    DYNAMIC_SHARED(Values, dots);  // (TILE,)
    const long long block = blockIdx.x, blocks = gridDim.x;
    const long long first = rows.n * block / blocks, last = rows.n * (block + 1) / blocks;
    for (long long start = first; start < last; start += TILE) {
        const int count = (int)(last - start < TILE ? last - start : TILE);
        multiply(rows, start, count, dots);
        SYNC(DOTS_READY);
        use([&](int r, int c) { return dots[r].v[c] + (rows.q > rows.p ? rows.coef[rows.p].v[c] : REAL(0)); }, start, count);
        SYNC(TILE_FREE);
    }
}

// out (n,) : what the task makes of each row. ones and totals (gridDim, CHAINS) : the sums of that over the block, and
// those of the task.
template <class Task>
__device__ __forceinline__ void pass(const Rows& rows, Task& task, Values* out, double* ones, double* totals) {
    double sum = 0.0;  // over the rows that this thread has seen, all for one chain
    each_tile(rows, [&](auto eta, long long start, int count) {
        for (int i = threadIdx.x; i < count * CHAINS; i += THREADS) {
            const int r = i / CHAINS, c = i % CHAINS;
            const long long row = start + r;
            const bool one = rows.y && rows.y[row] != 0;
            const REAL value = c < rows.chains ? task(eta(r, c), one, rows.weight, row, rows.chain0 + c) : REAL(0);
            out[row].v[c] = value;
            sum += (double)value;
        }
    });
    add_totals(sum, ones + (long long)blockIdx.x * CHAINS);
    SYNC(TOTALS_FREE);
    add_totals(task.total, totals + (long long)blockIdx.x * CHAINS);
}

// Blocks on a multiprocessor: what hides the latency of memory, with enough registers for all chains.
#define BOUNDS __launch_bounds__(THREADS, CHAINS * sizeof(REAL) <= 32 ? 4 : 2)

// The last arguments of each: sums (pieces + 2 gridDim, CHAINS), whose end is written here.
#define SHARES sums + pieces * CHAINS, sums + (pieces + gridDim.x) * CHAINS

// z_i ~ N(x_i beta, 1) truncated to the side of y_i, and z'z.
extern "C" __global__ void BOUNDS
latent_rows(const ELEMENT* data, const INDEX* indices, const INDEX* starts, const Values* coef, Values* out, double* sums,
            long long pieces, long long n, int p, int q, int chains, int chain0, int lanes, const unsigned char* y,
            long long first_row, u32 sweep, u32 k0, u32 k1) {
    const Rows rows = {data, indices, starts, y, 0, coef, n, p, q, chains, chain0, lanes};
    Latent task = {sweep, k0, k1, first_row, 0.0};
    pass(rows, task, out, SHARES);
}

// The derivative of the log-likelihood by the linear predictor, and the log-likelihood.
extern "C" __global__ void BOUNDS
score_rows(const ELEMENT* data, const INDEX* indices, const INDEX* starts, const Values* coef, Values* out, double* sums,
           long long pieces, long long n, int p, int q, int chains, int chain0, int lanes, const unsigned char* y,
           const double* weight, int weighted) {
    const Rows rows = {data, indices, starts, y, weighted ? weight : 0, coef, n, p, q, chains, chain0, lanes};
    Score task = {0.0};
    pass(rows, task, out, SHARES);
}

// Log-likelihoods along lines. The chains here are 2 n_lines: the coefficients of each line, and behind them its direction.
// sums (gridDim, n_lines, n_steps): those of a block's rows.
extern "C" __global__ void BOUNDS
line_rows(const ELEMENT* data, const INDEX* indices, const INDEX* starts, const Values* coef, double* sums, long long n,
          int p, int q, int n_lines, int lanes, const unsigned char* y, const double* weight, int weighted,
          const double* steps, int n_steps) {
    const Rows rows = {data, indices, starts, y, weighted ? weight : 0, coef, n, p, q, 2 * n_lines, 0, lanes};
    Line line(steps, n_lines, n_steps);
    each_tile(rows, [&](auto eta, long long start, int count) { line.add(eta, rows.y, rows.weight, start, count); });
    line.write(sums + blockIdx.x * (long long)line.size);
}

// w_i x_i coef.
extern "C" __global__ void BOUNDS
product_rows(const ELEMENT* data, const INDEX* indices, const INDEX* starts, const Values* coef, Values* out, double* sums,
             long long pieces, long long n, int p, int q, int chains, int chain0, int lanes, const double* weight,
             int weighted) {
    const Rows rows = {data, indices, starts, 0, weighted ? weight : 0, coef, n, p, q, chains, chain0, lanes};
    Product task = {0.0};
    pass(rows, task, out, SHARES);
}

// Independent N(0, w_i).
extern "C" __global__ void BOUNDS
noise_rows(const ELEMENT*, const INDEX*, const INDEX*, const Values*, Values* out, double* sums, long long pieces,
           long long n, int, int, int chains, int chain0, int lanes, const double* weight, int weighted,
           long long first_row, u32 attempt, u32 sweep, u32 purpose, u32 k0, u32 k1) {
    const Rows rows = {0, 0, 0, 0, weighted ? weight : 0, 0, n, 0, 0, chains, chain0, lanes};
    Noise task = {attempt, sweep, purpose, k0, k1, first_row, 0.0};
    pass(rows, task, out, SHARES);
}

// sums[piece] = the sum of x_k weight[row of k] over the stored numbers k of a piece of a column, those from cuts[piece] on.
extern "C" __global__ void BOUNDS
add_columns(const ELEMENT* by_column, const INDEX* rows, const long long* cuts, const Values* weights, double* sums,
            long long pieces, int lanes) {
    const int lane = threadIdx.x % lanes;
    const long long piece = (blockIdx.x * (long long)THREADS + threadIdx.x) / lanes;
    double sum[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum[c] = 0.0;
    if (piece < pieces) {
        const long long end = cuts[piece + 1];
        for (long long k = cuts[piece] + lane; k < end; k += lanes) {
            const double x = (double)by_column[k];
            const Values w = weights[rows[k]];
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) sum[c] += x * (double)w.v[c];
        }
    }
    add_lanes(sum, lanes);
    if (piece < pieces && lane == 0)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) sums[piece * CHAINS + c] = sum[c];
}

// The second stage: out (chains, q + 1) = for each column, for the ones if there is an intercept (q > p) and for the totals
// of the tasks the sum over its pieces, which are those from firsts[column] on. A warp for each.
extern "C" __global__ void BOUNDS
add_pieces(const double* sums, const long long* firsts, double* out, int p, int q, int chains) {
    const int lane = threadIdx.x & 31;
    const long long column = (blockIdx.x * (long long)THREADS + threadIdx.x) >> 5;
    double sum[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum[c] = 0.0;
    if (column <= q) {
        const long long from = column < q ? column : p + 1, end = firsts[from + 1];
        for (long long piece = firsts[from] + lane; piece < end; piece += 32)
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) sum[c] += sums[piece * CHAINS + c];
    }
    add_lanes(sum, 32);
    if (column <= q && lane == 0)
#pragma unroll
        for (int c = 0; c < CHAINS; ++c)
            if (c < chains) out[c * (q + 1LL) + column] = sum[c];
}
