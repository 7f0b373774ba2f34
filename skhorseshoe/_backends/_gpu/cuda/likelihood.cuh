// The likelihood that the kernels are compiled for.
#include "likelihoods/probit.hpp"

typedef Probit Likelihood;
