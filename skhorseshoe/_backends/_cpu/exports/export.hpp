// The basis of exports. The build notes their prototypes and the structs that Python fills (``interface`` of built.py), so
// each begins a line and has types that ``library.py`` knows. Exports return 0, NO_MEMORY, or what their comment says. Arrays
// are C-contiguous.
#pragma once
#include "linear_algebra.hpp"

#ifdef _WIN32
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif
constexpr i32 NO_MEMORY = -1000;

// Uninitialised memory that is freed at the end of its scope.
template <class T> struct Scratch {
    T* data;
    explicit Scratch(i64 n) : data(static_cast<T*>(malloc(sizeof(T) * (n > 0 ? n : 1)))) {}
    ~Scratch() { free(data); }
    Scratch(const Scratch&) = delete;
    operator T*() const { return data; }
    bool failed() const { return !data; }
};

// The team of the host: one thread.
struct OneThread {
    template <class F> double sum_logs(i64 n, F f) const {
        LogSum logs;
        for (i64 j = 0; j < n; ++j) logs.add(f(j));
        return logs.value();
    }
    void copy(double* to, const double* from, i64 n) const { memcpy(to, from, sizeof(double) * n); }
    void add_multiple(double* y, double factor, const double* x, i64 n) const { ::add_multiple(y, factor, x, n); }
    void add_square(double* P, double factor, const double* g, i64 n) const { ::add_square(P, factor, g, n); }
};
