"""One run of the sampler: start, burn in, thin, keep; or go on with an earlier one."""

import time
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .._backends import device
from .._model import PROBIT
from .._utils.interrupts import ctrl_c_noted
from .chains import GibbsChains, PxdaChains
from .class_contrasts import contrasted
from .cut_points import CutPoints
from .draws import Draws
from .flat_directions import FlatDirections
from .gibbs import State
from .group_effects import GroupEffects
from .hmc_burn_in import HmcChains
from .hmc_diagonal_burn_in import DiagonalChains
from .hmc_prior_coordinates_burn_in import PriorCoordinateChains
from .other_rows import OtherRows
from .prior import FixedPrior

_DRAWS_AT_FIRST_CHECK = 100  # of each chain, for target_ess; each further check is at a quarter more
_USUAL_SWEEPS = 1000  # sweeps after burn-in that are expected before the first check
_START_PREDICTOR_DEVIATION = 2.0  # of the linear predictor at the start; 2 says "nearly every row is certain"
_START_LOG_TAU_DEVIATION = 2.0  # of log(tau / tau_0) at the start
PRIOR_COORDINATES = "prior coordinates"  # the kind of chains with which "hmc" moves in the coordinates of the prior
DIAGONAL = "diagonal"  # and with which its mass matrix is diagonal
_CHAINS = {"gibbs": GibbsChains, "pxda": PxdaChains, "hmc": HmcChains, PRIOR_COORDINATES: PriorCoordinateChains}
_CHAINS |= {DIAGONAL: DiagonalChains}


class Problem(NamedTuple):
    """Everything that the laws depend on: rows, prior and seed."""

    rows: object
    fixed: FixedPrior
    tau_0: float
    key: object


class Settings(NamedTuple):
    """The arguments of a run."""

    kind: str  # of the chains: the sampler, PRIOR_COORDINATES or DIAGONAL
    n_iter: int  # sweeps of each chain after burn-in, those of earlier runs included
    burn_in: int | str  # sweeps, or "auto"
    n_chains: int
    thin: int
    target_ess: float | None
    max_draws: int | None  # draws of a chain to keep at most, from the user
    room: int | None  # draws of a chain to keep at most, where max_draws is None
    draws_dtype: str

    @property
    def sampler(self):
        """The sampler by its public name."""
        return "hmc" if self.kind in (PRIOR_COORDINATES, DIAGONAL) else self.kind

    @property
    def kind_on_device(self):
        """The kind of the chains where the rows are, or None for chains on the host, which ask for the score alone."""
        return None if self.kind == PRIOR_COORDINATES else self.kind


class RowsForHostChains(OtherRows):
    """Rows of any device for chains on the host."""

    def __init__(self, rows):
        super().__init__(rows)
        self.ops = device.host_back_end()

    def score(self, beta, *more, **options):
        ops = self.rows.ops
        return ops.to_host(self.rows.score(ops.to_device(beta), *more, **options))


