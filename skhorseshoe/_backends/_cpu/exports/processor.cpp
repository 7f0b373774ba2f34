// Properties of the library and of the processor.
#include "export.hpp"

#if defined(__x86_64__)
#include <cpuid.h>

// The registers that the system saves for a process: bits 1 and 2 are those of AVX, 5 to 7 those of AVX-512.
__attribute__((target("xsave"))) static u64 kept_registers() { return __builtin_ia32_xgetbv(0); }

static bool has(u32 word, u32 bits) { return (word & bits) == bits; }

// The best level that this processor runs: 0 is any, 1 has AVX2 and FMA, 2 has AVX-512; a place in ``_LEVELS`` of
// ``library.py``, whose builds are ``X86_LEVELS`` in build_core.py.
EXPORT i32 core_level() {
    u32 a, b, c, d;
    const u32 osxsave_avx_fma = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C | bit_MOVBE;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, osxsave_avx_fma) || (kept_registers() & 6) != 6) return 0;
    u32 more_a, more_b, more_c, more_d;
    if (!__get_cpuid(0x80000001, &more_a, &more_b, &more_c, &more_d) || !has(more_c, bit_LZCNT)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, bit_AVX2 | bit_BMI | bit_BMI2)) return 0;
    const u32 avx512 = bit_AVX512F | bit_AVX512VL | bit_AVX512BW | bit_AVX512DQ | bit_AVX512CD;
    return has(b, avx512) && (kept_registers() & 0xE0) == 0xE0 ? 2 : 1;
}
#else
EXPORT i32 core_level() { return 0; }
#endif
