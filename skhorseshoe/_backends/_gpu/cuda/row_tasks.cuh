// What is drawn or derived from the linear predictor of a row in a pass, and its totals over a block. Compiled for CHAINS
// (1, 2, 4, 8 or 16) and REAL, in which rows are computed.
#include "normal_tail.hpp"
#include "truncated_normal.hpp"

struct Latent {
    Key key;
    i64 first_row;  // the number of row 0 among those whose random numbers these are
    double total;  // of z^2 over the rows that this thread has seen, all for one chain
    HD_MEMBER REAL operator()(REAL eta, bool one, const double*, i64 row, u32 chain) {
        row += first_row;
        const REAL z = truncated_normal(one ? eta : -eta, Stream(key, chain, LATENT, u64(row)), u32(row));
        total += (double)z * (double)z;
        return one ? z : -z;
    }
};

struct Score {
    double total;  // of the log-likelihood
    HD_MEMBER REAL operator()(REAL eta, bool one, const double* weight, i64 row, u32) {
        const double t = (double)(one ? eta : -eta), w = weight ? weight[row] : 1.0;
        const CdfParts parts = cdf_parts(t);
        const double ratio = mills_ratio(t, parts.e, parts.v);
        total += w * log_cdf(parts);
        return REAL(one ? w * ratio : -w * ratio);
    }
};

struct Predictor {
    HD_MEMBER REAL operator()(REAL eta, bool, const double*, i64, u32) { return eta; }
};

// The log-likelihood of a block's rows along lines. A thread has one step of one line and some of the rows of a tile: as
// often as all steps of all lines find room among the threads, each tile is shared by so many. n_lines n_steps is at most
// THREADS. The linear predictors of line l are those of chain 2 l, their changes those of chain 2 l + 1.
struct Line {
    int size, line, first, stride;  // of the totals; the first row of a tile that is this thread's, and how far the next is
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

    // value(r, chain) : the linear predictor of row r of a tile that begins at row start and has count of them.
    template <class Value>
    HD_MEMBER void add(Value value, const u8* y, const double* weight, i64 start,
                                        int count) {
        if (first == stride) return;  // the last threads, for which there is no step
        for (int r = first; r < count; r += stride) {
            const double eta = (double)value(r, 2 * line) + step * (double)value(r, 2 * line + 1);
            const double log_phi = log_cdf(cdf_parts(y[start + r] != 0 ? eta : -eta));
            total += weight ? weight[start + r] * log_phi : log_phi;
        }
    }

    // out (n_lines, n_steps) = the sums over the block, in 8 THREADS bytes of shared memory that nobody needs any more.
    HD_MEMBER void write(double* out) {
        DYNAMIC_SHARED(unsigned char, memory);
        double* shared = (double*)memory;  // (stride, size), and what is left
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
    double* shared = (double*)memory;  // (WARPS, CHAINS), no longer than the dots that were there and have been read
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
