"""One run of the sampler: start, burn in, thin, keep."""

import warnings

import numpy as np

from . import _adapt, _gibbs, _hmc
from ._draws import Draws
from ._prior import FixedPrior
from ._start import initial_state

_TUNING = 100  # sweeps of burn-in that "hmc" needs to tune itself
_FIRST_CHECK = 100  # draws of each chain before target_ess is looked at; then at a quarter more each time
_MAX_FLOAT32 = 1e30  # root mean square of a column whose sums over rows stay within float32


def choose(sampler, burn_in):
    """The sampler for "auto"; without burn-in there is nothing to tune "hmc" with."""
    return ("hmc" if burn_in >= _TUNING else "gibbs") if sampler == "auto" else sampler


def run(rows, *, sampler, tau_0, slab_scale, n_iter, burn_in, n_chains, thin, target_ess, key, report):
    """Draws from the posterior given ``rows``, the fitted attributes that say how they were made.

    ``report`` is called with the number of sweeps done. Ctrl-C during burn-in is raised; after it, it ends the run
    with the draws made so far and a warning.
    """
    ops, (n, p) = rows.ops, rows.X.shape
    gram = rows.gram()
    _check_size(gram, n, p, rows.X.dtype)
    mean, sd = _moments(gram, n, p)
    fixed = FixedPrior(mean, len(gram), slab_scale)
    fixed.add_to(gram)
    start = initial_state(n_chains, mean, sd, rows.base_rate(), rows.fit_intercept, tau_0, key)
    start = ops.to_device(start)
    draws = Draws(n_chains, n_iter // thin, sd > 0, rows.fit_intercept, fixed.slab_precision)
    done, stopped_by, next_check = 0, "n_iter", _FIRST_CHECK
    with np.errstate(over="ignore", invalid="ignore"):  # a proposal may be absurd; it is rejected
        begin = _gibbs_chains if sampler == "gibbs" else _hmc_chains
        precision = ops.Precision(gram, rows.threads)
        states, information, tuning = begin(start, rows, precision, fixed, burn_in, tau_0, key, report)
        del gram, precision  # the tuned sampler needs them during burn-in only
        try:
            for done, state in zip(range(1, n_iter + 1), states):  # noqa: B905 - the states never end
                if done % thin == 0:
                    draws.add(ops.to_host(state))
                    draws.add_shrinkage(state, information, ops)
                report(burn_in + done)
                if target_ess is not None and draws.n == next_check:
                    if draws.suffice(target_ess):
                        stopped_by = "target_ess"
                        break
                    next_check = next_check * 5 // 4
        except KeyboardInterrupt:
            if draws.kappa[1] == 0:
                raise
            stopped_by = "interrupt"
            warnings.warn(
                f"fit was interrupted after {done} of {n_iter} sweeps: the model holds the {draws.n} draws of each of "
                f"its {n_chains} chains that were made by then.",
                UserWarning,
                stacklevel=5,
            )
    draws.trim()
    draws.separated = slab_scale is None and rows.separated_by(ops.to_host(state.beta))
    return draws, {"n_iter_": done, "stopped_by_": stopped_by, "tuning_": tuning}


def _gibbs_chains(state, rows, precision, fixed, n_sweeps, tau_0, key, report):
    """The states after burn-in, the precision that shrinkage is measured against, and the tuning: there is none."""
    states = _gibbs.sample(state, rows, precision, tau_0, rows.ops, key)
    centre = _burn_in(states, n_sweeps, state, report)
    information = fixed.add_to(rows.information(centre[None], spare=precision.work))
    return states, rows.ops.Precision(information, rows.threads, memory_of=precision), {}


def _hmc_chains(state, rows, precision, fixed, n_sweeps, tau_0, key, report):
    """As ``_gibbs_chains``."""
    state, reference, tuning = _adapt.burn_in(state, rows, precision, n_sweeps, fixed, tau_0, rows.ops, key, report)
    states = _hmc.sample(state, rows, reference, tuning, tau_0, rows.ops, key)
    information = rows.ops.Precision(reference.whitening.H, rows.threads, memory_of=precision)
    return states, information, tuning._asdict()


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


def _burn_in(states, n_sweeps, state, report):
    """Run the sweeps that are thrown away; returns the mean of beta over the chains and the second half of them."""
    total, count = state.beta.mean(axis=0), 1
    for t, state in zip(range(1, n_sweeps + 1), states):  # noqa: B905 - the states never end
        if t == n_sweeps // 2 + 1:
            total, count = 0.0, 0
        total, count = total + state.beta.mean(axis=0), count + 1
        report(t)
    return total / count
