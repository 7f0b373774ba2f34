// Arrays whose numbers may be of many types, as a user's columns are.
#pragma once
#include "export.hpp"

// Call use(pointer of that type) for numbers of a type that NumPy names by a letter and their bytes; whether it has.
template <class F> static bool with_numbers(const void* data, u32 letter, i64 bytes, F use) {
    const auto as = [&](auto* typed) { use(typed); return true; };
    switch (letter << 8 | u32(bytes)) {
        case 'f' << 8 | 8: return as(static_cast<const double*>(data));
        case 'f' << 8 | 4: return as(static_cast<const float*>(data));
        case 'i' << 8 | 1: return as(static_cast<const int8_t*>(data));
        case 'i' << 8 | 2: return as(static_cast<const int16_t*>(data));
        case 'i' << 8 | 4: return as(static_cast<const int32_t*>(data));
        case 'i' << 8 | 8: return as(static_cast<const int64_t*>(data));
        case 'b' << 8 | 1:
        case 'u' << 8 | 1: return as(static_cast<const uint8_t*>(data));
        case 'u' << 8 | 2: return as(static_cast<const uint16_t*>(data));
        case 'u' << 8 | 4: return as(static_cast<const uint32_t*>(data));
        case 'u' << 8 | 8: return as(static_cast<const uint64_t*>(data));
        default: return false;
    }
}
