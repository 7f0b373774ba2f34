// Numbers of four chains in one register: they are contiguous in memory, and each number of X is multiplied by all of
// them. Left to itself, the compiler takes four numbers of X, and gathers what it could have loaded.
#pragma once
#include "base.hpp"

template <class T> struct FourOf;
template <> struct FourOf<double> {
    typedef double type __attribute__((vector_size(32), aligned(8), may_alias));
};
template <> struct FourOf<float> {
    typedef float type __attribute__((vector_size(16), aligned(4), may_alias));
};
template <class T> using Four = typename FourOf<T>::type;

template <class T> HD Four<T> load_four(const T* from) { return *reinterpret_cast<const Four<T>*>(from); }
template <class T> HD void store_four(T* to, Four<T> value) { *reinterpret_cast<Four<T>*>(to) = value; }

// total + four * factor, each rounded once.
template <class T> HD Four<T> add_times(Four<T> total, Four<T> four, T factor) {
    CONTRACT
    return total + four * factor;
}
