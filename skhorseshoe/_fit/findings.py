"""Findings of a fit about chains and unbounded coefficients, with cures; ``warning_texts.py`` has the texts."""

from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .._data.separation import COMPLETE, NONE, QUASI, WITHIN
from .._mcmc.burn_in import AUTO
from .._mcmc.draws import NOISE, ROUGH_ESS_PER_CHAIN, ROUGH_RHAT
from .._mcmc.prior import PER_CONTRAST, SLABS
from .._posterior.classes import has_sizes
from .._posterior.estimates import SCALE_ROW, interval, names_by_class, other_quantities
from .._posterior.grouped_prediction import scale_draws
from .._utils.memmap import is_on_disk
from ..diagnostics import MAX_RHAT, MIN_ESS_PER_CHAIN, convergence
from .group_findings import COPIED, ONE_ROW_EACH
from .parameters import DRAWS_PER_EFFECTIVE
from .recipe import nice
from .warning_texts import SUMS, Finding
from .watched import WATCHED, sets_for_sums

LOOSE = 10  # size of a coefficient times sd of its column, or of group effects, from which only priors bound it
FAR_SLAB = 10  # slab_scale times the contrast of a column, above which the slab hardly bounds its coefficient
_BOUNDING = MappingProxyType({"slab_scale": PER_CONTRAST})  # the cure of all that a slab can bound
_USUAL_CONTRAST = 2.5  # contrast of a usual column in standard deviations
_FAR_APART = 1.1  # R-hat from which chains have not met yet
_FEWEST_SWEEPS = 1000  # fewest sweeps to advise
_MOST_COLUMNS, _MOST_NUMBERS = 4096, 2**23  # largest X for which correlations are fast and copies small
_MARGIN = 2.0  # factor on the sweeps that the figures ask for: the smallest of many effective sample sizes varies


class ChainQuality(NamedTuple):
    """The quantities that are judged, and the length of the chains."""

    names: list  # of the quantities
    rhat: np.ndarray
    ess: np.ndarray
    n_chains: int
    n_draws: int  # kept of each chain
    is_all: bool  # whether all draws were kept
    burn_in: int  # sweeps
    sweeps: int  # after burn-in
    stopped_by: str
    seconds_per_sweep: float
    max_rhat: np.ndarray  # limit of R-hat for each quantity
    least: np.ndarray  # limit of the effective sample size for each quantity
    are_sums_well: bool = False  # whether single columns have not converged, but sums over sets of them have

    @property
    def wanted(self):
        """The strict limit of the effective sample size."""
        return MIN_ESS_PER_CHAIN * self.n_chains

    @property
    def failed(self):
        """Which quantities have not converged; (k,) bool. True where R-hat or the sample size is NaN."""
        return ~((self.rhat <= self.max_rhat) & (self.ess >= self.least))

    def times_longer(self):
        """The factor on the sweeps with which rough columns would meet the strict limits; 0 if chains have not
        converged, or nothing is rough."""
        times_longer = np.fmax((self.rhat - 1) / (MAX_RHAT - 1), self.wanted / self.ess).max()
        return 0.0 if self.failed.any() or times_longer <= 1 else times_longer


class Unbounded(NamedTuple):
    """Coefficients that the data do not bound; columns by name."""

    separated: str = ""  # how the classes are separated, if no slab bounds the coefficients and it is not noise alone
    shrunk: np.ndarray = ()  # shrunk columns whose coefficients neither the data nor a slab bound
    free: np.ndarray = ()  # unpenalized columns whose coefficients the data do not bound
    loose: np.ndarray = ()  # unpenalized columns whose coefficients only their wide prior bounds
    loosened: str = ""  # how the unpenalized columns alone separate the classes
    levels: np.ndarray = ()  # columns among these that hold two values, as the level of a category does
    is_copied: bool = False  # whether y is an outcome of groups, copied to their rows

    @property
    def are_apart(self):
        """Whether the classes are separated as a whole, so that no quantity has an end to converge to."""
        return self.separated in (COMPLETE, WITHIN)

    def have_levels(self, columns):
        return bool(np.isin(columns, self.levels).any())


