// The primitives that the CPU emulator (tests/cuda_emulator) replaces: shared memory, barriers, asynchronous copies, and
// conversion from 16 bits. Everything else in this folder runs as it stands on both.
#define DYNAMIC_SHARED(T, name) extern __shared__ __align__(16) T name[]
#define SYNC(which) __syncthreads()  // named, so that a test can leave one of them out

struct Half {
    unsigned short bits;
};

__device__ __forceinline__ float number(float x) { return x; }
__device__ __forceinline__ double number(double x) { return x; }
__device__ __forceinline__ float number(Half x) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
}

// 16 bytes from global to shared memory, both aligned to 16; there after wait_for_copies() and a barrier.
__device__ __forceinline__ void copy_16(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(global) : "memory");
#else
    *(uint4*)shared = *(const uint4*)global;
#endif
}

__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
