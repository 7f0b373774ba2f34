// The tasks of passes: the weight of a row from its linear predictor, and totals over a block. Compiled for CHAINS (1, 2, 4,
// 8 or 16) and REAL, the type of arithmetic.
#include "likelihood.cuh"

struct Latent {
    Key key;
    i64 first_row;  // row i has the random numbers of row first_row + i
    double total;   // sum of z^2 over the rows of this thread, all for one chain
    HD_MEMBER REAL operator()(REAL eta, bool is_one, const double*, i64 row, u32 chain) {
        row += first_row;
        const REAL z = Likelihood::latent(eta, is_one, Stream(key, chain, LATENT_PURPOSE, u64(row)), u32(row));
        total += (double)z * (double)z;
        return z;
    }
};

struct Score {
    double total;  // the log-likelihood
    HD_MEMBER REAL operator()(REAL eta, bool is_one, const double* weight, i64 row, u32) {
        const double t = (double)(is_one ? eta : -eta), w = weight ? weight[row] : 1.0;
        const LogDensity density = Likelihood::at(t);
        total += w * density.value();
        return REAL(is_one ? w * density.slope : -w * density.slope);
    }
};

struct Predictor {
    HD_MEMBER REAL operator()(REAL eta, bool, const double*, i64, u32) { return eta; }
};

// The log-likelihood of the rows of a block along lines. A thread has one step of one line, and each ``stride``-th row of a
// tile. n_lines n_steps is at most THREADS. The linear predictors of line l are those of chain 2 l, their changes those of
// chain 2 l + 1.
struct Line {
    int size, line, first, stride;  // number of totals; of this thread the line, the first row, the distance of rows
    double step, total;

    HD_MEMBER Line(const double* steps, int n_lines, int n_steps) {
        const int which = threadIdx.x % (n_lines * n_steps);
        size = n_lines * n_steps;
        line = which / n_steps;
        first = threadIdx.x / size;
        stride = THREADS / size;
        step = steps[which];
        total = 0.0;
    }

    // value(r, chain) : the linear predictor of row r of a tile that begins at row start and has count rows.
    template <class Value>
    HD_MEMBER void add(Value value, const u8* y, const double* weight, i64 start, int count) {
        if (first == stride) return;  // the last threads have no step
        for (int r = first; r < count; r += stride) {
            const double eta = (double)value(r, 2 * line) + step * (double)value(r, 2 * line + 1);
            const double value = Likelihood::at(y[start + r] != 0 ? eta : -eta).value();
            total += weight ? weight[start + r] * value : value;
        }
    }

    // out (n_lines, n_steps) = the sums over the block, in 8 THREADS bytes of shared memory that are free by then.
    HD_MEMBER void write(double* out) {
        DYNAMIC_SHARED(unsigned char, memory);
        double* shared = (double*)memory;  // (stride, size)
        SYNC(LINES_FREE);
        shared[threadIdx.x] = total;
        SYNC(LINES_READY);
        if (threadIdx.x >= size) return;
        for (int other = 1; other < stride; ++other) total += shared[other * size + threadIdx.x];
        out[threadIdx.x] = total;
    }
};

// out[chain] = the sum over the block of the threads' totals; thread t has that of chain t % CHAINS.
HD void add_totals(double total, double* out) {
    DYNAMIC_SHARED(unsigned char, memory);
    double* shared = (double*)memory;  // (WARPS, CHAINS), in place of dots that have been read
#pragma unroll
    for (int offset = 16; offset >= CHAINS; offset >>= 1) total += __shfl_xor_sync(0xffffffffu, total, offset);
    if ((threadIdx.x & 31) < CHAINS) shared[(threadIdx.x >> 5) * CHAINS + (threadIdx.x & 31)] = total;
    SYNC(TOTALS_READY);
    if (threadIdx.x < CHAINS) {
        total = 0.0;
        for (int w = 0; w < WARPS; ++w) total += shared[w * CHAINS + threadIdx.x];
        out[threadIdx.x] = total;
    }
}
