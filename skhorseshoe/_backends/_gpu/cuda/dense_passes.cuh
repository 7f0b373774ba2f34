// The fused passes over the rows of X: for each tile the linear predictors of all chains, what is drawn or derived from
// them, and the sums over rows. X is read from global memory once (STAGED) for all chains.
//
// Compiled for CHAINS (1, 2, 4, 8 or 16), ELEMENT (float, double or Half), REAL (the type of arithmetic) and STAGED: 1 if
// tiles, coefficients and sums fit into shared memory, 0 if they stay in global memory and a tile is read again from a
// cache. A tile in shared memory has a multiple of 4 rows, of 8 in 16 bits, so that it begins at a multiple of 16 bytes
// for any p.
//
// Sums of a tile are held in REAL, sums of tiles in float64. No atomics: every sum has one owner and a fixed order.
#include "primitives.cuh"
#include "row_tasks.cuh"

struct Rows {
    const ELEMENT* X;        // (n, p), or a part of it from row X_row on
    const u8* y;             // (n,) 0 or 1
    const double* weight;    // (n,), or null
    const REAL* coef;        // (q, CHAINS)
    i64 n;
    int p, q, chains, chain0;  // chain0 : the number of the first chain
    int tile;  // rows
    i64 X_row;
    int block0, blocks;  // index of the first block of this launch, and number of blocks of the pass
};

HD i64 round_16(i64 bytes) { return (bytes + 15) & ~15LL; }

// Sums over the 32 lanes of V values each. Afterwards lane l holds those of values l * V / 32 and, for V = 64, the next.
template <int V, int OFFSET>
struct Fold {
    HD_MEMBER static void sum(REAL* value, int lane) {
        if (V == 1) {
            value[0] += __shfl_xor_sync(0xffffffffu, value[0], OFFSET);
        } else {
            const bool upper = lane & OFFSET;
#pragma unroll
            for (int i = 0; i < V / 2; ++i) {
                const REAL keep = upper ? value[i + V / 2] : value[i], give = upper ? value[i] : value[i + V / 2];
                value[i] = keep + __shfl_xor_sync(0xffffffffu, give, OFFSET);
            }
        }
        Fold<(V > 1 ? V / 2 : 1), OFFSET / 2>::sum(value, lane);
    }
};
template <int V>
struct Fold<V, 0> {
    HD_MEMBER static void sum(REAL*, int) {}
};

// Starts to copy count rows; a rest of less than 16 bytes is copied element by element.
HD void fetch(ELEMENT* tile, const ELEMENT* from, int count, int p) {
    const int step = 16 / sizeof(ELEMENT), size = count * p, whole = size / step * step;
    for (int i = threadIdx.x * step; i < whole; i += THREADS * step) copy_16(tile + i, from + i);
    for (int i = whole + threadIdx.x; i < size; i += THREADS) tile[i] = from[i];
}

// dots[part][row][chain]: x_row . coef over the columns of a part; four rows at a time share each coefficient.
HD void multiply(const ELEMENT* tile, const REAL* coef, REAL* dots, int count, int rows, int p) {
    const int lane = threadIdx.x & 31, groups = rows / 4, parts = groups < WARPS ? WARPS / groups : 1;
    for (int task = threadIdx.x >> 5; task < groups * parts; task += WARPS) {
        const int row = task % groups * 4, part = task / groups;
        if (row >= count) continue;
        const ELEMENT* x[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) x[k] = tile + (i64)(row + k < count ? row + k : row) * p;
        REAL dot[4 * CHAINS];
#pragma unroll
        for (int v = 0; v < 4 * CHAINS; ++v) dot[v] = REAL(0);
        for (int j = part * 32 + lane; j < p; j += 32 * parts) {
            REAL b[CHAINS];
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) b[c] = coef[(i64)j * CHAINS + c];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const REAL value = number(x[k][j]);
#pragma unroll
                for (int c = 0; c < CHAINS; ++c) dot[k * CHAINS + c] += value * b[c];
            }
        }
        Fold<4 * CHAINS, 16>::sum(dot, lane);
        REAL* out = dots + (part * rows + row) * CHAINS;
        if (CHAINS >= 8) {
#pragma unroll
            for (int i = 0; i < CHAINS / 8; ++i) out[lane * (CHAINS / 8) + i] = dot[i];
        } else if (lane % (8 / CHAINS) == 0) {
            out[lane / (8 / CHAINS)] = dot[0];
        }
    }
}

