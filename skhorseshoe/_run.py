"""One run of the sampler: start, burn in, thin, keep."""

import warnings

import numpy as np

from ._draws import Draws
from ._gibbs import sample
from ._start import initial_state

_INTERCEPT_SD = 100.0  # of the intercept at the mean of the columns; wide on the probit scale
_MAX_FLOAT32 = 1e30  # root mean square of a column whose sums over rows stay within float32


def run(rows, *, global_scale, n_iter, burn_in, n_chains, thin, key, report):
    """Draws from the posterior given ``rows``, with the sweeps after burn-in that were run.

    ``report`` is called with the number of sweeps done. Ctrl-C during burn-in is raised; after it, it ends the run
    with the draws made so far and a warning.
    """
    ops, (n, p) = rows.ops, rows.X.shape
    gram = rows.gram()
    _check_size(gram, n, p, rows.X.dtype)
    mean, sd = _moments(gram, n, p)
    state = initial_state(n_chains, mean, sd, rows.base_rate(), rows.fit_intercept, global_scale, key)
    _add_intercept_prior(gram, mean)
    precision = ops.Precision(gram, rows.threads)
    states = sample(state, rows, precision, global_scale, ops, key)
    draws = Draws(n_chains, n_iter // thin, informative=sd > 0, fit_intercept=rows.fit_intercept)

    centre = _burn_in(states, burn_in, state, report)
    information = rows.information(centre[None])
    _add_intercept_prior(information, mean)
    information = ops.Precision(information, rows.threads, memory_of=precision)
    done = 0
    try:
        for done, state in zip(range(1, n_iter + 1), states):  # noqa: B905 - the states never end
            if done % thin == 0:
                draws.add(state)
                draws.add_shrinkage(state, information, ops)
            report(burn_in + done)
    except KeyboardInterrupt:
        if draws.kappa[1] == 0:
            raise
        warnings.warn(
            f"fit was interrupted after {done} of {n_iter} sweeps: the model holds the {draws.n} draws of each of its "
            f"{n_chains} chains that were made by then.",
            UserWarning,
            stacklevel=5,
        )
    draws.trim()
    return draws, done


def _check_size(gram, n, p, dtype):
    size = np.sqrt(np.diag(gram)[:p] / n)
    if not np.isfinite(gram).all() or (dtype == np.float32 and size.max() > _MAX_FLOAT32):
        raise ValueError(
            f"Column {size.argmax()} of X is too large for {dtype}: its root mean square is {size.max():.1g}. Scale "
            "the columns first, for example with StandardScaler."
        )


def _moments(gram, n, p):
    """Mean and standard deviation of the columns; the mean is 0 where no intercept can absorb it."""
    square = np.diag(gram)[:p] / n
    if len(gram) == p:
        return np.zeros(p), np.sqrt(square)
    mean = gram[p, :p] / n
    centred = square - mean**2
    # A constant column leaves a rounding error here, not zero.
    return mean, np.sqrt(np.where(centred > 1e-12 * square, centred, 0.0))


def _add_intercept_prior(H, mean):
    """Prior precision of the intercept at the mean of the columns: it does not matter where their zero is. In place."""
    if len(H) > len(mean):
        at = np.append(mean, 1.0)
        for row, value in zip(H, at / _INTERCEPT_SD**2, strict=True):
            row += value * at


def _burn_in(states, n_sweeps, state, report):
    """Run the sweeps that are thrown away; returns the mean of beta over the chains and the second half of them."""
    total, count = state.beta.mean(axis=0), 1
    for t, state in zip(range(1, n_sweeps + 1), states):  # noqa: B905 - the states never end
        if t == n_sweeps // 2 + 1:
            total, count = 0.0, 0
        total, count = total + state.beta.mean(axis=0), count + 1
        report(t)
    return total / count
