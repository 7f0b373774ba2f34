// Truncated normals of rows in order, and the standard variates from which they are computed, for tests.
#include "export.hpp"
#include "truncate_tile.hpp"

template <class R>
static void truncate_all(R* z, const u8* y, i64 n, i64 first_row, u32 chain, Key key, PendingRows<R>& work) {
    for (i64 start = 0; start < n; start += LONGEST_TILE) {
        const i64 rows = least(LONGEST_TILE, n - start);
        truncate_tile(z + start, y + start, rows, first_row + start, chain, key, work);
    }
}

// Replaces means by truncated normals, float32 if is_single, else float64; tile by tile, or where one_by_one row by row.
template <class R>
static void truncate(R* z, const u8* y, i64 n, i64 first_row, i32 one_by_one, u32 chain, Key key) {
    PendingRows<R> work;
    if (!one_by_one) return truncate_all(z, y, n, first_row, chain, key, work);
    for (i64 i = 0; i < n; ++i) {
        const i64 row = first_row + i;
        const R drawn = truncated_normal(y[i] ? z[i] : -z[i], Stream(key, chain, LATENT_PURPOSE, u64(row)), u32(row));
        z[i] = y[i] ? drawn : -drawn;
    }
}

EXPORT i32 truncated_normals(i32 is_single, void* z, const u8* y, i64 n, i64 first_row, i32 one_by_one, u32 chain,
                             u32 sweep, const u32* key) {
    const Key of_sweep = {sweep, key[0], key[1]};
    if (is_single) truncate(static_cast<float*>(z), y, n, first_row, one_by_one, chain, of_sweep);
    else truncate(static_cast<double*>(z), y, n, first_row, one_by_one, chain, of_sweep);
    return 0;
}

// -log(u) of the uniform u of each word, and cosine and sine of 2 pi u.
EXPORT i32 standard_variates(const u32* word, float* minus_log, float* cosine, float* sine, i64 n) {
    for (i64 i = 0; i < n; ++i) {
        const CosSin angle = cos_sin(word[i]);
        minus_log[i] = minus_log_unit(word[i]), cosine[i] = angle.cosine, sine[i] = angle.sine;
    }
    return 0;
}