// total[chain] += sum over the rows of weight value(row).
template <class Value>
HD void add_column(Value value, const REAL* weights, double* total, int count) {
    REAL sum[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum[c] = REAL(0);
#pragma unroll 4
    for (int r = 0; r < count; ++r) {
        const REAL x = value(r);
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) sum[c] += x * weights[r * CHAINS + c];
    }
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) total[c] += sum[c];
}

// total[j][chain] += sum over the rows of weight x_j; a column has one owner, from the first tile to the last.
HD void add_weighted_rows(const ELEMENT* tile, const REAL* weights, double* total, int count, int p, int q) {
    for (int j = threadIdx.x; j < q; j += THREADS) {
        double* column = total + (i64)j * CHAINS;
        if (j < p) add_column([=](int r) { return REAL(number(tile[(i64)r * p + j])); }, weights, column, count);
        else add_column([](int) { return REAL(1); }, weights, column, count);  // the intercept
    }
}

// Shared memory behind the dots and the weights of a tile.
HD unsigned char* behind_weights(const Rows& rows) {
    DYNAMIC_SHARED(unsigned char, memory);
    const int parts = rows.tile / 4 < WARPS ? WARPS / (rows.tile / 4) : 1;
    return memory + round_16((parts + 1LL) * rows.tile * CHAINS * sizeof(REAL));
}

// The rows of a block, tile by tile. task : the weight of a row and chain from the linear predictor. use(x, weights, count,
// row) : called for each tile, which begins at this row. rest : free shared memory.
template <class Task, class Use>
HD void each_tile(const Rows& rows, unsigned char* rest, Task& task, Use use) {
    DYNAMIC_SHARED(unsigned char, memory);
    const int p = rows.p, q = rows.q, tile = rows.tile, tid = threadIdx.x;
    const int parts = tile / 4 < WARPS ? WARPS / (tile / 4) : 1;
    REAL* dots = (REAL*)memory;
    REAL* weights = dots + parts * tile * CHAINS;
    const REAL* coef = rows.coef;
#if STAGED
    REAL* staged = (REAL*)rest;
    rest += round_16((i64)sizeof(REAL) * q * CHAINS);
    for (int i = tid; i < q * CHAINS; i += THREADS) staged[i] = coef[i];
    coef = staged;
#endif

    const i64 tiles = (rows.n + tile - 1) / tile;
    const i64 block = rows.block0 + (i64)blockIdx.x;
    const i64 first = tiles * block / rows.blocks, last = tiles * (block + 1) / rows.blocks;
    ELEMENT* buffer = (ELEMENT*)rest;
    const i64 spacing = (i64)tile * p;
#if STAGED
    if (first < last) {
        const i64 left = rows.n - first * tile;
        const ELEMENT* x = rows.X + (first * tile - rows.X_row) * p;
        fetch(buffer + (first & 1) * spacing, x, (int)(left < tile ? left : tile), p);
    }
#endif
    for (i64 t = first; t < last; ++t) {
        const i64 row = t * tile, left = rows.n - row;
        const int count = (int)(left < tile ? left : tile);
        const ELEMENT* x = rows.X + (row - rows.X_row) * p;
#if STAGED
        x = buffer + (t & 1) * spacing;
        wait_for_copies();
        SYNC(TILE_READY);
        if (t + 1 < last) {  // into the buffer that all threads have left behind
            const i64 after = left - tile;
            const ELEMENT* next = rows.X + (row + tile - rows.X_row) * p;
            fetch(buffer + ((t + 1) & 1) * spacing, next, (int)(after < tile ? after : tile), p);
        }
#endif
        multiply(x, coef, dots, count, tile, p);
        SYNC(DOTS_READY);
        for (int i = tid; i < count * CHAINS; i += THREADS) {
            const int r = i / CHAINS, c = i % CHAINS;
            REAL eta = q > p ? coef[(i64)p * CHAINS + c] : REAL(0);
            for (int part = 0; part < parts; ++part) eta += dots[part * tile * CHAINS + i];
            weights[i] = c < rows.chains ? task(eta, rows.y[row + r] != 0, rows.weight, row + r, rows.chain0 + c) : REAL(0);
        }
        SYNC(WEIGHTS_READY);
        use(x, weights, count, row);
    }
}