def of_outcome(params, chains, unbounded, columns=()):
    """The findings about a run that has ended, and about its columns.

    params : those of the classifier, by name. columns : the findings about the columns.
    """
    findings = list(columns)
    if unbounded.loosened and not len(unbounded.free):
        cure = f"Remove them from unpenalized{_and_bound(params)}, or give them a prior_scale."
        how = _how(unbounded.loosened, unbounded.separated == WITHIN)
        findings.append(Finding("separated, unpenalized", unbounded.loose, cure, how))
    elif len(unbounded.loose) and not (unbounded.are_apart or len(unbounded.free)):
        with_levels = unbounded.have_levels(unbounded.loose)
        drop = " (OneHotEncoder(drop='first'))" if with_levels else ""
        cure = f"Drop one of these columns{drop}, or remove them from unpenalized."
        example = "one-hot columns for every level of a category" if with_levels else "one that is the sum of others"
        findings.append(Finding("undetermined", unbounded.loose, cure, {"example": f"for example, {example}"}))
    if unbounded.separated:
        kind = "separated in groups" if unbounded.separated == WITHIN else "separated"
        findings.append(Finding(kind, [], "", _how(unbounded.separated), _BOUNDING))
    if len(unbounded.shrunk):
        findings.append(_one_sided("one-sided", unbounded.shrunk, unbounded, "", _BOUNDING))
    if len(unbounded.free):
        merge = " merge a rare level with another," if unbounded.have_levels(unbounded.free) else ""
        cure = (
            f"Remove the column from unpenalized{_and_bound(params)}, give it a prior_scale,{merge} or drop the column."
        )
        findings.append(_one_sided("one-sided, unpenalized", unbounded.free, unbounded, cure))
    if any(finding.changes for finding in findings):  # they make another model, whose chains begin anew
        params = replace(params, warm_start=False, checkpoint=None)
    length = _not_converged(params, chains, unbounded)
    if not length and params.target_ess is not None and chains.stopped_by == "n_iter":
        length = _short_of_target(params, chains)
    return findings + length


def _how(separation, is_known=False):
    """The words for a separation. is_known : whether another finding has explained it."""
    more = ": one plane divides them in each group with both, if effects of groups may move it"
    return {"how": separation, "more": more if separation == WITHIN and not is_known else ""}


def _one_sided(kind, columns, unbounded, cure, changes=MappingProxyType({})):
    example = "a level occurs in one class only or " if unbounded.have_levels(columns) else ""
    return Finding(kind, columns, cure, {"example": example}, changes)


