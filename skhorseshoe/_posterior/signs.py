"""How probable it is that a sign is wrong, as far as the draws can tell."""

import numpy as np


def lfsr(prob_positive, ess, n_draws):
    """The local false sign rate, min(P(beta > 0), P(beta < 0)), at least what the draws can tell; nan where P is nan.

    prob_positive, ess : (k,) of k quantities, ess nan where unknown. n_draws : of all chains.
    """
    return floored(np.minimum(prob_positive, 1 - np.asarray(prob_positive)), ess, n_draws)


def floored(wrong, ess, n_draws, most=0.5):
    """Probabilities of being wrong, raised to 1 / ESS where they are below it, but not above ``most``.

    An event of this probability is expected once in as many independent draws: what the draws do not show may still be
    as probable as this. Draws that repel one another count as independent ones.
    """
    known = np.fmin(ess, n_draws)  # nan counts as independent too: there are too few draws to tell
    return np.maximum(wrong, np.minimum(1 / known, most))