// The rows of a block; sums (gridDim, q + 1, CHAINS): its sums over rows, and in the last row its totals.
template <class Task>
HD void pass(const Rows& rows, Task& task, double* sums) {
    const int p = rows.p, q = rows.q, tid = threadIdx.x;
    double* block_sums = sums + blockIdx.x * (q + 1LL) * CHAINS;
    double* total = block_sums;
    unsigned char* rest = behind_weights(rows);
#if STAGED
    total = (double*)rest;
    rest += round_16(8LL * q * CHAINS);
#endif
    for (int j = tid; j < q; j += THREADS)
        for (int c = 0; c < CHAINS; ++c) total[(i64)j * CHAINS + c] = 0.0;
    each_tile(rows, rest, task, [=](const ELEMENT* x, const REAL* weights, int count, i64) {
        add_weighted_rows(x, weights, total, count, p, q);
    });
#if STAGED
    for (int j = tid; j < q; j += THREADS)
        for (int c = 0; c < CHAINS; ++c) block_sums[(i64)j * CHAINS + c] = total[(i64)j * CHAINS + c];
#endif
    add_totals(task.total, block_sums + (i64)q * CHAINS);
}

#define BOUNDS __launch_bounds__(THREADS, CHAINS * sizeof(REAL) <= 32 ? 2 : 1)

// X'z and z'z for the latents z.
extern "C" __global__ void BOUNDS latent_pass(const ELEMENT* X, const u8* y, const REAL* coef, double* sums,
                                              i64 n, int p, int q, int chains, int chain0, i64 first_row,
                                              int tile, i64 X_row, int block0, int blocks,
                                              u32 sweep, u32 k0, u32 k1) {
    const Rows rows = {X, y, 0, coef, n, p, q, chains, chain0, tile, X_row, block0, blocks};
    Latent task = {{sweep, k0, k1}, first_row, 0.0};
    pass(rows, task, sums);
}

// The gradient of the log-likelihood, and the log-likelihood.
extern "C" __global__ void BOUNDS score_pass(const ELEMENT* X, const u8* y, const double* weight,
                                             const REAL* coef, double* sums, i64 n, int p, int q, int chains,
                                             int weighted, int tile, i64 X_row, int block0,
                                             int blocks) {
    const Rows rows = {X, y, weighted ? weight : 0, coef, n, p, q, chains, 0, tile, X_row, block0, blocks};
    Score task = {0.0};
    pass(rows, task, sums);
}

// Log-likelihoods along lines. The chains are 2 n_lines: the coefficients of each line, followed by its direction. sums
// (gridDim, n_lines, n_steps). The linear predictors of a tile are stored in place of weights.
extern "C" __global__ void BOUNDS line_pass(const ELEMENT* X, const u8* y, const double* weight,
                                            const REAL* coef, double* sums, i64 n, int p, int q, int n_lines,
                                            int weighted, const double* steps, int n_steps, int tile,
                                            i64 X_row, int block0, int blocks) {
    const Rows rows = {X, y, weighted ? weight : 0, coef, n, p, q, 2 * n_lines, 0, tile, X_row, block0, blocks};
    Line line(steps, n_lines, n_steps);
    Predictor predictor;
    each_tile(rows, behind_weights(rows), predictor, [&](const ELEMENT*, const REAL* eta, int count, i64 row) {
        line.add([=](int r, int v) { return eta[r * CHAINS + v]; }, rows.y, rows.weight, row, count);
    });
    line.write(sums + blockIdx.x * (i64)line.size);
}
