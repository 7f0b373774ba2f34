// The kernels on arrays of the chains; all float64.
#include "cholesky.cuh"
#include "gaussian.cuh"
#include "line_proposals.cuh"
#include "variates.cuh"
