// Twin: gram, moments and _product in _cpu/sparse.py.
// Questions that are asked of sparse rows now and then, not in every sweep; float64. Compiled for ELEMENT and INDEX, as
// the passes are. By column: the same numbers in the order of the columns, with their rows.

// rows[k] = the row of the stored number k. A group of lanes for each row.
extern "C" __global__ void row_numbers(const INDEX* starts, INDEX* rows, long long n, int lanes) {
    const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / lanes;
    if (i >= n) return;
    for (INDEX k = starts[i] + threadIdx.x % lanes; k < starts[i + 1]; k += lanes) rows[k] = (INDEX)i;
}

// Row i of the result is row from[i]; its numbers begin at to_starts[i].
extern "C" __global__ void take_rows(const ELEMENT* data, const INDEX* indices, const INDEX* starts, const long long* from,
                                     const INDEX* to_starts, ELEMENT* to_data, INDEX* to_indices, long long count,
                                     int lanes) {
    const long long i = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / lanes;
    if (i >= count) return;
    const INDEX begin = starts[from[i]], size = starts[from[i] + 1] - begin, to = to_starts[i];
    for (INDEX k = threadIdx.x % lanes; k < size; k += lanes) {
        to_data[to + k] = data[begin + k];
        to_indices[to + k] = indices[begin + k];
    }
}

// out (count, m) = rows times coef (p, m); a block for each row, which sums its stored numbers in order.
extern "C" __global__ void multiply_rows(const ELEMENT* data, const INDEX* indices, const INDEX* starts, const double* coef,
                                         double* out, int m) {
    const INDEX begin = starts[blockIdx.x], end = starts[blockIdx.x + 1LL];
    for (int s = threadIdx.x; s < m; s += blockDim.x) {
        double sum = 0.0;
        for (INDEX k = begin; k < end; ++k) sum += (double)data[k] * coef[(long long)indices[k] * m + s];
        out[blockIdx.x * (long long)m + s] = sum;
    }
}

// Weighted mean of column blockIdx.x, and the sum of squares about it; total : of the weights of all n rows. The column is
// summed about the first number stored in it: one whose numbers are all alike has no variance, not even by rounding.
extern "C" __global__ void __launch_bounds__(THREADS)
column_moments(const ELEMENT* by_column, const INDEX* rows, const INDEX* column_starts, const double* weight, int weighted,
               long long n, double total, double* mean, double* square) {
    DYNAMIC_SHARED(double, shared);  // (WARPS,)
    const INDEX begin = column_starts[blockIdx.x], end = column_starts[blockIdx.x + 1LL];
    const double shift = begin < end ? (double)by_column[begin] : 0.0;
    double stored = 0.0, sum = 0.0;
    for (INDEX k = begin + threadIdx.x; k < end; k += THREADS) {
        const double w = weighted ? weight[rows[k]] : 1.0;
        stored += w;
        sum += w * ((double)by_column[k] - shift);
    }
    stored = block_sum(stored, shared);
    sum = block_sum(sum, shared);
    if (end - begin == n) stored = total;  // to the bit
    const double centre = sum / total + shift * (stored / total);
    double squares = 0.0;
    for (INDEX k = begin + threadIdx.x; k < end; k += THREADS) {
        const double off = (double)by_column[k] - centre;
        squares += (weighted ? weight[rows[k]] : 1.0) * (off * off);
    }
    squares = block_sum(squares, shared);
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = centre;
        square[blockIdx.x] = squares + (total - stored) * centre * centre;
    }
}

// Row j = blockIdx.x of X' diag(weight) X up to the diagonal, the columns first to first + STRIP - 1 of it, which is column
// j too, and the weighted sum of column j of X; shift (p,) is taken from each stored number. A warp takes every eighth row
// in which column j is stored, into sums of its own: no two rows meet, and a row has each column once.
extern "C" __global__ void __launch_bounds__(THREADS)
gram_columns(const ELEMENT* data, const INDEX* indices, const INDEX* starts, const ELEMENT* by_column, const INDEX* rows,
             const INDEX* column_starts, const double* weight, int weighted, const double* shift, double* H, double* sums,
             int q) {
    DYNAMIC_SHARED(double, strips);  // (WARPS, STRIP), then (WARPS,)
    const int j = blockIdx.x, first = blockIdx.y * STRIP, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (first > j) return;
    const int width = j + 1 - first < STRIP ? j + 1 - first : STRIP;
    double* mine = strips + warp * STRIP;
    for (int a = lane; a < width; a += 32) mine[a] = 0.0;
    SYNC_WARP(STRIP_EMPTY);
    double sum = 0.0;
    for (INDEX k = column_starts[j] + warp; k < column_starts[j + 1]; k += WARPS) {
        const INDEX i = rows[k], end = starts[i + 1];
        const double wx = (weighted ? weight[i] : 1.0) * ((double)by_column[k] - shift[j]);
        sum += wx;
        for (INDEX at = starts[i] + lane; at < end; at += 32) {
            const INDEX column = indices[at], a = column - first;
            if (a >= width) break;  // they ascend
            if (a >= 0) mine[a] += wx * ((double)data[at] - shift[column]);
        }
        SYNC_WARP(ROW_ADDED);
    }
    double* own = strips + WARPS * STRIP;
    if (lane == 0) own[warp] = sum;
    SYNC(STRIPS_READY);
    for (int a = threadIdx.x; a < width; a += THREADS) {
        double total = 0.0;
        for (int w = 0; w < WARPS; ++w) total += strips[w * STRIP + a];
        H[(long long)j * q + first + a] = H[(long long)(first + a) * q + j] = total;
    }
    if (first == 0 && threadIdx.x == 0) {
        double total = 0.0;
        for (int w = 0; w < WARPS; ++w) total += own[w];
        sums[j] = total;
    }
}
