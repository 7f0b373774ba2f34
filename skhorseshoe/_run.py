"""One run of the sampler: start, burn in, thin, keep."""

import warnings

import numpy as np

from ._draws import Draws
from ._gibbs import Prior, sample
from ._start import initial_state

_INTERCEPT_SD = 100.0  # wide on the probit scale even where columns are far from centred


def run(rows, *, global_scale, n_iter, burn_in, n_chains, thin, key, report):
    """Draws from the posterior given ``rows``, with the sweeps after burn-in that were run.

    ``report`` is called with the number of sweeps done. Ctrl-C during burn-in is raised; after it, it ends the run
    with the draws made so far and a warning.
    """
    ops, (n, p) = rows.ops, rows.X.shape
    gram = rows.gram()
    if not np.isfinite(gram).all():
        raise ValueError("X is too large to be squared: scale its columns first, for example with StandardScaler.")
    mean, sd = _moments(gram, n, p)
    prior = Prior(global_scale, _INTERCEPT_SD**-2)
    state = initial_state(n_chains, mean, sd, rows.base_rate(), rows.fit_intercept, prior, key)
    states = sample(state, rows, ops.Precision(gram, rows.threads), prior, ops, key)
    draws = Draws(n_chains, n_iter // thin, informative=sd > 0, fit_intercept=rows.fit_intercept)

    centre = _burn_in(states, burn_in, state, report)
    information = ops.Precision(rows.information(centre), rows.threads)
    done = 0
    try:
        for done, state in zip(range(1, n_iter + 1), states):  # noqa: B905 - the states never end
            if done % thin == 0:
                draws.add(state)
                draws.add_shrinkage(state, information, prior, ops)
            report(burn_in + done)
    except KeyboardInterrupt:
        if draws.n_kappa == 0:
            raise
        warnings.warn(
            f"fit was interrupted after {done} of {n_iter} sweeps: the model holds the {draws.n} draws of each of its "
            f"{n_chains} chains that were made by then.",
            UserWarning,
            stacklevel=4,
        )
    draws.trim()
    return draws, done


def _moments(gram, n, p):
    """Mean and standard deviation of the columns; the mean is 0 where no intercept can absorb it."""
    square = np.diag(gram)[:p] / n
    if len(gram) == p:
        return np.zeros(p), np.sqrt(square)
    mean = gram[p, :p] / n
    centred = square - mean**2
    # A constant column leaves a rounding error here, not zero.
    return mean, np.sqrt(np.where(centred > 1e-12 * square, centred, 0.0))


def _burn_in(states, n_sweeps, state, report):
    """Run the sweeps that are thrown away; returns the mean of beta over the chains and the second half of them."""
    total, count = state.beta.mean(axis=0), 1
    for t, state in zip(range(1, n_sweeps + 1), states):  # noqa: B905 - the states never end
        if t == n_sweeps // 2 + 1:
            total, count = 0.0, 0
        total, count = total + state.beta.mean(axis=0), count + 1
        report(t)
    return total / count