def chains_of(fitted, names, rows, informative, seconds_per_sweep, worst):
    """``ChainQuality`` of a model. rows, informative : as for ``are_sums_well``. worst : of ``Watched``, or None."""
    extra, rhat, ess = other_quantities(fitted)
    coefficients = np.tile(informative, fitted.rhat_.size // len(informative))
    judged = np.append(coefficients, np.ones(len(extra), bool))
    names, rhat, ess = [*names_by_class(fitted, names[informative]), *extra], rhat[judged], ess[judged]
    n_chains, n_draws = fitted.global_scale_draws_.shape
    if worst is not None:
        names, rhat, ess = [*names, worst.name], np.append(rhat, worst.rhat), np.append(ess, worst.ess)
    max_rhat, least = np.full(len(rhat), MAX_RHAT), np.full(len(rhat), MIN_ESS_PER_CHAIN * n_chains)
    if worst is not None and worst.is_rough:
        columns = slice(coefficients.sum())
        max_rhat[columns], least[columns] = ROUGH_RHAT, ROUGH_ESS_PER_CHAIN * n_chains
    sweeps = fitted.burn_in_, fitted.n_iter_, fitted.stopped_by_, seconds_per_sweep
    length = n_chains, n_draws, fitted.moments_ is None, *sweeps
    quality = ChainQuality(names, rhat, ess, *length, max_rhat, least)
    return quality._replace(are_sums_well=are_sums_well(fitted, rows, quality.failed, informative))


def are_sums_well(fitted, rows, failed, informative):
    """Whether all quantities but single columns have converged, sums of effects over sets of correlated columns too.
    False if X is sparse, on disk, on a cluster or too large to check, and for several classes.

    fitted : attributes of a model. rows : X (n, p), y, the weights or None, and more; None on a cluster. failed : of
    the informative columns and of other quantities, bool. informative : (p,) bool, False for constant columns.
    """
    if has_sizes(fitted):
        return False
    alone = np.zeros(len(informative), bool)
    alone[informative] = failed[: informative.sum()]
    if failed.sum() > alone.sum() or not alone.any() or fitted.coef_draws_.shape[1] < MIN_ESS_PER_CHAIN:
        return False
    X, _, weight = (rows or (None, None, None))[:3]
    if not isinstance(X, np.ndarray) or is_on_disk(X) or X.shape[1] > _MOST_COLUMNS or X.size > _MOST_NUMBERS:
        return False
    try:
        sums = _sums(fitted, X, weight, alone)
    except MemoryError:  # a check is no reason to lose the draws
        return False
    if sums is None:
        return False
    checks = convergence(sums)
    return bool((checks.rhat <= MAX_RHAT).all() and (checks.ess_bulk >= MIN_ESS_PER_CHAIN * len(sums)).all())


def _sums(fitted, X, weight, alone):
    """The draws (n_chains, n_draws, k) of the sums over the sets with a column of ``alone``, or None if one of these
    columns is in no set with others."""
    sums = []
    for columns, weights in sets_for_sums(X, fitted._column_means, fitted._column_sd, weight):
        if alone[columns].any():
            if len(columns) == 1:
                return None
            sums.append(fitted.coef_draws_[..., columns] @ weights)
            alone[columns] = False
    return None if alone.any() else np.stack(sums, axis=-1)


def unbounded_in(fitted, names, run, slab_scale, one_sided, told=()):
    """``Unbounded`` for a run. one_sided : ``OneSidedColumns``. told : the findings before sampling."""
    if any(finding.kind == COPIED for finding in told):
        return Unbounded(is_copied=True)
    rows, sided = run.problem.rows, one_sided.columns
    free, bound = rows.columns.unpenalized[sided], are_bound(slab_scale, one_sided, rows)
    # Where the model takes a column for noise, the posterior stays near zero, whatever the likelihood does far out.
    shrunk = ~free & (fitted.shrinkage_[sided] < NOISE) & ~bound
    free &= rows.columns.wide[sided] | ~bound
    spread = rows.columns.sd_of_X / rows.columns.scale
    widest = _USUAL_CONTRAST * spread[~rows.columns.unpenalized].max(initial=0.0)
    loose = _loose(fitted.coef_draws_, np.flatnonzero(rows.columns.unpenalized), rows.spread)
    has_time = run.stopped_by not in ("interrupt", "max_time")  # the search for planes may take long
    is_open = has_time and not is_bound(slab_scale, widest)
    is_normal = rows.columns.unpenalized & ~rows.columns.wide & (_USUAL_CONTRAST * spread <= FAR_SLAB)
    among = ~is_normal if is_normal.any() else None  # columns of which the prior bounds nothing
    # Effects of groups may be far out; a small table is often separated within groups to no harm.
    within = any(np.quantile(draws, 0.95) > LOOSE for draws in scale_draws(fitted).values())
    separated = _separated(rows, run, among, within) if is_open else ""
    if separated == QUASI and len(sided):  # one-sided columns explain it, even if they are noise
        separated = ""
    loosened = _separated(rows, run, rows.columns.unpenalized & ~is_normal, True) if has_time and len(loose) else ""
    named = np.concatenate([sided[shrunk | free], loose])
    levels = names[named[rows.two_valued(named)]]
    shrunk, free = names[sided[shrunk]], names[sided[free]]
    return Unbounded(separated, shrunk, free, names[loose], loosened, levels)


def _separated(rows, run, among=None, within=False):
    """How planes separate the classes, or "". If ``Rows`` cannot tell, the chains may show that a plane does.

    among : (p,) bool, the columns that a plane may use; None for all. within : as in ``Rows.separation``.
    """
    separation = rows.separation(among, within)
    if separation is None:
        as_sampled, beta = run.chains.problem.rows, run.chains.state.beta
        return COMPLETE if among is None and as_sampled.separated_by(beta) else ""
    return "" if separation == NONE else separation


def is_bound(slab_scale, contrast):
    """Whether a slab (None for no slab) bounds the coefficient of a column with this contrast."""
    return slab_scale in SLABS or (slab_scale is not None and slab_scale * contrast <= FAR_SLAB)


def are_bound(slab_scale, one_sided, rows):
    """Whether the prior bounds the coefficients of the one-sided columns: a slab, if they are shrunk, or the
    ``prior_scale`` of one that is not; bool."""
    columns = one_sided.columns
    has_normal = rows.columns.unpenalized[columns] & ~rows.columns.wide[columns]  # of standard deviation 1
    counts = isinstance(slab_scale, float) or has_normal.any()
    contrast = rows.contrast[columns] if counts and len(columns) else np.zeros(len(columns))
    pairs = zip(has_normal, contrast, strict=True)
    return np.array([is_bound(1.0 if is_normal else slab_scale, one) for is_normal, one in pairs], bool)


def _and_bound(params):
    """The rest of the cure "remove it from unpenalized"."""
    return "" if params.slab_scale in SLABS else f" and set slab_scale={PER_CONTRAST!r}"


def _loose(draws, free, spread):
    """The columns among ``free`` that only their wide prior bounds. spread : (p,) of the columns of X."""
    if not len(free):
        return free
    lower, upper = interval(draws[..., free], 0.68)  # two standard deviations of a Gaussian
    width = (upper - lower).reshape(-1, len(free)).max(axis=0)  # over classes, where there are several
    return free[width / 2 * spread[free] > LOOSE]


def _text_of_rhat(rhat, limit):
    """R-hat with so many digits that it is not the limit."""
    return next((text for digits in range(4, 9) if float(text := f"{rhat:.{digits}f}") != limit), f"{rhat}")


def _not_converged(params, chains, unbounded):
    """The finding, or none, that R-hat and the effective sample sizes give; a list."""
    rhat, ess, max_rhat, least, failed = chains.rhat, chains.ess, chains.max_rhat, chains.least, chains.failed
    if not failed.any():
        return []
    few_kept = (
        f"But max_draws={params.max_draws} keeps only {chains.n_draws} draws of each chain, and R-hat and sample sizes "
        f"are computed from these: first raise it to {DRAWS_PER_EFFECTIVE * MIN_ESS_PER_CHAIN}."
    )
    if chains.n_draws < 4:
        draws = "1 draw of each chain is" if chains.n_draws == 1 else f"{chains.n_draws} draws of each chain are"
        cure, changes = _longer(params, chains) if chains.is_all else (few_kept, {})
        return [Finding("too few draws", [], cure, {"draws": draws}, changes)]
    badness = np.fmax((rhat - 1) / (max_rhat - 1), least / ess)  # infinite where a chain does not move
    worst = int(np.argmax(np.where(failed, np.nan_to_num(badness, nan=0.0), -1.0)))
    facts = {"failed": failed.sum(), "judged": len(failed), "max_rhat": max_rhat[worst], "wanted": least[worst]}
    facts |= {"worst": chains.names[worst], "rhat": _text_of_rhat(rhat[worst], max_rhat[worst]), "ess": ess[worst]}
    facts["per_chain"] = least[worst] // chains.n_chains
    facts["sums"] = SUMS if chains.are_sums_well else ""
    one_sided = {*unbounded.shrunk, *unbounded.free}  # longer chains do not cure these, nor what depends on them
    others = {name for name in chains.names if str(name).endswith(SCALE_ROW) or str(name).startswith("(cut ")}
    one_sided |= {"(intercept)", *others, *WATCHED} if one_sided else set()
    curable = np.array([name not in one_sided for name in chains.names])
    to_do, cure, changes = failed & curable & (not unbounded.are_apart), "", {}
    if unbounded.is_copied:
        cure = f"Longer chains are no cure. {ONE_ROW_EACH}"
    elif not chains.is_all and chains.n_draws < 2 * MIN_ESS_PER_CHAIN:
        cure = few_kept
    elif to_do.any():
        goal = np.fmax(least, params.target_ess or 0.0)  # converged quantities may miss it
        times_longer = np.nan_to_num(np.fmax(badness, goal / ess)[curable], nan=1.0, posinf=1.0).max()
        cure, changes = _longer(params, chains, times_longer, (rhat[to_do] > _FAR_APART).any())
    return [Finding("not converged", [], cure, facts, changes)]


def _longer(params, chains, times_longer=1.0, far=False):
    """The cure and the changes of parameters that multiply the independent draws by ``times_longer``.

    far : whether the chains are so far apart that burn-in was too short.
    """
    cure, changes = "", {}
    more = nice(max(_FEWEST_SWEEPS, _MARGIN * times_longer * chains.sweeps))
    if chains.stopped_by in ("interrupt", "max_time", "callback"):
        cure = f"The run was stopped after {chains.sweeps} sweeps: let it run longer."
    elif chains.stopped_by == "target_ess":
        changes = {"target_ess": chains.wanted}
        if params.max_draws is not None:
            changes["max_draws"] = max(params.max_draws, DRAWS_PER_EFFECTIVE * MIN_ESS_PER_CHAIN)
        if params.n_iter != AUTO:
            changes["n_iter"] = max(more, params.n_iter)
    elif params.warm_start:
        anew = f" R-hat is very large: better start again with a longer burn_in (now {chains.burn_in})." if far else ""
        fewest = _FEWEST_SWEEPS if chains.n_draws < 4 else 1
        adds = nice(max(fewest, max(1.0, _MARGIN * times_longer - 1.0) * chains.sweeps))
        cure = f"Fit again with n_iter={adds}, which adds draws.{anew}"
    elif params.checkpoint is not None and not far:
        cure = f"Fit again with n_iter={more}: the run continues from the checkpoint."
    else:
        changes = {"n_iter": more}
        thin = min(params.thin, max(1, more // (DRAWS_PER_EFFECTIVE * MIN_ESS_PER_CHAIN)))
        if chains.n_draws < MIN_ESS_PER_CHAIN and thin != params.thin:
            changes["thin"] = thin
        if far or (params.burn_in != AUTO and chains.burn_in < _FEWEST_SWEEPS):
            changes["burn_in"] = max(_FEWEST_SWEEPS, more // 2, 2 * chains.burn_in if far else 0)
    return cure, changes


def _short_of_target(params, chains):
    """The finding, or none, that ``target_ess`` was not reached; a list."""
    least = int(np.argmin(chains.ess))
    ess, worst = chains.ess[least], chains.names[least]
    if ess >= params.target_ess:
        return []
    factor, cure, changes = max(2, int(np.ceil(1.2 * params.target_ess / ess))), "", {}
    if not chains.is_all:
        cure = (
            f"It is computed from the {chains.n_draws} draws of each chain that are kept. Set max_draws="
            f"{factor * chains.n_draws}{'' if params.max_draws is None else ', or leave it out'}."
        )
    elif params.warm_start:
        cure = f"Fit again with n_iter={(factor - 1) * chains.sweeps}, which adds draws."
    else:
        changes = {"n_iter": nice(factor * chains.sweeps)}
    facts = {"target": params.target_ess, "sweeps": chains.sweeps, "ess": ess, "worst": worst}
    return [Finding("short of target", [], cure, facts, changes)]
