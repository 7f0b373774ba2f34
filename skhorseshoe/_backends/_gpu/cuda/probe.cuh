// The least that a working GPU must be able to do.
extern "C" __global__ void answer(int* out) { *out = 42; }
