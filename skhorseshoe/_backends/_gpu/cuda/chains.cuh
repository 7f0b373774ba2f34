// What has the size of the chains; all float64.
#include "add_blocks.cuh"
#include "cholesky.cuh"
#include "gaussian.cuh"
#include "line_moves.cuh"
#include "variates.cuh"
