// One-sided truncated normals for a tile of rows: z_i ~ N(mean_i, 1), positive if y_i = 1, negative if 0.
//
// Each proposal is made and tested for all rows at once, in loops that vectorise; rows that reject it move to the front,
// and the next proposal is for these. The accepted proposal of a row does not depend on this.
#pragma once
#include "likelihood.hpp"
#include "likelihoods/truncated_normal.hpp"

// Numbers of the rows without an accepted proposal, in their order.
template <class R> struct TruncatedTile {
    u32 row[LONGEST_TILE], first[LONGEST_TILE], second[LONGEST_TILE];  // index in the tile, and random words
    R mean[LONGEST_TILE], proposed[LONGEST_TILE];
    float exponential[LONGEST_TILE], log_u[LONGEST_TILE], along[LONGEST_TILE], across[LONGEST_TILE];

    TruncatedTile(i64, double*) {}

    // Replaces the means z[r] of rows first_row + r, at most LONGEST_TILE, by truncated normals.
    void draw(R* z, i64, const u8* y, i64 n_rows, i64 first_row, u32 chain, Key key) {
        truncate_tile(z, y, n_rows, first_row, chain, key, *this);
    }
};

// The random words of a proposal; a block of words is for two proposals.
template <class R>
static void take_words(TruncatedTile<R>& rows, i64 n, i64 first_row, u32 chain, Key key, u32 proposal) {
    for (i64 k = 0; k < n; ++k) {
        const u64 row = u64(first_row) + rows.row[k];
        const Words w = Stream(key, chain, LATENT_PURPOSE, row).words(u32(row), proposal / 2);
        rows.first[k] = proposal % 2 ? w.v[2] : w.v[0];
        rows.second[k] = proposal % 2 ? w.v[3] : w.v[1];
    }
}

// In two loops, since loops over a single type vectorise better.
template <class R> static void propose_all(TruncatedTile<R>& rows, i64 n) {
    for (i64 k = 0; k < n; ++k) {
        const Standard variates = standard(rows.first[k], rows.second[k]);
        rows.exponential[k] = variates.exponential, rows.log_u[k] = variates.log_u;
        rows.along[k] = variates.along, rows.across[k] = variates.across;
    }
    for (i64 k = 0; k < n; ++k)
        rows.proposed[k] = propose(rows.mean[k], {rows.exponential[k], rows.log_u[k], rows.along[k], rows.across[k]});
}

template <class R>
static void truncate_tile(R* __restrict z, const u8* __restrict y, i64 n_rows, i64 first_row, u32 chain, Key key,
                          TruncatedTile<R>& rows) {
    for (i64 r = 0; r < n_rows; ++r) rows.row[r] = u32(r), rows.mean[r] = y[r] ? z[r] : -z[r];
    i64 n = n_rows;
    u32 proposal = 0;
    for (; n && proposal < 8; ++proposal) {
        const i64 padded = (n + 7) / 8 * 8;  // numbers of earlier rows do no harm
        take_words(rows, padded, first_row, chain, key, proposal);
        propose_all(rows, padded);
        i64 n_left = 0;
        for (i64 k = 0; k < n; ++k) {
            const R proposed = rows.proposed[k];
            z[rows.row[k]] = proposed;
            rows.row[n_left] = rows.row[k], rows.mean[n_left] = rows.mean[k];
            n_left += !(proposed > R(0));
        }
        n = n_left;
    }
    for (i64 k = 0; k < n; ++k) {
        const u64 row = u64(first_row) + rows.row[k];
        const Stream stream(key, chain, LATENT_PURPOSE, row);
        z[rows.row[k]] = truncated_normal(rows.mean[k], stream, u32(row), proposal / 2);
    }
    for (i64 r = 0; r < n_rows; ++r) z[r] = y[r] ? z[r] : -z[r];
}
