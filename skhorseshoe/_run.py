"""One run of the sampler: start, burn in, thin, keep."""

import warnings

import numpy as np

from . import _adapt, _gibbs, _hmc
from ._draws import Draws
from ._start import initial_state

_INTERCEPT_SD = 100.0  # of the intercept at the mean of the columns; wide on the probit scale
_MAX_FLOAT32 = 1e30  # root mean square of a column whose sums over rows stay within float32


def run(rows, *, sampler, global_scale, n_iter, burn_in, n_chains, thin, key, report):
    """Draws from the posterior given ``rows``, the sweeps after burn-in that were run, and what burn-in has tuned.

    ``report`` is called with the number of sweeps done. Ctrl-C during burn-in is raised; after it, it ends the run
    with the draws made so far and a warning.
    """
    ops, (n, p) = rows.ops, rows.X.shape
    gram = rows.gram()
    _check_size(gram, n, p, rows.X.dtype)
    mean, sd = _moments(gram, n, p)
    anchor = _anchor(mean, rows.fit_intercept)
    gram += np.outer(anchor, anchor)
    start = initial_state(n_chains, mean, sd, rows.base_rate(), rows.fit_intercept, global_scale, key)
    draws = Draws(n_chains, n_iter // thin, informative=sd > 0, fit_intercept=rows.fit_intercept)
    done = 0
    with np.errstate(over="ignore", invalid="ignore"):  # a proposal may be absurd; it is rejected
        begin = _gibbs_chains if sampler == "gibbs" else _hmc_chains
        states, information, tuning = begin(start, rows, gram, anchor, burn_in, global_scale, key, report)
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
                f"fit was interrupted after {done} of {n_iter} sweeps: the model holds the {draws.n} draws of each of "
                f"its {n_chains} chains that were made by then.",
                UserWarning,
                stacklevel=5,
            )
    draws.trim()
    return draws, done, tuning


def _gibbs_chains(state, rows, gram, anchor, n_sweeps, tau_0, key, report):
    """The states after burn-in, the precision that shrinkage is measured against, and the tuning: there is none."""
    precision = rows.ops.Precision(gram, rows.threads)
    states = _gibbs.sample(state, rows, precision, tau_0, rows.ops, key)
    centre = _burn_in(states, n_sweeps, state, report)
    information = rows.information(centre[None])
    information += np.outer(anchor, anchor)
    return states, rows.ops.Precision(information, rows.threads, memory_of=precision), {}


def _hmc_chains(state, rows, gram, anchor, n_sweeps, tau_0, key, report):
    """As ``_gibbs_chains``."""
    precision = rows.ops.Precision(gram, rows.threads)
    state, reference, tuning = _adapt.burn_in(state, rows, precision, n_sweeps, anchor, tau_0, rows.ops, key, report)
    states = _hmc.sample(state, rows, reference, tuning, tau_0, rows.ops, key)
    information = reference.information + np.outer(anchor, anchor)
    return states, rows.ops.Precision(information, rows.threads, memory_of=precision), tuning._asdict()


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


def _anchor(mean, fit_intercept):
    """The vector a (q,) whose a a' is the prior precision of the intercept at the mean of the columns, so that it does
    not matter where their zero is."""
    return np.append(mean, 1.0) / _INTERCEPT_SD if fit_intercept else np.zeros(len(mean))


def _burn_in(states, n_sweeps, state, report):
    """Run the sweeps that are thrown away; returns the mean of beta over the chains and the second half of them."""
    total, count = state.beta.mean(axis=0), 1
    for t, state in zip(range(1, n_sweeps + 1), states):  # noqa: B905 - the states never end
        if t == n_sweeps // 2 + 1:
            total, count = 0.0, 0
        total, count = total + state.beta.mean(axis=0), count + 1
        report(t)
    return total / count
