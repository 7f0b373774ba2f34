// The likelihoods that the core is compiled with, each by its number, which Python's half of it has too.
#pragma once
#include "likelihoods/multinomial_probit.hpp"
#include "likelihoods/ordered_probit.hpp"
#include "likelihoods/probit.hpp"
#ifdef FURTHER_HEADER  // a likelihood that the package does not have: FURTHER is its struct
#include FURTHER_HEADER
#endif

constexpr i32 ORDERED_PROBIT = 1, MULTINOMIAL_PROBIT = 3, MULTINOMIAL_PROBIT_BY_LAPLACE = 4;

// answer(likelihood) for the likelihood of two classes of this number.
template <class F> static auto on_likelihood([[maybe_unused]] i32 number, F answer) {
#ifdef FURTHER_HEADER
    if (number) return answer(FURTHER());
#endif
    return answer(Probit());
}

// answer(law), of no chain, for the law of chains of this number, as ``TwoClasses``.
template <class F> static auto on_law_of_chains(i32 number, F answer) {
    if (number == ORDERED_PROBIT) return answer(OrderedProbit{nullptr, 0});
    return on_likelihood(number, [&](auto law) { return answer(TwoClasses<decltype(law)>(nullptr, 0)); });
}
constexpr i64 MOST_PLACES = OrderedProbit::N_PLACES;