class Run:
    """Chains and their draws.

    saved : what ``arrays`` of an earlier run gave, with its draws, or None. Both runs together make
    the draws of one run with all sweeps. unbounded, watched : as in ``Draws.suffice``.
    sets : ``CollinearSets``, the coefficients of each of which shift together; or None.
    """

    def __init__(self, problem, settings, saved=None, unbounded=MappingProxyType({}), watched=None, sets=None):
        if saved is not None:
            problem = problem._replace(key=saved["key"].astype(np.uint32))
        if settings.kind_on_device is None and problem.rows.groups is None:
            problem = problem._replace(rows=RowsForHostChains(problem.rows))
        self.problem, self.settings = problem, settings
        self.unbounded, self.watched = unbounded, watched
        self.target = float(settings.target_ess or 0.0)  # 0 where there is none
        rows = problem.rows
        rate, tau_0 = rows.base_rate(), problem.tau_0
        if rows.likelihood.n_predictors > 1:
            problem = contrasted(problem)
        columns = problem.rows.columns
        start = initial_state(settings.n_chains, columns, rate, tau_0, problem.key, rows.likelihood)
        saved_chains = saved and saved["chains"]
        self.blocks = blocks_of(problem, settings.n_chains, saved_chains)
        for block in self.blocks:
            problem, start = block.given(problem), start._replace(beta=block.start(start.beta))
        start = rows.ops.to_device(start)
        self.chains = _CHAINS[settings.kind](problem, start, settings.burn_in, saved_chains, self.blocks)
        if sets is not None:
            self.chains.flat = FlatDirections(sets, problem)
        n_draws = settings.n_iter // settings.thin
        self.room = settings.max_draws or _room(settings.room, saved, n_draws)
        self._draws = Draws(settings.n_chains, n_draws, columns, self.room, settings.draws_dtype, self.blocks)
        self._outbox = rows.ops.Outbox()  # brings states to the host while the next sweeps run
        self.enough, self.misses = None, 0  # draws of a chain that will suffice, once known; and wrong forecasts
        self.stopped_by = "n_iter"
        self.whole = True  # whether no sweep is incomplete, so that a later run can go on from here
        if saved is not None:
            self._draws.restore(saved["draws"])
            # An earlier run with the same target has already made this check.
            self._stop_if_enough(self.done // settings.thin, is_new=float(saved["target_ess"]) != self.target)

    @property
    def sweep(self):
        """Number of sweeps, burn-in included."""
        return self.chains.state.sweep

    @property
    def burn_in(self):
        """Sweeps of burn-in; of an automatic one that runs, unless it is extended."""
        return self.chains.burn_in.end

    @property
    def draws(self):
        """``Draws``, with all states that are on their way to the host."""
        self._outbox.flush()
        return self._draws

    @property
    def done(self):
        """Number of sweeps after burn-in."""
        return max(0, self.sweep - self.burn_in)

    def go(self, report, ends_at=np.inf):
        """Run to the end; ``report`` is called with the number of sweeps done, and may return True to end it.

        Ctrl-C is heard between two sweeps, a second one at once. Before the first draw it is raised; after it, it ends
        the run with the draws made so far. So does the time ``ends_at``, by a TimeoutError or with the draws, after one
        sweep at least, so that slices of time come to an end; minus infinity allows none.
        """
        first = self.sweep + (ends_at > -np.inf)
        with ctrl_c_noted() as interrupted:
            try:
                while self.done < self.settings.n_iter and self.stopped_by == "n_iter":
                    if self.sweep >= first and time.monotonic() >= ends_at:
                        self._end_early()
                        break
                    self._step()
                    if report(self.chains.state.sweep) and self.draws.n:
                        self.stopped_by = "callback"
                    if interrupted():
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                if self.draws.n == 0 or self.draws.torn or interrupted.twice:
                    raise
                self.stopped_by = "interrupt"
            self.draws.trim()

    def _step(self):
        """One sweep, and the draw and the check of target_ess that follow."""
        self.whole = False
        self.chains.advance()
        n, rest = divmod(self.done, self.settings.thin)
        if n and not rest:
            self._keep(n)
            self._stop_if_enough(n)
        self.whole = True

    def _end_early(self):
        if self.draws.n == 0:
            raise TimeoutError(
                f"max_time has passed after {self.sweep} sweeps, before the first draw (burn_in={self.burn_in}): there "
                "is no model yet. Give it more time; with a checkpoint another fit goes on from here."
            )
        self.stopped_by = "max_time"

    def _keep(self, n):
        self._draws.kappa.add(n, self.chains)
        state = self.chains.state
        acceptance = getattr(state, "acceptance", 1.0)  # 1 for a sampler without proposals
        of_blocks = [block.values(state) for block in self.blocks]
        self._outbox.put(self._draws.add, (state.beta, state.tau_sq_inv, acceptance, *of_blocks))

    def _stop_if_enough(self, n, is_new=False):
        """End the run if n draws reach target_ess. is_new : whether the draws so far were made for another target."""
        is_check = self.target and (_next_check(n) == n or (is_new and n >= _DRAWS_AT_FIRST_CHECK))
        if is_check and self.draws.suffice(self.target, self.unbounded, self.watched):
            self.stopped_by = "target_ess"
        elif is_check:
            self._foresee(n)

    def _foresee(self, n):
        """Forecast how many draws suffice, after n have not. The first quantity that fails tells; others may need
        more, so each forecast that was wrong adds one check to the next."""
        self.misses += self.enough is not None and n >= self.enough
        self.enough = _next_check(min(self._draws.times_longer * n, self.settings.n_iter))
        for _ in range(self.misses):
            self.enough = _next_check(self.enough + 1)

    def expected(self):
        """The sweep with which the run will probably end, by the draws so far."""
        n_iter, thin = self.settings.n_iter, self.settings.thin
        if self.target:
            next_look = _next_check(self.done // thin + 1) * thin if self.done >= _USUAL_SWEEPS else _USUAL_SWEEPS
            n_iter = min(n_iter, next_look if self.enough is None else self.enough * thin)
        return self.burn_in + max(n_iter, self.done)

    def latest(self):
        """The sweep with which the run will end at the latest."""
        return self.chains.burn_in.latest(self.sweep) + self.settings.n_iter

    def interruption(self):
        """The message about a run that an interrupt or ``max_time`` has ended; empty for other runs."""
        done = f"after {self.done} of {self.settings.n_iter} sweeps: the model holds the {self.draws.n} draws made so "
        done += f"far by each of its {self.settings.n_chains} chains."
        if self.stopped_by == "max_time":
            return f"max_time has passed {done} One with warm_start=True or a checkpoint can go on from where it ended."
        if self.stopped_by != "interrupt":
            return ""
        torn = "" if self.whole else " The last sweep was incomplete, so warm_start cannot continue from here."
        twice = "Press Ctrl-C twice within two seconds to end fit at once, and with it a search or cross-validation."
        return f"fit was interrupted {done} {twice}{torn}"

    def arrays(self):
        """All but the draws that a later ``Run`` on this problem needs to go on: arrays and numbers in nested dicts."""
        return {
            "n_iter": self.done,
            "target_ess": self.target,
            "room": self.room or 0,
            "key": self.problem.key,
            "chains": self.problem.rows.ops.to_host(self.chains.arrays()),
            "draws": self.draws.arrays(),
        }


def _room(planned, saved, n_draws):
    """The default limit of the draws of a chain, or None for no limit; at least the draws already kept.

    planned : a limit for this fit, or None. saved : as in ``Run``; its limit stays if no larger one is planned.
    n_draws : number of draws of a fit that begins anew.
    """
    if saved is None:
        return planned if planned and planned < n_draws else None
    limit, n_kept = int(saved["room"]), int(saved["draws"]["seen"]) // int(saved["draws"]["stride"])
    return max(limit, planned or 0, n_kept) if limit or planned else None


def blocks_of(problem, n_chains, saved=None):
    """The blocks of unknowns beside beta and its scales. saved : what ``arrays`` of chains gave, or None."""
    blocks = ()
    if problem.rows.likelihood.n_own:
        blocks = (CutPoints(problem, n_chains),)
        problem = blocks[0].given(problem)
    return blocks if problem.rows.groups is None else (*blocks, GroupEffects(problem, n_chains, saved))


def initial_state(n_chains, columns, base_rate, tau_0, key, likelihood=PROBIT):
    """The start of the chains, spread more widely than the posterior, so that R-hat tells whether they have met: random
    directions of equal predictive strength, an intercept that keeps the base rate, tau log-normal.

    columns : ``Columns``. base_rate : share of the second class, in (0, 1), or those of several classes. Always
    drawn on the host: the start is the same on every device.
    """
    rng = np.random.Generator(np.random.Philox(key=int(key[0]) | int(key[1]) << 32))
    mean, sd, p, fit_intercept = columns.mean, columns.sd, len(columns.mean), columns.fit_intercept
    moves = sd > 0
    # Coefficients of constant columns must not start at zero, where their scale would stay at zero.
    unit = 1.0 / np.maximum(abs(mean), 1.0)
    np.divide(_START_PREDICTOR_DEVIATION / np.sqrt(max(1, moves.sum())), sd, out=unit, where=moves)
    beta = np.zeros((n_chains, p + columns.n_contrasts * fit_intercept))
    beta[:, :p] = rng.standard_normal((n_chains, p)) * unit
    if fit_intercept:
        predictors = likelihood.predictor if columns.n_contrasts == 1 else likelihood.first_predictors
        centre = predictors(base_rate) * likelihood.shrunk_by(_START_PREDICTOR_DEVIATION**2)
        noise = rng.standard_normal((n_chains, columns.n_contrasts))
        beta[:, p:] = centre + noise - (beta[:, :p] @ mean)[:, None]
    log_tau = np.log(tau_0) + _START_LOG_TAU_DEVIATION * rng.standard_normal(n_chains)
    ones = np.ones((n_chains, columns.n_shrunk))
    return State(beta, ones, ones, np.exp(-2 * log_tau), np.full(n_chains, tau_0**2), 0)


def _next_check(n):
    """The least number of draws, at least n, at which target_ess is checked."""
    check = _DRAWS_AT_FIRST_CHECK
    while check < n:
        check = check * 5 // 4
    return check
