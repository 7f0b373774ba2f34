// Cholesky factors and products of matrices over the columns, in place.
#include "lapack.hpp"

// The addresses of dpotrf, dsyrk and dtrsm.
EXPORT i32 set_routines(const i64* addresses) {
    memcpy(&routines, addresses, sizeof routines);
    return 0;
}

// The lower triangle of total += A'A if of_columns, else A A'; A (m, n).
EXPORT i32 add_products(const double* A, i64 m, i64 n, double* total, i32 of_columns) {
    add_products(A, m, n, total, bool(of_columns));
    return 0;
}

// The Cholesky factor of H + diag(d) in the upper triangle; the number of a minor if there is no factor, or 0.
EXPORT i32 upper_cholesky_factor(const double* H, const double* d, i64 q, double* factor) {
    return factorise(H, d, q, Triangle::UPPER, factor);
}
